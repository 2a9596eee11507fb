"""The substrate ``kubernetes``: nodes as pods of StatefulSets, wherever kubeconfig (or the pod we are in) points."""

import os
from collections.abc import Set
from typing import TYPE_CHECKING, Any

from clusters.errors import BadInput
from clusters.model import Capability
from clusters.substrates import SubstrateKind
from clusters.substrates.kubernetes.settings import CAPABILITIES, CUTS

if TYPE_CHECKING:
    from clusters.substrates.kubernetes.substrate import Kubernetes


def _offered(asked: Set[Capability]) -> frozenset[Capability]:
    cuts = {Capability.CUT_LINKS} if os.environ.get(CUTS) else frozenset()
    return (CAPABILITIES | cuts) & asked


def _why_not(capability: Capability) -> str:
    cut = capability is Capability.CUT_LINKS
    return f"links between pods are cut by a container of an image that {CUTS} names, and none is named" if cut else ""


async def _open(*, needed: Set[Capability], capacity: int, **options: Any) -> "Kubernetes":
    # The client takes a second to import: only where it is used.
    try:
        from clusters.substrates.kubernetes.substrate import Kubernetes
    except ModuleNotFoundError as error:
        raise BadInput(
            f"substrate kubernetes: the Python package {error.name} is not installed: install the dependency group "
            '"kubernetes" (`uv sync --group kubernetes`, or `pip install --group kubernetes`)'
        ) from error
    return await Kubernetes.open(cuts=Capability.CUT_LINKS in needed, **options)


KIND = SubstrateKind(
    name="kubernetes",
    offered=_offered,
    why_not=_why_not,
    open=_open,
    local=False,
    forwards=True,
    generators=lambda opened: opened.generators,
)
