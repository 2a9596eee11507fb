"""Fixtures of the tests of clusters."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clusters.substrates.processes import Processes
from tests.clusters.substrates.processes.process_nodes import working_in


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lock files of the test's own, so that no other run's slots are waited for."""
    monkeypatch.setenv("ROACHPROOF_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
async def place(tmp_path: Path, state: Path) -> AsyncIterator[Processes]:
    made = await Processes.open(name="test", workdir=tmp_path / "work", slots=2)
    try:
        yield made
    finally:
        await made.close()
        assert not made.directory.exists()
        assert working_in(tmp_path) == []
