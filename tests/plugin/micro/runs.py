"""Micro benchmarks without a database: clusters that only sleep, and records as pytest-benchmark stores them."""

from collections.abc import Sequence
from typing import Any

from tests.plugin.conftest import Gate

CONFTEST = '''
import asyncio
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from clusters.errors import HarnessError
from clusters.sql import Failure, SqlError
from fixtures.micro import Served
from plugin import run as runs

SLEEPS = {"v24.1.3": 0.002, "v24.2.0": 0.03}


class Connection:
    """Of a database that refuses what is told to be refused, and otherwise sleeps."""

    def __init__(self, version):
        self.version, self.refusals, self.rolled_back = version, 0, 0

    @asynccontextmanager
    async def transaction(self):
        try:
            yield
        except SqlError:
            self.rolled_back += 1
            raise

    async def query(self):
        await asyncio.sleep(SLEEPS[self.version])
        if self.refusals:
            self.refusals -= 1
            raise SqlError("restart transaction", failure=Failure.RETRYABLE, code="40001")


class Clusters:
    def __init__(self, run):
        self.run, self.loop, self.served = run, asyncio.new_event_loop(), {}

    def of(self, target):
        if self.run.engine(target).version == "v24.9.9":
            raise HarnessError("no room")
        if target not in self.served:
            engine = self.run.engine(target)
            quiet = SimpleNamespace(watch=lambda: None, deployment=SimpleNamespace(tuned=("x = 1",)))
            self.served[target] = Served(
                engine=engine, cluster=quiet, connection=Connection(engine.version)
            )
        return self.served[target]


@pytest.fixture(scope="module")
def micro_clusters(request):
    clusters = Clusters(runs.of(request.config))
    clusters.run.begin()
    yield clusters
    clusters.loop.close()
'''

TESTS = """
import itertools
import os

attempts = itertools.count()


def test_read(micro):
    async def read():
        await micro.connection.query()

    micro.measure("a read", read)


def test_write(micro):
    if os.environ.get("BROKEN") == micro.connection.version:
        raise AssertionError("nothing was written")

    async def write():
        async with micro.connection.transaction():
            if os.environ.get("CONFLICTS") and not next(attempts) % 5:
                micro.connection.refusals += 2
            await micro.connection.query()

    micro.measure("a write", write)
    assert micro.connection.rolled_back > 0 or not os.environ.get("CONFLICTS")
"""

SHORT = (
    "--micro-turns",
    "2",
    "--benchmark-max-time",
    "0.02",
    "--run-dir",
    "out",
    "--benchmark-storage",
    "kept",
)


def prepared(gate: Gate, *versions: str) -> Sequence[str]:
    """Write the benchmarks of such a directory, with these versions at hand; returns the arguments of a short run."""
    (gate.path / "conftest.py").write_text(CONFTEST)
    (gate.path / "test_micro.py").write_text(TESTS)
    for version in versions:
        gate.fake_cockroach(version)
    return (
        "test_micro.py",
        *SHORT,
        *(part for version in versions for part in ("--cockroach-version", version)),
    )


def record(
    version: str,
    medians: dict[str, list[float]],
    *,
    when: str = "2026-11-20T10:00:00+00:00",
    engine: str = "cockroach",
    node: str = "here",
    targets: Sequence[str] = (),
    retries: int = 0,
    **settings: Any,
) -> dict[str, Any]:
    """What pytest-benchmark stores of a version: the medians of each statement in milliseconds, one a turn."""
    return {
        "datetime": when,
        "machine_info": {
            "node": node,
            "machine": "x86_64",
            "python_version": "3.11.7",
            "cpu": {"brand_raw": "a processor", "count": 2},
            "roachproof": {"nodes": 1, "profile": "laptop", **settings},
            "roachproof_load": [0.5, 1.5],
        },
        "benchmarks": [
            {
                "group": statement,
                "stats": {"median": ms / 1e3, "q1": ms / 1.1e3, "q3": ms / 0.9e3, "rounds": 400},
                "extra_info": {
                    "roachproof": {
                        "engine": engine,
                        "version": version,
                        "target": target,
                        "turn": turn,
                        "retries": retries,
                    }
                },
            }
            for target in targets or (version,)
            for statement, values in medians.items()
            for turn, ms in enumerate(values, 1)
        ],
    }
