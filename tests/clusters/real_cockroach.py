"""The CockroachDB binaries at hand, and a cluster of one: shared by the tests that need a real server."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from clusters.cache import cache_dir
from clusters.cluster import Cluster
from clusters.engines import Engine, Wanted
from clusters.engines.cockroach.cache import versions as cached
from clusters.engines.cockroach.engine import Cockroach, find
from clusters.errors import BadInput
from clusters.model import NodeResources, NodeSpec, Topology
from clusters.substrates.processes import Processes
from tests.clusters.substrates.processes.process_nodes import PATIENCE_S

RESOURCES = NodeResources(cache_mib=384, sql_memory_mib=256)


def versions() -> list[str]:
    """The newest version in the user's cache, which is what users have, or one empty word: whatever else can be had.

    All of them with ``ROACHPROOF_EVERY_VERSION``, for whoever changes how versions are spoken to.
    """
    found = [str(version) for version in cached(cache_dir(os.environ))] or [""]
    return found if os.environ.get("ROACHPROOF_EVERY_VERSION") else found[-1:]


def cockroach(version: str = "") -> Cockroach:
    """That version; skips the test, saying what is missing, where there is none."""
    if not version and not os.environ.get("COCKROACH_BINARY"):
        known = [found for found in versions() if found]
        if not known:
            pytest.skip(f"no cockroach binary: none in {cache_dir(os.environ)} and $COCKROACH_BINARY is not set")
        version = known[-1]
    try:
        return find(Wanted(version=version or None, say=print))
    except BadInput as error:
        pytest.skip(f"no cockroach binary: {error}")


@asynccontextmanager
async def running(workdir: Path, engine: Engine, *, nodes: int = 3) -> AsyncIterator[Cluster]:
    """A healthy cluster, gone at the end whatever happens."""
    topology = Topology(name="test", nodes=tuple(NodeSpec(name=f"n{i}") for i in range(1, nodes + 1)))
    substrate = await Processes.open(name="cockroach-test", workdir=workdir, say=print)
    try:
        cluster = await Cluster.provision(
            engine=engine, substrate=substrate, topology=topology, resources=RESOURCES, tuned=True
        )
        await cluster.replicated(timeout=PATIENCE_S)
        yield cluster
    finally:
        await substrate.close()


async def ask(cluster: Cluster, sql: str, *arguments: object, node: str | None = None) -> list[Any]:
    """Rows of a statement, through this node or any."""
    async with await cluster.deployment.connect(node) as connection:
        return list(await connection.query(sql, *arguments))


async def leader(cluster: Cluster, table: str) -> str:
    """The node that leads most ranges of a table."""
    return (await cluster.leases(table)).most_common(1)[0][0]
