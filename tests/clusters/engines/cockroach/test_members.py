"""When a cluster is whole, and how leases are spread: on answers made by hand."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from clusters.engines.cockroach.members import Members, needed
from clusters.engines.cockroach.spread import spread
from clusters.engines.cockroach.version import Version
from clusters.engines.cockroach.versions import dialect_for
from clusters.model import Health, NodeSpec
from clusters.sql import Failure, SqlError
from tests.clusters.fake import placement_of

DIALECT = dialect_for(Version.parse("v21.1.0"))
NODES = ["n1", "n2", "n3"]


class Answers:
    """What three nodes say: n1 to n3 have the ids 1, 3, 2 and the stores 1, 2, 3."""

    def __init__(self) -> None:
        self.placements = {name: placement_of(NodeSpec(name=name)) for name in NODES}
        self.refuses = ""
        self.replicas = ["1,2,3", "3,2,1"]
        self.wanted: dict[int, int] = {}
        self.nodes = [
            {"node_id": id_, "address": f"{placement_of(NodeSpec(name=name)).address}:26257", "is_live": True}
            for name, id_ in zip(NODES, (1, 3, 2), strict=True)
        ]
        self.sent: list[str] = []
        self.failing: list[str] = []
        """Statements that fail once."""
        self.failure = Failure.REFUSED

    async def query(self, sql: str, **_: object) -> Sequence[dict[str, Any]]:
        answers: dict[str, Sequence[dict[str, Any]]] = {
            DIALECT.nodes: self.nodes,
            DIALECT.stores: [{"node_id": n, "store_id": s} for n, s in ((1, 1), (3, 2), (2, 3))],
            DIALECT.wanted: [{"range_id": n, "replicas": count} for n, count in self.wanted.items()],
            DIALECT.all_ranges: [{"range_id": n, "replicas": held} for n, held in enumerate(self.replicas)],
        }
        return answers[sql]

    async def accepting(self, node: str) -> Health:
        return Health(ok=node != self.refuses, why="refused")

    @asynccontextmanager
    async def connected(self, _: str) -> AsyncIterator["Answers"]:
        yield self

    async def execute(self, sql: str, **_: object) -> int:
        self.sent.append(sql)
        if sql in self.failing:
            self.failing.remove(sql)
            raise SqlError("no replica", failure=self.failure, code="XX000")
        return 0


async def whole(answers: Any) -> Health:
    return await Members(answers, DIALECT).whole()


async def test_a_whole_cluster() -> None:
    assert await whole(Answers()) == Health(ok=True)
    assert await Members(Answers(), DIALECT).stores() == {1: "n1", 2: "n2", 3: "n3"}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"refuses": "n2"}, "n2 takes no clients"),
        ({"replicas": ["1,2,3", "1,2"]}, "1 of 2 ranges lack replicas"),
        ({"replicas": ["1,2,3,9"]}, "1 have replicas on dead ones"),
        ({"replicas": []}, "no range"),
        ({"nodes": Answers().nodes[:2]}, "not live: n3"),
        ({"nodes": None}, "TypeError"),
    ],
)
async def test_what_is_missing_is_said(change: dict[str, Any], why: str) -> None:
    answers = Answers()
    vars(answers).update(change)
    health = await whole(answers)
    assert not health.ok
    assert why in health.why


@pytest.mark.parametrize(
    ("replicas", "wanted", "why"),
    [
        (["1,2,3", "1,2,3,4,5"], {1: 5}, ""),
        (["1,2,3", "1,2,3,4"], {1: 5}, "1 of 2 ranges lack replicas"),
        (["1,2,3", "1,2,3"], {1: 5}, "1 of 2 ranges lack replicas"),
        (["1,2,3,4,5", "1,2,3"], {0: 7}, ""),
    ],
    ids=["whole", "four of five", "three of five", "more than there are nodes"],
)
async def test_five_nodes_hold_what_zones_ask_for(replicas: list[str], wanted: dict[int, int], why: str) -> None:
    answers = Answers()
    for number in (4, 5):
        node = NodeSpec(name=f"n{number}")
        answers.placements[node.name] = placement_of(node)
        address = f"{placement_of(node).address}:26257"
        answers.nodes.append({"node_id": number, "address": address, "is_live": True})
    answers.replicas, answers.wanted = replicas, wanted
    health = await whole(answers)
    assert health.ok == (not why)
    assert why in health.why


@pytest.mark.parametrize(
    ("wanted", "live", "count"),
    [(3, 1, 1), (3, 2, 2), (3, 6, 3), (5, 3, 3), (5, 4, 3), (5, 5, 5), (7, 6, 5), (4, 4, 4)],
)
def test_servers_keep_no_even_number_less_than_is_asked_for(wanted: int, live: int, count: int) -> None:
    assert needed(wanted, live) == count


async def test_of_two_nodes_at_one_address_the_later_is_meant() -> None:
    answers: Any = Answers()
    answers.nodes.append({**answers.nodes[0], "node_id": 4})
    members = Members(answers, DIALECT)
    assert await members.live() == {"n1": 4, "n2": 3, "n3": 2}
    answers.nodes[0]["node_id"] = 5
    await members.live()
    assert members.known["n1"] == {4, 5}


@pytest.mark.parametrize(
    ("stores", "tried"),
    [([1, 2, 3], [(1, 0), (2, 1), (2, 1), (3, 2), (1, 3)]), ([1, 2, 3, 4], [(1, 0), (2, 1), (3, 1), (3, 2), (4, 3)])],
    ids=["at the same node", "at the next of more nodes than replicas"],
)
async def test_a_lease_that_does_not_move_is_tried_again(stores: list[int], tried: list[tuple[int, int]]) -> None:
    answers: Any = Answers()
    answers.failing = [DIALECT.relocate_lease("t", 2, 1)]
    await spread(answers, DIALECT, "t", [1, 2, 3], stores)
    assert answers.sent[1:] == [DIALECT.relocate_lease("t", store, value) for store, value in tried]


async def test_a_lost_connection_is_not_tried_again() -> None:
    answers: Any = Answers()
    answers.failing, answers.failure = [DIALECT.relocate_lease("t", 1, 0)], Failure.LOST
    with pytest.raises(SqlError):
        await spread(answers, DIALECT, "t", [1], [1, 2, 3])
    assert len(answers.sent) == 2
