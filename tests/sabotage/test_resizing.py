"""Changes of size that are done wrongly on purpose: each test finds its claim refuted, for the reason it made."""

import pytest

from clusters.cluster import Cluster
from clusters.model import NodeResources
from fixtures.fault import Faults
from fixtures.judge import Judge
from fixtures.probe import Probe
from fixtures.resizing import Resizing
from fixtures.trial import Trial
from fixtures.workloads.ledger.fixture import Ledger
from plugin.profiles import node_of_size
from tests.sabotage.neighbour import goes_too
from tests.slow import slow

pytestmark = pytest.mark.topology(nodes=3)


@pytest.fixture
def node_resources(trial: Trial) -> NodeResources:
    """The first size."""
    return node_of_size("0.75/1536", trial.run.profile.node)


async def resized(ledger: Ledger, probe: Probe, resizing: Resizing, node: str) -> None:
    """As the claim's test does, to one size and of one node."""
    async with probe.watching(ledger), ledger.writing(at_least=0):
        await ledger.baseline()
        await resizing.every_node("1/2048", ledger, nodes=[node])
        await ledger.written_past_recovery()
    await ledger.audit()


@slow
@pytest.mark.sabotage("scale-up", engine="cockroach")
async def test_a_node_keeps_its_old_size(
    ledger: Ledger,
    probe: Probe,
    resizing: Resizing,
    cluster: Cluster,
    judge: Judge,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The node is started as it was."""
    give = cluster.deployment.give

    async def given(node: str, resources: NodeResources) -> None:
        if node != "n2":
            await give(node, resources)

    monkeypatch.setattr(cluster.deployment, "give", given)
    await resized(ledger, probe, resizing, "n2")
    assert judge.refuted("nodes_with_old_resources")


@slow
@pytest.mark.sabotage("scale-up", engine="cockroach")
async def test_two_nodes_are_taken_down_together(
    ledger: Ledger,
    probe: Probe,
    resizing: Resizing,
    fault: Faults,
    judge: Judge,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With each node its neighbour goes as well."""
    goes_too(fault, monkeypatch)
    await resized(ledger, probe, resizing, "n1")
    assert judge.refuted("nodes_down_at_once")
