"""A cluster that was there already is left as it was: what was added goes, what has another version goes back."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clusters.cluster import Cluster
from clusters.errors import HarnessError, NotDrained
from clusters.faults.disturbance import disturb
from clusters.faults.swap import swap
from clusters.model import NodeResources, NodeSpec, ProcessSpec, ProcessState, Topology
from tests.clusters.fake import RESOURCES, Fake, FakeDeployment, FakeEngine, FakeSubstrate


def comes_back(substrate: Any, node: str, program: Path | None) -> None:
    substrate.orders.append(f"{node} comes back as {program.name}" if program else f"{node} stays away")


async def nothing() -> Sequence[str]:
    return ()


class Somebodys(FakeSubstrate):
    """Its nodes come back by themselves."""

    kind = replace(FakeSubstrate.kind, comes_back=comes_back, describe=nothing)


class Deployment(FakeDeployment):
    """Says of which program a node is; refuses what it is told to refuse."""

    undrained = unmoved = False
    left_so = ""

    def process(self, node: str) -> ProcessSpec:
        return replace(super().process(node), program=Path("/programs", self.installed.get(node, "v0")))

    async def drain(self, node: str, *, timeout: float) -> None:
        if self.undrained:
            raise NotDrained(f"{node} keeps its work")

    async def remove(self, node: str, *, timeout: float) -> None:
        if self.unmoved:
            raise HarnessError(f"{node} keeps its replicas")
        await super().remove(node, timeout=timeout)


async def adopt(deployment: Any, placements: object, nodes: Any) -> Callable[[], Awaitable[None]]:
    for name in deployment._nodes:
        await nodes.start(deployment.process(name))

    async def left() -> None:
        nodes.orders.append("left")
        if deployment.left_so:
            raise HarnessError(deployment.left_so)

    return left


class Engine(FakeEngine):
    """Is a program of its own in each version."""

    kind = replace(FakeEngine.kind, adopt=adopt)

    def __init__(self, substrate: FakeSubstrate, version: str = "v0") -> None:
        super().__init__(substrate, version)
        self.program = Path("/programs", version)

    def deploy(self, nodes: Sequence[NodeSpec], *, resources: NodeResources, tuned: bool) -> Deployment:
        return Deployment(self._substrate, nodes)


class Adopted(Fake):
    """Three nodes that were there."""

    deployment: Deployment

    def __init__(self) -> None:
        super().__init__()
        self.substrate = Somebodys()

    async def up(self) -> "Adopted":
        self.cluster = await Cluster.provision(
            engine=Engine(self.substrate),
            substrate=self.substrate,
            topology=Topology(name="t", nodes=tuple(NodeSpec(name=f"n{i}") for i in (1, 2, 3))),
            resources=RESOURCES,
            tuned=False,
            record=self.record,
        )
        assert isinstance(self.cluster.deployment, Deployment)
        self.deployment = self.cluster.deployment
        self.substrate.orders.clear()
        return self


@pytest.fixture
async def there() -> Adopted:
    return await Adopted().up()


async def test_one_that_is_swapped_comes_back_as_what_it_is_to_be_and_goes_back_at_the_end(there: Adopted) -> None:
    new = Engine(there.substrate, "v1")
    async with disturb(there.cluster, swap(new, there.cluster.engine), ["n2"]):
        pass
    assert there.substrate.orders == ["n2 comes back as v1", "stop n2", "start n2"]
    there.substrate.orders.clear()
    names = list(there.names)
    await there.cluster.leave()
    assert there.substrate.orders == ["n2 comes back as v0", "stop n2", "start n2", "left"]
    assert there.names == names, "what is done at the end is no part of what was measured"


async def test_one_that_is_not_drained_comes_back_as_what_it_was(there: Adopted) -> None:
    there.deployment.undrained = True
    async with disturb(there.cluster, swap(Engine(there.substrate, "v1"), there.cluster.engine), ["n2"]):
        pass
    assert there.substrate.orders[:3] == ["n2 comes back as v1", "n2 comes back as v0", "stop n2"]
    assert "n2" not in there.deployment.installed


async def swapped(there: Adopted, *nodes: str) -> None:
    for node in nodes:
        async with disturb(there.cluster, swap(Engine(there.substrate, "v1"), there.cluster.engine), [node]):
            pass
    there.substrate.orders.clear()


async def test_one_that_is_not_drained_when_it_is_to_go_back_serves_on_with_what_it_has(there: Adopted) -> None:
    """No further node is touched. What the engine says of the version that is kept then is told, too."""
    await swapped(there, "n1", "n2")
    there.deployment.undrained, there.deployment.left_so = True, "the version is kept"
    with pytest.raises(HarnessError, match=r"^n1 was not drained, .*: n1 keeps its work; the version is kept$"):
        await there.cluster.leave()
    assert there.substrate.orders == ["n1 comes back as v0", "n1 comes back as v1", "stop n1", "start n1", "left"]
    assert there.deployment.installed == {"n1": "v1", "n2": "v1"}


async def test_one_that_ended_by_itself_stops_the_way_back(there: Adopted) -> None:
    await swapped(there, "n1", "n2")
    there.substrate.states["n2"], there.substrate.codes["n2"] = ProcessState.EXITED, 2
    with pytest.raises(HarnessError, match=r"n2 ended .* by itself"):
        await there.cluster.leave()
    assert there.substrate.orders == ["left"]


async def test_nodes_that_were_added_are_taken_out_the_newest_first(there: Adopted) -> None:
    for name in ("n4", "n5"):
        await there.cluster.add(NodeSpec(name=name))
    there.substrate.orders.clear()
    await there.cluster.leave()
    assert there.substrate.orders == ["n5 stays away", "stop n5", "n4 stays away", "stop n4", "left"]
    assert there.deployment.forgotten == ["n5", "n4"]


async def test_one_of_whose_machines_was_lost_is_left_as_it_was_all_the_same(there: Adopted) -> None:
    """That ended the trial; what is done now is no evidence."""
    await there.cluster.add(NodeSpec(name="n4"))
    there.substrate.lost["n2"] = "its machine was not ready"
    with pytest.raises(HarnessError, match="its machine was not ready"):
        there.cluster.watch()
    there.substrate.orders.clear()
    await there.cluster.leave()
    there.cluster.watch()
    assert there.substrate.orders == ["n4 stays away", "stop n4", "left"]


async def test_one_that_cannot_be_taken_out_is_not_stopped(there: Adopted) -> None:
    await there.cluster.add(NodeSpec(name="n4"))
    there.deployment.unmoved = True
    there.substrate.orders.clear()
    with pytest.raises(HarnessError, match="n4 keeps its replicas"):
        await there.cluster.leave()
    assert there.substrate.orders == ["n4 stays away", "n4 comes back as v0", "left"]
