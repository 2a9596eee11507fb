"""The evidence gate of TPC-C runs."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from plugin.judge.analysis import Analysis
from plugin.judge.known import CAPACITY, EFC_BELOW, LOSS, RATIO, Answer, ConditionInfo, some

if TYPE_CHECKING:
    from plugin.judge.comparison import Ratio
    from plugin.judge.loads import Load
    from plugin.judge.parity import Parity
    from plugin.judge.tpcc import Figures

NO_RUN = "there was no TPC-C run"

QUIET_LEVEL = 0.005
"""Without a margin, an arm run twice differs from itself where the 99 % interval leaves out 1 (our own choice)."""

SURE = 2.33
"""Standard errors by which an efficiency is low beyond chance, 99 times in a hundred (our own choice)."""


def _every(told: Callable[["Load", "Figures"], Iterable[str]], good: str, a: Analysis) -> Answer:
    """Whether nothing is wrong with any run."""
    if not a.loads.runs:
        return False, NO_RUN
    problems = []
    for load in a.loads.runs:
        if load.found is None:
            problems.append(load.problem)
        else:
            problems += [f"run {load.name}: {problem}" for problem in told(load, load.found)]
    return not problems, some(problems) or f"{len(a.loads.runs)} runs, {good}"


def _audited(a: Analysis) -> Answer:
    from plugin.judge.tpcc_audit import audited, audited_together

    known = [(load, load.run, load.found) for load in a.loads.runs if load.run and load.found]
    least = min((found.warehouses for _, _, found in known), default=0)

    def excused(load: "Load", found: "Figures") -> bool:
        return load.saturated and found.warehouses > least

    met, why = _every(
        lambda load, found: audited(load.run, found, saturated=excused(load, found)) if load.run else (),
        "each and all together within the bounds of the specification, as far as their number can tell",
        a,
    )
    together = audited_together([(run, found) for load, run, found in known if not excused(load, found)])
    return (False, some(together)) if met and together else (met, why)


def _complete(a: Analysis) -> Answer:
    from plugin.judge.tpcc_audit import incomplete

    def missing(load: "Load", found: "Figures") -> Iterable[str]:
        yield from incomplete(load.run, found) if load.run else ()
        if not load.ended:
            yield "its end was never recorded (run.end)"

    met, why = _every(missing, "from the first second to the last", a)
    return (False, some(a.loads.twice)) if met and a.loads.twice else (met, why)


def _not_starved(a: Analysis) -> Answer:
    from plugin.judge.tpcc_audit import starved

    found = [load.found for load in a.loads.runs if load.found]
    cpu = max((f.cpu_share or 0.0 for f in found), default=0.0)
    lag = max((f.lag_p95_ms or 0.0 for f in found), default=0.0)
    good = f"at most {cpu:.0%} of a core a process, late by at most {lag:.0f} ms in 19 of 20 seconds"
    return _every(lambda _, f: starved(f), good, a)


def _compares(a: Analysis) -> tuple[str, ...]:
    """The metrics at hand that compare arms."""
    return a.loads.margins() or ((LOSS,) if a.loads.versions else (RATIO,))


def _enough_pairs(a: Analysis) -> Answer:
    from plugin.judge.comparison import Decision

    if not a.loads.runs:
        return False, NO_RUN
    declared, why = a.loads.declared
    if declared is None:
        return False, why
    told, undecided = [], list[object]()
    for metric in _compares(a):
        pairs = a.loads.pairs(metric)
        if pairs is None or not (ratios := pairs.ratios(declared)):
            return False, pairs.nothing if pairs else "the old and the new arm were not declared"
        compared = a.loads.compared(metric)
        if compared is not None:
            told.append(str(compared))
            undecided += [compared, *pairs.gaps] if compared.decision is Decision.UNDECIDED else []
        elif ratios[0].n < declared.at[0]:
            why = f"n = {ratios[0].n}: the first look asks for {declared.at[0]} pairs"
            return False, "; ".join([why, *pairs.gaps])
        else:
            told.append(f"{ratios[0].n} pairs; no margin is set, so nothing is to be decided")
    if undecided and not a.loads.refuted:  # one that is refuted is enough, whatever becomes of the others
        return False, "; ".join(map(str, undecided))
    return True, "; ".join(told)


def _aa_quiet(a: Analysis) -> Answer:
    from plugin.judge.comparison import differs_from_itself

    declared = a.loads.declared[0]
    told: list[str] = []
    for metric in _compares(a):
        pairs, margin, compared = a.loads.pairs(metric), a.loads.margin(metric), a.loads.compared(metric)
        noise = _noise(pairs, compared.n if compared else None, declared.alpha if declared else QUIET_LEVEL)
        if not noise and pairs and pairs.saturated and not pairs.comparable:
            return False, pairs.nothing
        if not noise:
            return False, "no arm was run twice (A/A), so the noise is not known"
        for each in noise:
            if differs_from_itself(each, margin) if margin else _differs_at_all(each):
                return False, f"an arm differs from itself: {each}"
            told.append(str(each))
    return True, f"an arm does not differ from itself: {'; '.join(dict.fromkeys(told))}"


def _noise(pairs: "Parity | None", at: int | None, alpha: float) -> "list[Ratio]":
    from plugin.judge.comparison import least_sd, ratio

    return (
        [ratio(name, logs[:at], alpha, least_sd(logs)) for name, logs in pairs.aa.items() if logs]
        if pairs
        else []
    )


def _differs_at_all(one: "Ratio") -> bool:
    return one.interval is not None and one.p_beyond(abs(one.mean)) < QUIET_LEVEL


def _knee_found(a: Analysis) -> Answer:
    ramp, limit = a.loads.ramp, a.evidence.limits.get(CAPACITY)
    if ramp is None:
        return False, "fewer than two loads were tried" if a.loads.samples else NO_RUN
    capacity = ramp.capacity.warehouses if ramp.capacity else 0
    if limit is not None and capacity >= limit:
        return True, str(ramp)
    if ramp.failed is None:
        return False, str(ramp)
    failed = ramp.failed.warehouses
    if limit is not None and failed > limit:
        return (
            False,
            f"{capacity} warehouses pass and {failed} do not: the limit of {limit:g} lies between, where nothing was tried",
        )
    return True, str(ramp)


def _efc_told(a: Analysis) -> Answer:
    from plugin.judge.parity import efc_at_most

    ramp, limit = a.loads.ramp, a.evidence.limits.get(EFC_BELOW)
    if ramp is None or not ramp.below:
        return False, "no load below the knee was tried" if a.loads.samples else NO_RUN
    low = min(ramp.below, key=lambda step: step.efc)
    samples = [s for s in a.loads.samples if set(s.step.runs) <= set(low.runs)]
    most = efc_at_most(samples, SURE)
    why = f"{low.efc:.1f} % at {low.warehouses} warehouses, by chance up to {most:.1f}"
    if limit is None or low.efc >= limit or most < limit:
        return True, why
    longer = ((most - low.efc) / (limit - low.efc)) ** (1 if low.due else 2)
    return (
        False,
        f"{why}: {limit:g} % is missed by less than chance explains; {longer:.1f} times as many warehouses × seconds would tell",
    )


TPCC_CONDITIONS: Mapping[str, ConditionInfo] = {
    name: ConditionInfo(check=check, description=description, advice=advice)
    for name, check, description, advice in (
        ("tpcc_complete", _complete, "every TPC-C run is there from its first second to its declared last",
         "see in the log why a run ended early, and run again"),
        ("tpcc_audited", _audited, "mix and random choices of every TPC-C run, and of all together, are within the specification's bounds",
         "correct the generator's mix, or look for transaction types that never finish"),
        ("generator_not_starved", _not_starved, "no process of the TPC-C generator was at its limit or late",
         "give the generator more processes or CPU of its own, or lower the load"),
        ("enough_pairs", _enough_pairs, "looks were declared before, and at one of them the runs decide whether the arms are within the margin",
         "run as many pairs as the reason says, runs of more warehouses or seconds, or declare a wider margin"),
        ("aa_pair_quiet", _aa_quiet, "an arm that was run twice does not differ from itself by more than the margin",
         "find what differs between two runs of the same arm: their order, what is left from the run before, other work on the machine"),
        ("knee_found", _knee_found, "a load that the cluster does not carry was tried, and the limit does not lie in an untried stretch",
         "raise the load until a step does not pass, and try loads closer to the limit"),
        ("efc_told_from_noise", _efc_told, "an efficiency below the limit is too low to be chance",
         "run the load for longer, or with more warehouses"),
    )
}  # fmt: skip
"""Every condition of TPC-C runs by name."""
