"""A change of version that is made final before a node goes back: it must not, and it cannot.

It takes two versions of which the older one cannot read the newer one's stores.
"""

import pytest

from clusters.cluster import Cluster
from fixtures.judge import Judge
from fixtures.probe import Probe
from fixtures.swapping.fixture import State, Swapping
from fixtures.trial import Trial
from fixtures.workloads.ledger.fixture import Ledger
from plugin.judge.metrics import measure
from tests.sabotage.pair import pair
from tests.slow import slow

pytestmark = pytest.mark.topology(nodes=3)

versions, engine = pair("v20.2.0-dev.20201130", "v21.1.0-alpha.20210228")


@slow
@pytest.mark.sabotage("hot-swap", engine="cockroach")
@pytest.mark.parametrize("path", ["back-from-all"])
async def test_a_version_is_made_final_before_a_node_goes_back(
    trial: Trial, swapping: Swapping, ledger: Ledger, probe: Probe, cluster: Cluster, judge: Judge, path: str
) -> None:
    """Once all nodes run the new version it is made final, which nobody planned; then they are to go back."""
    made = list[str]()

    async def made_final(state: State) -> None:
        if state.name == "all new":
            await cluster.deployment.finalise(timeout=120)
            made.append(state.name)

    async with probe.watching(ledger), ledger.writing(at_least=0):
        await ledger.baseline()
        await swapping.follow(ledger, look=[made_final])
        await ledger.written_past_recovery()
    await ledger.audit()
    assert made == ["all new"], "nothing was sabotaged"
    other = measure(trial.evidence, "nodes_on_other_build")
    assert other.value == 1, "the node that goes back does not come up with its old version"
    assert "did not come up with" in other.note
    assert judge.refuted("final_early")
