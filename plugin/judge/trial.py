"""The evidence of one trial as the judge gets it, and where its phases begin and end."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from clusters.events import FaultBegin, FaultBit, FaultUndo, FaultUndone, Happened, Recovered
from plugin.evidence.events import BaselineBegin, BaselineEnd, Event, StepBegin, StepEnd, WritingEnd, seen
from plugin.evidence.records import ProbeSecond
from plugin.judge.model import Measurement

if TYPE_CHECKING:
    from plugin.evidence.layout import LayoutSample
    from plugin.evidence.plan import StoredPlan

SECOND = 1_000_000
"""In microseconds, which times of the timeline are in."""

Window = tuple[int, int]
"""A stretch of the trial's timeline, from and to, in microseconds."""


class HostSecond(NamedTuple):
    """A second of the host that ended at ``t`` µs: CPU in use, in percent of all there is, and other work's part of it.

    What a hypervisor took counts as other work. ``stalled``: percent of the second in which all work waited for disks;
    ``disk_others``: other work's part of the bytes that were read and written, in percent. ``network``: how full the
    fullest interface was, in percent; whose the bytes were nobody knows. ``None`` is for what was not recorded.
    """

    t: int
    cpu: float
    others: float | None = None
    stalled: float | None = None
    disk_others: float | None = None
    network: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class TrialEvidence:
    """Everything that was recorded of one trial of one claim.

    ``buckets``: how many ranges the probe asks. ``probe`` is its header and its seconds. ``measurements`` are those
    that a test recorded itself. ``workloads`` has by name what each workload left, as it reads that itself; ``layout``
    where the replicas were, ``host`` the host's load, second by second, and ``host_problems`` what is wrong with that
    record, on which only times rest; ``plan`` what was to be done, where that was written down before. ``limits`` are
    those of the checks at hand by metric: what a comparison takes for its margin; ``paper`` what its source printed,
    ``None`` where nobody looked it up: then what a test said of it is believed. ``problems`` says in words what is
    wrong with the files (edited after the run, malformed lines, ended early); with any of them the evidence cannot be
    relied on.
    """

    claim: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    profile: str
    seed: int
    buckets: int
    context: Mapping[str, str] = field(default_factory=dict)
    events: Sequence[Event] = ()
    probe: tuple[Mapping[str, Any], Sequence[ProbeSecond]] | None = None
    measurements: Sequence[Measurement] = ()
    workloads: Mapping[str, Any] = field(default_factory=dict)
    layout: "Sequence[LayoutSample]" = ()
    host: Sequence[HostSecond] = ()
    host_problems: tuple[str, ...] = ()
    plan: "StoredPlan | None" = None
    limits: Mapping[str, float] = field(default_factory=dict)
    paper: Mapping[str, Any] | None = None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """One fault as the events tell it. Times in microseconds; ``None`` for what was never recorded.

    ``bit`` has the time at which each node was proven to be hit. ``leases`` and ``connections`` say what each node held
    of the load just before. ``blocks``: a majority is gone on purpose, so nothing may be acknowledged.
    """

    kind: str
    nodes: tuple[str, ...]
    begin: int
    bit: Mapping[str, int]
    undo: int | None
    undone: int | None
    leases: Mapping[str, int]
    connections: Mapping[str, int]
    blocks: bool

    @property
    def done(self) -> int:
        """When it was undone; its begin where that was never recorded."""
        return self.begin if self.undone is None else self.undone


@dataclass(frozen=True, kw_only=True, slots=True)
class Disturbance:
    """From a fault's first action to the recovery that was declared after it, or the trial's end.

    ``kind``: of its last fault.
    """

    window: Window
    victims: frozenset[str]
    kind: str


NO_MAJORITY = "no fault took a majority and gave it back"


class Resuming(NamedTuple):
    """The time from a majority's return to the recovery declared after it, and when else nobody needs to be served."""

    window: Window
    excused: tuple[Window, ...]

    def parts(self, stretch: Window) -> Iterator[Window]:
        """What counts of a stretch that may have begun before, and may end later."""
        begin, end = self.window
        return (part for part in outside(stretch, self.excused) if part[1] > begin and part[0] < end)


BETWEEN_US = 2_000_000
"""Before the next fault begins; a route is asked several times in it."""
ROLLING = frozenset({"resize", "swap"})
"""Faults that go over all nodes one after another, as changes in operation do."""
LOOK = "look"
"""The kind of a plan's steps in which the test itself makes, changes and looks at something of the cluster."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Timeline:
    """The phases of a trial, taken from its events.

    A window or time is ``None`` where an event that bounds it is missing.
    """

    baseline: Window | None
    faults: tuple[Fault, ...]
    recovered: int | None
    """The first declared recovery after the last fault was undone."""
    recoveries: tuple[int, ...]
    """All declared recoveries."""
    writing_end: int | None
    end: int
    """The last event of all."""
    looks: tuple[Window, ...]
    """The plan's steps that look at the cluster: what the test asks for then takes part of the machine from the load.

    Only how fast the load is served is not judged in them; whatever goes wrong in them counts.
    """
    reached: Mapping[type[Happened], int]
    """The first time of each kind of event."""

    def whole_after(self, fault: Fault) -> int | None:
        """When recovery was first declared once a fault was undone."""
        return next((time for time in self.recoveries if time >= fault.done), None)

    @property
    def disturbed(self) -> Window | None:
        """From the first fault action to the declared recovery; to the trial's end where none was declared."""
        if not self.faults:
            return None
        begin = self.faults[0].begin
        return begin, max(begin, self.recovered if self.recovered is not None else self.end)

    @property
    def excused(self) -> tuple[Disturbance, ...]:
        """Faults one after another, each with its own recovery; those that begin before it belong to the same one.

        Outside of them nothing excuses an outage.
        """
        found: list[Disturbance] = []
        for fault in sorted(self.faults, key=lambda fault: fault.begin):
            same = found.pop() if found and fault.begin < found[-1].window[1] else None
            begin = same.window[0] if same else fault.begin
            done = max(fault.done, same.window[1] if same else 0)
            end = next((time for time in self.recoveries if time >= done), self.end)
            victims = (same.victims if same else frozenset()) | frozenset(fault.nodes)
            found.append(Disturbance(window=(begin, max(begin, end)), victims=victims, kind=fault.kind))
        return tuple(found)

    @property
    def disturbances(self) -> tuple[Disturbance, ...]:
        """As ``excused``, but each lasts until shortly before the next one begins.

        So nothing between them is overlooked, and the last success of the next one's victims is none of its own.
        """
        found = self.excused
        ends = [
            *(max(one.window[1], later.window[0] - BETWEEN_US) for one, later in pairwise(found)),
            *(one.window[1] for one in found[-1:]),
        ]
        return tuple(replace(one, window=(one.window[0], end)) for one, end in zip(found, ends, strict=True))

    @property
    def resuming(self) -> tuple[Resuming, ...]:
        """Of each disturbance that took a majority and gave it back."""
        found = []
        for number, one in enumerate(disturbances := self.excused):
            begin, end = one.window
            back = [fault.undone for fault in self.faults if fault.blocks and begin <= fault.begin < end]
            times = [time for time in back if time is not None]
            if times and len(times) == len(back):
                later = (other.window for other in disturbances[number + 1 :])
                found.append(Resuming((max(times), end), ((0, max(times)), *later)))
        return tuple(found)

    @property
    def undone(self) -> int | None:
        """When the last fault was undone, or ``None`` where one was not."""
        times = [fault.undone for fault in self.faults]
        return None if not times or None in times else max(time for time in times if time is not None)

    @property
    def gone(self) -> Mapping[str, int]:
        """The nodes that nobody brought back after a fault, and when that began."""
        last = {node: fault for fault in self.faults for node in fault.nodes}
        return {node: fault.begin for node, fault in last.items() if fault.undone is None}

    @property
    def victims(self) -> frozenset[str]:
        """All nodes that a fault was aimed at."""
        return frozenset(node for fault in self.faults for node in fault.nodes)


def outside(window: Window, others: Iterable[Window]) -> Iterator[Window]:
    """The parts of a window that lie outside of all others, which are in order."""
    begin, end = window
    for other in others:
        if other[0] >= end:
            break
        if other[0] > begin:
            yield begin, other[0]
        begin = max(begin, other[1])
    if begin < end:
        yield begin, end


def lasted(fault: Fault, end: int) -> Window:
    """From when a fault is proven on all its nodes, or else its begin, until its undoing begins.

    Until ``end`` where that was never recorded.
    """
    proven = max(fault.bit.values(), default=fault.begin)
    return proven, fault.undo if fault.undo is not None else end


def timeline(events: Sequence[Event]) -> Timeline:
    """The phases that the events tell of."""
    reached: dict[type[Happened], int] = {}
    for event in events:
        reached.setdefault(type(event.what), event.t)
    faults = tuple(
        _fault(event.t, event.what, events[index + 1 :])
        for index, event in enumerate(events)
        if isinstance(event.what, FaultBegin)
    )
    recoveries = tuple(t for t, _ in seen(events, Recovered))
    done = max((fault.done for fault in faults), default=0)
    return Timeline(
        baseline=(reached[BaselineBegin], reached[BaselineEnd])
        if BaselineBegin in reached and BaselineEnd in reached
        else None,
        faults=faults,
        recovered=next((t for t in recoveries if t >= done), None),
        recoveries=recoveries,
        writing_end=max((t for t, _ in seen(events, WritingEnd)), default=None),
        end=max((event.t for event in events), default=0),
        looks=_looks(events),
        reached=reached,
    )


def _looks(events: Sequence[Event]) -> tuple[Window, ...]:
    """One that has no end lasts until the trial's."""
    ends = [(t, end.number) for t, end in seen(events, StepEnd)]
    last = max((event.t for event in events), default=0)
    return tuple(
        (t, next((end for end, number in ends if number == begin.number and end >= t), last))
        for t, begin in seen(events, StepBegin)
        if begin.kind == LOOK
    )


def _fault(t: int, begin: FaultBegin, later: Sequence[Event]) -> Fault:
    nodes = set(begin.nodes)
    bit: dict[str, int] = {}
    undo: int | None = None
    undone: int | None = None
    for event in later:
        match event.what:
            case FaultBegin(nodes=others) if nodes & set(others):
                break
            case FaultBit(node=node) if node in nodes:
                bit.setdefault(node, event.t)
            case FaultUndo(nodes=others) if undo is None and nodes & set(others):
                undo = event.t
            case FaultUndone(nodes=others) if undone is None and nodes & set(others):
                undone = event.t
    return Fault(
        kind=begin.fault, nodes=tuple(begin.nodes), begin=t, bit=bit, undo=undo, undone=undone,
        leases=begin.leases, connections=begin.connections, blocks=begin.blocks,
    )  # fmt: skip
