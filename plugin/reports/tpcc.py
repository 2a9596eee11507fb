"""What the TPC-C runs of an arm show, as every report tells it: from the evidence alone, through the judge's own functions.

Times are seconds on the arm's timeline, ratios plain numbers, shares percent.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from math import exp, isfinite
from pathlib import Path
from typing import Any

from clusters.errors import BadInput
from fixtures.workloads.tpcc.evidence import SECOND
from fixtures.workloads.tpcc.judge.audit import BUILTIN
from fixtures.workloads.tpcc.judge.capacity import Knee, step_of
from fixtures.workloads.tpcc.judge.drivers import disagreements
from fixtures.workloads.tpcc.judge.figures import ALL, Figures
from fixtures.workloads.tpcc.judge.known import LOSS, RATIO, SATURATED_LOSS, SATURATED_P90, SATURATED_RATIO
from fixtures.workloads.tpcc.judge.loads import Load, Loads
from fixtures.workloads.tpcc.judge.parity import AA
from fixtures.workloads.tpcc.judge.table import Line, lines_of
from plugin.evidence.load import describe_arm, load_arm
from plugin.evidence.records import MalformedRecord
from plugin.evidence.redaction import redacted, redacted_json
from plugin.judge.arm import ArmEvidence
from plugin.judge.comparison import Looks, Margin, Ratio, ratio

COMPARED: Mapping[str, str] = {
    RATIO: "tpmC",
    LOSS: "tpmC",
    "efc_ratio_interval": "efc",
    "latency_p90_ratio_interval": "p90",
    "latency_p99_ratio_interval": "p99",
    SATURATED_RATIO: "tpmC",
    SATURATED_LOSS: "tpmC",
    SATURATED_P90: "p90",
}
"""What each metric that compares arms compares, as people call it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One run: its place in the comparison, when it was what, and its figures (``None`` for what nothing tells of).

    ``begin`` to ``end`` has everything, ``ramp`` to ``measured`` the ramp, ``measured`` to ``until`` what is judged.
    """

    name: str
    cell: str
    arm: str
    driver: str
    block: int
    begin: float
    end: float
    ramp: float | None
    measured: float | None
    until: float | None
    warehouses: int
    tpmc: float | None
    efc: float | None
    p90_ms: float | None
    cpu: float | None
    problem: str

    @property
    def repeats(self) -> bool:
        """Whether its arm repeats another (A/A)."""
        return self.arm.endswith(AA)


@dataclass(frozen=True, kw_only=True, slots=True)
class Compare:
    """A mean ratio ``second`` / ``first`` in a cell, from ``n`` pairs; without interval where one pair is all there is.

    ``visible``: the smallest true difference in percent that it would have told from none. ``decision`` by this interval alone.
    ``noise``: of the same arm run twice.
    """

    first: str
    second: str
    cell: str
    n: int
    mean: float
    low: float | None
    high: float | None
    visible: float | None
    decision: str
    noise: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """All ratios by one metric against its margin; ``lower`` and ``upper`` are ``None`` where there is no such bound.

    ``needed``: in words, what would settle what is undecided. ``look``: in words, at how many pairs a decision was sought.
    """

    metric: str
    figure: str
    percent: float | None
    lower: float | None
    upper: float | None
    ratios: tuple[Compare, ...]
    visible: float | None
    needed: str
    look: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Drivers:
    """Both drivers in one cell: mean tpmC of each, and in which figures they disagree by more than noise, in words."""

    cell: str
    native_tpmc: float
    builtin_tpmc: float
    disagreements: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Tpcc:
    """The runs of an arm, the papers' table of them, the comparisons of arms, the knees of ramps, and the drivers.

    ``ramps``: by arm, of those that were put under more than one load. ``saturated`` names in words the cells that are left out of comparisons.
    """

    runs: tuple[Run, ...]
    lines: tuple[Line, ...]
    comparisons: tuple[Comparison, ...]
    ramps: Mapping[str, Knee]
    saturated: tuple[str, ...]
    drivers: tuple[Drivers, ...]
    looks: str
    compares: bool
    """Whether arms were to be compared at all."""


def tpcc_of(evidence: ArmEvidence, limits: Mapping[str, float]) -> Tpcc | None:
    """What the TPC-C runs show; ``None`` of an arm without any. ``limits`` of the checks by metric: a comparison's margins."""
    if "tpcc" not in evidence.workloads and not any(event.name == "run.begin" for event in evidence.events):
        return None
    loads = Loads(replace(evidence, limits=limits))
    begun = {str(e.data.get("run")): e.t for e in evidence.events if e.name == "run.begin"}
    ended = {str(e.data.get("run")): e.t for e in evidence.events if e.name == "run.end"}
    last = max((event.t for event in evidence.events), default=0)
    declared, why = loads.declared
    several = any(len(cell.arms) > 1 for cell in loads.cells)
    looks = f"looks at {_numbers(declared.at)} pairs, with {declared.interval} intervals" if declared else why
    return Tpcc(
        runs=tuple(_run(load, begun.get(load.name), ended.get(load.name), last) for load in loads.runs),
        lines=lines_of(loads),
        comparisons=tuple(_comparisons(loads)),
        ramps={arm: knee for arm, knee in loads.knees.items() if len(knee.steps) > 1},
        saturated=loads.parity.saturated,
        drivers=tuple(_drivers(loads)),
        looks=looks if declared or several else "",
        compares=bool(declared) or several,
    )


def tpcc_at(directory: Path, verdict: Mapping[str, Any]) -> Tpcc | None:
    """The same, of a stored arm with this verdict; ``None`` also of what cannot be read."""
    if next(directory.glob("tpcc-*.jsonl"), None) is None:
        return None
    try:
        described = describe_arm(directory)
        evidence = without_secrets(load_arm(directory, described))
        return tpcc_of(evidence, limits_of(described, verdict))
    except (BadInput, MalformedRecord, ValueError, OSError):
        return None


def without_secrets(evidence: ArmEvidence) -> ArmEvidence:
    """The evidence with events that can be shown: arms and cells are named by them, and reports name those."""
    told = [replace(event, data=redacted_json(event.data)) for event in evidence.events]
    return replace(evidence, events=told)


def limits_of(described: Mapping[str, Any], verdict: Mapping[str, Any] | None) -> dict[str, float]:
    """The limits by metric that an arm was judged by, or else those that were declared."""
    checks = [result["check"] for result in verdict["results"]] if verdict else described.get("checks", ())
    return {
        str(check["metric"]): float(check["limit"])
        for check in checks
        if isinstance(check, Mapping) and isinstance(check.get("limit"), int | float)
    }


def _numbers(numbers: Sequence[int]) -> str:
    *others, last = map(str, numbers)
    return f"{', '.join(others)} and {last}" if others else last


def _run(load: Load, begin: int | None, end: int | None, last: int) -> Run:
    seconds = load.run.seconds if load.run else ()
    measured = [second.t for second in seconds if second.measured]
    first = seconds[0].t - SECOND if seconds else begin or 0
    until = measured[-1] if measured else None
    found = load.found
    return Run(
        name=load.name,
        cell=load.cell,
        arm=load.arm,
        driver=redacted(load.run.header.driver) if load.run else "",
        block=load.block,
        begin=(begin if begin is not None else first) / SECOND,
        end=(end if end is not None else max(last if not load.ended else 0, until or first)) / SECOND,
        ramp=first / SECOND if seconds else None,
        measured=(measured[0] - SECOND) / SECOND if measured else None,
        until=until / SECOND if until else None,
        warehouses=load.run.header.warehouses if load.run else 0,
        tpmc=found.tpmc if found else None,
        efc=step_of(found).efc if found and found.header.waits and found.tpmc is not None else None,
        p90_ms=found.latencies[ALL].p90_ms if found and ALL in found.latencies else None,
        cpu=load.cpu,
        problem=redacted(load.problem or ("" if load.ended else f"run {load.name} did not end")),
    )


def _comparisons(loads: Loads) -> Iterator[Comparison]:
    """By every metric that a check gives a margin for; by tpmC without one where no check does."""
    metrics = loads.margins() or ((RATIO,) if loads.parity.pairs else ())
    if any(sample.waits for sample in loads.samples) and loads.pairs(SATURATED_RATIO):
        metrics = tuple(dict.fromkeys((*metrics, SATURATED_RATIO)))
    for metric in metrics:
        pairs = loads.pairs(metric)
        if pairs is None:
            continue
        margin, compared = loads.margin(metric), loads.compared(metric)
        ratios = compared.ratios if compared else pairs.ratios(loads.declared[0])
        named = {
            f"{second} / {first}, {cell.name}": (first, second, cell.name)
            for cell in pairs.cells
            for first, second in permutations(cell.arms, 2)
        }
        alpha = ratios[0].alpha if ratios else 0.05
        noise = {
            name: ratio(name, logs[: max(ratios[0].n, 1)] if ratios else logs, alpha)
            for name, logs in pairs.aa.items()
            if logs
        }
        repeated = {
            f"{arm}{AA}, {cell.name}": (arm, f"{arm}{AA}", cell.name)
            for cell in pairs.cells
            for arm in cell.arms
        }
        shown = [_ratio(each, named[each.name], margin, noise=False) for each in ratios]
        shown += [_ratio(each, repeated[name], margin, noise=True) for name, each in noise.items()]
        if not shown:
            continue
        undecided = compared is not None and compared.decision == "undecided"
        yield Comparison(
            metric=metric,
            figure=COMPARED[metric],
            percent=margin.percent if margin else None,
            lower=exp(margin.lower) if margin else None,
            upper=exp(margin.upper) if margin and isfinite(margin.upper) else None,
            ratios=tuple(shown),
            visible=100 * (exp(compared.visible) - 1) if compared and compared.visible is not None else None,
            needed=compared.open if compared and undecided else "",
            look=_look(compared.look, compared.looks) if compared else "",
        )


def _look(look: int, declared: Looks) -> str:
    at = f"(at {_numbers(declared.at)} pairs), with {declared.interval} intervals"
    return f"look {look} of {len(declared.at)} {at}" if look else f"before the first look {at}"


def _ratio(found: Ratio, of: tuple[str, str, str], margin: Margin | None, *, noise: bool) -> Compare:
    first, second, cell = of
    low, high = found.interval or (None, None)
    visible = found.visible()
    return Compare(
        first=first,
        second=second,
        cell=cell,
        n=found.n,
        mean=exp(found.mean),
        low=None if low is None else exp(low),
        high=None if high is None else exp(high),
        visible=None if visible is None else 100 * (exp(visible) - 1),
        decision=str(found.decision(margin)) if margin else "",
        noise=noise,
    )


def _drivers(loads: Loads) -> Iterator[Drivers]:
    """Of each cell in which both ran, arm by arm where they share one."""
    places: dict[tuple[str, str], tuple[list[Figures], list[Figures]]] = {}
    for load in loads.runs:
        if load.found is None or load.found.tpmc is None:
            continue
        theirs = load.found.header.driver == BUILTIN
        for place in {(load.cell, load.arm.removesuffix(AA)), (load.cell, "")}:
            places.setdefault(place, ([], []))[theirs].append(load.found)
    for cell in dict.fromkeys(name for name, _ in places):
        found = {arm: both for (name, arm), both in places.items() if name == cell and all(both)}
        if not found:
            continue
        told = {arm: both for arm, both in found.items() if arm} or found
        for arm, (native, builtin) in told.items():
            sizes = {(one.warehouses, one.header.waits) for one in (*native, *builtin)}
            yield Drivers(
                cell=f"{arm}, {cell}" if arm else cell,
                native_tpmc=_mean(native),
                builtin_tpmc=_mean(builtin),
                disagreements=tuple(map(str, disagreements(native, builtin)))
                if len(sizes) == 1
                else (f"their runs are of {len(sizes)} sizes of load, and cannot be compared",),
            )


def _mean(runs: Sequence[Figures]) -> float:
    return sum(run.tpmc or 0.0 for run in runs) / len(runs)
