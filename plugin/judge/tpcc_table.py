"""TPC-C runs as a table, a line for each arm of each cell: what the papers print, and the headroom beside it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plugin.evidence.tpcc import TpccAudit
from plugin.judge.arm import ArmEvidence
from plugin.judge.capacity import Step, mean_step, step_of
from plugin.judge.loads import Load, Loads
from plugin.judge.parity import AA
from plugin.judge.tpcc import ALL, Latencies

DISTRICTS = 10
"""That a delivery visits, one order each (specification, 2.7.4)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """An arm in a cell, over its ``runs``: means of tpmC and CPU, the latencies of the slowest run, sums of what went wrong.

    ``comparable``: the cell is not saturated. ``passes``: by the criterion of capacity, and ``judged_by`` what. ``repeats``: the
    arm repeats another (A/A). Share and CPU in percent; ``cpu`` is ``None`` where it was not recorded.
    """

    cell: str
    arm: str
    driver: str
    runs: int
    warehouses: int
    tpmc: float
    efc: float
    capacity_share: float
    latency: Latencies | None
    p90_s: Mapping[str, float]
    cpu: float | None
    retries: int
    errors: Mapping[str, int]
    ambiguous: int
    comparable: bool
    passes: bool
    judged_by: str
    repeats: bool
    waits: bool = True
    """Whether terminals key and think; else there is no efficiency, and no capacity."""
    skipped: float = 0.0
    """Percent of the districts visited by deliveries that had no order to deliver."""


def table(evidence: ArmEvidence) -> tuple[Line, ...]:
    """A line for each cell, arm, driver and size of load in which something was measured, by size."""
    return lines_of(Loads(evidence))


def lines_of(loads: Loads) -> tuple[Line, ...]:
    """The table of runs whose figures are known already."""
    groups: dict[tuple[str, str, str, int], list[Load]] = {}
    for load in loads.runs:
        if load.found is not None and load.found.tpmc is not None:
            key = load.cell, load.arm, load.found.header.driver, load.found.warehouses
            groups.setdefault(key, []).append(load)
    lines = (_line(key, mine, loads.parity.comparable) for key, mine in groups.items())
    return tuple(sorted(lines, key=lambda line: line.warehouses))


def _line(key: tuple[str, str, str, int], mine: Sequence[Load], comparable: Sequence[str]) -> Line:
    cell, arm, driver, warehouses = key
    found = [load.found for load in mine if load.found is not None]
    waits = all(each.header.waits for each in found)
    mean: Step = mean_step([step_of(each) for each in found])
    cpu = [load.cpu for load in mine if load.cpu is not None]
    return Line(
        cell=cell,
        arm=arm,
        driver=driver,
        runs=len(mine),
        warehouses=warehouses,
        tpmc=mean.tpmc,
        efc=mean.efc,
        capacity_share=mean.capacity_share,
        latency=mean.latencies.get(ALL),
        p90_s=mean.p90_s,
        cpu=sum(cpu) / len(cpu) if cpu else None,
        retries=sum(sum(each.retries.values()) for each in found),
        errors=dict(sum((Counter(each.errors) for each in found), Counter())),
        ambiguous=sum(each.ambiguous for each in found),
        comparable=cell in comparable or not waits,
        waits=waits,
        passes=mean.passes,
        judged_by=mean.judged_by,
        repeats=arm.endswith(AA),
        skipped=_skipped([load.run.audit for load in mine if load.run and load.run.audit]),
    )


def _skipped(audits: Sequence[TpccAudit]) -> float:
    visited = DISTRICTS * sum(audit.deliveries for audit in audits)
    return 100 * sum(audit.skipped_deliveries for audit in audits) / visited if visited else 0.0
