"""What the judge measures of TPC-C runs, by name."""

from collections.abc import Callable, Mapping
from functools import partial
from math import exp
from typing import TYPE_CHECKING

from plugin.judge.analysis import Analysis
from plugin.judge.known import (
    CAPACITY,
    EFC_BELOW,
    LOSS,
    RATIO,
    RATIOS,
    SATURATED_LOSS,
    SATURATED_P90,
    SATURATED_RATIO,
    Measured,
    MetricInfo,
    nothing,
)

if TYPE_CHECKING:
    from plugin.judge.capacity import Knee
    from plugin.judge.comparison import Ratio
    from plugin.judge.loads import Load

TYPES = ("new_order", "payment", "order_status", "delivery", "stock_level")
"""As ``plugin.evidence.tpcc`` has them; that module and what judges its records is imported only where there are any."""

NO_RUN = "no TPC-C run was measured"
MOST_TOLD = 12
"""So many arms are named beside a figure."""


def _each(
    value: Callable[["Load"], float | None], worst: Callable[[list[float]], float], a: Analysis
) -> Measured:
    """The worst mean of any arm in any cell; the note has all of them."""
    arms: dict[str, list[float]] = {}
    for load in a.loads.about:
        if (one := value(load)) is not None:
            arms.setdefault(", ".join(filter(None, (load.arm, load.cell))), []).append(one)
    if not arms:
        return nothing(NO_RUN)
    means = {name: sum(values) / len(values) for name, values in arms.items()}
    told = [
        f"{name} {mean:.4g}" + (f" (n = {len(arms[name])})" if len(arms[name]) > 1 else "")
        for name, mean in means.items()
    ]
    return worst([*means.values()]), "; ".join(told[:MOST_TOLD]), ()


def _tpmc(load: "Load") -> float | None:
    return load.found.tpmc if load.found else None


def _efc(load: "Load") -> float | None:
    from plugin.judge.capacity import step_of

    return step_of(load.found).efc if load.found and load.found.tpmc is not None else None


def _cpu(load: "Load") -> float | None:
    return load.cpu


def _latency(name: str, load: "Load") -> float | None:
    found = load.found.latencies.get("all") if load.found else None
    return None if found is None else float(getattr(found, f"{name}_ms"))


def _p90(kind: str, a: Analysis) -> Measured:
    """The worst of any run."""
    seen = {
        load.name: load.found.p90_s[kind] for load in a.loads.about if load.found and kind in load.found.p90_s
    }
    if not seen:
        return nothing(f"no {kind.replace('_', '-')} finished in a measured run")
    worst = max(seen, key=lambda name: seen[name])
    return seen[worst], f"run {worst}, the slowest of {len(seen)}", ()


def _ramp(value: Callable[["Knee"], Measured], a: Analysis) -> Measured:
    ramp = a.loads.ramp
    return (
        value(ramp)
        if ramp is not None
        else nothing(NO_RUN if not a.loads.samples else "only one load was tried, which is no ramp")
    )


def _capacity(ramp: "Knee") -> Measured:
    return (ramp.capacity.warehouses if ramp.capacity else 0), str(ramp), ()


def _capacity_share(ramp: "Knee") -> Measured:
    if ramp.capacity is None:
        return nothing(str(ramp))
    return ramp.capacity.capacity_share, f"of 12.605 tpmC at {ramp.capacity.warehouses} warehouses", ()


def _efc_below(ramp: "Knee") -> Measured:
    if not ramp.below:
        return nothing("no load of at most 85 % of the capacity was tried")
    worst = min(ramp.below, key=lambda step: step.efc)
    return (
        worst.efc,
        f"at {worst.warehouses} warehouses, the lowest of {len(ramp.below)} loads up to 85 % of the capacity",
        (),
    )


def _interval(metric: str, a: Analysis) -> Measured:
    pairs = a.loads.pairs(metric)
    if pairs is None:
        return nothing(
            "the old and the new arm were not declared (comparison.declared with arms)"
            if a.loads.runs
            else NO_RUN
        )
    if metric in a.evidence.limits and a.loads.margin(metric) is None:
        return nothing(
            f"a limit of {a.evidence.limits[metric]:g} % is no margin that two arms could be within"
        )
    from plugin.judge.comparison import Decision

    compared = a.loads.compared(metric)
    ratios = compared.ratios if compared else pairs.ratios(a.loads.declared[0])
    if not ratios:
        return nothing(pairs.nothing)
    left_out = tuple(f"saturated, left out: {words}" for words in pairs.saturated)
    if any(each.interval is None for each in ratios):
        return None, f"n = {ratios[0].n}: one pair has no interval ({'; '.join(map(str, ratios))})", left_out
    note = str(compared) if compared else "; ".join(map(str, ratios))
    if compared and compared.decision is Decision.UNDECIDED and a.loads.refuted:
        return None, note, left_out  # the claim is refuted by another metric, not by this one
    return max(_far_end(each, metric) for each in ratios), note, left_out


def _far_end(one: "Ratio", metric: str) -> float:
    from plugin.judge.comparison import percent

    assert one.interval is not None
    low, high = one.interval
    return 100 * (1 - exp(low)) if metric in (LOSS, SATURATED_LOSS) else max(percent(low), percent(high))


def _smallest(a: Analysis) -> Measured:
    from plugin.judge.comparison import percent

    pairs = a.loads.pairs(LOSS) or a.loads.parity
    compared = a.loads.compared(LOSS) or a.loads.compared(RATIO)
    ratios = compared.ratios if compared else pairs.ratios(a.loads.declared[0])
    seen = {each.name: value for each in ratios if (value := each.visible()) is not None}
    if not seen:
        return nothing(pairs.nothing if not ratios else f"n = {ratios[0].n}: one pair shows no spread")
    worst = max(seen, key=lambda name: seen[name])
    return percent(seen[worst]), f"{worst}, with 90 % probability at n = {ratios[0].n}", ()


NO_SATURATED = "no run without think times"


def _headroom(a: Analysis) -> Measured:
    """By arm, its best load with think times against its best without, each by the mean of its runs."""
    best: dict[str, dict[bool, float]] = {}
    for cell in a.loads.cells:
        for arm, runs in cell.samples.items():
            waits = all(sample.waits for sample in runs.values())
            arms = best.setdefault(arm, {})
            arms[waits] = max(arms.get(waits, 0.0), cell.tpmc(arm))
    found = {
        arm: 100 * (1 - reached[True] / reached[False])
        for arm, reached in best.items()
        if True in reached and reached.get(False)
    }
    if not found:
        return nothing(NO_SATURATED if a.loads.samples else NO_RUN)
    return min(found.values()), "; ".join(f"{arm} {value:.1f}" for arm, value in found.items()), ()


def _past_saturation(a: Analysis) -> Measured:
    """From the runs of one arm without think times, by how many workers they had."""
    reached = {
        load.run.header.terminals: load.found.tpmc
        for load in a.loads.deciding
        if load.run and load.found and load.found.tpmc and not load.run.header.waits
    }
    if len(reached) < 2:
        return nothing("fewer than two numbers of workers without think times were tried")
    told = "; ".join(f"{workers} workers {reached[workers]:.4g} tpmC" for workers in sorted(reached))
    return 100 * reached[max(reached)] / max(reached.values()), told, ()


def _headroom_lost(a: Analysis) -> Measured:
    """Whichever of two arms has less."""
    pairs = a.loads.pairs(SATURATED_RATIO)
    ratios = pairs.ratios(a.loads.declared[0]) if pairs else ()
    if not ratios:
        return nothing(NO_SATURATED if a.loads.samples else NO_RUN)
    if any(each.interval is None for each in ratios):
        return nothing(f"n = {ratios[0].n}: one pair has no interval ({'; '.join(map(str, ratios))})")
    surely = [max(0.0, low, -high) for each in ratios if each.interval for low, high in (each.interval,)]
    slower = a.loads.pairs(SATURATED_P90)
    told = [*ratios, *(slower.ratios(a.loads.declared[0]) if slower else ())]
    kinds = ["tpmC"] * len(ratios) + ["p90"] * (len(told) - len(ratios))
    note = "; ".join(f"{kind} of {each}" for kind, each in zip(kinds, told, strict=True))
    return 100 * (1 - exp(-max(surely))), note, ()


def _drivers(a: Analysis) -> Measured:
    from plugin.judge.parity import signed

    found = a.loads.drivers
    if not found:
        return nothing("the drivers were never run in one cell")
    told = (
        f"{cell} {signed(1 + difference / 100)}, {'beyond' if abs(difference) > chance else 'within'} the noise of {chance:.1f} %"
        for cell, (difference, chance) in found.items()
    )
    return max((difference for difference, _ in found.values()), key=abs), "; ".join(told), ()


_LOAD = ("integrity", "tpcc_complete", "tpcc_audited", "generator_not_starved")
_PAIRS = (*_LOAD, "enough_pairs", "aa_pair_quiet")
_KNEE = (*_LOAD, "knee_found")

TPCC_METRICS: Mapping[str, MetricInfo] = {
    RATIO: MetricInfo(
        unit="%", needs=_PAIRS, measure=partial(_interval, RATIO),
        description="the farther end of the interval of any ratio of two arms' tpmC, from 1, whichever of them is divided by the other"),
    LOSS: MetricInfo(
        unit="%", needs=_PAIRS, measure=partial(_interval, LOSS),
        description="the most tpmC that the new arm may have lost against the old one: the worse end of the interval of new / old"),
    **{
        metric: MetricInfo(
            unit="%", needs=_PAIRS, measure=partial(_interval, metric),
            description=f"the same of their {of}")
        for metric, of in zip(RATIOS[1:], ("efc", "p90 latency", "p99 latency"), strict=True)
    },
    SATURATED_RATIO: MetricInfo(
        unit="%", needs=_PAIRS, measure=partial(_interval, SATURATED_RATIO),
        description="the same of their tpmC without think times: of what they could do"),
    SATURATED_LOSS: MetricInfo(
        unit="%", needs=_PAIRS, measure=partial(_interval, SATURATED_LOSS),
        description="the most tpmC without think times that the new arm may have lost against the old one"),
    SATURATED_P90: MetricInfo(
        unit="%", needs=_PAIRS, measure=partial(_interval, SATURATED_P90),
        description="the same of their p90 latency without think times"),
    "headroom": MetricInfo(
        unit="%", needs=_LOAD, measure=_headroom,
        description="how much of what an arm does without think times the load with them leaves over; of several arms the least"),
    "past_saturation": MetricInfo(
        unit="%", needs=_LOAD, measure=_past_saturation,
        description="tpmC with the most workers that do not wait, of the most that any number of them reached"),
    "headroom_lost": MetricInfo(
        unit="%", needs=_LOAD, measure=_headroom_lost,
        description="by how much one arm surely does less than another without think times: the nearer end of the interval, 0 where it includes none"),
    "smallest_difference_seen": MetricInfo(
        unit="%", needs=_LOAD, measure=_smallest,
        description="the smallest true difference of tpmC that so many pairs of such a spread tell from none with 90 % probability"),
    "driver_difference": MetricInfo(
        unit="%", needs=_LOAD, measure=_drivers,
        description="how far the built-in driver's tpmC is from our own's in the same cell, the largest of any cell"),
    "tpmc": MetricInfo(
        unit="1/min", needs=_LOAD, measure=partial(_each, _tpmc, min),
        description="new-orders a minute while measured; of a ramp at its capacity, of several arms the lowest"),
    "efc": MetricInfo(
        unit="%", needs=_LOAD, measure=partial(_each, _efc, min),
        description="tpmC in percent of 12.86 a warehouse, without the chance of what came due where that is known; of a ramp at its capacity, of several arms the lowest"),
    "cpu": MetricInfo(
        unit="%", needs=_LOAD, measure=partial(_each, _cpu, max),
        description="CPU in use while measured, of the servers where known, else of the host; of several arms the highest"),
    **{
        f"latency_{name}_ms": MetricInfo(
            unit="ms", needs=_LOAD, measure=partial(_each, partial(_latency, name), max),
            description=f"{name} latency of all transaction types, from when each was due; of a ramp at its capacity, of several arms the highest")
        for name in ("avg", "p50", "p90", "p95", "p99", "max")
    },
    **{
        f"{kind}_p90_s": MetricInfo(
            unit="s", needs=_LOAD, measure=partial(_p90, kind),
            description=f"p90 latency of {kind.replace('_', '-')}, from when each was due; of a ramp at its capacity, the slowest run")
        for kind in TYPES
    },
    CAPACITY: MetricInfo(
        unit="warehouses", needs=_KNEE, measure=partial(_ramp, _capacity),
        description="most warehouses with at least 85 % of 12.605 tpmC each and p90 within 5 s (stock-level 20 s); 0 where no load passes"),
    "capacity_share": MetricInfo(
        unit="%", needs=_LOAD, measure=partial(_ramp, _capacity_share),
        description="tpmC in percent of 12.605 a warehouse, at the step taken for the capacity"),
    EFC_BELOW: MetricInfo(
        unit="%", needs=(*_KNEE, "efc_told_from_noise"), measure=partial(_ramp, _efc_below),
        description="the lowest efc of the loads up to 85 % of the capacity"),
}  # fmt: skip
"""Every metric of TPC-C runs."""
