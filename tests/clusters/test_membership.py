"""How a cluster refuses to let a node go, on answers made by hand: seen, said by the command itself, or not known."""

from collections.abc import Sequence
from typing import Any

import pytest

from clusters.engines.cockroach import membership
from clusters.engines.cockroach.membership import Membership
from clusters.engines.cockroach.version import Version
from clusters.engines.cockroach.versions import dialect_for
from clusters.errors import HarnessError

HEAD = "id,address,sql_address,build,started_at,updated_at,locality,is_available,is_live,gossiped_replicas,is_decommissioning,membership,is_draining"


class Server:
    """Three nodes; n3 holds ``held`` of ten ranges at each look, ``None`` where nobody answers. ``says``: why the order is refused."""

    def __init__(self, *held: int | None, says: str = "", state: str = "active") -> None:
        self._held = list(held)
        self._says = says
        self._state = state
        self.orders: list[str] = []
        self.addresses = {"n1": "127.0.0.1", "n2": "127.0.0.2", "n3": "127.0.0.3"}

    async def query(self, sql: str, *_: object, **__: object) -> Sequence[dict[str, Any]]:
        held = self._held.pop(0) if len(self._held) > 1 else self._held[0]
        if held is None:
            raise TimeoutError
        return [{"range_id": n, "replicas": "1,2,3" if n < held else "1,2"} for n in range(10)]

    async def command(self, *arguments: str, timeout: float = 30.0) -> str:
        self.orders.append(" ".join(arguments[:3]))
        if arguments[1] == "status":
            return f"{HEAD}\n3,a:1,a:1,v,s,u,l,true,true,1,false,{self._state},false\n"
        if arguments[1] == "decommission" and self._says:
            raise HarnessError(self._says)
        return ""


def of(server: Any, version: str) -> Membership:
    async def live() -> dict[str, int]:
        return {"n1": 1, "n2": 2, "n3": 3}

    async def stores(_: object) -> dict[int, str]:
        return {1: "n1", 2: "n2", 3: "n3"}

    return Membership(
        server,
        dialect_for(Version.parse(version)),
        server.command,
        live=live,
        stores=stores,
        known={},
        tuned=True,
    )


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look every few milliseconds, for a twentieth of a second."""
    monkeypatch.setattr(membership, "LOOK_S", 0.005)
    monkeypatch.setattr(membership, "REFUSAL_S", {True: 0.05, False: 0.05})


async def test_replicas_that_stay_are_a_refusal_and_the_order_is_taken_back() -> None:
    server = Server(7)
    assert await of(server, "v21.1.0").refusal("n3") == "all 7 replicas stayed where they were for 0 s"
    assert server.orders == ["node decommission 3", "node recommission 3"]


async def test_one_that_leaves_is_none() -> None:
    server = Server(7, 7, None, 6)
    assert await of(server, "v21.1.0").refusal("n3") is None
    assert server.orders[-1] == "node recommission 3"


async def test_where_nobody_says_at_the_end_it_is_not_known() -> None:
    server = Server(7, None)
    with pytest.raises(HarnessError, match="TimeoutError"):
        await of(server, "v21.1.0").refusal("n3")
    assert server.orders[-1] == "node recommission 3"


async def test_later_servers_refuse_by_themselves() -> None:
    server = Server(7, says="ranges blocking decommission")
    assert await of(server, "v23.1.0").refusal("n3") == "ranges blocking decommission"
    assert server.orders[-1] == "node recommission 3"


@pytest.mark.parametrize(("version", "state"), [("v21.1.0", "active"), ("v23.1.0", "decommissioning")])
async def test_a_command_that_fails_for_another_reason_is_no_refusal(version: str, state: str) -> None:
    server = Server(7, says="no node answers", state=state)
    with pytest.raises(HarnessError, match="no node answers"):
        await of(server, version).refusal("n3")
    assert server.orders[-1] == "node recommission 3"
