"""The faults that cut links, on a cluster in memory: what they cut, and that they heal exactly that."""

import asyncio
from collections.abc import Callable

import pytest

from clusters.errors import HarnessError
from clusters.faults import cut
from clusters.faults.disturbance import Fault, disturb
from clusters.model import Capability
from tests.clusters.fake import Fake

Made = Callable[[], Fault]
N1_AND_N2 = {("n1", "n2"), ("n2", "n1")}
ALL_OF_N2 = {*N1_AND_N2, ("n2", "n3"), ("n3", "n2")}
CASES: dict[str, tuple[Made, list[str], set[tuple[str, str]]]] = {
    "cut": (lambda: cut.cut("n1", "n2"), ["n1", "n2"], N1_AND_N2),
    "cut one way": (lambda: cut.cut("n1", "n2", one_way=True), ["n1", "n2"], {("n1", "n2")}),
    "isolate": (cut.isolate, ["n2"], ALL_OF_N2),
}
by_name = pytest.mark.parametrize("name", CASES)


@by_name
async def test_links_are_cut_proven_and_healed(name: str) -> None:
    made, nodes, links = CASES[name]
    fake = await Fake().up()
    async with disturb(fake.cluster, made(), nodes, leases={"n1": 3}):
        assert fake.substrate.cut_links == fake.cluster.cut_links == links
        assert not fake.cluster.down, "the nodes run, and one that ends is worth knowing"
    assert fake.substrate.cut_links == fake.cluster.cut_links == set()
    bit = ["fault.bit"] * len(nodes)
    assert fake.names[1:] == ["fault.begin", *bit, "fault.undo", "fault.undone"]
    facts = {"leases": {"n1": 3}, "connections": {}, "blocks": False}
    assert fake.events[1][1] == {"fault": name, "nodes": nodes, **facts}
    assert "n1 to n2 lost" in fake.events[2][1]["proof"]


@by_name
@pytest.mark.parametrize("half", [False, True], ids=["not at all", "half-way"])
async def test_a_cut_that_fails_is_healed(name: str, half: bool) -> None:
    made, nodes, _ = CASES[name]
    fake = await Fake().up()
    fake.substrate.fails, fake.substrate.half = {"cut n1 n2": 1}, half
    with pytest.raises(HarnessError, match="cut n1 n2 was refused"):
        async with disturb(fake.cluster, made(), nodes):
            pytest.fail("the block must not begin")
    assert fake.substrate.cut_links == fake.cluster.cut_links == set()


@by_name
async def test_what_cannot_be_healed_is_said(name: str) -> None:
    made, nodes, _ = CASES[name]
    fake = await Fake().up()
    fake.substrate.fails = {"heal n1 n2": 1 if name == "isolate" else 2}
    with pytest.raises(HarnessError, match=rf"^fault {name} could not be undone: .*heal n1 n2 was refused"):
        async with disturb(fake.cluster, made(), nodes):
            pass
    assert ("n1", "n2") in fake.cluster.cut_links
    assert not fake.cluster.cut_links - N1_AND_N2, "the rest is healed all the same"


@by_name
async def test_a_cancelled_test_leaves_all_links_whole_at_whatever_moment(name: str) -> None:
    made, nodes, links = CASES[name]
    inside = 0
    for moment in range(40):
        fake = await Fake().up()

        async def test(fake: Fake = fake) -> None:
            nonlocal inside
            async with disturb(fake.cluster, made(), nodes):
                inside += 1
                assert fake.substrate.cut_links == links
                await asyncio.Event().wait()

        task = asyncio.create_task(test())
        for _ in range(moment):
            await asyncio.sleep(0)
        task.cancel()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert fake.substrate.cut_links == fake.cluster.cut_links == set(), moment
    assert 0 < inside < 40, "some were cancelled within the block, some before"


async def test_a_fault_heals_what_it_cut_itself_and_no_more() -> None:
    fake = await Fake().up()
    async with disturb(fake.cluster, cut.cut("n1", "n2", one_way=True), ["n1", "n2"]):
        async with disturb(fake.cluster, cut.isolate(), ["n2"]):
            assert fake.substrate.cut_links == ALL_OF_N2
        assert fake.substrate.cut_links == {("n1", "n2")}
    assert fake.substrate.cut_links == set()


async def test_a_cut_that_cannot_be_is_refused() -> None:
    fake = await Fake().up()
    with pytest.raises(HarnessError, match=r"n9 is not part of this cluster \(n1, n2, n3\)"):
        async with disturb(fake.cluster, cut.cut("n1", "n9"), ["n1"]):
            pytest.fail("the block must not begin")
    fake.substrate.capabilities -= {Capability.CUT_LINKS}
    with pytest.raises(HarnessError, match="fault isolate: fake on fake cannot cut_links"):
        async with disturb(fake.cluster, cut.isolate(), ["n1"]):
            pytest.fail("the block must not begin")
    assert fake.substrate.cut_links == set()
