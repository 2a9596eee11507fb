"""What excuses a limit that was missed: other work on the machine, or a machine that had nothing left just then."""

from collections.abc import Callable, Mapping, Sequence
from operator import eq, ge, gt, le, lt

from plugin.judge.analysis import Analysis, analysis
from plugin.judge.conditions import first_fault
from plugin.judge.definitions import MetricInfo, NotRecorded
from plugin.judge.machine import crowded, lasted_s, nothing_left, stretches, too_full
from plugin.judge.metrics import KNOWN_METRICS
from plugin.judge.model import Check, Comparison
from plugin.judge.trial import TrialEvidence, Window

EXCUSES = ("machine_free",)
"""What a limit of time must be able to rely on to refute the claim. Evidence of older releases does not tell it."""

EARLIER = ("machine_free_before",)
"""The same of what came before the first fault, for metrics that begin there."""

TIMES: Mapping[str, float] = {"s": 1.0, "min": 60.0}
"""Units of checks of a time, in seconds. Not of milliseconds: latencies are of one process, so of one clock."""

HOLDS: Mapping[Comparison, Callable[[float, float], bool]] = {
    Comparison.EQ: eq,
    Comparison.LE: le,
    Comparison.LT: lt,
    Comparison.GE: ge,
    Comparison.GT: gt,
}


def machine_spent(evidence: TrialEvidence, check: Check) -> str:
    """What the machine lacked while the time was lost, in words, where that alone explains that it was too long.

    A time would be within its limit without what the machine had nothing left in; of what is no time, that must be half
    of each stretch. Of a pace, whose stretches are summed, it is that of all together, or that the machine was too full
    in them on average: work queues before nothing is left. What compares sides that were measured at different times
    says that itself (``taken``).
    """
    info, a = KNOWN_METRICS.get(check.metric), analysis(evidence)
    if info is None or evidence.host_problems or check.limit is None or check.comparison is None:
        return ""
    if info.stretches is None:
        return info.taken(a)
    spent_in = crowded if info.others_only else nothing_left
    spent_s = {window: lasted_s(stretches(evidence.host, spent_in, window)) for window in _of_metric(a, info)}
    if info.summed and check.unit not in TIMES and (full := too_full(evidence.host, spent_s)):
        return f"in the {lasted_s(spent_s):.0f} s of it {full}"
    if not any(spent_s.values()):
        return ""
    if check.unit in TIMES:
        left_s = (sum if info.summed else max)(lasted_s([window]) - spent for window, spent in spent_s.items())
        enough = HOLDS[check.comparison](left_s / TIMES[check.unit], check.limit)
    elif info.summed:
        enough = 2 * sum(spent_s.values()) >= lasted_s(spent_s)
    else:
        enough = all(2 * spent >= lasted_s([window]) for window, spent in spent_s.items())
    begin, end = worst = max(spent_s, key=lambda window: spent_s[window])
    told = f"for {spent_s[worst]:.0f} s from {a.moment(begin)} to {a.moment(end)}"
    if info.others_only:
        told += " other work had the machine: run it again while nothing else uses it"
    else:
        told += " the machine had no CPU, disk or network left: use one with more, or a smaller profile"
    return told if enough else ""


def _of_metric(a: Analysis, info: MetricInfo) -> Sequence[Window]:
    """The stretches that the metric is about, where they were recorded."""
    try:
        return info.stretches(a) if info.stretches is not None else []
    except NotRecorded:
        return []


def machine_asked(evidence: TrialEvidence, check: Check, excuses: Sequence[str]) -> Sequence[str]:
    """The conditions of the machine: of a time, those of the half of the trial in which its longest stretch lies."""
    info, a = KNOWN_METRICS.get(check.metric), analysis(evidence)
    if info is None or not excuses:
        return ()
    first = first_fault(a)
    found = _of_metric(a, info) if check.unit in TIMES else ()
    longest = max(found, key=lambda window: window[1] - window[0], default=None)
    if longest and first is not None and (longest[1] <= first or longest[0] >= first):
        return EARLIER if longest[1] <= first else excuses
    return (*excuses, *(EARLIER if info.from_start else ()))
