"""A change of version of the embedded control that is done wrongly: the same claim is refuted, without CockroachDB."""

import pytest

from clusters.engines import Engine
from clusters.errors import BadInput
from fixtures.fault import Faults
from fixtures.judge import Judge
from fixtures.probe import Probe
from fixtures.swapping.fixture import Swapping
from fixtures.trial import Trial
from fixtures.workloads.ledger.fixture import Ledger
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
    swapping: Swapping, ledger: Ledger, probe: Probe, fault: Faults, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the first node its neighbour goes as well. That is enough: the rest of the plan is left out."""
    only_the_first(swapping)
    goes_too(fault, monkeypatch)
    async with probe.watching(ledger), ledger.writing(at_least=0):
        await swapping.follow(ledger)
    await ledger.audit()
    assert judge.refuted("processes_down_at_once")
