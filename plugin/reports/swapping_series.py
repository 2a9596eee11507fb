"""Nodes that are given another version one after another, as reports show it; times are seconds on the timeline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from msgspec import UNSET

from clusters.events import (
    DrainFailed,
    FaultBegin,
    FaultBit,
    FaultUndo,
    FaultUndone,
    Happened,
    NodeDeath,
    NodeStopped,
    NodeSwapped,
    Provisioned,
    Recovered,
    SwapFailed,
    VersionFinal,
    VersionKept,
)
from plugin.counts import number_of
from plugin.evidence.events import (
    Errored,
    JoinFailed,
    JoinRefused,
    JoinUnclear,
    NodeJoined,
    NotFinal,
    NotRecovered,
    ObjectLooked,
    PlanDrawn,
    Preflight,
    ProcessesSeen,
    ProvisionBegin,
    StepBegin,
    StepEnd,
    VersionsSeen,
    seen,
)
from plugin.evidence.plan import StoredPlan
from plugin.judge.mixed import Ended
from plugin.judge.moments import zero_of
from plugin.judge.swapping import JOIN, SWAP
from plugin.judge.trial import TrialEvidence
from plugin.reports.bands import FAULTED, SECOND, Band, add

STARTING, DRAINING, DOWN, NOT_READY = "starting", "draining", "down", "not ready"
"""States of a node that takes no clients, or is about to take none; one that runs has its version for a name."""
UNKNOWN = "up"
"""A node that runs nobody knows what."""
AWAY = "coming back"
Gaps = Sequence[tuple[float | None, float | None]]
"""By fault: the longest gap of the clients of whom it hit, and that of all others."""
Connections = Mapping[tuple[str, int], Ended]
"""By node and when its drain began, in microseconds: what became of the loads' connections to it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Swap:
    """A node that was given another version; ``None`` and "" for what was not recorded.

    Draining it began at ``begin``; it is ``down`` from when its process is gone, and ``up`` once it takes clients; then
    the cluster is ``whole`` again. ``before``, ``wanted`` and ``build`` are what it ran, what it was given and what it
    calls itself at last; ``to`` is what the plan calls what it was given: one build twice has two names there.
    ``failed``: why it did not come up with that, or if ``undrained`` was not given it; ``meant``: how it was to fail,
    if it did so. ``ended``: what became of the loads' connections to it.
    """

    node: str
    before: str
    wanted: str
    begin: float
    to: str = ""
    down: float | None = None
    up: float | None = None
    whole: float | None = None
    build: str = ""
    active: str = ""
    failed: str = ""
    undrained: bool = False
    meant: str = ""
    ended: Ended | None = None
    gap_s: float | None = None
    others_gap_s: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class DoneStep:
    """A step of the plan: when it was begun and ended, ``None`` where it was not, and what came of it."""

    number: int
    kind: str
    says: str
    begun: float | None = None
    ended: float | None = None
    came: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class SwappingSeries:
    """What was done to change versions, and in which states nodes were.

    ``lanes``: by node. ``versions``: all that nodes ran, in the order in which they came. ``marks``: what was done to
    the cluster as a whole. ``running`` and ``active``: by node, what it calls itself at last, and which version it says
    is in force. ``back``: what the cluster was told last about a way back. ``beyond``: steps that were planned and of
    which nothing is stored. ``zero``: from which second of the timeline on it is told.
    """

    lanes: Mapping[str, tuple[Band, ...]]
    versions: tuple[str, ...]
    swaps: tuple[Swap, ...]
    steps: tuple[DoneStep, ...]
    marks: tuple[Band, ...]
    running: Mapping[str, str]
    active: Mapping[str, str]
    back: str
    plan: PlanDrawn | None
    preflight: Preflight | None
    beyond: int = 0
    problem: str = ""
    zero: int = 0


def swapping_series(
    evidence: TrialEvidence, end: int, gaps: Gaps, connections: Connections = MappingProxyType({})
) -> SwappingSeries | None:
    """What a trial's events tell of it until ``end``, in microseconds; nothing of one that changes no version."""
    plan = next((plan for _, plan in seen(evidence.events, PlanDrawn)), None)
    if plan is None and not any(begin.fault == SWAP for _, begin in seen(evidence.events, FaultBegin)):
        return None
    told = _Told(plan, evidence.plan or StoredPlan(), str(evidence.context.get("version", "")), gaps, connections)
    for event in evidence.events:
        told.hear(event.t, event.what)
    lanes = {node: _bands(changes, end) for node, changes in told.lanes.items()}
    steps = [told.steps[number] for number in sorted(told.steps)]
    return SwappingSeries(
        lanes={node: bands for node, bands in lanes.items() if bands},
        versions=tuple(dict.fromkeys([*told.first, *told.came])),
        swaps=tuple(told.swaps),
        steps=tuple(steps),
        marks=tuple(told.marks),
        running=told.running,
        active=told.active,
        back=told.back,
        plan=plan,
        preflight=next((found for _, found in seen(evidence.events, Preflight)), None),
        beyond=max(0, plan.steps - len(steps)) if plan else 0,
        problem=evidence.plan.problem if evidence.plan else "",
        zero=zero_of(evidence.events),
    )


def _bands(changes: Sequence[tuple[int, str]], end: int) -> tuple[Band, ...]:
    bands: list[Band] = []
    for (begin, state), (until, _) in pairwise([*changes, (end, "")]):
        if state:
            add(bands, begin, until, state)
    return tuple(bands)


@dataclass
class _Told:
    """Hears all events in their order, and keeps what they tell."""

    plan: PlanDrawn | None
    stored: StoredPlan
    version: str
    gaps: Gaps
    connections: Connections
    lanes: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    swaps: list[Swap] = field(default_factory=list)
    marks: list[Band] = field(default_factory=list)
    running: dict[str, str] = field(default_factory=dict)
    active: dict[str, str] = field(default_factory=dict)
    came: dict[str, None] = field(default_factory=dict)
    suffers: dict[str, str] = field(default_factory=dict)
    looked: list[tuple[str, bool]] = field(default_factory=list)
    faults: int = 0
    back: str = ""
    kept: str = ""
    step: int = 0

    def __post_init__(self) -> None:
        planned = enumerate(self.stored.steps, 1)
        self.steps = {n: DoneStep(number=n, kind=step.kind, says=str(step)) for n, step in planned}
        builds = list(self.plan.builds.values()) if self.plan else [self.version]
        self.first = [build for build in builds[:1] if build]

    def hear(self, t: int, what: Happened) -> None:
        """One event."""
        self._of_the_plan(t, what)
        self._of_nodes(t, what)
        self._of_swaps(t, what)

    def _of_the_plan(self, t: int, what: Happened) -> None:
        at = t / SECOND
        match what:
            case StepBegin(number=number, kind=kind, says=says):
                planned = self.steps.get(number)
                other = (f"planned was: {planned.says}",) if planned and planned.kind != kind else ()
                told = says or (planned.says if planned else kind)
                self.steps[number] = DoneStep(number=number, kind=kind, says=told, begun=at, came=other)
                self.step, self.looked = number, []
            case ObjectLooked(check=check, wrong=wrong):
                self.looked.append((check, bool(wrong)))
            case StepEnd(number=number) if number in self.steps:
                if self.looked:
                    objects, odd_ones = len({check for check, _ in self.looked}), sum(odd for _, odd in self.looked)
                    self._came(
                        f"{number_of(len(self.looked), 'looks')} at {number_of(objects, 'objects')}, "
                        f"{odd_ones} not as they must be"
                    )
                self.steps[number] = replace(self.steps[number], ended=at)
            case VersionKept(active=active):
                self.back = f"{active} is kept: there is a way back" if active else "this database keeps no version"
                self.kept = active or " ".join(dict.fromkeys(self.active.values()))
                self._came(f"{active} is kept" if active else self.back)
                self._mark(at, at, "version kept" if active else "no version is kept")
            case VersionFinal(active=told, seconds=seconds):
                self.active |= told
                versions = " ".join(dict.fromkeys(told.values()))
                same = f"{versions} is in force, as it was before: making it final changed nothing"
                self.back = same if versions == self.kept else f"{versions} was made final: there is no way back"
                self._came(f"{versions} in force on {', '.join(told)} after {seconds:.1f} s")
                self._mark(self._begun(at), at, "version final")
            case VersionsSeen(active=told):
                self.active |= told
            case NotFinal(limit_s=limit, why=why):
                self.back = f"not final within {limit:g} s: {why}"
                self._came(self.back)
                self._mark(self._begun(at), at, "not final")
            case NodeJoined(node=node, build=build):
                self._came(
                    f"{node} was taken in" + ("" if build is UNSET else f", and calls itself {build or 'nothing'}")
                )
                self._mark(self._begun(at), at, f"{node} joined")
            case JoinRefused(node=node, how=how):
                self._came(f"{node} was kept out: {how}")
                self._mark(self._begun(at), at, f"{node} kept out")
            case JoinUnclear(node=node, how=how):
                self._came(f"{node} did not come, and not for its version as far as anybody said: {how}")
                self._mark(self._begun(at), at, f"{node} did not come")
            case JoinFailed(node=node, why=why):
                self._came(f"{node} was not taken in: {why}")
                self._mark(self._begun(at), at, f"{node} did not join")
            case NotRecovered(limit_s=limit, why=why):
                self._came(f"not whole within {limit:g} s: {why}")
            case Errored(what=why):
                self._came(why)

    def _begun(self, at: float) -> float:
        begun = self.steps[self.step].begun if self.step in self.steps else None
        return at if begun is None else begun

    def _mark(self, begin: float, end: float, name: str) -> None:
        self.marks.append(Band(begin=begin, end=end, name=name))

    def _came(self, words: str) -> None:
        """Of the step under way; what comes after the last one is no part of the plan."""
        step = self.steps.get(self.step)
        if step and step.ended is None:
            self.steps[self.step] = replace(step, came=(*step.came, words))

    def _of_nodes(self, t: int, what: Happened) -> None:
        match what:
            case ProvisionBegin(nodes=nodes):
                for node in nodes:
                    self.running[node] = next(iter(self.first), "")
                    self._is(t, node, STARTING)
            case Provisioned():
                self._settle(t, STARTING)
            case Recovered():
                self._settle(t, DOWN, NOT_READY)
            case FaultBegin(fault=kind, nodes=nodes):
                for node in nodes:
                    self.suffers[node] = kind
                    if kind == SWAP:
                        self._is(t, node, DRAINING)
            case FaultBit(node=node) if node in self.suffers:
                kind = self.suffers[node]
                self._is(t, node, DOWN if kind == SWAP else FAULTED.get(kind, kind))
            case FaultUndo(nodes=nodes):
                for node in nodes:
                    if self.suffers.get(node, SWAP) != SWAP:
                        self._is(t, node, AWAY)
            case FaultUndone(nodes=nodes):
                for node in nodes:
                    self.suffers.pop(node, None)
                    self._runs(t, node)
            case ProcessesSeen(running=running, others=others):
                for node in self.lanes:
                    self._looked(t, node, runs=node in running, other=node in others)
            case NodeDeath(node=node):
                self._is(t, node, DOWN)
            case StepBegin(kind=kind) if kind == JOIN and (node := self._asked("node")):
                self._is(t, node, STARTING)
            case NodeJoined(node=node, build=build):
                self.running[node] = self._build(self._asked("version")) if build is UNSET else build
                self._runs(t, node)
            case JoinRefused(node=node) | JoinUnclear(node=node) | JoinFailed(node=node):
                self._is(t, node, "")

    def _settle(self, t: int, *states: str) -> None:
        for node, changes in self.lanes.items():
            if node not in self.suffers and changes[-1][1] in states:
                self._runs(t, node)

    def _looked(self, t: int, node: str, *, runs: bool, other: bool) -> None:
        """Whether its process ran when somebody looked."""
        now = self.lanes[node][-1][1]
        if other and now in (DRAINING, NOT_READY, UNKNOWN, *self.came) and self.suffers.get(node, SWAP) == SWAP:
            self._is(t, node, DOWN)
        elif runs and now == DOWN:
            self._is(t, node, NOT_READY)

    def _is(self, t: int, node: str, state: str) -> None:
        changes = self.lanes.setdefault(node, [])
        if not changes or changes[-1][1] != state:
            changes.append((t, state))
        if state == DOWN and (at := self._under_way(node)) is not None and self.swaps[at].down is None:
            self.swaps[at] = replace(self.swaps[at], down=t / SECOND)

    def _runs(self, t: int, node: str) -> None:
        state = self.running.get(node) or UNKNOWN
        self.came |= {state: None} if state != UNKNOWN else {}
        self._is(t, node, state)

    def _asked(self, fact: str) -> str:
        """What the plan says of the step under way."""
        here = 0 < self.step <= len(self.stored.steps)
        return self.stored.steps[self.step - 1].facts.get(fact, "") if here else ""

    def _build(self, version: str) -> str:
        return self.plan.builds.get(version, version) if self.plan else version

    def _of_swaps(self, t: int, what: Happened) -> None:
        at = t / SECOND
        match what:
            case FaultBegin(fault=kind, nodes=nodes):
                gaps = self.gaps[self.faults] if self.faults < len(self.gaps) else (None, None)
                self.faults += 1
                for node in nodes if kind == SWAP else ():
                    to = self._asked("to")
                    self.swaps.append(
                        Swap(
                            node=node, before=self.running.get(node, ""), wanted=self._build(to), to=to, begin=at,
                            ended=self.connections.get((node, t)),
                            gap_s=gaps[0], others_gap_s=gaps[1],
                        )
                    )  # fmt: skip
            case DrainFailed(node=node, why=why):
                self._came(f"{node} was not drained: {why}")
                self._swap(node, failed=why or "nobody knows why", undrained=True)
            case NodeStopped(node=node, code=code, late=late) if code or late is True:
                self._came(f"{node} {'was killed, as it did not stop' if late is True else f'ended with {code}'}")
            case SwapFailed(node=node, wanted=wanted, why=why, meant=meant, as_meant=as_meant):
                self._came(f"{node} did not come up with {wanted}: {why}")
                so = str(meant) if as_meant is True else ""
                self._swap(node, wanted=wanted, failed=why or "nobody knows why", meant=so)
                self._mark(at, at, f"{node} did not come up")
            case NodeSwapped(node=node, wanted=wanted, build=build, active=active):
                self._came(f"{node} calls itself {build or 'nothing'}" + (f", {active} in force" if active else ""))
                place = self._under_way(node)
                failed = place is not None and bool(self.swaps[place].failed)
                kept = {} if failed else {"wanted": wanted}
                self._swap(node, **kept, up=at, build=build, active=active)
                self.running[node], self.active[node] = build, active
                self._runs(t, node)
            case Recovered():
                for place, swap in enumerate(self.swaps):
                    if swap.whole is None and swap.node not in self.suffers:
                        self.swaps[place] = replace(swap, whole=at)

    def _swap(self, node: str, **facts: Any) -> None:
        if (place := self._under_way(node)) is not None:
            self.swaps[place] = replace(self.swaps[place], **facts)

    def _under_way(self, node: str) -> int | None:
        """The place of the node's last swap, unless that is over."""
        mine = [place for place, swap in enumerate(self.swaps) if swap.node == node]
        return mine[-1] if mine and self.swaps[mine[-1]].up is None else None
