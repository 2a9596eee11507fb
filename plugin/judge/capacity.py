"""How many warehouses a cluster carries: the pass criterion of a step, the knee, what lies beyond it, and a search in few runs.

The criterion is that of CockroachDB's own ``workload tpcc``: at least 85 % of 12.605 tpmC a warehouse, and a 90th percentile
within 5 s (20 s for stock-level). Where only one for all types is known, as in the papers, efficiency alone decides, and it is marked.

How many new-orders a short run asks for is a matter of chance (10 warehouses and 60 s: ± 5.7 %). Where the evidence says how many came
due, efficiency is therefore taken as the share of those that were served, times what the deck reaches on average; else as tpmC alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from plugin.evidence.tpcc import TYPES
from plugin.judge.tpcc import ALL, CAPACITY_TPMC, EFC_TPMC, Figures, Latencies, share

LEAST_SHARE = 85.0
"""Percent of 12.605 tpmC a warehouse that a step must reach."""

MOST_P90_S: Mapping[str, float] = {name: 20.0 if name == "stock_level" else 5.0 for name in TYPES}
"""The largest 90th percentile of each type in seconds."""

COMPARABLE_EFC = 94.0
"""Percent of 12.86 tpmC a warehouse that every arm of a cell must reach to be compared; the papers' unhindered cells print 94.1 to 96.0."""

BELOW = 0.85
"""Up to this share of the capacity a step lies below the knee (our own choice: in table 5.3 efficiency bends between 1300 and 1400 of 1500 warehouses)."""

RESOLUTION = 0.1
"""How close, as a share of the capacity, a search comes to the first load that does not pass."""

FALLS = 0.95
"""Below this share of the highest tpmC, throughput is called falling past saturation (our own choice)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One step of a ramp. ``p90_s`` by type, or of "all" types where no more is known, or nothing. ``latencies`` as ``Figures`` has them.

    ``served``: new-orders that ended while measured, or at most a second later. ``due``: those that came due, 0 where that is not known.
    """

    warehouses: int
    tpmc: float
    p90_s: Mapping[str, float] = field(default_factory=dict)
    latencies: Mapping[str, Latencies] = field(default_factory=dict)
    runs: tuple[str, ...] = ()
    served: int = 0
    due: int = 0

    @property
    def pace(self) -> float:
        """TpmC without the chance of what the schedule asked for, where that is known. (One that was due before may end while measured.)"""
        return CAPACITY_TPMC * self.warehouses * min(1.0, self.served / self.due) if self.due else self.tpmc

    @property
    def efc(self) -> float:
        """``pace`` in percent of 12.86 a warehouse."""
        return share(self.pace, self.warehouses, EFC_TPMC) or 0.0

    @property
    def capacity_share(self) -> float:
        """``pace`` in percent of 12.605 a warehouse."""
        return share(self.pace, self.warehouses, CAPACITY_TPMC) or 0.0

    @property
    def by_type(self) -> bool:
        """Whether 90th percentiles are known by type."""
        return any(name in self.p90_s for name in TYPES)

    @property
    def faults(self) -> tuple[str, ...]:
        """Why it does not pass; nothing where it does."""
        wrong = []
        if self.capacity_share < LEAST_SHARE:
            wrong.append(
                f"{self.capacity_share:.1f} % of 12.605 tpmC a warehouse (at least {LEAST_SHARE:g} asked)"
            )
        wrong += [
            f"p90 of {name} {self.p90_s[name]:.1f} s (at most {most:g} asked)"
            for name, most in MOST_P90_S.items()
            if self.p90_s.get(name, 0.0) > most
        ]
        return tuple(wrong)

    @property
    def passes(self) -> bool:
        """By efficiency, and by the 90th percentiles where they are known by type."""
        return not self.faults

    @property
    def judged_by(self) -> str:
        """What the criterion could be held against."""
        if self.by_type:
            none = [name for name in TYPES if name not in self.p90_s]
            return "efficiency and p90 by type" + (f" (no {', '.join(none)} finished)" if none else "")
        return "efficiency alone" + (" (p90: all types)" if ALL in self.p90_s else " (no p90)")


def step_of(run: Figures) -> Step:
    """The step that one run makes; one in which nothing was measured reached no tpmC."""
    return Step(
        warehouses=run.warehouses,
        tpmc=run.tpmc or 0.0,
        p90_s=run.p90_s,
        latencies=run.latencies,
        runs=(run.header.run,),
        served=run.finished.get("new_order", 0) + run.just_after,
        due=run.due["new_order"] if run.due else 0,
    )


def mean_step(steps: Sequence[Step]) -> Step:
    """Several runs of one size as one step: mean tpmC, the worst 90th percentile of each type, latencies of the slowest run.

    Raises ``ValueError`` for none, or for several sizes.
    """
    if len({each.warehouses for each in steps}) != 1:
        raise ValueError("a step is made of runs of one size")
    p90: dict[str, float] = {}
    for each in steps:
        for name, value in each.p90_s.items():
            p90[name] = max(p90.get(name, 0.0), value)
    known = all(each.due for each in steps)
    slowest = max(steps, key=lambda each: each.latencies[ALL].p90_ms if ALL in each.latencies else 0.0)
    return Step(
        warehouses=steps[0].warehouses,
        tpmc=sum(each.tpmc for each in steps) / len(steps),
        p90_s=p90,
        latencies=slowest.latencies,
        runs=tuple(name for each in steps for name in each.runs),
        served=sum(each.served for each in steps),
        due=sum(each.due for each in steps) if known else 0,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Knee:
    """What a ramp shows.

    ``capacity``: the largest step that passes, if any. ``failed``: the smallest larger one that does not, where one was
    tried. ``peak``: the highest tpmC. ``falls``: whether throughput falls beyond it, ``None`` where nothing was tried beyond.
    ``unhindered``: the largest step up to which every one reaches 94 % efc.
    """

    steps: tuple[Step, ...]
    capacity: Step | None
    failed: Step | None
    peak: Step
    falls: bool | None
    unhindered: Step | None

    @property
    def below(self) -> tuple[Step, ...]:
        """The steps below the knee, whose efficiency no saturation excuses: those up to 85 % of the capacity."""
        most = BELOW * self.capacity.warehouses if self.capacity else 0.0
        return tuple(each for each in self.steps if each.warehouses <= most)

    def __str__(self) -> str:
        if self.capacity is None:
            return f"no step passes; {self.steps[0].warehouses} warehouses: {'; '.join(self.steps[0].faults)}"
        words = [f"{self.capacity.warehouses} warehouses by {self.capacity.judged_by}"]
        if self.failed is None:
            words.append("no larger load was tried: it may carry more")
        else:
            words.append(f"{self.failed.warehouses} do not pass: {'; '.join(self.failed.faults)}")
        if self.falls is not None and self.falls:
            last = self.steps[-1]
            words.append(
                f"past saturation tpmC falls, from {self.peak.tpmc:.0f} at {self.peak.warehouses} to {last.tpmc:.0f} at {last.warehouses}"
            )
        elif self.falls is not None:
            words.append("past saturation tpmC does not fall")
        return "; ".join(words)


def knee(steps: Iterable[Step]) -> Knee:
    """The knee of a ramp. Raises ``ValueError`` without steps, or with two of one size."""
    ordered = tuple(sorted(steps, key=lambda each: each.warehouses))
    if not ordered or len({each.warehouses for each in ordered}) < len(ordered):
        raise ValueError("a ramp has at least one step, and one of each size")
    passing = [each for each in ordered if each.passes]
    capacity = passing[-1] if passing else None
    least = capacity.warehouses if capacity else 0
    failed = next((each for each in ordered if each.warehouses > least and not each.passes), None)
    peak = max(ordered, key=lambda each: each.tpmc)
    beyond = [each.tpmc for each in ordered if each.warehouses > least]
    unhindered = None
    for each in ordered:
        if each.efc < COMPARABLE_EFC:
            break
        unhindered = each
    return Knee(
        steps=ordered,
        capacity=capacity,
        failed=failed,
        peak=peak,
        falls=min(beyond) < FALLS * peak.tpmc if beyond else None,
        unhindered=unhindered,
    )


def next_step(
    tried: Iterable[Step], declared: Sequence[int], *, resolution: float = RESOLUTION
) -> int | None:
    """The load to try next on the way to the capacity, or ``None`` when it is known.

    The declared loads from the least up, until one does not pass, and the next one beyond it, for what happens there; where that passes,
    the failure was bad luck, and it goes on from there. Then the
    stretch between the largest that passes and the next that does not is halved, until it is no wider than ``resolution`` of the
    former. Raises ``ValueError`` for loads or a resolution that nothing can come of.
    """
    sizes = sorted(set(declared))
    if not sizes or sizes[0] < 1 or resolution <= 0:
        raise ValueError(
            f"loads {list(declared)}, resolution {resolution:g}: give loads of at least 1 warehouse and a resolution above 0"
        )
    passes = {each.warehouses: each.passes for each in tried}
    most = max((size for size in sizes if passes.get(size)), default=0)
    failed = min((size for size in sizes if size > most and passes.get(size) is False), default=sizes[-1])
    beyond = next((size for size in sizes if size > failed), failed)
    for size in sizes:
        if size <= beyond and size not in passes:
            return size
    good = max((size for size, passed in passes.items() if passed), default=0)
    bad = min((size for size, passed in passes.items() if not passed and size > good), default=0)
    if not bad or bad - good <= max(1.0, resolution * good):
        return None
    return (good + bad) // 2
