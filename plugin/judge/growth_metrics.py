"""What the judge measures of a cluster that grows or shrinks."""

from collections.abc import Callable, Sequence
from signal import SIGKILL

from plugin.counts import number_of
from plugin.evidence import events
from plugin.evidence.events import seen
from plugin.evidence.layout import LayoutSample
from plugin.judge.analysis import Analysis
from plugin.judge.definitions import Measured, Metrics, nothing, recorded, some
from plugin.judge.growth import Phase, changes_of_size, given_up, phases, traded_in, without_traffic
from plugin.judge.trial import Window

GROWTH_METRICS = Metrics()
"""Every metric of growth by name."""
measures = GROWTH_METRICS.declare

_SAMPLED = ("integrity", "layout_sampled")
_GAUGED = (*_SAMPLED, "gauges_sampled")


def _told(found: Sequence[tuple[float, str]], pick: Callable[[Sequence[float]], float] = max) -> Measured:
    """One of several values, and what was said of each."""
    return pick([value for value, _ in found]), "; ".join(note for _, note in found), ()


def _all_well(wrong: Sequence[str], good: str) -> Measured:
    """1 where nothing is wrong."""
    return int(not wrong), some(wrong) or good, tuple(wrong[:5])


# ---- balanced


def _uneven(a: Analysis) -> Sequence[Window]:
    """How long a node that never joined was waited for; else, of each change, how long replicas rested unevenly.

    From its begin on where they did not come to rest.
    """
    found, begun = list[Window](), 0
    for event in a.evidence.events:
        match event.what:
            case events.ScaleBegin() | events.NodeJoined():
                begun = event.t
            case events.JoinFailed():
                found.append((begun, event.t))
    return found or [_resting(phase) for phase in changes_of_size(a) if phase.found.balanced is None]


def _resting(phase: Phase) -> Window:
    rest_s = phase.found.rest_s
    return round(1e6 * (phase.last - rest_s if rest_s >= phase.stall_s else phase.begin)), round(1e6 * phase.last)


@measures("balanced", "", (*_SAMPLED, "time_enough", "time_enough_to_balance"), timed=True, stretches=_uneven)
def _balanced(a: Analysis) -> Measured:
    """1 when every node came near the mean number of replicas after each change of size, and stayed there.

    Short excursions aside.
    """
    found = changes_of_size(a)
    wrong = [f"{e.node} never joined: {e.why}" for _, e in seen(a.evidence.events, events.JoinFailed)]
    wrong = wrong or [f"{phase.name}: {phase.found.why}" for phase in found if phase.found.balanced is None]
    return _all_well(wrong, "; ".join(f"{phase.name} after {_took(phase):.0f} s" for phase in found))


def _took(phase: Phase) -> float:
    """Seconds until the replicas were even, from the first action."""
    return (phase.found.balanced if phase.found.balanced is not None else phase.end) - phase.begin


@measures("balanced_s", "s", _SAMPLED, timed=True)
def _balanced_s(a: Analysis) -> Measured:
    """From the first action of a change of size until every node stays near the mean; the longest of all changes."""
    found = changes_of_size(a)
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
    found = [phase for phase in changes_of_size(a) if phase.found.balanced is not None and _took(phase) > 0]
    rates = [(phase, phase.found.gained / _took(phase)) for phase in found]
    if not rates:
        return nothing("not balanced")
    return _told([(rate, f"{phase.name}: {phase.found.gained} replicas, {rate:.2f}/s") for phase, rate in rates], min)


@measures("additions_for_a_gain", "", _SAMPLED)
def _additions(a: Analysis) -> Measured:
    """Replicas added for each that a node has more at the end, while nodes were added; 1 when none was moved twice."""
    told = []
    for phase in changes_of_size(a):
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


@measures("settled", "", (*_SAMPLED, "traffic_ended"))
def _settled(a: Analysis) -> Measured:
    """1 when no replica was added or removed any more for the quiet period, without traffic.

    Where some still were when the time was up, this says nothing: ``replicas_traded`` says how many.
    """
    quiet = without_traffic(a)
    moving = [f"{phase.name}: {phase.found.why_not_settled}" for phase in quiet if phase.found.settled is None]
    good = (f"{phase.name}: no replica moved for {phase.quiet_s:g} s without traffic" for phase in quiet)
    return nothing(some(moving)) if moving else (1, "; ".join(good), ())


@measures("settled_s", "s", _SAMPLED, timed=True)
def _settled_s(a: Analysis) -> Measured:
    """From the first action of the change of size until the quiet period began."""
    took = [(p, p.found.settled - p.begin) for p in changes_of_size(a) if p.found.settled is not None]
    if not took:
        return nothing("not settled")
    return _told([(seconds, f"{phase.name}: {seconds:.0f} s from the first action") for phase, seconds in took])


def _last_quiet(a: Analysis) -> Sequence[Window]:
    return [
        (round(1e6 * max(phase.quiet_from or 0.0, phase.last - phase.quiet_s)), round(1e6 * phase.last))
        for phase in without_traffic(a)
    ]


@measures(
    "replicas_traded", "%/min", (*_SAMPLED, "traffic_ended", "time_enough", "time_enough_to_rest"), timed=True,
    stretches=_last_quiet, others_only=True,
)  # fmt: skip
def _traded(a: Analysis) -> Measured:
    """Replicas added or removed a minute, of all, in the last quiet period without traffic."""
    told = []
    for phase in without_traffic(a):
        traded = traded_in(phase, phase.last - phase.quiet_s, phase.last)
        if traded is None:
            return nothing(f"{phase.name}: the moves were not counted for half of a quiet period without traffic")
        moved, counted_s, total = traded
        told.append((traded.pace, f"{phase.name}: {moved} moves in the last {counted_s:.0f} s, of {total} replicas"))
    return _told(told)


# ---- ranges and leases


def _gauged(a: Analysis, pick: Callable[[LayoutSample], object]) -> list[LayoutSample]:
    """The samples of all phases that tell it, also those in which nobody said where the replicas were."""
    return [sample for phase in changes_of_size(a) for sample in phase.samples if pick(sample) is not None]


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


def _lacking(a: Analysis) -> Sequence[Window]:
    """From when no range lacked a replica for the last time, or the first change began, to the last sample."""
    found = changes_of_size(a)
    last = found[-1].last_told(lambda sample: sample.underreplicated)
    told = _gauged(a, lambda sample: sample.underreplicated)
    whole = [sample.t for sample in told if not sample.underreplicated]
    return [(whole[-1] if whole else round(1e6 * found[0].begin), last.t)] if last else []


@measures(
    "ranges_underreplicated_at_end", "ranges", (*_GAUGED, "time_enough_to_repair"), timed=True, stretches=_lacking
)
def _underreplicated(a: Analysis) -> Measured:
    """Ranges that lack replicas in the last sample."""
    return _left_over(a, lambda sample: sample.underreplicated, "how many ranges lack replicas")


@measures("ranges_lost", "ranges", _SAMPLED)
def _homeless(a: Analysis) -> Measured:
    """Ranges without a replica on any node of the cluster, at the end."""
    return _left_over(a, lambda sample: sample.homeless, "which ranges have a replica")


def _left_over(a: Analysis, pick: Callable[[LayoutSample], int | None], what: str) -> Measured:
    """How many there are at the end of what should be none then."""
    last, told = recorded(changes_of_size(a)[-1].last_told(pick), f"no sample says at the end {what}"), _gauged(a, pick)
    most = max(pick(sample) or 0 for sample in told)
    return pick(last), f"in the last of {len(told)} samples; {most} at the most meanwhile", ()


@measures("lease_spread", "%", _SAMPLED)
def _lease_spread(a: Analysis) -> Measured:
    """Largest deviation of a node's leases from their mean, at the end."""
    last = changes_of_size(a)[-1].last_told(lambda sample: sample.leases)
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


def _stuck(a: Analysis) -> Sequence[Window]:
    """How long each node that could not be taken out had lost no replica before it was given up."""
    return [window for _, _, window in given_up(a)]


@measures("decommissioned", "", ("integrity", "time_enough_to_leave"), timed=True, stretches=_stuck)
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


def _ran_on(a: Analysis) -> Sequence[Window]:
    """From when a node held no replica any more to when it was killed: it had been told to stop meanwhile.

    Nothing where one ended in another way: that is no matter of time.
    """
    found = list[Window]()
    for t, gone in seen(a.evidence.events, events.NodeRemoved):
        held = [sample.t for sample in a.evidence.layout if sample.t <= t and sample.replicas.get(gone.node)]
        if gone.code != 0 and (gone.code != -SIGKILL or not held):
            return []
        found += [(held[-1], t)] if gone.code != 0 else []
    return found


@measures("drained", "", ("integrity",), timed=True, stretches=_ran_on)
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
