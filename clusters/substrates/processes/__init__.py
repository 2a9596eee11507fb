"""The substrate ``processes``: a cluster's nodes as processes of this machine, each on a loopback address of its own."""

from collections.abc import Callable, Set
from pathlib import Path

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


async def _open(
    *,
    name: str,
    workdir: Path,
    needed: Set[Capability],
    capacity: int,
    say: Callable[[str], None],
    keep: bool,
    keep_logs: Path | None,
) -> Processes:
    return await Processes.open(
        name=name,
        workdir=workdir,
        capacity=capacity,
        say=say,
        keep=keep,
        keep_logs=keep_logs,
        namespaces=Capability.CUT_LINKS in needed,
    )


KIND = SubstrateKind(name="processes", offered=_offered, why_not=_why_not, open=_open, local=True)
