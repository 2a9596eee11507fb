"""How a drain ends that does not end well: by the exit code of ``cockroach node drain``, without a server."""

from pathlib import Path, PurePath
from typing import Any

import pytest

from clusters.engines.cockroach.deployment import CockroachDeployment
from clusters.engines.cockroach.installed import Installed
from clusters.errors import CommandTimedOut, HarnessError, NotDrained, TimedOut
from clusters.model import Completed, NodeResources, NodeSpec, Placement


class Nodes:
    """Runs any command so that it ends with this code, or not in time."""

    scratch = Path("/nonexistent")

    def __init__(self, code: int | None) -> None:
        self._code = code

    async def put(self, *_: Any) -> None:
        """Nothing is looked at."""

    async def run(self, argv: Any, *, timeout: float, **_: Any) -> Completed:
        """``None``: it does not end in time."""
        if self._code is None:
            raise CommandTimedOut(f"{argv[1]} did not end within {timeout:g} s")
        return Completed(code=self._code, out="", err="ERROR: drain timeout")


@pytest.mark.parametrize(
    ("code", "error", "says"),
    [
        (1, NotDrained, "ended with 1: ERROR: drain timeout"),
        (None, TimedOut, "did not end within 9 s"),
        (-9, HarnessError, "ended with -9"),
    ],
)
async def test_whose_fault_it_is_that_a_node_is_not_drained(
    code: int | None, error: type[Exception], says: str
) -> None:
    installed = Installed(binary=Path("/nonexistent/cockroach"), tag="v21.1.0-alpha.20210228")
    resources = NodeResources(cache_mib=1, sql_memory_mib=1)
    deployment: Any = CockroachDeployment(build=installed, resources=resources, tuned=False)
    home = PurePath("/nodes/n1")
    deployment._nodes = Nodes(code)
    deployment._access.certs = Path("/nonexistent/certs")
    deployment._access.add(
        Placement(
            node=NodeSpec(name="n1"), address="a", client_address="c", home=home, store=home / "s", logs=home / "l"
        )
    )
    deployment._builds.add("n1")
    with pytest.raises(error, match=says) as caught:
        await deployment.drain("n1", timeout=9.0)
    assert type(caught.value) is error
