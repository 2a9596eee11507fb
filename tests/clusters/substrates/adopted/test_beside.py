"""Load generators beside a cluster of others, without a Kubernetes."""

from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest

from clusters.errors import BadInput
from clusters.generators import WantedGenerators
from clusters.substrates.adopted import beside
from clusters.substrates.adopted.beside import Beside
from clusters.substrates.kubernetes.settings import Given
from tests.clusters.substrates.adopted.test_finding import RELEASE, found

OWNED = {"ROACHPROOF_KUBERNETES_NAMESPACE": "team", "ROACHPROOF_KUBERNETES_OWNER": "gate-1/7"}


async def test_they_go_with_the_pod_that_the_harness_runs_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gate whose machine was lost left them for a week."""
    made = list[Any]()

    async def make(_what: str, _create: object, _namespace: str, body: Any) -> None:
        made.append(body)
        raise BadInput("that is enough of them")

    api: Any = SimpleNamespace(
        make=make,
        batch=SimpleNamespace(create_namespaced_job=None),
        core=SimpleNamespace(list_namespaced_pod=None),
        watch=lambda *_, **__: [],
    )
    guarded: Any = SimpleNamespace(
        Guard=lambda *_, **__: SimpleNamespace(dismiss=lambda: None), remove=lambda *_, **__: 0
    )
    monkeypatch.setattr(beside, "cleanup", guarded)
    for name in ("refuse_old", "refuse_without", "refuse_shortage"):
        monkeypatch.setattr(beside, name, AsyncMock())
    history: Any = None
    with pytest.raises(BadInput, match="that is enough of them"):
        await Beside.begin(
            api,
            found("shop", [RELEASE]),
            WantedGenerators(number=1, image="suite:1"),
            cluster="c",
            given=Given.read(OWNED),
            history=history,
            say=print,
        )
    (job,) = made
    (owner,) = job["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Pod", "gate-1", "7")
