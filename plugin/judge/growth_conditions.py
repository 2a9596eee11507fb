"""What must be known of a cluster that grows or shrinks, and how much time it must have had, before it is judged."""

from collections.abc import Sequence
from itertools import pairwise

from plugin.counts import number_of
from plugin.evidence import events
from plugin.evidence.events import seen
from plugin.judge.analysis import Analysis
from plugin.judge.convergence import State
from plugin.judge.definitions import Answer, Conditions, some
from plugin.judge.growth import Phase, changes_of_size, given_up, traded_in, without_traffic
from plugin.workloads import activity_of

HOLES = 0.1
"""Part of the samples that may be lost, at the most (our own choice)."""

GAUGES_HOLE_S = 30.0
"""The servers' metrics, refreshed about every 10 s, must be known as often as this (our own choice)."""

HOLE_OF_QUIET = 0.5
"""The longest tolerated hole, as a share of the quiet period: a longer one could hide that replicas moved and came back
(our own choice)."""

FADING = 0.5
"""Replicas that are traded at most this part as often as a quiet period before are coming to rest (our own choice): by
chance alone somebody who trades them for ever does so a little less often, too."""

GROWTH_CONDITIONS = Conditions()
"""Every condition of growth by name."""
requires = GROWTH_CONDITIONS.declare


@requires(
    "layout_sampled", "leave the machine less to do, or sample less often",
    description="it was known where the replicas are through every change of size: "
    f"at most {HOLES:.0%} of the samples lost, no long hole",
)  # fmt: skip
def _sampled(a: Analysis) -> Answer:
    told = []
    for phase in changes_of_size(a):
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
    found = changes_of_size(a)
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
        for phase in changes_of_size(a)
        if phase.found.state is State.OSCILLATES
        and phase.found.rest_s < phase.stall_s
        and not _sources_time_is_up(a, phase)
    ]
    return not told, some(told) or "replicas that left their even places had come to rest before the time was up"


def _sources_time_is_up(a: Analysis, phase: Phase) -> bool:
    """Whether the source was done by then, where it says so: any other limit is our own patience."""
    source = a.evidence.limits.get(f"balanced_{phase.before}_to_{len(phase.nodes)}_min")
    return source is not None and (phase.last - phase.begin) / 60 > source


@requires("time_enough_to_rest", "give replicas more time: a larger rebalance.limit_s in the profile")
def _time_enough_to_rest(a: Analysis) -> Answer:
    """Replicas that moved too often at the end had done so before: they were not coming to rest when the time was up.

    Unless the source's own time was up, too.
    """
    limit, told = a.evidence.limits.get("replicas_traded"), list[str]()
    for phase in without_traffic(a):
        begin = phase.last - phase.quiet_s
        now, before = traded_in(phase, begin, phase.last), traded_in(phase, begin - phase.quiet_s, begin)
        if limit is None or now is None or before is None or now.pace <= limit or _sources_time_is_up(a, phase):
            continue
        if now.pace <= FADING * before.pace:
            told.append(f"{phase.name}: {now.pace:.3g} %/min in the last quiet period, {before.pace:.3g} before it")
    return not told, some(told) or "replicas did not move too often at the end, or had moved about as often before"


@requires("time_enough_to_repair", "give replicas more time: a larger rebalance.limit_s in the profile")
def _time_enough_to_repair(a: Analysis) -> Answer:
    """No range lacked replicas while some still moved when the time was up, unless the source's own time was, too."""
    phase = changes_of_size(a)[-1]
    last = phase.last_told(lambda sample: sample.underreplicated)
    lacking = last.underreplicated if last else 0
    why = f"{phase.name}: {lacking or 0} ranges lack replicas at the end, no replica moved in the last"
    still = lacking and phase.found.rest_s < phase.stall_s and not _sources_time_is_up(a, phase)
    return not still, f"{why} {phase.found.rest_s:.0f} s ({phase.stall_s:g} s asked)"


@requires("time_enough_to_leave", "give nodes more time to leave: a larger rebalance.limit_s in the profile")
def _time_enough_to_leave(a: Analysis) -> Answer:
    """No node that could not be taken out was still being emptied when the time was up."""
    told = []
    for phase, failed, (late, _) in given_up(a):
        held = [sample.replicas.get(failed.node, 0) for sample in phase.known if sample.t >= late]
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
    quiet = [
        (phase, sum(1e6 * (phase.quiet_from or 0.0) < t < 1e6 * phase.end for t in sent))
        for phase in without_traffic(a)
    ]
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
    found, told = changes_of_size(a), []
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
