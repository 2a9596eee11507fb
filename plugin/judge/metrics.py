"""What the judge can measure in a trial's evidence, by name; what only a workload knows it measures itself."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

from clusters.events import NodeDeath, Provisioned
from clusters.registry import Known
from plugin.counts import number_of
from plugin.evidence.events import NodeJoined, NotRecovered, ScaleBegin, seen
from plugin.judge.analysis import Analysis, analysis, names_of
from plugin.judge.availability import Gap, away_again_us, endpoint, long_stretches, nearby, undisturbed
from plugin.judge.conditions import watched
from plugin.judge.definitions import Measured, Metrics, NotRecorded, nothing, recorded
from plugin.judge.growth import NO_PHASE
from plugin.judge.growth_metrics import GROWTH_METRICS
from plugin.judge.mixed import MIXED_METRICS
from plugin.judge.model import Measurement
from plugin.judge.objects import OBJECTS_METRICS
from plugin.judge.resizing import RESIZING_METRICS
from plugin.judge.swapping import SWAPPING_METRICS
from plugin.judge.trial import NO_MAJORITY, TrialEvidence, Window
from plugin.workloads import WORKLOADS


def measure(evidence: TrialEvidence, metric: str) -> Measurement:
    """The metric's value in this evidence: measured by the judge, or else recorded under its name by the test.

    A metric that is neither has no value, and the note says so.
    """
    info = KNOWN_METRICS.get(metric)
    if info is not None:
        try:
            value, note, examples = info.measure(analysis(evidence))
        except NotRecorded as missing:
            value, note, examples = nothing(str(missing))
        return Measurement(metric=metric, value=value, unit=info.unit, note=note, examples=examples)
    told = [measurement for measurement in evidence.measurements if measurement.metric == metric]
    if len(told) > 1:
        values = ", ".join(f"{measurement.value:g}" for measurement in told if measurement.value is not None)
        return Measurement(
            metric=metric, value=None, note=f"recorded {number_of(len(told), 'times')} ({values}); record it once"
        )
    if told:
        return told[0]
    others = ", ".join(dict.fromkeys(measurement.metric for measurement in evidence.measurements))
    note = "the test recorded nothing under this name" + (f"; it recorded {others}" if others else "")
    return Measurement(metric=metric, value=None, note=note)


NO_FAULT = "no fault was recorded"
NOBODY_ELSE = "no probed endpoint outside the hit nodes"
NEVER_RECOVERED = "recovery was never declared"

_PROBE = ("fault_bit", "fault_hit", "recovered", "probe_complete", "probe_on_time")
_RECOVERY = ("integrity", "fault_bit", "recovered")

_OWN = Metrics({**GROWTH_METRICS, **RESIZING_METRICS, **SWAPPING_METRICS, **MIXED_METRICS, **OBJECTS_METRICS})
measures = _OWN.declare


def _gaps(a: Analysis) -> Sequence[Window]:
    header, lines = recorded(a.evidence.probe, "there was no probe")
    found = list[Window]()
    for one in a.timeline.disturbances:
        living = [name for name in names_of(header.get("routes")) if endpoint(name) not in one.victims]
        found += long_stretches(nearby(lines, living, one.window), living, window=one.window)
    return found


@measures("gap_s", "s", _PROBE, timed=True, stretches=_gaps)
def _gap(a: Analysis) -> Measured:
    """Longest stretch without a success of any range at any gateway that was not hit itself."""
    return _told(a, _longest_gap(a, "worst", NOBODY_ELSE))


@measures("victim_gap_s", "s", _PROBE, timed=True)
def _victim_gap(a: Analysis) -> Measured:
    """Longest stretch without a success of the hit nodes' own clients."""
    return _told(a, _longest_gap(a, "victims", "no probed endpoint is a hit node's own"))


class Watched(NamedTuple):
    """Where stretches without a success count: a window, what excuses them in it, and since when nodes are gone."""

    window: Window
    excused: Sequence[Window] = ()
    gone: Mapping[str, int] = MappingProxyType({})


def _explained(a: Analysis) -> Watched:
    window, _, _ = watched(a)
    return Watched(window, [one.window for one in a.timeline.excused], a.timeline.gone)


def _scaled(a: Analysis) -> Watched:
    """From the first change of size until writing ended; nodes that are not to stay are gone from that change on."""
    (begin, end), _, _ = watched(a)
    scales = [(t, scale) for t, scale in seen(a.evidence.events, ScaleBegin) if begin <= t < end and scale.nodes]
    first = recorded(scales[0][0] if scales else None, NO_PHASE)
    there = {node for _, provisioned in seen(a.evidence.events, Provisioned) for node in provisioned.nodes}
    gone: dict[str, int] = {}
    for t, scale in scales:
        gone |= dict.fromkeys(there - {*scale.nodes} - gone.keys(), t)
        there |= {*scale.nodes}
    return Watched((first, end), gone=gone)


def _unscaled(a: Analysis) -> Watched:
    (begin, _), _, _ = watched(a)
    return Watched((begin, _scaled(a).window[0]))


def _gap_where(where: Callable[[Analysis], Watched], a: Analysis) -> Measured:
    window, excused, gone = where(a)
    _, routes, lines = watched(a)
    gap = undisturbed(lines, routes, window=window, excused=excused, gone=gone)
    return _gap_told(a, recorded(gap, "the probe watched no time in which a gap counts"))


def _gaps_where(where: Callable[[Analysis], Watched], a: Analysis) -> Sequence[Window]:
    window, excused, gone = where(a)
    _, routes, lines = watched(a)
    return long_stretches(lines, routes, window=window, excused=excused, gone=gone)


_WHERE: Mapping[str, tuple[Callable[[Analysis], Watched], str]] = {
    "gap_undisturbed_s": (
        _explained,
        "longest stretch without a success of any range at any gateway, as far as no fault explains it: from the first "
        "write until writing ended, outside of all disturbances; a victim's own gateway counts, too, unless its node "
        "was never brought back",
    ),
    "gap_unscaled_s": (
        _unscaled,
        "longest stretch without a success that no fault explains, until the first change of size",
    ),
    "gap_scaling_s": (
        _scaled,
        "longest stretch without a success that no fault explains, from the first change of size on, at gateways that "
        "stay",
    ),
}
for _name, (_at, _what) in _WHERE.items():
    measures(
        _name, "s", ("probe_complete", "probe_on_time"), timed=True, from_start=_at is not _scaled,
        stretches=partial(_gaps_where, _at), description=_what,
    )(partial(_gap_where, _at))  # fmt: skip


def _gaps_resuming(a: Analysis) -> Sequence[Window]:
    _, routes, lines = watched(a)
    return [
        gap
        for window, excused in a.timeline.resuming
        for gap in long_stretches(lines, routes, window=window, excused=excused, gone=a.timeline.gone)
    ]


@measures("gap_resuming_s", "s", ("fault_bit", "probe_complete", "probe_on_time"), timed=True, stretches=_gaps_resuming)
def _gap_resuming(a: Analysis) -> Measured:
    """Longest stretch without a success of any range at any gateway since a majority is back, until recovery.

    The victims' own gateways count, too. What was before does not, and a stretch that is open at the end counts on.
    """
    _, routes, lines = watched(a)
    found = [
        undisturbed(lines, routes, window=window, excused=excused, gone=a.timeline.gone)
        for window, excused in recorded(a.timeline.resuming or None, NO_MAJORITY)
    ]
    longest = max((gap for gap in found if gap), key=lambda gap: gap.seconds, default=None)
    return _gap_told(a, recorded(longest, "the probe watched no time in which a gap counts"))


@measures(
    "away_again_scaling", "%", ("probe_complete", "probe_on_time"), timed=True,
    stretches=partial(_gaps_where, _scaled),
)  # fmt: skip
def _away_again(a: Analysis) -> Measured:
    """Part of the time in which a range had no success at a gateway that stays, again and again.

    From a change of size to the next, or until writing ended; of stretches of a second and more, but for the longest,
    which ``gap_scaling_s`` is; the worst range, gateway and change.
    """
    (begin, end), _, gone = _scaled(a)
    _, routes, lines = watched(a)
    changes = [t for t, scale in seen(a.evidence.events, ScaleBegin) if begin <= t < end and scale.nodes]
    told = []
    for window in pairwise([*changes, end]):
        again_us, route, count = away_again_us(lines, routes, window=window, gone=gone)
        when = f"{a.moment(window[0])} to {a.moment(window[1])}"
        stretches = f"{again_us / 1e6:.1f} s in {number_of(count, 'stretches')} beside its longest"
        why = f"{_through(route)}, {stretches}" if count else "no range was away twice"
        told.append((100 * again_us / max(1, window[1] - window[0]), f"{why}, {when}"))
    worst, note = max(told)
    return worst, note, ()


def _through(route: str) -> str:
    """A route in words."""
    return f"bucket {route.rpartition('/')[2]} through {endpoint(route)}"


def _gap_told(a: Analysis, gap: Gap) -> Measured:
    return gap.seconds, f"{_through(gap.route)}, {a.moment(gap.begin)} to {a.moment(gap.end)}", ()


def _longest_gap(a: Analysis, pick: str, none: str) -> Gap:
    found = recorded(a.availability, "there was no probe" if a.evidence.probe is None else NO_FAULT)
    gap: Gap = recorded(getattr(found, pick), none)
    return gap


def _told(a: Analysis, gap: Gap) -> Measured:
    value, note, examples = _gap_told(a, gap)
    return value, note if a.timeline.recovered is not None else f"{note}; {NEVER_RECOVERED}", examples


def _until_given_up(a: Analysis) -> Sequence[Window]:
    """From when the last node was brought back, or taken in as a new one."""
    since = [fault.undo for fault in a.timeline.faults if fault.undo is not None]
    since += [t for t, _ in seen(a.evidence.events, NodeJoined)]
    late = [t for t, _ in seen(a.evidence.events, NotRecovered)]
    return [(max((begin for begin in since if begin <= t), default=t), t) for t in late]


@measures("unrecovered", "", ("integrity", "fault_bit"), safety=True, timed=True, stretches=_until_given_up)
def _unrecovered(a: Analysis) -> Measured:
    """1 when the cluster was not whole again within the profile's recovery limit."""
    if not a.timeline.faults:
        return nothing(NO_FAULT)
    late = seen(a.evidence.events, NotRecovered)
    if late:
        last = late[-1][1]
        return 1, f"not whole within {last.limit_s} s: {last.why}", ()
    recorded(a.timeline.recovered, "nobody waited for recovery")
    return 0, "", ()


@measures("recovery_s", "s", _RECOVERY, timed=True)
def _recovery(a: Analysis) -> Measured:
    """From the begin of the last undoing to declared recovery."""
    undo = recorded(max((f.undo for f in a.timeline.faults if f.undo is not None), default=None), "no fault was undone")
    recovered = recorded(a.timeline.recovered, NEVER_RECOVERED)
    return (recovered - undo) / 1e6, "from the begin of the last undoing to recovery", ()


@measures("repair_s", "s", _RECOVERY, timed=True)
def _repair(a: Analysis) -> Measured:
    """From the first fault action to declared recovery."""
    if not a.timeline.faults:
        return nothing(NO_FAULT)
    recovered = recorded(a.timeline.recovered, NEVER_RECOVERED)
    return (recovered - a.timeline.faults[0].begin) / 1e6, "from the first fault to recovery", ()


@measures("nodes_died", "nodes", ("integrity",), safety=True)
def _nodes_died(a: Analysis) -> Measured:
    """Nodes that ended by themselves; where versions are compared, of the new one's.

    Where one of the old version's did, the comparison ended there.
    """
    if not a.evidence.events:
        return nothing("nothing was recorded")
    died = seen(a.evidence.events, NodeDeath)
    told = [f"{event.node} ended by itself at {a.moment(t)}, exit code {event.code}" for t, event in died[:5]]
    new = sum(not a.of_old(t) for t, _ in died)
    return nothing(f"of the old version alone: {told[0]}") if died and not new else (new, "", tuple(told))


KNOWN_METRICS = Known(_OWN, lambda: (workload.metrics for workload in WORKLOADS.values()))
"""Every metric that the judge measures itself, by name. Any other name is one that a test records."""
