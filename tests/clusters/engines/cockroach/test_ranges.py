"""Whose fault it is that a table's ranges cannot be listed."""

from pathlib import Path
from typing import Any

import pytest

from clusters.engines.cockroach.deployment import CockroachDeployment
from clusters.engines.cockroach.installed import Installed
from clusters.errors import HarnessError, TimedOut
from clusters.model import NodeResources
from clusters.sql import Failure, SqlError


def deployed() -> Any:
    installed = Installed(binary=Path("/nonexistent/cockroach"), tag="v21.1.0-alpha.20210228")
    resources = NodeResources(cache_mib=1, sql_memory_mib=1)
    return CockroachDeployment(build=installed, resources=resources, tuned=False)


@pytest.mark.parametrize(
    ("failure", "code", "error"),
    [
        (Failure.AMBIGUOUS, "timeout", TimedOut),
        (Failure.LOST, "timeout", TimedOut),
        (Failure.LOST, "refused", HarnessError),
        (Failure.REFUSED, "42P01", HarnessError),
    ],
)
async def test_what_did_not_come_in_time_is_told_from_what_was_refused(
    failure: Failure, code: str, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = deployed()

    async def silent(*_: object, **__: object) -> None:
        raise SqlError("no answer", failure=failure, code=code)

    monkeypatch.setattr(deployment._access, "query", silent)
    with pytest.raises(error, match="the ranges of ledger cannot be listed: SqlError no answer") as caught:
        await deployment.ranges("ledger")
    assert type(caught.value) is error


async def test_a_machine_without_cpu_has_time_to_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first node may be frozen, and is not waited for so long."""
    deployment, answered = deployed(), list[float]()

    async def slow(_: str, *, timeout: float = 5.0) -> list[object]:
        if timeout <= 30.0:
            raise SqlError("no answer", failure=Failure.AMBIGUOUS, code="timeout")
        answered.append(timeout)
        return []

    monkeypatch.setattr(deployment._access, "query", slow)
    assert await deployment.ranges("ledger") == ()
    assert len(answered) == 3, "nodes, their stores, the ranges"
