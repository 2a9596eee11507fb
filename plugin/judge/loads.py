"""The TPC-C runs of an arm's evidence: which cell, arm and block each belongs to, and what they show together.

A test records ``run.begin {run, cell, arm, block}`` and ``run.end {run}`` around each run, and, before the first run of a
comparison, ``comparison.declared {looks, alpha, arms}``: at how many pairs it will look, at what level (by default the one that suits
their number), and, for one version against another, the old and the new arm.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import hypot, sqrt

from plugin.evidence.records import Event, MalformedRecord
from plugin.evidence.tpcc import TpccRun
from plugin.judge.arm import ArmEvidence
from plugin.judge.capacity import LEAST_SHARE, Knee, Step, step_of
from plugin.judge.comparison import Compared, Decision, Looks, Margin, equivalence, looks, non_inferiority
from plugin.judge.known import LOSS, RATIO, SATURATED_LOSS, SATURATED_P90, SATURATED_RATIO
from plugin.judge.model import Check
from plugin.judge.parity import (
    AA,
    Cell,
    Figure,
    Parity,
    Sample,
    cells,
    knees,
    latency,
    parity,
    tpmc,
    tpmc_noise,
)
from plugin.judge.tpcc import Figures, figures
from plugin.judge.tpcc_audit import BUILTIN


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """What a metric compares: a figure, of saturated runs or of the others, of all arms or of the old and the new one; and what makes its limit a margin."""

    figure: Figure
    margin: Callable[[float], Margin] = equivalence
    saturated: bool = False
    against_old: bool = False


COMPARISONS: Mapping[str, Comparison] = {
    RATIO: Comparison(figure=tpmc),
    LOSS: Comparison(figure=tpmc, margin=non_inferiority, against_old=True),
    "efc_ratio_interval": Comparison(figure=lambda step: step.efc),
    "latency_p90_ratio_interval": Comparison(figure=partial(latency, "p90_ms")),
    "latency_p99_ratio_interval": Comparison(figure=partial(latency, "p99_ms")),
    SATURATED_RATIO: Comparison(figure=tpmc, saturated=True),
    SATURATED_LOSS: Comparison(figure=tpmc, margin=non_inferiority, saturated=True, against_old=True),
    SATURATED_P90: Comparison(figure=partial(latency, "p90_ms"), saturated=True),
}
"""Every metric that compares arms."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """One run of TPC-C. ``found`` is ``None`` where nothing can be told of it, and ``problem`` then says why.

    ``cpu``: percent of the CPU there is, on average while measured: of the servers where ``run.end`` says so
    (``cpu_percent``), else of the whole host.
    """

    name: str
    cell: str
    arm: str
    block: int
    run: TpccRun | None
    found: Figures | None
    ended: bool
    cpu: float | None = None
    problem: str = ""

    @property
    def saturated(self) -> bool:
        """Whether a load with think times is too much for the cluster by the criterion of capacity."""
        if self.run is None or self.found is None or not self.run.header.waits:
            return False
        return step_of(self.found).capacity_share < LEAST_SHARE


class Loads:
    """What is derived from the TPC-C runs of one arm's evidence."""

    def __init__(self, evidence: ArmEvidence) -> None:
        self._evidence = evidence

    @cached_property
    def runs(self) -> tuple[Load, ...]:
        """All runs in the order in which they began; a run that no event speaks of is a cell of its own size."""
        begun = {str(e.data.get("run")): e for e in self._evidence.events if e.name == "run.begin"}
        ended = {str(e.data.get("run")): e for e in self._evidence.events if e.name == "run.end"}
        names = [*begun, *(name for name in self._evidence.tpcc if name not in begun)]
        return tuple(self._load(name, begun.get(name), ended.get(name)) for name in names)

    def _load(self, name: str, begin: Event | None, end: Event | None) -> Load:
        run, found, problem = self._evidence.tpcc.get(name), None, ""
        if run is None:
            problem = f"run {name} left no evidence"
        else:
            try:
                found = figures(run)
            except MalformedRecord as error:
                problem = f"run {name}: {error}"
        data = begin.data if begin else {}
        block = data.get("block", 0)
        size = f"{run.header.warehouses} warehouses" if run else ""
        return Load(
            name=name,
            cell=str(data.get("cell", size)),
            arm=str(data.get("arm", "")),
            block=block if isinstance(block, int) else 0,
            run=run,
            found=found,
            ended=begin is None or end is not None,
            cpu=self._cpu(run, end),
            problem=problem,
        )

    def _cpu(self, run: TpccRun | None, end: Event | None) -> float | None:
        told = end.data.get("cpu_percent") if end else None
        if isinstance(told, int | float):
            return float(told)
        measured = [second.t for second in run.seconds if second.measured] if run else []
        if not measured:
            return None
        seen = [cpu for t, cpu in self._evidence.host if measured[0] <= t <= measured[-1]]
        return sum(seen) / len(seen) if seen else None

    @property
    def twice(self) -> tuple[str, ...]:
        """Runs of one driver that claim the same place."""
        drivers = {load.name: load.run.header.driver if load.run else "" for load in self.runs}
        places = Counter((load.cell, load.arm, load.block, drivers[load.name]) for load in self.runs)
        return tuple(
            f"{count} runs of {arm or 'the arm'} in {cell}, block {block}"
            for (cell, arm, block, _), count in places.items()
            if count > 1
        )

    @cached_property
    def samples(self) -> tuple[Sample, ...]:
        """What the runs measured, by cell, arm and block. Where our own driver ran, the built-in one beside it decides nothing."""
        return tuple(
            Sample(
                cell=load.cell,
                arm=load.arm,
                block=load.block,
                step=step_of(load.found),
                seconds=load.found.seconds,
                waits=load.found.header.waits,
            )
            for load in self.deciding
            if load.found is not None and load.found.tpmc is not None
        )

    @cached_property
    def deciding(self) -> tuple[Load, ...]:
        """The runs of our own driver; of the built-in one where it ran alone."""
        own = tuple(load for load in self.runs if load.run is None or load.run.header.driver != BUILTIN)
        return own if any(load.run is not None for load in own) else self.runs

    @cached_property
    def drivers(self) -> Mapping[str, tuple[float, float]]:
        """By cell, how far the built-in driver's mean tpmC is above our own's, and how far it may be by chance, in percent.

        Two standard errors of the noise of both: of what came due with think times, of what was counted without; only cells in which
        both drivers ran.
        """
        found = {}
        for cell in dict.fromkeys(load.cell for load in self.runs):
            here = [
                (load.run.header.driver == BUILTIN, load.found)
                for load in self.runs
                if load.cell == cell and load.run and load.found
            ]
            theirs, ours = (
                [f for is_theirs, f in here if is_theirs is side and f.tpmc] for side in (True, False)
            )
            if theirs and ours:
                means = [sum(f.tpmc or 0.0 for f in side) / len(side) for side in (theirs, ours)]
                noise = [_noise(side) for side in (theirs, ours)]
                found[cell] = 100 * (means[0] / means[1] - 1), 200 * hypot(*noise)
        return found

    @cached_property
    def declared(self) -> tuple[Looks | None, str]:
        """The looks that were declared before the first run, or why there are none."""
        events = self._evidence.events
        told = [(i, e) for i, e in enumerate(events) if e.name == "comparison.declared"]
        first = next((i for i, e in enumerate(events) if e.name == "run.begin"), len(events))
        if not told:
            return None, "no looks were declared (comparison.declared)"
        if len(told) > 1 or told[0][0] > first:
            return None, "the looks were not declared once, before the first run"
        data = told[0][1].data
        try:
            suited = looks(*(int(n) for n in data["looks"]))
            declared = replace(suited, alpha=float(data.get("alpha", suited.alpha)))
        except (KeyError, TypeError, ValueError) as error:
            return None, f"the declared looks cannot be used ({error})"
        if declared.alpha > suited.alpha:
            why = f"{len(suited.at)} looks at {declared.alpha:g} each let more than 5 % through; at most {suited.alpha:g}"
            return None, f"the declared looks cannot be used ({why})"
        return declared, ""

    @cached_property
    def versions(self) -> tuple[str, str] | None:
        """The old and the new arm, where a comparison declared them."""
        for event in self._evidence.events:
            arms = event.data.get("arms") if event.name == "comparison.declared" else None
            if isinstance(arms, list | tuple) and len(arms) == 2:
                return str(arms[0]), str(arms[1])
        return None

    @cached_property
    def parity(self) -> Parity:
        """The pairs of all arms, by their tpmC."""
        return parity(self.paced)

    @property
    def paced(self) -> tuple[Sample, ...]:
        """The runs with think times; where there are none, all of them."""
        return tuple(sample for sample in self.samples if sample.waits) or self.samples

    @property
    def saturated(self) -> tuple[Sample, ...]:
        """The runs without think times."""
        return tuple(sample for sample in self.samples if not sample.waits)

    def pairs(self, metric: str) -> Parity | None:
        """The pairs that this metric of ``COMPARISONS`` compares; ``None`` where old and new were not declared."""
        asked = COMPARISONS[metric]
        if metric == RATIO:
            return self.parity
        if asked.against_old and not self.versions:
            return None
        samples = self.saturated if asked.saturated else self.paced
        return parity(samples, versions=self.versions if asked.against_old else None, figure=asked.figure)

    def margin(self, metric: str) -> Margin | None:
        """Within which the arms must be, where a check says so and it can be used."""
        limit = self._evidence.limits.get(metric)
        try:
            return COMPARISONS[metric].margin(limit) if limit is not None else None
        except ValueError:
            return None

    def compared(self, metric: str, *, noise: bool = False) -> Compared | None:
        """The arms compared at the declared looks; ``None`` without a margin, looks or pairs."""
        margin, pairs, declared = self.margin(metric), self.pairs(metric), self.declared[0]
        return pairs.compared(margin, declared, noise=noise) if margin and pairs and declared else None

    def margins(self) -> tuple[str, ...]:
        """The metrics for which a check sets a margin."""
        return tuple(metric for metric in COMPARISONS if self.margin(metric))

    @property
    def refuted(self) -> bool:
        """Whether the arms differ by more than one of the margins."""
        found = (self.compared(metric) for metric in self.margins())
        return any(each is not None and each.decision is Decision.REFUTED for each in found)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All cells."""
        return cells(self.samples)

    @cached_property
    def knees(self) -> Mapping[str, Knee]:
        """The knee of each arm."""
        return knees(self.cells)

    @property
    def ramp(self) -> Knee | None:
        """The knee of the arm that was put under several loads; the lowest of several such arms."""
        ramps = [knee for knee in self.knees.values() if len(knee.steps) > 1]
        return min(ramps, key=lambda k: k.capacity.warehouses if k.capacity else 0) if ramps else None

    @cached_property
    def about(self) -> Sequence[Load]:
        """The runs that a single figure is about: those of a ramp's capacity, or of the comparable cells, or else all.

        Runs of an arm that repeats another are not among them.
        """
        every = [load for load in self.deciding if load.found is not None and not load.arm.endswith(AA)]
        mine = [load for load in every if load.run and load.run.header.waits] or every
        if self.ramp is not None and all(len(cell.arms) == 1 for cell in self.cells):
            taken: Step = self.ramp.capacity or self.ramp.steps[0]
            return [load for load in mine if load.name in taken.runs]
        return [load for load in mine if load.cell in self.parity.comparable] or mine


def _noise(runs: Sequence[Figures]) -> float:
    """A standard error of their mean tpmC, as a part of it."""
    if any(one.header.waits for one in runs):
        return tpmc_noise(one.warehouses * one.seconds for one in runs)
    return 1 / sqrt(max(1, sum(one.finished.get("new_order", 0) for one in runs)))


def look(evidence: ArmEvidence, checks: Sequence[Check]) -> tuple[Compared, ...]:
    """What the pairs run so far say, by each check that compares arms: a test runs on only while one of them is undecided.

    Empty where nothing can be compared: no looks were declared, or no cell is comparable.
    """
    limits = {check.metric: check.limit for check in checks if check.limit is not None}
    loads = Loads(replace(evidence, limits=limits))
    found = (loads.compared(metric) for metric in loads.margins())
    return tuple(compared for compared in found if compared is not None)
