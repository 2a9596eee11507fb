"""The substrate ``adopted``: a cluster that is there already, in somebody's Kubernetes.

A substrate of its own and no option of ``kubernetes``: all that that one does rests on pods that it made itself, with a
first process that takes its orders; of pods of others nothing is left of it but the client.
"""

from collections.abc import Sequence, Set
from typing import TYPE_CHECKING, Any

from clusters.errors import BadInput
from clusters.model import Capability
from clusters.substrates import SubstrateKind

if TYPE_CHECKING:
    from clusters.substrates.adopted.substrate import Adopted

CAPABILITIES = frozenset(
    {Capability.REPLICATE, Capability.KILL, Capability.RESTART, Capability.DRAIN, Capability.REPORT_RANGES}
)
"""What is done to clusters of others: what Kubernetes itself undoes, and a load in one database, which is dropped."""


def _why_not(capability: Capability) -> str:
    return f"{capability} is not done to a cluster that Roachproof did not make"


def _substrate() -> "type[Adopted]":
    # The client takes a second to import: only where it is used.
    try:
        from clusters.substrates.adopted.substrate import Adopted
    except ModuleNotFoundError as error:
        raise BadInput(
            f"substrate adopted: the Python package {error.name} is not installed: install the dependency group "
            '"kubernetes" (`uv sync --group kubernetes`, or `pip install --group kubernetes`)'
        ) from error
    return Adopted


async def _open(*, needed: Set[Capability], capacity: int, resources: object, keep: bool, **options: Any) -> "Adopted":
    # Its nodes have what their owner gave them, and stay in any case.
    return await _substrate().open(**options)


async def _describe() -> Sequence[str]:
    return await _substrate().describe()


KIND = SubstrateKind(
    name="adopted",
    offered=lambda asked: CAPABILITIES & asked,
    why_not=_why_not,
    open=_open,
    describe=_describe,
)
