"""What a new fault takes is what the page says: its example is one, and it works."""

import importlib.util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from clusters.errors import HarnessError
from clusters.model import ProcessState
from fixtures.fault import Faults
from fixtures.trial import Trial
from tests.clusters.fake import Fake
from tests.docs.extending.pages import code, counted

PAGE = "fault.md"


@pytest.fixture
def crash(tmp_path: Path) -> Any:
    """The fault of the page, imported from a file of its own outside the checkout."""
    (name,) = counted(PAGE)
    path = tmp_path / name.replace("NAME", "crash")
    path.write_text(code(PAGE))
    spec = importlib.util.spec_from_file_location("crash", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.CRASH


@pytest.fixture
async def fake() -> Fake:
    return await Fake().up()


@pytest.fixture
def faults(fake: Fake) -> Faults:
    """The fixture ``fault``, while a load is running that has a client on each node."""
    unused: Any = SimpleNamespace(say=lambda *_, **__: None, directory=Path())
    trial = Trial(run=unused, claim=unused, test="t", seed=1, parameters={}, store=unused, facts={})
    trial.load = SimpleNamespace(tables=("one",), connections=dict.fromkeys(fake.cluster.nodes, 1), status={})
    return Faults(trial, fake.cluster)


async def test_it_bites_is_proven_and_undone(fake: Fake, faults: Faults, crash: Any) -> None:
    async with faults.inject(crash, ["n2"]):
        assert fake.substrate.state("n2") is ProcessState.EXITED
        assert fake.cluster.down == {"n2"}
        fake.cluster.watch()
    assert not fake.cluster.down
    assert fake.substrate.state("n2") is ProcessState.RUNNING
    told = dict(fake.events)
    assert told["fault.begin"]["fault"] == "crash"
    assert told["fault.begin"]["connections"] == {"n1": 1, "n2": 1, "n3": 1}
    assert told["fault.bit"]["proof"].startswith("ended with exit code -6, clients refused")


async def test_it_is_not_counted_where_it_did_not_bite(fake: Fake, faults: Faults, crash: Any) -> None:
    fake.deployment.ghost = True
    with pytest.raises(HarnessError, match="n2 crashed and still takes clients"):
        async with faults.inject(crash, ["n2"]):
            pytest.fail("the block must not begin")
    assert "fault.bit" not in fake.names
    assert not fake.cluster.down
