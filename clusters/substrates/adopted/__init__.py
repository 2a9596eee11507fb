"""The substrate ``adopted``: a cluster that is there already, in somebody's Kubernetes.

A substrate of its own and no option of ``kubernetes``: all that that one does rests on pods that it made itself, with a
first process that takes its orders; of pods of others nothing is left of it but the client.
"""

import asyncio
import functools
from collections.abc import Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clusters.errors import BadInput, HarnessError
from clusters.model import Capability
from clusters.substrates import SubstrateKind
from clusters.substrates.adopted.capabilities import CAPABILITIES, CHANGES
from clusters.substrates.kubernetes import needing_client
from clusters.substrates.kubernetes.settings import run_below

if TYPE_CHECKING:
    from clusters.substrates.adopted.finding import Found
    from clusters.substrates.adopted.substrate import Adopted


def _offered(asked: Set[Capability]) -> frozenset[Capability]:
    return (CAPABILITIES | CHANGES if asked & CHANGES and _may_change() else CAPABILITIES) & asked


def _may_change() -> bool:
    """Whether it is nobody's but its owner's."""
    found = _found()
    return found is None or not found.custom


def _fast() -> bool:
    found = _found()
    return found is not None and found.fast


@functools.cache
def _found() -> "Found | None":
    """The cluster, looked for once. What cannot be had is said when the session begins."""
    with ThreadPoolExecutor(1) as pool:
        try:
            with needing_client("adopted"):
                from clusters.substrates.adopted.description import found
            return pool.submit(asyncio.run, found()).result()
        except (BadInput, HarnessError):
            return None


def _why_not(capability: Capability) -> str:
    if capability in CHANGES:
        return f"{capability}: an operator has its StatefulSet, and would undo what is changed of it"
    return f"{capability} is not done to a cluster that Roachproof did not make"


async def _open(*, needed: Set[Capability], capacity: int, resources: object, keep: bool, **options: Any) -> "Adopted":
    # Its nodes have what their owner gave them, and stay in any case.
    with needing_client("adopted"):
        from clusters.substrates.adopted.substrate import Adopted
    return await Adopted.open(changes=bool(needed & CHANGES), **options)


def _comes_back(opened: "Adopted", node: str, program: Path | None) -> None:
    opened.comes_back(node, program)


async def _describe() -> Sequence[str]:
    with needing_client("adopted"):
        from clusters.substrates.adopted.description import describe
    return await describe()


KIND = SubstrateKind(
    name="adopted",
    offered=_offered,
    why_not=_why_not,
    open=_open,
    describe=_describe,
    fast=_fast,
    run_below=run_below,
    machine=lambda opened, name: opened.machine(name),
    generators=lambda opened: opened.generators,
    comes_back=_comes_back,
)
