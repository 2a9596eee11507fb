"""A version is made final on servers that answer late, or not at all: on answers made by hand."""

from pathlib import Path
from typing import Any

import pytest

from clusters.engines.cockroach.deployment import CockroachDeployment
from clusters.engines.cockroach.installed import Installed
from clusters.errors import TimedOut
from clusters.model import NodeResources, RunningVersion
from clusters.sql import Failure, SqlError


def deployment_of(code: str, active: str) -> Any:
    """Of one node that is at this version; the statement that makes 26.1 final fails with this code."""
    installed = Installed(binary=Path("cockroach"), tag="v26.1.0-alpha.1")
    found: Any = CockroachDeployment(
        build=installed, resources=NodeResources(cache_mib=1, sql_memory_mib=1), tuned=False
    )

    async def execute(sql: str, *, timeout: float) -> None:
        raise SqlError("n1: TimeoutError", failure=Failure.AMBIGUOUS, code=code)

    async def running(node: str) -> RunningVersion:
        return RunningVersion(build=installed.tag, able="26.1", active=active)

    found._access.execute, found.running, found._access.placements = execute, running, {"n1": None}
    return found


async def test_a_statement_that_takes_too_long_may_have_been_done() -> None:
    await deployment_of("timeout", "26.1").finalise(timeout=0.2)
    with pytest.raises(TimedOut, match=r"n1 is at 25\.4, able to be at 26\.1"):
        await deployment_of("timeout", "25.4").finalise(timeout=0.2)


async def test_one_that_is_refused_is_not_waited_for() -> None:
    with pytest.raises(SqlError):
        await deployment_of("42501", "26.1").finalise(timeout=0.2)
