"""A node that is removed gives its place back where a substrate has that; nodes that are hurt keep theirs."""

from dataclasses import replace
from typing import Any

from clusters.faults.disturbance import disturb
from clusters.faults.node import KILL
from clusters.model import NodeSpec
from tests.clusters.fake import Fake, FakeSubstrate


async def take_away(substrate: Any, node: str) -> None:
    substrate.orders.append(f"take {node} away")


class Rented(FakeSubstrate):
    """Its places are somebody's."""

    kind = replace(FakeSubstrate.kind, take_away=take_away)


async def test_a_removed_node_gives_its_place_back_once_it_has_ended() -> None:
    there = Fake()
    there.substrate = Rented()
    there = await there.up()
    await there.cluster.add(NodeSpec(name="n4"))
    there.substrate.orders.clear()
    async with disturb(there.cluster, KILL, ["n1"]):
        pass
    await there.cluster.remove("n4")
    assert "start n1" in there.substrate.orders
    assert there.substrate.orders[-2:] == ["stop n4", "take n4 away"]
    assert "take n1 away" not in there.substrate.orders
