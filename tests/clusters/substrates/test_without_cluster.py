"""Both substrates of Kubernetes from their registration to the client, where there is no cluster."""

from pathlib import Path
from typing import Any

import pytest

from clusters.errors import BadInput
from clusters.model import NodeResources, NodeSpec
from clusters.substrates import SUBSTRATES

NO_CLUSTER = "cannot be used .*No configuration found.*name a file that kubectl accepts in KUBECONFIG"


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setenv("ROACHPROOF_KUBERNETES_NAMESPACE", "team")


@pytest.mark.parametrize(("substrate", "allowed"), [("kubernetes", {}), ("adopted", {"allow_disruption": True})])
async def test_it_is_not_opened(substrate: str, allowed: dict[str, bool], tmp_path: Path) -> None:
    opens: Any = SUBSTRATES[substrate].open
    with pytest.raises(BadInput, match=NO_CLUSTER):
        await opens(
            name="test",
            workdir=tmp_path,
            needed=frozenset(),
            capacity=1,
            nodes=(NodeSpec(name="n1"),),
            resources=NodeResources(cache_mib=64, sql_memory_mib=64),
            say=print,
            keep=False,
            keep_logs=tmp_path / "kept",
            **allowed,
        )


async def test_it_is_not_described() -> None:
    describe = SUBSTRATES["adopted"].describe
    assert describe is not None
    with pytest.raises(BadInput, match=NO_CLUSTER):
        await describe()
