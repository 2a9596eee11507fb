"""The substrate ``kubernetes``: nodes as pods of StatefulSets, wherever kubeconfig (or the pod we are in) points."""

import os
from collections.abc import Iterator, Set
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from clusters.errors import BadInput
from clusters.model import Capability, NodeResources
from clusters.substrates import SubstrateKind
from clusters.substrates.kubernetes.settings import CAPABILITIES, CUTS, Given, run_below

if TYPE_CHECKING:
    from clusters.substrates.kubernetes.substrate import Kubernetes


def _offered(asked: Set[Capability]) -> frozenset[Capability]:
    cuts = {Capability.CUT_LINKS} if os.environ.get(CUTS) else frozenset()
    return (CAPABILITIES | cuts) & asked


def _why_not(capability: Capability) -> str:
    cut = capability is Capability.CUT_LINKS
    return f"links between pods are cut by a container of an image that {CUTS} names, and none is named" if cut else ""


@contextmanager
def needing_client(substrate: str) -> Iterator[None]:
    """In here modules are imported that need the client, only where they are used. Raises ``BadInput`` without it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise BadInput(
            f"substrate {substrate}: the Python package {error.name} is not installed: install the dependency group "
            '"kubernetes" (`uv sync --group kubernetes`, or `pip install --group kubernetes`)'
        ) from error


async def _open(*, needed: Set[Capability], capacity: int, **options: Any) -> "Kubernetes":
    with needing_client("kubernetes"):
        from clusters.substrates.kubernetes.substrate import Kubernetes
    return await Kubernetes.open(cuts=Capability.CUT_LINKS in needed, **options)


def _volume_mib(node: NodeResources) -> int:
    return Given.read().volume_of(node)


KIND = SubstrateKind(
    name="kubernetes",
    offered=_offered,
    why_not=_why_not,
    open=_open,
    local=False,
    run_below=run_below,
    machine=lambda opened, name: opened.machine(name),
    volume_mib=_volume_mib,
    forwards=True,
    generators=lambda opened: opened.generators,
    take_away=lambda opened, name: opened.take_away(name),
)
