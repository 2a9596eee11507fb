"""The substrate ``processes``: nodes as processes of this machine, each on an address of its own."""

from collections.abc import Set
from typing import Any

from clusters.model import Capability
from clusters.substrates import SubstrateKind
from clusters.substrates.processes.namespaces import why_not as cannot_cut
from clusters.substrates.processes.substrate import CAPABILITIES, Processes

__all__ = ["KIND", "Processes", "cannot_cut"]


def _offered(asked: Set[Capability]) -> frozenset[Capability]:
    cuts = Capability.CUT_LINKS in asked and cannot_cut() is None
    return (CAPABILITIES | ({Capability.CUT_LINKS} if cuts else frozenset())) & asked


def _why_not(capability: Capability) -> str:
    return (cannot_cut() or "") if capability is Capability.CUT_LINKS else ""


async def _open(*, needed: Set[Capability], nodes: object, resources: object, **options: Any) -> Processes:
    # What nodes of this machine take, the profile has asked of it.
    return await Processes.open(namespaces=Capability.CUT_LINKS in needed, **options)


KIND = SubstrateKind(
    name="processes", offered=_offered, why_not=_why_not, open=_open, local=True, leave=Processes.leave
)
