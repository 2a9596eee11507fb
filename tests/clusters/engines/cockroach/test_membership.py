"""How a cluster refuses to let a node go, on answers made by hand: seen, or not known."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from clusters.engines.cockroach import membership
from clusters.engines.cockroach.deployment import CockroachDeployment
from clusters.engines.cockroach.installed import Installed
from clusters.engines.cockroach.members import Members
from clusters.engines.cockroach.membership import Membership
from clusters.engines.cockroach.version import Version
from clusters.engines.cockroach.versions import dialect_for
from clusters.errors import CommandTimedOut, HarnessError, TimedOut
from clusters.model import NodeResources
from clusters.sql import Failure, SqlError


class Server:
    """Three nodes; n3 holds ``held`` of ten ranges at each look, ``None`` where nobody answers.

    ``says``: why the order is refused.
    """

    def __init__(self, *held: int | None, says: str = "") -> None:
        self._held = list(held)
        self._says = says
        self.orders: list[str] = []
        self.flags: list[str] = []
        self.addresses = {"n1": "127.0.0.1", "n2": "127.0.0.2", "n3": "127.0.0.3"}

    async def query(self, sql: str, *_: object, **__: object) -> Sequence[dict[str, Any]]:
        held = self._held.pop(0) if len(self._held) > 1 else self._held[0]
        if held is None:
            raise SqlError("n1: TimeoutError", failure=Failure.AMBIGUOUS, code="timeout")
        return [{"range_id": n, "replicas": "1,2,3" if n < held else "1,2"} for n in range(10)]

    async def command(self, *arguments: str, timeout: float = 30.0) -> str:
        self.orders.append(" ".join(arguments[:3]))
        self.flags += arguments[3:]
        if arguments[1] == "decommission" and self._says == "silence":
            raise CommandTimedOut(f"did not end within {timeout:g} s; its last words: n9 is tried again")
        if arguments[1] == "decommission" and self._says:
            raise HarnessError(self._says)
        return ""


class Numbered(Members):
    """Three nodes that live, each with a store of its own number."""

    async def live(self, *, timeout: float = 5.0) -> dict[str, int]:
        return {"n1": 1, "n2": 2, "n3": 3}

    async def stores(self, live: Mapping[str, int] | None = None, *, timeout: float = 5.0) -> dict[int, str]:
        return {1: "n1", 2: "n2", 3: "n3"}


def of(server: Any, version: str) -> Membership:
    dialect = dialect_for(Version.parse(version))
    return Membership(server, dialect, server.command, Numbered(server, dialect), tuned=True)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look every few milliseconds, for a twentieth of a second."""
    monkeypatch.setattr(membership, "POLL_S", 0.005)
    monkeypatch.setattr(membership, "REFUSAL_S", {True: 0.05, False: 0.05})


async def test_replicas_that_stay_are_a_refusal_and_the_order_is_taken_back() -> None:
    server = Server(7)
    assert await of(server, "v21.1.0").refusal("n3") == "all 7 replicas stayed where they were for 0 s"
    assert server.orders == ["node decommission 3", "node recommission 3"]


async def test_one_that_leaves_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(membership, "REFUSAL_S", {True: 60.0, False: 60.0})  # it ends with the look that shows it
    server = Server(7, 7, None, 6)
    assert await of(server, "v21.1.0").refusal("n3") is None
    assert server.orders[-1] == "node recommission 3"


async def test_where_nobody_says_at_the_end_it_is_not_known() -> None:
    server = Server(7, None)
    with pytest.raises(HarnessError, match="TimeoutError"):
        await of(server, "v21.1.0").refusal("n3")
    assert server.orders[-1] == "node recommission 3"


@pytest.mark.parametrize(
    ("says", "error"),
    [
        ("n9: ranges blocking decommission\nERROR: Cannot decommission nodes.", TimedOut),
        ("no node answers", HarnessError),
    ],
)
async def test_a_node_that_the_command_does_not_let_go_is_a_finding(says: str, error: type[Exception]) -> None:
    server = Server(7, says=says)
    server.addresses["n4"] = "127.0.0.4"
    with pytest.raises(HarnessError, match=says.splitlines()[0]) as caught:
        await of(server, "v26.1.0").emptied("n3", timeout=1.0)
    assert type(caught.value) is error


async def test_a_command_that_says_nothing_is_a_finding_once_the_time_is_over() -> None:
    server = Server(7, says="silence")
    server.addresses["n4"] = "127.0.0.4"
    with pytest.raises(TimedOut, match=r"did not end within 0\.05 s; its last words: n9 is tried"):
        await of(server, "v26.1.0").emptied("n3", timeout=0.05)


async def test_where_nobody_answers_then_it_is_none() -> None:
    server = Server(None, says="silence")
    server.addresses["n4"] = "127.0.0.4"
    with pytest.raises(HarnessError) as caught:
        await of(server, "v26.1.0").emptied("n3", timeout=0.05)
    assert not isinstance(caught.value, TimedOut)


async def test_later_servers_are_not_asked_first_whether_they_would() -> None:
    server = Server(7)
    assert await of(server, "v26.1.0").refusal("n3") == "all 7 replicas stayed where they were for 0 s"
    assert "--checks=skip" in server.flags


@pytest.mark.parametrize("version", ["v21.1.0", "v26.1.0"])
async def test_a_command_that_fails_is_no_refusal(version: str) -> None:
    server = Server(7, says="no node answers")
    with pytest.raises(HarnessError, match="no node answers"):
        await of(server, version).refusal("n3")
    assert server.orders[-1] == "node recommission 3"


async def test_older_servers_forget_what_they_executed(tmp_path: Path) -> None:
    """Nobody can say then that nothing was done by hand."""
    old = CockroachDeployment(
        build=Installed(binary=tmp_path / "cockroach", tag="v21.1.0"),
        resources=NodeResources(cache_mib=64, sql_memory_mib=64),
        tuned=True,
    )
    with pytest.raises(HarnessError, match="these servers forget after 3600 s"):
        await old.by_hand(3601)
    assert await old.by_hand(3600) == {}
