"""What the tests of a claim take on a profile, as its workloads say from declared figures, and whether there is room.

A claim names its ``costs`` in the catalogue; each is a function of a workload's (``Workload.costs``).
"""

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

from clusters.errors import BadInput
from plugin.reports.text import duration
from plugin.workloads import WORKLOADS, Cost, Where

if TYPE_CHECKING:
    from clusters.substrates import SubstrateKind
    from plugin.claims import Claim
    from plugin.run import Run


def costs_of(claim: "Claim", run: "Run", where: Where) -> list[Cost]:
    """Of one trial of the claim, in its order. Raises ``BadInput`` where the profile has no size of a workload."""
    return [
        workload.costs[name](run.size(workload), replace(where, files=run.files_of(workload), size=run.size))
        for name in claim.costs
        for workload in WORKLOADS.values()
        if name in workload.costs
    ]


def told(claim: "Claim", run: "Run", where: Where) -> list[str]:
    """The costs in words: all together, then each; nothing of a claim that names none."""
    try:
        costs = costs_of(claim, run, where)
    except BadInput as error:
        return [str(error)]
    if not costs:
        return []
    processes = max(one.processes for one in costs)
    all_of_it = Cost(
        what="", seconds=sum(one.seconds for one in costs), disk_mib=sum(one.disk_mib for one in costs),
        memory_mib=sum(one.memory_mib for one in costs),
    )  # fmt: skip
    load = f"{processes} process{'es' * (processes != 1)} of load generators" if processes else "no load generator"
    total = f"{_figures(all_of_it)}, {load} (declared figures of {where.engine.title}, profile {run.profile.name})"
    return [total, *(f"{one.what}: {_figures(one)}{_assumed(one)}" for one in costs)]


def _figures(cost: Cost) -> str:
    parts = [f"about {duration(cost.seconds)}"]
    parts += [f"{_size(cost.disk_mib)} of disk"] if cost.disk_mib else []
    parts += [f"{_size(cost.memory_mib)} of memory beside the nodes' caches"] if cost.memory_mib else []
    return ", ".join(parts)


def _assumed(cost: Cost) -> str:
    return f"; the time assumes {cost.assumes}" if cost.assumes else ""


def _size(mib: float) -> str:
    return f"{mib:,.0f} MiB" if mib < 10_240 else f"{mib / 1024:,.0f} GiB"


def check_room(claim: "Claim", run: "Run", where: Where, substrate: "SubstrateKind") -> None:
    """Raise ``BadInput`` with figures where what the claim makes does not fit on its nodes.

    Those that run on this host share its disk and memory; others have the volumes that their substrate gives them, and
    the memory of the profile's node, where it says any. What is not known is not checked. What ends by itself needs no
    room. Memory is what the nodes' caches leave.
    """
    node, disk_mib, memory_mib = run.profile.node, inf, inf
    if substrate.local:
        disk_mib, memory_mib = run.host.disk_gib * 1024, run.host.memory_gib * 1024
    elif substrate.volume_mib is not None:
        disk_mib = where.nodes * substrate.volume_mib(node)
        memory_mib = where.nodes * (node.memory_mib or inf)
    caches = where.nodes * (node.cache_mib + node.sql_memory_mib)
    costs = [one for one in costs_of(claim, run, where) if not one.ends_by_itself]
    refuse_too_much(
        costs, disk_mib=disk_mib, memory_mib=memory_mib - caches,
        named=f"claim {claim.id} on profile {run.profile.name}",
    )  # fmt: skip


def refuse_too_much(costs: Sequence[Cost], *, disk_mib: float, memory_mib: float, named: str) -> None:
    """Raise ``BadInput`` where the costs together need more than there is."""
    for what, asked, there in (
        ("disk", [one.disk_mib for one in costs], disk_mib),
        ("memory", [one.memory_mib for one in costs], max(0.0, memory_mib)),
    ):
        if (needed := sum(asked)) > there:
            most = costs[asked.index(max(asked))]
            fit = f" (about {int(most.count * there / needed)} {most.unit} fit)" if most.count else ""
            free = "free" if what == "disk" else "available beside the nodes' caches"
            raise BadInput(
                f"{named}: {most.what} take about {needed:,.0f} MiB of {what}, and {there:,.0f} MiB are {free}; "
                f"choose a smaller profile or declare fewer{fit}, or give more {what}"
            )
