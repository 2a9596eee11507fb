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
from clusters.substrates.kubernetes import imported
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
            found: Found = pool.submit(asyncio.run, _module("look").found()).result()
        except (BadInput, HarnessError):
            return None
    return found


def _why_not(capability: Capability) -> str:
    if capability in CHANGES:
        return f"{capability}: an operator has its StatefulSet, and would undo what is changed of it"
    return f"{capability} is not done to a cluster that Roachproof did not make"


def _module(name: str) -> Any:
    return imported(f"{__name__}.{name}", "adopted")


async def _open(*, needed: Set[Capability], capacity: int, resources: object, keep: bool, **options: Any) -> "Adopted":
    # Its nodes have what their owner gave them, and stay in any case.
    opened: Adopted = await _module("substrate").Adopted.open(changes=bool(needed & CHANGES), **options)
    return opened


def _comes_back(opened: "Adopted", node: str, program: Path | None) -> None:
    opened.comes_back(node, program)


async def _describe() -> Sequence[str]:
    described: Sequence[str] = await _module("look").describe()
    return described


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
