"""The events of a trial beside those of its cluster (``clusters.events``), and how stored ones are read."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from msgspec import UNSET, UnsetType, convert, to_builtins

from clusters import events as of_clusters
from clusters.events import Happened
from plugin.evidence.redaction import redacted_json


class OwnEvent(Happened, frozen=True, kw_only=True, tag="(own)"):
    """An event that is known to nobody but who wrote it: a claim of one's own. ``data`` holds JSON values."""

    name: str
    data: Mapping[str, Any] = {}


# ---- a trial


class TrialBegin(Happened, frozen=True, kw_only=True, tag="trial.begin"):
    """A trial begins. ``probe``: whether its test asks for one; older trials do not say.

    ``past_recovery_s``: how long writing must go on after recovery; of older trials only.
    """

    probe: bool | UnsetType = UNSET
    past_recovery_s: float | UnsetType = UNSET


class TrialEnd(Happened, frozen=True, kw_only=True, tag="trial.end"):
    """The test has gathered all its evidence. It is the trailer of what the harness itself recorded by then.

    ``lines``: of events before it; ``crc``: CRC-32, in hexadecimal, of the trial's description, its measurements,
    these events and the text of ``files``, in that order. ``files``: the trailer of each file that was written to its
    end by then, by the file's name; one that is cut off later has lost its own. Trials of before have none of these,
    or no ``files``.
    """

    lines: int | UnsetType = UNSET
    crc: str | UnsetType = UNSET
    files: Mapping[str, str] | UnsetType = UNSET


class ProvisionBegin(Happened, frozen=True, kw_only=True, tag="provision.begin"):
    """A cluster of these nodes is about to be provisioned.

    ``old``: of the old version of two, against which the new one is held. Older trials do not say.
    """

    nodes: Sequence[str] = ()
    topology: str = ""
    old: bool | UnsetType = UNSET


class Errored(Happened, frozen=True, kw_only=True, tag="error"):
    """The harness or the machine failed, or what was given cannot be used (``bad_input``).

    ``taken``: something did not come in time, and the machine had nothing left just then, or other work had it.
    ``generator``: a load generator was lost, so that the evidence is incomplete.
    """

    what: str = "error"
    bad_input: bool | UnsetType = UNSET
    taken: bool | UnsetType = UNSET
    generator: bool | UnsetType = UNSET


class Skipped(Happened, frozen=True, kw_only=True, tag="skipped"):
    """The test skipped itself after its trial had begun."""

    what: str = ""


class SabotageExpected(Happened, frozen=True, kw_only=True, tag="sabotage.expected"):
    """A sabotage must refute all ``metrics`` and one of ``either``, or break all ``conditions``.

    It may refute other metrics, and ``may`` break these conditions, too.
    """

    metrics: Sequence[str] | UnsetType = UNSET
    either: Sequence[str] | UnsetType = UNSET
    conditions: Sequence[str] | UnsetType = UNSET
    may: Sequence[str] | UnsetType = UNSET


class SabotageUnexpected(Happened, frozen=True, kw_only=True, tag="sabotage.unexpected"):
    """What an assertion in the body of a sabotage said."""

    what: str = ""


# ---- the phases of a load


class BaselineBegin(Happened, frozen=True, kw_only=True, tag="baseline.begin"):
    """The baseline begins: throughput from here on is what is normal."""


class BaselineEnd(Happened, frozen=True, kw_only=True, tag="baseline.end"):
    """The baseline ends."""


class WritingEnd(Happened, frozen=True, kw_only=True, tag="writing.end"):
    """The writers have stopped."""


class NotRecovered(Happened, frozen=True, kw_only=True, tag="not_recovered"):
    """The cluster was not whole when the limit was over."""

    limit_s: float
    why: str = ""


# ---- clusters that grow and shrink


class BallastFilled(Happened, frozen=True, kw_only=True, tag="ballast.filled"):
    """The ballast is filled: a table of as many ranges as it takes for replicas to be spread."""

    ranges: int = 0
    range_kib: int = 0


class ScaleBegin(Happened, frozen=True, kw_only=True, tag="scale.begin"):
    """The number of nodes is about to change: ``kind`` ``out`` or ``in``, ``nodes`` those that are to be there then.

    ``quiet_s``: how long no replica may move for them to be at rest; ``stall_s``: after how long without a move no more
    are expected; ``hold_s``: how long they must lie evenly. Not above 0: not declared.
    """

    kind: str = ""
    nodes: Sequence[str] = ()
    quiet_s: float = 0.0
    stall_s: float = 0.0
    hold_s: float = 0.0
    added: Sequence[str] | UnsetType = UNSET
    removed: Sequence[str] | UnsetType = UNSET


class ScaleEnd(Happened, frozen=True, kw_only=True, tag="scale.end"):
    """Waiting for this change of the number of nodes is over."""


class NodeJoined(Happened, frozen=True, kw_only=True, tag="node.joined"):
    """A new node takes clients. Where versions change: ``build``, what it calls itself, ``wanted``, what it has."""

    node: str
    build: str | UnsetType = UNSET
    wanted: str | UnsetType = UNSET


class JoinFailed(Happened, frozen=True, kw_only=True, tag="join.failed"):
    """A new node did not come. ``late``: its process ran on, and the profile's time was up."""

    node: str
    why: str = ""
    late: bool | UnsetType = UNSET


class JoinRefused(Happened, frozen=True, kw_only=True, tag="join.refused"):
    """A new node that must not be taken in was kept out."""

    node: str
    how: str = ""


class JoinUnclear(Happened, frozen=True, kw_only=True, tag="join.unclear"):
    """A new node that must not be taken in for its version did not come, and nobody said that this is why."""

    node: str
    how: str = ""


class NodeRemoved(Happened, frozen=True, kw_only=True, tag="node.removed"):
    """A node was taken out and ended."""

    node: str
    code: int | None = None


class RemoveFailed(Happened, frozen=True, kw_only=True, tag="remove.failed"):
    """A node could not be taken out."""

    node: str
    why: str = ""


class RemovalRefused(Happened, frozen=True, kw_only=True, tag="removal.refused"):
    """The cluster refused to give up a node that it cannot spare."""

    node: str
    how: str = ""


class RemovalBegun(Happened, frozen=True, kw_only=True, tag="removal.begun"):
    """The cluster began to give up a node that it cannot spare."""

    node: str
    how: str = ""


class QuietBegin(Happened, frozen=True, kw_only=True, tag="quiet.begin"):
    """Traffic has ended: from here on replicas are watched until they are at rest."""


class QuietEnd(Happened, frozen=True, kw_only=True, tag="quiet.end"):
    """Waiting for replicas to be at rest is over."""


class Interventions(Happened, frozen=True, kw_only=True, tag="interventions"):
    """What was done by hand, as the servers tell it, and how often."""

    steps: Mapping[str, int] = {}


class InterventionsUnknown(Happened, frozen=True, kw_only=True, tag="interventions.unknown"):
    """Nobody tells what was done by hand."""

    why: str = ""


class Moves(Happened, frozen=True, kw_only=True, tag="moves"):
    """Why replicas moved, as the servers tell it, and how often."""

    reasons: Mapping[str, int] = {}


class MovesUnknown(Happened, frozen=True, kw_only=True, tag="moves.unknown"):
    """Nobody tells why replicas moved."""

    why: str = ""


# ---- nodes that get other resources


class SizeBegin(Happened, frozen=True, kw_only=True, tag="size.begin"):
    """These nodes get this size one after another; ``asked`` as in ``clusters.model.NodeResources``."""

    size: str = ""
    nodes: Sequence[str] = ()
    asked: Mapping[str, int | float] = {}


class LeasesAway(Happened, frozen=True, kw_only=True, tag="leases_away"):
    """A node that came back led no part of the load's tables when the limit was over."""

    why: str = ""


class SizeEnd(Happened, frozen=True, kw_only=True, tag="size.end"):
    """All of them have it."""

    size: str = ""


# ---- nodes that get another version


class PlanDrawn(Happened, frozen=True, kw_only=True, tag="plan.drawn"):
    """What will be done, in ``plan.json``. ``builds``: what each version's servers call themselves.

    ``equal``: all versions are the same build, so that the nodes are only restarted. ``given``: of a plan that was
    given instead of drawn, the SHA-256 of what is stored.
    """

    path: str
    seed: int
    steps: int
    builds: Mapping[str, str] = {}
    equal: bool = False
    given: str | UnsetType = UNSET


class Preflight(Happened, frozen=True, kw_only=True, tag="preflight"):
    """What was looked at before the first node was changed, and what was found; nothing in ``against`` forbids it."""

    found: Mapping[str, str] = {}
    against: Sequence[str] = ()


class StepBegin(Happened, frozen=True, kw_only=True, tag="step.begin"):
    """A step of the plan begins. ``kind`` as in ``fixtures.swapping.plan``, ``says`` for people."""

    number: int
    kind: str
    says: str = ""
    refused: bool | UnsetType = UNSET
    """Of a node that asks to be taken in: whether it must not be."""
    lasts_s: float | UnsetType = UNSET
    """Of a stay: how long."""


class StepEnd(Happened, frozen=True, kw_only=True, tag="step.end"):
    """A step of the plan is done."""

    number: int


class VersionsSeen(Happened, frozen=True, kw_only=True, tag="versions.seen"):
    """Which version is in force, asked of each node; ``silent``: why one did not say.

    ``builds``: what each calls itself.
    """

    active: Mapping[str, str] = {}
    silent: Mapping[str, str] = {}
    builds: Mapping[str, str] | UnsetType = UNSET


class NotFinal(Happened, frozen=True, kw_only=True, tag="not_final"):
    """The new version was not in force everywhere when the limit was over."""

    limit_s: float
    why: str = ""


class ProcessesSeen(Happened, frozen=True, kw_only=True, tag="processes.seen"):
    """Which nodes' processes ran, asked of the operating system: once a second, and whenever that changed."""

    running: Sequence[str] = ()
    others: Mapping[str, str] = {}


# ---- objects across versions


@dataclass(frozen=True, kw_only=True, slots=True)
class Wrong:
    """A statement that was answered in another way than it must be."""

    statement: str
    answer: str
    wanted: str


class ObjectsMade(Happened, frozen=True, kw_only=True, tag="objects.made"):
    """The objects of these checks are there, made in this order; ``of`` so many they were drawn.

    ``later``: those that are to be made in a later phase; then this is told of them, with that ``phase``.
    """

    checks: Sequence[str] = ()
    of: int | UnsetType = UNSET
    later: Sequence[str] | UnsetType = UNSET
    phase: str | UnsetType = UNSET


class ObjectsPhase(Happened, frozen=True, kw_only=True, tag="objects.phase"):
    """All checks are about to change their objects and to look at them. ``nodes``: all of the cluster.

    Where ``old`` and ``new`` both name nodes, every check looks through one of each; else through two of ``nodes``.
    """

    phase: str
    nodes: Sequence[str] = ()
    old: Sequence[str] = ()
    new: Sequence[str] = ()


class ObjectLooked(Happened, frozen=True, kw_only=True, tag="object.looked"):
    """A check looked at its object through a node (or the one way in for writes), ``n`` changes being done.

    ``changed``: what the last of them was made through, if one was just made. ``answers``: by statement what it
    answered, of statements whose answers must be the same through all nodes. ``still``: nothing changes what they are
    about, so that they must be the same in all phases, too.
    """

    check: str
    phase: str
    node: str
    n: int = 0
    build: str | UnsetType = UNSET
    wrong: Sequence[Wrong] = ()
    changed: str | UnsetType = UNSET
    answers: Mapping[str, str] | UnsetType = UNSET
    still: bool | UnsetType = UNSET


class ObjectUnasked(Happened, frozen=True, kw_only=True, tag="object.unasked"):
    """A check could not do, or not ask, what it was to: nobody knows whether it holds."""

    check: str
    phase: str
    node: str = ""
    what: str = ""
    why: str = ""


class ObjectNotEvaluated(Happened, frozen=True, kw_only=True, tag="object.not_evaluated"):
    """A check is none for this engine or version."""

    check: str
    why: str = ""


class ObjectEnded(Happened, frozen=True, kw_only=True, tag="object.ended"):
    """What a check began in the phase ``begun`` has ended; ``under_way``: it had not by itself when this one began.

    ``again``: how often it had to be begun again, as servers had undone it or did not tell. ``answered_s``: after how
    many seconds its answer came, or its connection was lost, where that was before the phase.
    """

    check: str
    phase: str
    begun: str
    node: str
    under_way: bool = False
    again: int | UnsetType = UNSET
    seconds: float = 0.0
    answered_s: float | UnsetType = UNSET


# ---- making and reading


@dataclass(frozen=True, slots=True)
class Event:
    """Something that was done or seen at a time ``t``, in microseconds on the trial's timeline."""

    t: int
    what: Happened

    @property
    def name(self) -> str:
        """As it is on disk."""
        return self.what.name if isinstance(self.what, OwnEvent) else tag(type(self.what))

    @property
    def data(self) -> dict[str, Any]:
        """The facts beside time and name, as JSON values."""
        if isinstance(self.what, OwnEvent):
            return dict(self.what.data)
        told: dict[str, Any] = to_builtins(self.what)
        del told["event"]
        return told


Kind = TypeVar("Kind", bound=Happened)


def seen(events: Iterable[Event], kind: type[Kind]) -> list[tuple[int, Kind]]:
    """The events of one kind, each with its time."""
    return [(event.t, event.what) for event in events if isinstance(event.what, kind)]


def tag(kind: type[Happened]) -> str:
    """What events of this class are called on disk."""
    return str(kind.__struct_config__.tag)


KNOWN: dict[str, type[Happened]] = {
    tag(kind): kind
    for kind in Happened.__subclasses__()
    if kind.__module__ in (__name__, of_clusters.__name__) and kind is not OwnEvent
}
"""The classes that stored events become, by name; any other becomes an ``OwnEvent``."""


def happened(name: str, data: Mapping[str, Any], kinds: Mapping[str, type[Happened]] = KNOWN) -> Happened:
    """The event with the facts that its class knows. Raises ``ValueError`` for missing and ill-typed ones."""
    kind = kinds.get(name)
    return OwnEvent(name=name, data=data) if kind is None else convert(data, kind)


def without_secrets(event: Event) -> Event:
    """The event without what looks like a secret. Where that leaves facts of another type, it has no class any more."""
    kind, data = type(event.what), redacted_json(event.data)
    try:
        kinds = {event.name: kind} if kind is not OwnEvent else {}
        return Event(event.t, happened(event.name, data, kinds))
    except ValueError:
        return Event(event.t, OwnEvent(name=event.name, data=data))
