"""Arms under the same load: which cells can be compared, the pairs of arms in them, and the knee of each arm.

A cell is one load (so many warehouses) that every arm was put under, once a block. It is *comparable* when every arm reaches 94 %
of 12.86 tpmC a warehouse; otherwise it is saturated, and named. Runs without think times have no such bound: they compare
what saturated arms can do. Against an older version only the older one must reach it, or a loss would excuse itself.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import hypot, sqrt

from plugin.judge.capacity import COMPARABLE_EFC, Knee, Step, knee, mean_step
from plugin.judge.comparison import (
    LEVEL,
    Compared,
    Logs,
    Looks,
    Margin,
    Ratio,
    compare,
    least_sd,
    log_ratio,
    ratio,
)
from plugin.judge.tpcc import ALL, CAPACITY_TPMC, EFC_TPMC

AA = " (A/A)"
"""How the name of the second of two equal arms ends."""

GENERATOR_NOISE = 1.4
"""A run's tpmC varies by this over the square root of warehouses times seconds (measured: 5.7 % with 10 warehouses and 60 s)."""

ROUNDING = sqrt(1 / 12)
"""The standard error of a count of new-orders, were all else equal: it is a whole number."""

ONE_SIDED = 1.645
"""Standard errors that an efficiency may fall short by chance, one time in twenty."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """One run of one arm in one cell. ``seconds``: how long was measured, 0 where that is not known (no noise is then allowed for)."""

    cell: str
    arm: str
    block: int
    step: Step
    seconds: int = 0
    waits: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """All runs under one load, by arm and block."""

    name: str
    samples: Mapping[str, Mapping[int, Sample]]

    @property
    def arms(self) -> tuple[str, ...]:
        """All arms but those that repeat another."""
        return tuple(arm for arm in self.samples if not arm.endswith(AA))

    def tpmc(self, arm: str) -> float:
        """The arm's mean."""
        runs = self.samples[arm].values()
        return sum(sample.step.tpmc for sample in runs) / len(runs)

    def efc(self, arm: str) -> float:
        """The arm's mean, in percent of 12.86."""
        runs = self.samples[arm].values()
        return sum(sample.step.efc for sample in runs) / len(runs)

    def short(self, arm: str) -> bool:
        """Whether the arm falls short of 94 %, by more than so short a run may by chance."""
        runs = self.samples[arm]
        if not all(sample.waits for sample in runs.values()):
            return False
        return efc_at_most(runs.values(), ONE_SIDED) < COMPARABLE_EFC

    def saturated(self, arms: Sequence[str]) -> str:
        """Which of the arms fall short, in words, against the best arm; empty where none does."""
        best = max(self.samples, key=self.tpmc)
        most = self.tpmc(best) or 1.0  # none finished anything
        return "; ".join(
            f"{arm} at {self.name}: efc {self.efc(arm):.1f} %, {signed(self.tpmc(arm) / most)} against {best}"
            for arm in arms
            if arm in self.samples and self.short(arm)
        )

    def logs(self, first: str, second: str, figure: "Figure") -> tuple[Logs, list[str]]:
        """The log ratios second / first of the blocks in which both ran, in order, and what is wrong with the other blocks."""
        one, other = self.samples[first], self.samples[second]
        logs, gaps, rounding = [], [], list[float]()
        for block in sorted(one.keys() | other.keys()):
            if block not in one or block not in other:
                arm = first if block not in one else second
                gaps.append(f"{self.name}, block {block}: no run of {arm}")
                continue
            values = figure(one[block].step), figure(other[block].step)
            if min(values) <= 0:
                gaps.append(f"{self.name}, block {block}: an arm finished no new-order")
            else:
                logs.append(log_ratio(*values))
                counts = one[block].step.served, other[block].step.served
                if figure is tpmc and all(counts):
                    rounding.append(ROUNDING * hypot(*(1 / count for count in counts)))
        return Logs(logs, hypot(*rounding) / sqrt(len(rounding)) if rounding else 0.0), gaps


Figure = Callable[[Step], float]
"""What of a run is compared; 0 where it has none."""


def tpmc(step: Step) -> float:
    """New-orders a minute."""
    return step.tpmc


def latency(name: str, step: Step) -> float:
    """A latency of all types together: ``p90_ms`` and the like."""
    return float(getattr(step.latencies[ALL], name)) if ALL in step.latencies else 0.0


def signed(ratio_: float) -> str:
    """How far a ratio is from 1, in percent, with its sign."""
    return f"{100 * (ratio_ - 1):+.1f} %".replace("-", "−")


def tpmc_noise(sizes: Iterable[float]) -> float:
    """One standard error of a tpmC, as a part of it, from runs of these warehouses times seconds; 0 where one is not known."""
    known = [*sizes]
    return GENERATOR_NOISE / sqrt(sum(known)) if known and all(known) else 0.0


def efc_at_most(samples: Iterable[Sample], sigmas: float) -> float:
    """The highest efficiency, in percent of 12.86, that chance explains.

    Where it is known what came due, one order a run may end just past its last second; else so many standard errors are allowed for.
    """
    runs = [*samples]
    if runs and all(sample.step.due for sample in runs):
        served, due = sum(sample.step.served for sample in runs), sum(sample.step.due for sample in runs)
        return 100 * CAPACITY_TPMC / EFC_TPMC * (served + len(runs)) / due
    efc = sum(sample.step.efc for sample in runs) / len(runs) if runs else 0.0
    noise = tpmc_noise(sample.step.warehouses * sample.seconds for sample in runs)
    return efc * (1 + sigmas * noise)


def cells(samples: Iterable[Sample]) -> tuple[Cell, ...]:
    """The cells in the order of their loads; arms in the order in which they first came."""
    found: dict[str, dict[str, dict[int, Sample]]] = {}
    for sample in samples:
        found.setdefault(sample.cell, {}).setdefault(sample.arm, {})[sample.block] = sample

    def size(name: str) -> int:
        return min(sample.step.warehouses for runs in found[name].values() for sample in runs.values())

    return tuple(Cell(name=name, samples=found[name]) for name in sorted(found, key=lambda n: (size(n), n)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Parity:
    """What may be compared. ``pairs``: log ratios by name, "second / first, cell"; ``aa``: of the arms that were run twice.

    ``saturated`` names, cell by cell, the arms for which a cell is left out; ``gaps`` what keeps a pair from being one (an arm is run twice in some blocks only: A/A has none).
    """

    cells: tuple[Cell, ...]
    comparable: tuple[str, ...] = ()
    saturated: tuple[str, ...] = ()
    pairs: Mapping[str, Sequence[float]] = field(default_factory=dict)
    aa: Mapping[str, Sequence[float]] = field(default_factory=dict)
    gaps: tuple[str, ...] = ()

    def compared(self, margin: Margin, declared: Looks, *, noise: bool = True) -> Compared | None:
        """What all comparable cells together say; ``None`` where no pair of runs exists. ``noise``: whether A/A pairs may stop it."""
        if not self.pairs or not all(self.pairs.values()):
            return None
        return compare(self.pairs, margin, declared, aa=self.aa if noise else None)

    def ratios(self, declared: Looks | None) -> tuple[Ratio, ...]:
        """The ratios at the last look that was reached, whatever it says; of all pairs where no look was."""
        if not self.pairs or not all(self.pairs.values()):
            return ()
        n = min(map(len, self.pairs.values()))
        at = max((look for look in declared.at if look <= n), default=n) if declared else n
        alpha = declared.alpha if declared else LEVEL
        return tuple(ratio(name, logs[:at], alpha, least_sd(logs)) for name, logs in self.pairs.items())

    @property
    def nothing(self) -> str:
        """Why nothing can be compared."""
        if not self.cells:
            return "no run was recorded"
        if not self.comparable and self.saturated:
            return f"every cell is saturated: {'; '.join(self.saturated)}"
        return "; ".join(self.gaps) or "no cell has two arms"


def parity(
    samples: Iterable[Sample], *, versions: tuple[str, str] | None = None, figure: Figure = tpmc
) -> Parity:
    """The pairs of arms of all comparable cells, compared by ``figure``; with ``versions``, only that of the old and the new one."""
    found = cells(samples)
    comparable, saturated, gaps = [], [], []
    pairs: dict[str, Logs] = {}
    aa: dict[str, Logs] = {}
    for cell in found:
        if words := cell.saturated(versions[:1] if versions else cell.arms):
            saturated.append(words)
            continue
        comparable.append(cell.name)
        missing = [arm for arm in versions or () if arm not in cell.samples]
        gaps += [f"{cell.name}: no run of {arm}" for arm in missing]
        for first, second in () if missing else [versions] if versions else combinations(cell.arms, 2):
            logs, why = cell.logs(first, second, figure)
            pairs[f"{second} / {first}, {cell.name}"] = logs
            gaps += why
        for arm in cell.arms:
            if f"{arm}{AA}" in cell.samples:
                aa[f"{arm}{AA}, {cell.name}"], _ = cell.logs(arm, f"{arm}{AA}", figure)
    return Parity(
        cells=found,
        comparable=tuple(comparable),
        saturated=tuple(saturated),
        pairs=pairs,
        aa=aa,
        gaps=tuple(gaps),
    )


def knees(found: Iterable[Cell]) -> Mapping[str, Knee]:
    """The knee of each arm, from the mean of its runs of each size with think times; arms that repeat another are left out."""
    steps: dict[str, dict[int, list[Step]]] = {}
    for cell in found:
        for arm in cell.arms:
            for sample in cell.samples[arm].values():
                if sample.waits:
                    steps.setdefault(arm, {}).setdefault(sample.step.warehouses, []).append(sample.step)
    return {arm: knee(map(mean_step, sizes.values())) for arm, sizes in steps.items()}
