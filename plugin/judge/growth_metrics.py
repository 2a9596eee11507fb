"""What the judge measures of a cluster that grows or shrinks."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise

from plugin.evidence import events
from plugin.evidence.events import seen
from plugin.evidence.layout import LayoutSample
from plugin.judge import throughput
from plugin.judge.analysis import Analysis
from plugin.judge.definitions import Answer, ConditionInfo, Measured, MetricInfo, nothing, some
from plugin.judge.growth import Phase, phases
from plugin.judge.trial import Window

NO_PHASE = "no node was added or taken out"

HOLES = 0.1
"""Part of the samples that may be lost, at the most (our own choice)."""

GAUGES_HOLE_S = 30.0
"""The servers' metrics, refreshed about every 10 s, must be known as often as this (our own choice)."""

HOLE_OF_QUIET = 0.5
"""A hole may be as long as so much of the quiet period: a longer one could hide that replicas moved and came back (our
own choice)."""


def _phases(a: Analysis) -> Sequence[Phase]:
    return phases(a.evidence)


def _balanced(a: Analysis) -> Measured:
    found = _phases(a)
    if not found:
        return nothing(NO_PHASE)
    wrong = [f"{e.node} never joined: {e.why}" for _, e in seen(a.evidence.events, events.JoinFailed)]
    wrong = wrong or [f"{phase.name}: {phase.found.why}" for phase in found if phase.found.balanced is None]
    return (
        int(not wrong),
        some(wrong) or "; ".join(f"{p.name} after {_took(p):.0f} s" for p in found),
        tuple(wrong[:5]),
    )


def _took(phase: Phase) -> float:
    """Seconds until the replicas were even, from the first action."""
    return (phase.found.balanced if phase.found.balanced is not None else phase.end) - phase.begin


def _settled(a: Analysis) -> Measured:
    quiet = [phase for phase in _phases(a) if phase.quiet_from is not None]
    if not quiet:
        return nothing("nobody looked whether the replicas come to rest without traffic" if _phases(a) else NO_PHASE)
    wrong = [f"{phase.name}: {phase.found.why_not_settled}" for phase in quiet if phase.found.settled is None]
    good = "; ".join(f"{phase.name}: no replica moved for {phase.quiet_s:g} s without traffic" for phase in quiet)
    return int(not wrong), some(wrong) or good, tuple(wrong[:5])


def _traded(a: Analysis) -> Measured:
    quiet = [phase for phase in _phases(a) if phase.quiet_from is not None]
    if not quiet:
        return nothing("nobody looked whether the replicas come to rest without traffic" if _phases(a) else NO_PHASE)
    told = []
    for phase in quiet:
        since = max(phase.quiet_from or 0.0, phase.last - phase.quiet_s)
        samples = [s for s in phase.known if s.moves is not None and s.t / 1e6 >= since]
        minutes = (samples[-1].t - samples[0].t) / 60e6 if samples else 0.0
        if 60 * minutes < phase.quiet_s / 2:
            return nothing(f"{phase.name}: the moves were counted for {60 * minutes:.0f} s only without traffic")
        moved = (samples[-1].moves or 0) - (samples[0].moves or 0)
        total = sum(samples[-1].replicas.values())
        told.append(
            (
                100 * moved / max(1, total) / minutes,
                f"{phase.name}: {moved} moves in the last {60 * minutes:.0f} s, of {total} replicas",
            )
        )
    return max(share for share, _ in told), "; ".join(note for _, note in told), ()


def _additions(a: Analysis) -> Measured:
    told = []
    for phase in _phases(a):
        counted = [sample for sample in phase.known if sample.moves is not None]
        if phase.kind != "out" or len(counted) < 2:
            continue
        first, last = counted[0], counted[-1]
        gained = sum(max(0, last.replicas.get(node, 0) - first.replicas.get(node, 0)) for node in phase.nodes)
        more = sum(last.replicas.values()) - sum(first.replicas.values())
        added = ((last.moves or 0) - (first.moves or 0) + more) / 2
        if gained:
            told.append((added / gained, f"{phase.name}: {added:.0f} added, {gained} gained"))
    if not told:
        return nothing("no node was added, or nobody counted the replicas that were" if _phases(a) else NO_PHASE)
    return max(share for share, _ in told), "; ".join(note for _, note in told), ()


def _balanced_s(a: Analysis) -> Measured:
    found = _phases(a)
    if not found or any(phase.found.balanced is None for phase in found):
        return nothing("not balanced" if found else NO_PHASE)
    return max(map(_took, found)), "; ".join(f"{phase.name}: {_took(phase):.0f} s" for phase in found), ()


def _settled_s(a: Analysis) -> Measured:
    times = [(phase, phase.found.settled) for phase in _phases(a) if phase.found.settled is not None]
    if not times:
        return nothing("not settled" if _phases(a) else NO_PHASE)
    took = [(phase, at - phase.begin) for phase, at in times if at is not None]
    note = "; ".join(f"{phase.name}: {seconds:.0f} s from the first action" for phase, seconds in took)
    return max(seconds for _, seconds in took), note, ()


def _balanced_min(before: int, after: int, a: Analysis) -> Measured:
    mine = [phase for phase in _phases(a) if (phase.before, len(phase.nodes)) == (before, after)]
    if not mine:
        return nothing(f"nobody went from {before} to {after} nodes")
    if mine[-1].found.balanced is None:
        return nothing(f"not balanced: {mine[-1].found.why}")
    return _took(mine[-1]) / 60, mine[-1].name, ()


def _rate(a: Analysis) -> Measured:
    found = [phase for phase in _phases(a) if phase.found.balanced is not None and _took(phase) > 0]
    if not found:
        return nothing("not balanced" if _phases(a) else NO_PHASE)
    rates = [(phase, phase.found.gained / _took(phase)) for phase in found]
    note = "; ".join(f"{phase.name}: {phase.found.gained} replicas, {rate:.2f}/s" for phase, rate in rates)
    return min(rate for _, rate in rates), note, ()


def _gauged(a: Analysis, pick: Callable[[LayoutSample], object]) -> list[LayoutSample]:
    """The samples of all phases that tell it, also those in which nobody said where the replicas were."""
    return [sample for phase in _phases(a) for sample in phase.samples if pick(sample) is not None]


def _unavailable(a: Analysis) -> Measured:
    told = _gauged(a, lambda sample: sample.unavailable)
    if not told:
        return nothing("no sample says how many ranges are unavailable" if _phases(a) else NO_PHASE)
    worst = max(told, key=lambda sample: sample.unavailable or 0)
    partly = sum(bool(sample.silent) for sample in told)
    note = f"the most in {len(told)} samples" + (f", {partly} of them not of all nodes" if partly else "")
    return worst.unavailable, note, ()


def _at_end(a: Analysis, pick: Callable[[LayoutSample], object]) -> LayoutSample | None:
    found = _phases(a)
    return found[-1].last_told(pick) if found else None


def _left_over(pick: Callable[[LayoutSample], int | None], what: str, a: Analysis) -> Measured:
    """How many there are at the end of what should be none then."""
    last = _at_end(a, pick)
    if last is None:
        return nothing(f"no sample says at the end {what}" if _phases(a) else NO_PHASE)
    told = _gauged(a, pick)
    most = max(pick(sample) or 0 for sample in told)
    return pick(last), f"in the last of {len(told)} samples; {most} at the most meanwhile", ()


_underreplicated = partial(_left_over, lambda sample: sample.underreplicated, "how many ranges lack replicas")
_homeless = partial(_left_over, lambda sample: sample.homeless, "which ranges have a replica")


def _lease_spread(a: Analysis) -> Measured:
    last = _at_end(a, lambda sample: sample.leases)
    leases: Mapping[str, int] = (last.leases or {}) if last else {}
    if not sum(leases.values()):
        return nothing("no sample says where the leases are" if _phases(a) else NO_PHASE)
    mean = sum(leases.values()) / len(leases)
    worst = max(leases.values(), key=lambda count: abs(count - mean))
    held = ", ".join(f"{node} {count}" for node, count in leases.items())
    return 100 * abs(worst - mean) / mean, f"{held}; mean {mean:.1f}", ()


def _under_load(a: Analysis) -> Window | None:
    """From the first change of size after the baseline until writing ended."""
    if a.timeline.baseline is None:
        return None
    begins = [round(1e6 * phase.begin) for phase in _phases(a)]
    begin = next((begin for begin in begins if begin >= a.timeline.baseline[1]), None)
    return None if begin is None else (begin, a.timeline.writing_end or a.timeline.end)


def _kept_while_growing(a: Analysis) -> Measured:
    window = _under_load(a)
    if a.activity is None or a.baseline is None or window is None:
        return nothing(NO_PHASE if not _phases(a) else "there is no baseline to compare with")
    stop = window[1]
    buckets = throughput.buckets(a.activity.acknowledged, window, a.baseline, until=stop)
    low = sum(bucket.degraded for bucket in buckets)
    note = f"{len(buckets) - low} of {len(buckets)} buckets of {a.baseline.width_s} s at 80 % of {a.baseline.median:g} writes a bucket or more"
    return throughput.share_obeying(buckets), note, ()


def _latency_while_growing(a: Analysis) -> Measured:
    window = _under_load(a)
    if a.activity is None or window is None:
        return nothing(NO_PHASE if not _phases(a) else "there is no baseline before it")
    ordered = throughput.latencies(a.activity.sent, a.activity.acknowledged, window)
    value = throughput.percentile(ordered, 0.99)
    if value is None:
        return nothing("no write sent meanwhile was acknowledged")
    return value / 1e3, f"of {len(ordered)} acknowledged writes sent meanwhile, from when each was sent", ()


def _write_gap(a: Analysis) -> Measured:
    window = _under_load(a)
    if a.activity is None or window is None:
        return nothing(NO_PHASE if not _phases(a) else "nothing was written meanwhile")
    inside = sorted(t for t in a.activity.acknowledged if window[0] <= t <= window[1])
    gaps = [(after - before, before) for before, after in pairwise([window[0], *inside, window[1]])]
    longest, since = max(gaps)
    return longest / 1e6, f"from {since / 1e6:.1f} s on, of {len(inside)} acknowledged writes", ()


def _manual_steps(a: Analysis) -> Measured:
    told = seen(a.evidence.events, events.Interventions)
    if not told:
        return nothing("the servers were not asked what was done by hand")
    steps = {what: times for _, event in told for what, times in event.steps.items()}
    return (
        sum(steps.values()),
        "from the servers' own logs of events and statements",
        tuple(f"{what}, {times} times" for what, times in steps.items())[:5],
    )


def _moves(a: Analysis) -> Measured:
    told = [event.reasons for _, event in seen(a.evidence.events, events.Moves)]
    if not told:
        return nothing("the servers were not asked why replicas moved")
    reasons = sorted(told[-1].items(), key=lambda reason: -reason[1])
    return sum(times for _, times in reasons), "; ".join(f"{why}: {times}" for why, times in reasons), ()


def _decommissioned(a: Analysis) -> Measured:
    leaving = [phase for phase in _phases(a) if phase.kind == "in"]
    if not leaving:
        return nothing("no node was to be taken out")
    failed = [event for _, event in seen(a.evidence.events, events.RemoveFailed)]
    gone = [event for _, event in seen(a.evidence.events, events.NodeRemoved)]
    if failed:
        return 0, some([f"{e.node}: {e.why}" for e in failed]), ()
    if len(gone) < len(leaving):
        return nothing(f"{len(gone)} of {len(leaving)} nodes left before the test ended")
    return 1, ", ".join(e.node for e in gone), ()


def _removal_refused(a: Analysis) -> Measured:
    begun = [event for _, event in seen(a.evidence.events, events.RemovalBegun)]
    refused = [event for _, event in seen(a.evidence.events, events.RemovalRefused)]
    if not begun and not refused:
        return nothing("nobody asked for fewer nodes than there are replicas")
    wrong = [f"replicas began to leave {e.node}" for e in begun]
    return int(not wrong), some(wrong or (f"{e.node}: {e.how}" for e in refused)), ()


def _drained(a: Analysis) -> Measured:
    gone = [event for _, event in seen(a.evidence.events, events.NodeRemoved)]
    if not gone:
        return nothing("no node was taken out")
    wrong = [f"{e.node} ended with {e.code}" for e in gone if e.code != 0]
    return int(not wrong), some(wrong) or f"{len(gone)} ended in order", ()


def _sampled(a: Analysis) -> Answer:
    found = _phases(a)
    if not found:
        return False, NO_PHASE
    told = []
    for phase in found:
        lost = len(phase.samples) - len(phase.known)
        if not phase.known:
            return False, f"{phase.name}: no sample, {lost} lost"
        times = [phase.begin, *(sample.t / 1e6 for sample in phase.known)]
        hole = max(after - before for before, after in pairwise(times))
        why = f"{phase.name}: {len(phase.known)} samples, {lost} lost, {hole:.0f} s at most between two"
        if lost > HOLES * len(phase.samples) or hole > HOLE_OF_QUIET * phase.quiet_s:
            reasons = some(sample.lost for sample in phase.samples if sample.lost)
            return False, f"{why} ({reasons})" if reasons else why
        told.append(why)
    return True, some(told)


def _gauges_sampled(a: Analysis) -> Answer:
    found = _phases(a)
    if not found:
        return False, NO_PHASE
    told = []
    for phase in found:
        asked = [sample for sample in phase.samples if sample.unavailable is not None]
        times = [phase.begin, *(sample.t / 1e6 for sample in asked), phase.last]
        hole = max(after - before for before, after in pairwise(times))
        longest = max(GAUGES_HOLE_S, HOLE_OF_QUIET * phase.quiet_s)
        silent = sorted({node for sample in asked for node in sample.silent})
        why = f"{phase.name}: asked {len(asked)} times, {hole:.0f} s at most between two"
        why += f", sometimes without an answer of {', '.join(silent)}" if silent else ""
        if hole > longest:
            return False, why
        whole = any(set(sample.silent).isdisjoint(phase.nodes) for sample in asked)
        if phase is found[-1] and not whole:
            return False, f"{why}; never by all nodes"
        told.append(why)
    return True, some(told)


_SAMPLED = ("integrity", "layout_sampled")
_GAUGED = (*_SAMPLED, "gauges_sampled")
_WRITTEN = ("integrity", "history_complete", "generator_on_schedule")

_TIMED = ("balanced", "settled", "throughput_kept_resizing")
"""What is waited for no longer than the profile says, and what is compared with the time before."""

GROWTH_METRICS: Mapping[str, MetricInfo] = {
    name: MetricInfo(unit=unit, needs=needs, measure=measure, description=description, timed=name in _TIMED)
    for name, unit, needs, measure, description in (
        ("balanced", "", _SAMPLED, _balanced, "1 when every node came near the mean number of replicas and stayed there, short excursions aside, after each change of size"),
        ("settled", "", _SAMPLED, _settled, "1 when no replica was added or removed any more for the quiet period, without traffic"),
        ("replicas_traded", "%/min", _SAMPLED, _traded, "replicas added or removed a minute, of all, in the last quiet period without traffic"),
        ("additions_for_a_gain", "", _SAMPLED, _additions, "replicas added for each that a node has more at the end, while nodes were added; 1 when none was moved twice"),
        ("balanced_s", "s", _SAMPLED, _balanced_s, "from the first action of a change of size until every node stays near the mean; the longest of all changes"),
        ("settled_s", "s", _SAMPLED, _settled_s, "from the first action of the change of size until the quiet period began"),
        ("balanced_3_to_6_min", "min", _SAMPLED, partial(_balanced_min, 3, 6), "how long 3 → 6 nodes took until even"),
        ("balanced_6_to_9_min", "min", _SAMPLED, partial(_balanced_min, 6, 9), "how long 6 → 9 nodes took until even"),
        ("replicas_moved_per_s", "1/s", _SAMPLED, _rate, "replicas that nodes gained, a second until even; the slowest change"),
        ("lease_spread", "%", _SAMPLED, _lease_spread, "largest deviation of a node's leases from their mean, at the end"),
        ("ranges_unavailable", "ranges", _GAUGED, _unavailable, "unavailable ranges, the most in any sample"),
        ("ranges_underreplicated_at_end", "ranges", _GAUGED, _underreplicated, "ranges that lack replicas in the last sample"),
        ("ranges_lost", "ranges", _SAMPLED, _homeless, "ranges without a replica on any node of the cluster, at the end"),
        ("drained", "", ("integrity",), _drained, "1 when every node that was taken out handed over its work and ended in order"),
        ("decommissioned", "", ("integrity",), _decommissioned, "1 when every node could be taken out for good"),
        ("removal_refused", "", ("integrity",), _removal_refused, "1 when a node that the replicas cannot spare was not let go"),
        ("manual_steps", "steps", ("integrity",), _manual_steps, "settings and zones that somebody changed, and statements by which somebody moved replicas, while the cluster grew"),
        ("replica_changes", "replicas", ("integrity",), _moves, "replicas added and removed from the first action on, by the reason in the servers' log of ranges; one that moved counts twice"),
        ("throughput_kept_resizing", "", (*_WRITTEN, "baseline_steady"), _kept_while_growing, "share of buckets at 80 % of the baseline's throughput or more, from the first action until writing ended"),
        ("write_gap_s", "s", ("integrity", "history_complete"), _write_gap, "longest stretch without an acknowledged write, from the first action until writing ended"),
        ("latency_p99_resizing_ms", "ms", _WRITTEN, _latency_while_growing, "p99 latency of acknowledged writes meanwhile"),
    )
}  # fmt: skip
"""Every metric of growth by name."""

GROWTH_CONDITIONS: Mapping[str, ConditionInfo] = {
    "gauges_sampled": ConditionInfo(
        check=_gauges_sampled,
        description=f"the servers' metrics told of unavailable ranges all the time: no hole above {GAUGES_HOLE_S:g} s, and after the last change of size all nodes told it once at least",
        advice="leave the machine less to do, so that every node answers",
    ),
    "layout_sampled": ConditionInfo(
        check=_sampled,
        description=f"it was known where the replicas are through every change of size: at most {HOLES:.0%} of the samples lost, no long hole",
        advice="leave the machine less to do, or sample less often",
    ),
}
"""Every condition of growth by name."""
