"""A change of version of the embedded control that is done wrongly: the same claim is refuted, without CockroachDB."""

from typing import Any

import pytest

from clusters.cluster import Cluster
from clusters.engines import Engine
from clusters.errors import BadInput
from clusters.events import NodeSwapped
from clusters.faults.disturbance import Fault
from clusters.faults.swap import swap
from fixtures.fault import Faults
from fixtures.judge import Judge
from fixtures.probe import Probe
from fixtures.swapping.broken import Update, broken
from fixtures.swapping.fixture import Swapping
from fixtures.trial import Trial
from fixtures.workloads.ledger.fixture import Ledger
from plugin.evidence.events import seen
from tests.sabotage.neighbour import goes_too
from tests.sabotage.test_versions import only_the_first

pytestmark = pytest.mark.topology(nodes=3)


@pytest.fixture
def versions(trial: Trial) -> tuple[Engine, ...]:
    """Two minor versions of one major; skips the test where their wheels are not made for this Python or platform."""
    try:
        return trial.run.named("postgres", "16.2"), trial.run.named("postgres", "16.14")
    except BadInput as error:
        pytest.skip(str(error))


@pytest.fixture
def engine(versions: tuple[Engine, ...]) -> Engine:
    """The cluster begins with the old one."""
    return versions[0]


@pytest.mark.sabotage("hot-swap", engine="postgres")
async def test_two_nodes_of_the_control_are_changed_at_once(
    trial: Trial,
    swapping: Swapping,
    ledger: Ledger,
    probe: Probe,
    fault: Faults,
    judge: Judge,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the first node its neighbour goes as well. That is enough: the rest of the plan is left out."""
    only_the_first(swapping)
    goes_too(fault, monkeypatch, seen_by=trial)
    async with probe.watching(ledger), ledger.writing(at_least=0):
        await swapping.follow(ledger)
    await ledger.audit()
    assert judge.refuted("processes_down_at_once")


@pytest.mark.sabotage("hot-swap", engine="postgres")
async def test_the_new_version_of_the_control_does_not_come_up(
    trial: Trial,
    swapping: Swapping,
    ledger: Ledger,
    probe: Probe,
    cluster: Cluster,
    judge: Judge,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first node that is given it refutes the claim and gets its former one back; no other is touched."""

    def failing(new: Engine, old: Engine, **limits: Any) -> Fault:
        return swap(broken(new, "dies", cluster.substrate.scratch), old, **limits)

    monkeypatch.setattr("fixtures.swapping.fixture.swap", failing)
    async with probe.watching(ledger), ledger.writing(at_least=0):
        await swapping.follow(ledger)
    await ledger.audit()
    swapped = [event.node for _, event in seen(trial.evidence.events, NodeSwapped)]
    assert len(swapped) == 1, "the roll stops"
    assert set(swapping.running.values()) == {swapping.plan.versions[0]}
    assert judge.refuted("nodes_on_other_build")


@pytest.mark.sabotage("hot-swap-failed-node", engine="postgres")
async def test_a_node_of_the_control_comes_back_on_another_version(
    versions: tuple[Engine, ...],
    ledger: Ledger,
    probe: Probe,
    update: Update,
    judge: Judge,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its update fails, and instead of its former version it is given one that works, too."""

    def forward(new: Engine, old: Engine, **limits: Any) -> Fault:
        return swap(new, versions[1], **limits)

    monkeypatch.setattr("fixtures.swapping.broken.swap", forward)
    async with probe.watching(ledger), ledger.writing(at_least=0), update.watched():
        async with update.failing(await ledger.serving_node(), "dies"):
            pass
        await ledger.recovery()
    await ledger.audit()
    assert judge.refuted("nodes_not_back")
