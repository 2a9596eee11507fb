"""What happened in a trial, second by second, by the judge's functions. Times are seconds on the trial's timeline."""

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import compress
from math import ceil
from typing import TYPE_CHECKING

from clusters.events import FaultBegin, Provisioned
from plugin.evidence.events import NodeJoined, NodeRemoved, ProvisionBegin, ScaleBegin, TrialEnd, WritingEnd, seen
from plugin.evidence.records import ProbeSecond, errors_of, successes_of
from plugin.judge import throughput
from plugin.judge.activity import Activity
from plugin.judge.analysis import Analysis, names_of
from plugin.judge.availability import availability, endpoint, nearby
from plugin.judge.definitions import NotRecorded
from plugin.judge.latency import together
from plugin.judge.mixed import Ended, ended
from plugin.judge.trial import Fault, TrialEvidence, Window
from plugin.reports.bands import FAULTED, SECOND, Band, add
from plugin.workloads import WORKLOADS, activity_of

if TYPE_CHECKING:
    from plugin.reports.layout_series import LayoutSeries
    from plugin.reports.swapping_series import SwappingSeries

PERCENTILES = (50.0, 95.0, 99.0)
ANSWERED_US = 500_000  # so much later an answer may come on few cores, and a success be of the next second
MOST_KINDS = 5  # kinds of errors kept for one second; the rest are counted together


@dataclass(frozen=True, kw_only=True, slots=True)
class Resilience:
    """What one fault cost (the adversity guide's resilience metrics). ``None`` for what cannot be said.

    ``recovery_s``: from the begin of its undoing to the declared recovery. ``gap_s``: the longest stretch without a
    success on any range, asked through nodes that were not hit; ``victim_gap_s`` through those that were.
    ``degraded_s``: time below 80 % of the baseline's median. ``lost``: writes fewer than normal from its begin to
    recovery (or the end of writing); ``lost_share``: the same as a share of normal. The last three are not known of a
    fault whose end was not recorded.
    """

    fault: str
    nodes: tuple[str, ...]
    begin: float
    end: float
    recovery_s: float | None
    gap_s: float | None
    victim_gap_s: float | None
    degraded_s: float | None
    lost: float | None
    lost_share: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """A trial in seconds ``0 … seconds - 1``.

    ``throughput``: acknowledged writes. ``latency``: percentiles in milliseconds (``"p50"`` …) as the probe saw them,
    or in a trial without one (``probed`` is false) those of acknowledged writes, from when each was sent; ``None`` in a
    second without a success. ``errors``: operations of load and probe that failed or whose outcome is unknown;
    ``error_kinds`` names those of a second. ``reached``: by endpoint, the share of the probed ranges that answered
    through it. ``normal``: the baseline's median a second. ``ended``: the second in which writing ended.
    ``zero``: the second from which on reports tell it.
    """

    seconds: int
    zero: int = 0
    throughput: Sequence[int] = ()
    latency: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    probed: bool = True
    errors: Sequence[int] = ()
    error_kinds: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    reached: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    normal: float | None = None
    ended: int | None = None
    phases: tuple[Band, ...] = ()
    faults: tuple[Band, ...] = ()
    nodes: Mapping[str, tuple[Band, ...]] = field(default_factory=dict)
    resilience: tuple[Resilience, ...] = ()
    layout: "LayoutSeries | None" = None
    """Where the replicas lay, of a trial in which that was sampled."""
    swapping: "SwappingSeries | None" = None
    """Which node ran which version when, of a trial that changes them; ``nodes`` are its lanes then."""


class _Trial(Analysis):
    """A trial's evidence with what every series asks for."""

    @cached_property
    def activity(self) -> Activity | None:
        """What the load's clients did in time."""
        return activity_of(self)

    @property
    def probe(self) -> Sequence[ProbeSecond]:
        """The probe's seconds."""
        return self.evidence.probe[1] if self.evidence.probe else ()

    @cached_property
    def baseline(self) -> throughput.Baseline | None:
        """What throughput is normal."""
        activity, window = self.activity, self.timeline.baseline
        return throughput.baseline(activity.acknowledged, window) if activity and window else None

    @cached_property
    def last(self) -> int:
        """The last of which events, probe or acknowledged writes tell."""
        written: Sequence[int] = self.activity.acknowledged if self.activity else ()
        return max([self.timeline.end, *(second.t + SECOND for second in self.probe), *written[-1:]])

    @property
    def end(self) -> int:
        """Of the record: the last event, or of a run that was cut off whatever was last."""
        return self.timeline.end if TrialEnd in self.timeline.reached else self.last


def series(evidence: TrialEvidence) -> Series:
    """The series of a trial, also of one that ended early or recorded nothing."""
    from plugin.reports.layout_series import layout_series
    from plugin.reports.swapping_series import swapping_series

    a = _Trial(evidence)
    probe, activity = a.probe, a.activity
    seconds = -(-max(a.last, evidence.layout[-1].t if evidence.layout else 0) // SECOND)
    interval_us = int(evidence.probe[0].get("interval_us", 0)) if evidence.probe else 0
    latency, reached, kinds = _probed(probe, seconds, interval_us)
    for time in activity.failures if activity else ():
        kinds.setdefault(time // SECOND, Counter())["load"] += 1
    if not probe and activity is not None:
        latency = _of_writes(activity, seconds)
    recorded = bool(probe) or activity is not None
    costs = tuple(_resilience(a, fault) for fault in a.timeline.faults)
    gaps = [(cost.victim_gap_s, cost.gap_s) for cost in costs]
    swapping = swapping_series(evidence, a.end, gaps, _connections(a))
    return Series(
        seconds=seconds,
        zero=a.zero,
        throughput=throughput.per_second(activity.acknowledged, (0, seconds * SECOND)) if activity else (),
        latency=latency,
        probed=bool(probe) or activity is None,
        errors=[kinds[second].total() if second in kinds else 0 for second in range(seconds)] if recorded else (),
        error_kinds={second: _most(found) for second, found in sorted(kinds.items())},
        reached=reached,
        normal=a.baseline.median / a.baseline.width_s if a.baseline else None,
        ended=max((t // SECOND for t, _ in seen(evidence.events, WritingEnd)), default=None),
        phases=_phases(a),
        faults=tuple(_band(fault, _until(a, fault)) for fault in a.timeline.faults),
        nodes=swapping.lanes if swapping else _nodes(a),
        resilience=costs,
        layout=layout_series(evidence, seconds) if evidence.layout else None,
        swapping=swapping,
    )


def _connections(a: _Trial) -> Mapping[tuple[str, int], Ended]:
    """By node and when its drain began: what became of the connections to it."""
    with suppress(NotRecorded):
        return {(one.node, one.begin): one for one in ended(a)}
    return {}


def _most(found: Counter[str]) -> Mapping[str, int]:
    most = dict(found.most_common(MOST_KINDS))
    rest = found.total() - sum(most.values())
    return most | ({"others": rest} if rest else {})


def _probed(
    probe: Sequence[ProbeSecond], seconds: int, interval_us: int
) -> tuple[dict[str, list[float | None]], dict[str, list[float | None]], dict[int, Counter[str]]]:
    """Latency percentiles, the share reached by endpoint, and errors by second and kind.

    A route counts as reached for as many seconds as it may take until its next success is to be seen: one that is asked
    every 2.5 s has none in most seconds.
    """
    turn = ceil((interval_us + ANSWERED_US) / SECOND)
    recent = deque[Sequence[int]](maxlen=turn)
    latency: dict[str, list[float | None]] = {}
    reached: dict[str, list[float | None]] = {}
    kinds: dict[int, Counter[str]] = {}
    for number, second in enumerate(probe):
        index = second.t // SECOND
        if not 0 <= index < seconds:
            continue
        for name, value in _percentiles(second.latency.values()).items():
            latency.setdefault(name, [None] * seconds)[index] = value
        for errors in errors_of(second.routes).values():
            for kind, count in errors.items():
                kinds.setdefault(index, Counter())[f"probe: {kind}"] += count
        endpoints, routes_of = _endpoints(tuple(second.routes))
        recent.append(successes_of(second.routes))
        served = Counter(compress(endpoints, recent[0] if turn == 1 else map(any, zip(*recent, strict=True))))
        for name, routes in routes_of.items():
            shares = reached.setdefault(name, [None] * seconds)
            if number >= turn:  # in which nobody knows when the probe began to ask
                shares[index] = round(served[name] / routes, 3)
    return latency, reached, kinds


@lru_cache(maxsize=4)
def _endpoints(routes: tuple[str, ...]) -> tuple[Sequence[str], Mapping[str, int]]:
    """That of each route, and how many routes each has; those of one second are those of the next."""
    found = [*map(endpoint, routes)]
    return found, Counter(found)


def _of_writes(activity: Activity, seconds: int) -> dict[str, list[float | None]]:
    """Latency percentiles of the acknowledged writes, by the second in which they were acknowledged."""
    taken: dict[int, list[int]] = {}
    for sent, done in zip(activity.sent, activity.acknowledged, strict=True):
        taken.setdefault(done // SECOND, []).append(done - sent)
    found: dict[str, list[float | None]] = {f"p{share:g}": [None] * seconds for share in PERCENTILES}
    for second, latencies in taken.items():
        latencies.sort()
        for share in PERCENTILES:
            if second < seconds and (value := throughput.percentile(latencies, share / 100)) is not None:
                found[f"p{share:g}"][second] = value / 1e3
    return found


def _percentiles(encoded: Iterable[str]) -> Mapping[str, float]:
    """Over all endpoints together, in milliseconds."""
    whole = together(encoded)
    if whole is None:
        return {}
    values = whole.get_percentile_to_value_dict(PERCENTILES)
    found = {f"p{share:g}": values[share] / 1e3 for share in PERCENTILES}
    return found | {"max": whole.get_max_value() / 1e3}


def _phases(a: _Trial) -> tuple[Band, ...]:
    """The stretches of the test, in plain words."""
    line, reached = a.timeline, a.timeline.reached
    healing = max((f.undo for f in line.faults if f.undo is not None), default=None)
    bounds = [
        ("provision", reached.get(ProvisionBegin), reached.get(Provisioned)),
        ("disturb", reached.get(FaultBegin), healing),
        ("heal", healing, line.recovered if line.recovered is not None else line.writing_end),
        ("load, healed", line.recovered, line.writing_end),
    ]
    for workload in WORKLOADS.values():
        for name, (begin, ends, _) in workload.phases.items():
            bounds.append((name, reached.get(begin), next((reached[end] for end in ends if end in reached), None)))
    bands = (
        Band(begin=begin / 1e6, end=max(begin, a.end if end is None else end) / 1e6, name=name)
        for name, begin, end in bounds
        if begin is not None
    )
    return tuple(sorted(bands, key=lambda band: band.begin))


def _until(a: _Trial, fault: Fault) -> int:
    """When the fault was over: undone, else the end of the record."""
    return fault.undone if fault.undone is not None else a.end


def _band(fault: Fault, end: int) -> Band:
    return Band(begin=fault.begin / 1e6, end=end / 1e6, name=f"{fault.kind} {', '.join(fault.nodes)}")


def _nodes(a: _Trial) -> Mapping[str, tuple[Band, ...]]:
    """The states of each node that was declared: starting, up, and what each fault made of it."""
    line = a.timeline
    declared = next((begin.nodes for _, begin in seen(a.evidence.events, ProvisionBegin)), ())
    begin, ready = line.reached.get(ProvisionBegin), line.reached.get(Provisioned)
    lanes: dict[str, tuple[Band, ...]] = {}
    for node in declared:
        bands: list[Band] = []
        add(bands, begin, a.end if ready is None else ready, "starting")
        since = ready
        for fault in line.faults:
            if since is None or node not in fault.nodes:
                continue
            hit = fault.bit.get(node, fault.begin)
            add(bands, since, hit, "up")
            heals = fault.undo if fault.undo is not None else a.end
            add(bands, hit, heals, FAULTED.get(fault.kind, fault.kind))
            add(bands, heals, _until(a, fault), "coming back")
            since = fault.undone
        add(bands, since, a.end, "up")
        lanes[node] = tuple(bands)
    return _scaled(a, lanes)


def _scaled(a: _Trial, lanes: dict[str, tuple[Band, ...]]) -> Mapping[str, tuple[Band, ...]]:
    """The lanes of nodes that came later or were taken out."""
    begun: dict[str, int] = {}
    for event in a.evidence.events:
        match event.what:
            case ScaleBegin(added=added, removed=removed):
                begun |= dict.fromkeys(added or (), event.t)
                for name in removed or ():
                    lanes[name] = _cut(lanes.get(name, ()), event.t / 1e6, a.end / 1e6, "leaving")
            case NodeJoined(node=node):
                bands: list[Band] = []
                add(bands, begun.get(node, event.t), event.t, "starting")
                add(bands, event.t, a.end, "up")
                lanes[node] = tuple(bands)
            case NodeRemoved(node=node) if node in lanes:
                lanes[node] = _cut(lanes[node], event.t / 1e6, None, "")
    for node in begun.keys() - lanes.keys():
        lanes[node] = (Band(begin=begun[node] / 1e6, end=a.end / 1e6, name="starting"),)
    return lanes


def _cut(bands: Sequence[Band], at: float, until: float | None, name: str) -> tuple[Band, ...]:
    """The bands up to a moment, and from there on another one, if there is."""
    kept = tuple(Band(begin=b.begin, end=min(b.end, at), name=b.name) for b in bands if b.begin < at)
    return kept if until is None or until <= at else (*kept, Band(begin=at, end=until, name=name))


def _resilience(a: _Trial, fault: Fault) -> Resilience:
    line = a.timeline
    done = _until(a, fault)
    recovered = next((t for t in line.recoveries if t >= done), None)
    window: Window = (fault.begin, max(fault.begin, recovered if recovered is not None else a.end))
    worst = victims = None
    if a.evidence.probe is not None:
        header, probe = a.evidence.probe
        routes = names_of(header.get("routes"))
        gaps = availability(nearby(probe, routes, window), routes, window=window, victims=fault.nodes)
        worst, victims = gaps.worst, gaps.victims
    degraded = lost = share = None
    told = fault.undone is not None and (recovered is not None or line.writing_end is not None)
    if told and a.activity is not None and a.baseline is not None and a.baseline.median:
        until = line.writing_end or a.end
        found = throughput.buckets(a.activity.acknowledged, window, a.baseline, until=until)
        # Once writing has ended nothing is missed any more.
        wrote_s = max(0, min(window[1], until) - window[0]) / SECOND
        normal = a.baseline.median / a.baseline.width_s * wrote_s
        done_there = len(throughput.within(a.activity.acknowledged, window))
        degraded = throughput.degraded_s(found, window)
        lost = max(0.0, normal - done_there)
        share = lost / normal if normal else None
    return Resilience(
        fault=fault.kind,
        nodes=fault.nodes,
        begin=fault.begin / 1e6,
        end=done / 1e6,
        recovery_s=(recovered - fault.undo) / 1e6 if recovered is not None and fault.undo is not None else None,
        gap_s=worst.seconds if worst else None,
        victim_gap_s=victims.seconds if victims else None,
        degraded_s=degraded,
        lost=lost,
        lost_share=share,
    )
