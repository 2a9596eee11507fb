"""What the judge measures of a cluster that grows or shrinks, and what it must know of where the replicas were."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from plugin.counts import number_of
from plugin.evidence import events
from plugin.evidence.events import seen
from plugin.evidence.layout import LayoutSample
from plugin.judge.analysis import Analysis
from plugin.judge.convergence import State
from plugin.judge.definitions import Answer, Conditions, Measured, Metrics, nothing, recorded, some
from plugin.judge.growth import NO_PHASE, Phase, phases
from plugin.workloads import activity_of

HOLES = 0.1
"""Part of the samples that may be lost, at the most (our own choice)."""

GAUGES_HOLE_S = 30.0
"""The servers' metrics, refreshed about every 10 s, must be known as often as this (our own choice)."""

HOLE_OF_QUIET = 0.5
"""The longest tolerated hole, as a share of the quiet period: a longer one could hide that replicas moved and came back
(our own choice)."""

GROWTH_METRICS = Metrics()
"""Every metric of growth by name."""
measures = GROWTH_METRICS.declare

GROWTH_CONDITIONS = Conditions()
"""Every condition of growth by name."""
requires = GROWTH_CONDITIONS.declare

_SAMPLED = ("integrity", "layout_sampled")
_GAUGED = (*_SAMPLED, "gauges_sampled")


def _phases(a: Analysis) -> Sequence[Phase]:
    return recorded(phases(a.evidence) or None, NO_PHASE)


def _told(found: Sequence[tuple[float, str]], pick: Callable[[Sequence[float]], float] = max) -> Measured:
    """One of several values, and what was said of each."""
    return pick([value for value, _ in found]), "; ".join(note for _, note in found), ()


def _all_well(wrong: Sequence[str], good: str) -> Measured:
    """1 where nothing is wrong."""
    return int(not wrong), some(wrong) or good, tuple(wrong[:5])


# ---- balanced


@measures("balanced", "", (*_SAMPLED, "time_enough", "time_enough_to_balance"), timed=True)
def _balanced(a: Analysis) -> Measured:
    """1 when every node came near the mean number of replicas after each change of size, and stayed there.

    Short excursions aside.
    """
    found = _phases(a)
    wrong = [f"{e.node} never joined: {e.why}" for _, e in seen(a.evidence.events, events.JoinFailed)]
    wrong = wrong or [f"{phase.name}: {phase.found.why}" for phase in found if phase.found.balanced is None]
    return _all_well(wrong, "; ".join(f"{phase.name} after {_took(phase):.0f} s" for phase in found))


def _took(phase: Phase) -> float:
    """Seconds until the replicas were even, from the first action."""
    return (phase.found.balanced if phase.found.balanced is not None else phase.end) - phase.begin


@measures("balanced_s", "s", _SAMPLED, timed=True)
def _balanced_s(a: Analysis) -> Measured:
    """From the first action of a change of size until every node stays near the mean; the longest of all changes."""
    found = _phases(a)
    if any(phase.found.balanced is None for phase in found):
        return nothing("not balanced")
    return _told([(_took(phase), f"{phase.name}: {_took(phase):.0f} s") for phase in found])


@measures("balanced_3_to_6_min", "min", _SAMPLED, timed=True)
def _balanced_3_to_6(a: Analysis) -> Measured:
    """How long 3 → 6 nodes took until even."""
    return _balanced_min(a, 3, 6)


@measures("balanced_6_to_9_min", "min", _SAMPLED, timed=True)
def _balanced_6_to_9(a: Analysis) -> Measured:
    """How long 6 → 9 nodes took until even."""
    return _balanced_min(a, 6, 9)


def _balanced_min(a: Analysis, before: int, after: int) -> Measured:
    mine = [phase for phase in phases(a.evidence) if (phase.before, len(phase.nodes)) == (before, after)]
    if not mine:
        return nothing(f"nobody went from {before} to {after} nodes")
    if mine[-1].found.balanced is None:
        return nothing(f"not balanced: {mine[-1].found.why}")
    return _took(mine[-1]) / 60, mine[-1].name, ()


@measures("replicas_moved_per_s", "1/s", _SAMPLED, timed=True)
def _rate(a: Analysis) -> Measured:
    """Replicas that nodes gained, a second until even; the slowest change."""
    found = [phase for phase in _phases(a) if phase.found.balanced is not None and _took(phase) > 0]
    rates = [(phase, phase.found.gained / _took(phase)) for phase in found]
    if not rates:
        return nothing("not balanced")
    return _told([(rate, f"{phase.name}: {phase.found.gained} replicas, {rate:.2f}/s") for phase, rate in rates], min)


@measures("additions_for_a_gain", "", _SAMPLED)
def _additions(a: Analysis) -> Measured:
    """Replicas added for each that a node has more at the end, while nodes were added; 1 when none was moved twice."""
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
    return _told(told) if told else nothing("no node was added, or nobody counted the replicas that were")


# ---- at rest, without traffic


def _quiet(a: Analysis) -> list[Phase]:
    quiet = [phase for phase in _phases(a) if phase.quiet_from is not None]
    return recorded(quiet or None, "nobody looked whether the replicas come to rest without traffic")


@measures("settled", "", (*_SAMPLED, "traffic_ended"))
def _settled(a: Analysis) -> Measured:
    """1 when no replica was added or removed any more for the quiet period, without traffic.

    Where some still were when the time was up, this says nothing: ``replicas_traded`` says how many.
    """
    quiet = _quiet(a)
    moving = [f"{phase.name}: {phase.found.why_not_settled}" for phase in quiet if phase.found.settled is None]
    good = (f"{phase.name}: no replica moved for {phase.quiet_s:g} s without traffic" for phase in quiet)
    return nothing(some(moving)) if moving else (1, "; ".join(good), ())


@measures("settled_s", "s", _SAMPLED, timed=True)
def _settled_s(a: Analysis) -> Measured:
    """From the first action of the change of size until the quiet period began."""
    took = [(p, p.found.settled - p.begin) for p in _phases(a) if p.found.settled is not None]
    if not took:
        return nothing("not settled")
    return _told([(seconds, f"{phase.name}: {seconds:.0f} s from the first action") for phase, seconds in took])


@measures("replicas_traded", "%/min", (*_SAMPLED, "traffic_ended", "time_enough"))
def _traded(a: Analysis) -> Measured:
    """Replicas added or removed a minute, of all, in the last quiet period without traffic."""
    told = []
    for phase in _quiet(a):
        since = max(phase.quiet_from or 0.0, phase.last - phase.quiet_s)
        samples = [s for s in phase.known if s.moves is not None and s.t / 1e6 >= since]
        counted_s = (samples[-1].t - samples[0].t) / 1e6 if samples else 0.0
        if counted_s < phase.quiet_s / 2:
            return nothing(f"{phase.name}: the moves were counted for {counted_s:.0f} s only without traffic")
        moved = (samples[-1].moves or 0) - (samples[0].moves or 0)
        total = sum(samples[-1].replicas.values())
        share = 100 * moved / max(1, total) / (counted_s / 60)
        told.append((share, f"{phase.name}: {moved} moves in the last {counted_s:.0f} s, of {total} replicas"))
    return _told(told)


# ---- ranges and leases


def _gauged(a: Analysis, pick: Callable[[LayoutSample], object]) -> list[LayoutSample]:
    """The samples of all phases that tell it, also those in which nobody said where the replicas were."""
    return [sample for phase in _phases(a) for sample in phase.samples if pick(sample) is not None]


@measures("ranges_unavailable", "ranges", _GAUGED, timed=True)
def _unavailable(a: Analysis) -> Measured:
    """Unavailable ranges, the most in any sample."""
    told = _gauged(a, lambda sample: sample.unavailable)
    if not told:
        return nothing("no sample says how many ranges are unavailable")
    worst = max(told, key=lambda sample: sample.unavailable or 0)
    partly = sum(bool(sample.silent) for sample in told)
    note = f"the most in {len(told)} samples" + (f", {partly} of them not of all nodes" if partly else "")
    return worst.unavailable, note, ()


@measures("ranges_underreplicated_at_end", "ranges", (*_GAUGED, "time_enough_to_repair"), timed=True)
def _underreplicated(a: Analysis) -> Measured:
    """Ranges that lack replicas in the last sample."""
    return _left_over(a, lambda sample: sample.underreplicated, "how many ranges lack replicas")


@measures("ranges_lost", "ranges", _SAMPLED)
def _homeless(a: Analysis) -> Measured:
    """Ranges without a replica on any node of the cluster, at the end."""
    return _left_over(a, lambda sample: sample.homeless, "which ranges have a replica")


def _left_over(a: Analysis, pick: Callable[[LayoutSample], int | None], what: str) -> Measured:
    """How many there are at the end of what should be none then."""
    last, told = recorded(_phases(a)[-1].last_told(pick), f"no sample says at the end {what}"), _gauged(a, pick)
    most = max(pick(sample) or 0 for sample in told)
    return pick(last), f"in the last of {len(told)} samples; {most} at the most meanwhile", ()


@measures("lease_spread", "%", _SAMPLED)
def _lease_spread(a: Analysis) -> Measured:
    """Largest deviation of a node's leases from their mean, at the end."""
    last = _phases(a)[-1].last_told(lambda sample: sample.leases)
    leases = (last.leases or {}) if last else {}
    if not sum(leases.values()):
        return nothing("no sample says where the leases are")
    mean = sum(leases.values()) / len(leases)
    worst = max(leases.values(), key=lambda count: abs(count - mean))
    held = ", ".join(f"{node} {count}" for node, count in leases.items())
    return 100 * abs(worst - mean) / mean, f"{held}; mean {mean:.1f}", ()


# ---- what the servers' logs say


@measures("manual_steps", "steps", ("integrity",))
def _manual_steps(a: Analysis) -> Measured:
    """What was done by hand while the cluster grew: settings, zones, statements that move replicas."""
    told = seen(a.evidence.events, events.Interventions)
    if not told:
        return nothing("the servers were not asked what was done by hand")
    steps = {what: times for _, event in told for what, times in event.steps.items()}
    examples = tuple(f"{what}, {number_of(times, 'times')}" for what, times in steps.items())[:5]
    return sum(steps.values()), "from the servers' own logs of events and statements", examples


@measures("replica_changes", "replicas", ("integrity",))
def _moves(a: Analysis) -> Measured:
    """Replicas added and removed, by the reason in the servers' log of ranges; one that moved counts twice."""
    told = [event.reasons for _, event in seen(a.evidence.events, events.Moves)]
    if not told:
        return nothing("the servers were not asked why replicas moved")
    reasons = sorted(told[-1].items(), key=lambda reason: -reason[1])
    return sum(times for _, times in reasons), "; ".join(f"{why}: {times}" for why, times in reasons), ()


# ---- nodes that are taken out


@measures("decommissioned", "", ("integrity", "time_enough_to_leave"), timed=True)
def _decommissioned(a: Analysis) -> Measured:
    """1 when every node could be taken out for good."""
    leaving = [phase for phase in phases(a.evidence) if phase.kind == "in"]
    if not leaving:
        return nothing("no node was to be taken out")
    failed = [event for _, event in seen(a.evidence.events, events.RemoveFailed)]
    gone = [event for _, event in seen(a.evidence.events, events.NodeRemoved)]
    if failed:
        return 0, some(f"{e.node}: {e.why}" for e in failed), ()
    if len(gone) < len(leaving):
        return nothing(f"{len(gone)} of {number_of(len(leaving), 'nodes')} left before the test ended")
    return 1, ", ".join(e.node for e in gone), ()


@measures("drained", "", ("integrity",), timed=True)
def _drained(a: Analysis) -> Measured:
    """1 when every node that was taken out handed over its work and ended in order."""
    gone = [event for _, event in seen(a.evidence.events, events.NodeRemoved)]
    if not gone:
        return nothing("no node was taken out")
    wrong = [f"{e.node} ended with {e.code}" for e in gone if e.code != 0]
    return int(not wrong), some(wrong) or f"{len(gone)} ended in order", ()


@measures("removal_refused", "", ("integrity",))
def _removal_refused(a: Analysis) -> Measured:
    """1 when a node that the replicas cannot spare was not let go."""
    begun = [event for _, event in seen(a.evidence.events, events.RemovalBegun)]
    refused = [event for _, event in seen(a.evidence.events, events.RemovalRefused)]
    if not begun and not refused:
        return nothing("nobody asked for fewer nodes than there are replicas")
    wrong = [f"replicas began to leave {e.node}" for e in begun]
    return int(not wrong), some(wrong or (f"{e.node}: {e.how}" for e in refused)), ()


# ---- whether all that is known


@requires(
    "layout_sampled", "leave the machine less to do, or sample less often",
    description="it was known where the replicas are through every change of size: "
    f"at most {HOLES:.0%} of the samples lost, no long hole",
)  # fmt: skip
def _sampled(a: Analysis) -> Answer:
    told = []
    for phase in _phases(a):
        lost = len(phase.samples) - len(phase.known)
        if not phase.known:
            return False, f"{phase.name}: no sample, {lost} lost"
        hole = _hole([phase.begin, *(sample.t / 1e6 for sample in phase.known), phase.watched])
        why = f"{phase.name}: {len(phase.known)} samples, {lost} lost, {hole:.0f} s at most between two"
        if lost > HOLES * len(phase.samples) or hole > HOLE_OF_QUIET * phase.quiet_s:
            reasons = some(sample.lost for sample in phase.samples if sample.lost)
            return False, f"{why} ({reasons})" if reasons else why
        told.append(why)
    return True, some(told)


@requires("time_enough", "give replicas more time: a larger rebalance.limit_s in the profile")
def _time_enough(a: Analysis) -> Answer:
    """No replica was still on its way when the time was up, unless the source's own time was, too.

    Nor was a node that never took clients given replicas already.
    """
    found = _phases(a)
    told = [
        f"{phase.name}: {phase.found.why}"
        for phase in found
        if phase.found.state is State.MOVING and not _sources_time_is_up(a, phase)
    ]
    for t, failed in seen(a.evidence.events, events.JoinFailed):
        if any(sample.replicas.get(failed.node) for phase in found for sample in phase.known if sample.t <= t):
            told.append(f"{failed.node} had replicas already: {failed.why}")
    return not told, some(told) or "replicas lay evenly, or moved no more, before the time was up"


@requires("time_enough_to_balance", "give replicas more time: a larger rebalance.limit_s in the profile")
def _time_enough_to_balance(a: Analysis) -> Answer:
    """No replica still moved when the time was up where they had been even and left it, unless the source's was, too.

    They may have come to it: for how long replicas are traded that are even enough, ``replicas_traded`` says.
    """
    told = [
        f"{phase.name}: {phase.found.why}, and replicas still moved {phase.found.rest_s:.0f} s before the time was up"
        for phase in _phases(a)
        if phase.found.state is State.OSCILLATES
        and phase.found.rest_s < phase.stall_s
        and not _sources_time_is_up(a, phase)
    ]
    return not told, some(told) or "replicas that left their even places had come to rest before the time was up"


def _sources_time_is_up(a: Analysis, phase: Phase) -> bool:
    """Whether the source was done by then, where it says so: any other limit is our own patience."""
    source = a.evidence.limits.get(f"balanced_{phase.before}_to_{len(phase.nodes)}_min")
    return source is not None and (phase.last - phase.begin) / 60 > source


@requires("time_enough_to_repair", "give replicas more time: a larger rebalance.limit_s in the profile")
def _time_enough_to_repair(a: Analysis) -> Answer:
    """No range lacked replicas while some still moved when the time was up, unless the source's own time was, too."""
    phase = _phases(a)[-1]
    last = phase.last_told(lambda sample: sample.underreplicated)
    lacking = last.underreplicated if last else 0
    why = f"{phase.name}: {lacking or 0} ranges lack replicas at the end, no replica moved in the last"
    still = lacking and phase.found.rest_s < phase.stall_s and not _sources_time_is_up(a, phase)
    return not still, f"{why} {phase.found.rest_s:.0f} s ({phase.stall_s:g} s asked)"


@requires("time_enough_to_leave", "give nodes more time to leave: a larger rebalance.limit_s in the profile")
def _time_enough_to_leave(a: Analysis) -> Answer:
    """No node that could not be taken out was still being emptied when the time was up."""
    told = []
    for phase in _phases(a):
        for t, failed in seen(a.evidence.events, events.RemoveFailed):
            if not phase.begin <= t / 1e6 < phase.end:
                continue
            late = t / 1e6 - min(phase.stall_s, (t / 1e6 - phase.begin) / 2)
            held = [sample.replicas.get(failed.node, 0) for sample in phase.known if sample.t / 1e6 >= late]
            if not held:
                told.append(f"{failed.node}: nobody looked how many replicas it held then")
            elif held[-1] < held[0]:
                told.append(f"{failed.node} went on from {held[0]} to {held[-1]} replicas")
    return not told, some(told) or "every node left, or lost no replica any more before the time was up"


@requires("traffic_ended", "end every load before the quiet period begins")
def _traffic_ended(a: Analysis) -> Answer:
    """No client of the load sent a write while replicas were to come to rest."""
    activity = activity_of(a)
    sent = activity.attempts if activity else ()
    quiet = [(phase, sum(1e6 * (phase.quiet_from or 0.0) < t < 1e6 * phase.end for t in sent)) for phase in _quiet(a)]
    writing = [
        f"{phase.name}: {number_of(count, 'writes')} sent after traffic was said to have ended"
        for phase, count in quiet
        if count
    ]
    return not writing, some(writing) or "no write was sent"


@requires(
    "gauges_sampled", "leave the machine less to do, so that every node answers",
    description="the servers' metrics told of unavailable ranges all the time: "
    f"no hole above {GAUGES_HOLE_S:g} s, and after the last change of size all nodes told it once at least",
)  # fmt: skip
def _gauges_sampled(a: Analysis) -> Answer:
    found, told = _phases(a), []
    for phase in found:
        asked = [sample for sample in phase.samples if sample.unavailable is not None]
        hole = _hole([phase.begin, *(sample.t / 1e6 for sample in asked), phase.last])
        silent = sorted({node for sample in asked for node in sample.silent})
        why = f"{phase.name}: asked {len(asked)} times, {hole:.0f} s at most between two"
        why += f", sometimes without an answer of {', '.join(silent)}" if silent else ""
        if hole > max(GAUGES_HOLE_S, HOLE_OF_QUIET * phase.quiet_s):
            return False, why
        if phase is found[-1] and not any(set(sample.silent).isdisjoint(phase.nodes) for sample in asked):
            return False, f"{why}; never by all nodes"
        told.append(why)
    return True, some(told)


def _hole(times: Sequence[float]) -> float:
    """The longest stretch between two."""
    return max(after - before for before, after in pairwise(times))
