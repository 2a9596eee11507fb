"""Whose fault it is that a table's ranges cannot be listed."""

from pathlib import Path
from typing import Any

import pytest

from clusters.engines.cockroach.deployment import CockroachDeployment
from clusters.engines.cockroach.installed import Installed
from clusters.errors import HarnessError, TimedOut
from clusters.model import NodeResources
from clusters.sql import Failure, SqlError


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
    installed = Installed(binary=Path("/nonexistent/cockroach"), tag="v21.1.0-alpha.20210228")
    resources = NodeResources(cache_mib=1, sql_memory_mib=1)
    deployment: Any = CockroachDeployment(build=installed, resources=resources, tuned=False)

    async def silent(*_: object, **__: object) -> None:
        raise SqlError("no answer", failure=failure, code=code)

    monkeypatch.setattr(deployment._access, "query", silent)
    with pytest.raises(error, match="the ranges of ledger cannot be listed: SqlError no answer") as caught:
        await deployment.ranges("ledger")
    assert type(caught.value) is error
