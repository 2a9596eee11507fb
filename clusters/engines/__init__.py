"""The databases. One module or package an engine: how to start it, introspect it, swap its version; what it can do.

``ENGINES`` has what is known of each before one is found: an ``EngineKind``. Its ``find`` gives an ``Engine``: which
version, from where, what it can do. It starts nothing. ``deploy`` gives a ``Deployment``: that database on the
placements a substrate made, which ``clusters.cluster.Cluster`` drives. Neither knows how a process is run; that is the
substrate's.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from clusters import known
from clusters.known import CHOICES as CHOICES
from clusters.known import NO_CHOICE
from clusters.known import SUBJECT as SUBJECT
from clusters.known import Choice as Choice
from clusters.model import (
    Capability,
    Credentials,
    Endpoint,
    Fingerprint,
    Generator,
    Health,
    Layout,
    NodeGauges,
    NodeResources,
    NodeSpec,
    Placement,
    ProcessSpec,
    RangeInfo,
    RunningVersion,
    SqlTraits,
)
from clusters.registry import Registry
from clusters.sql import Connection
from clusters.substrates import Nodes
from clusters.tenancy import Tenancy

if TYPE_CHECKING:
    from clusters.engines.charted import Charted


class Backups(Protocol):
    """Backups of whole databases, as files of a node. All of it raises ``HarnessError`` where it cannot be done."""

    async def save(self, name: str, into: BinaryIO) -> None:
        """Archive a backup's files into a file of this machine."""

    async def load(self, name: str, out_of: BinaryIO) -> None:
        """Put archived files where they can be restored from; no backup of the name may be there."""

    async def discard(self, name: str) -> None:
        """Delete a backup's files."""

    async def back_up(self, database: str, name: str, *, timeout: float, node: str | None = None) -> None:
        """Back a database up under a name that no backup has; ``node`` is asked for it, or any."""

    async def restore(self, database: str, name: str, *, to: str, timeout: float, node: str | None = None) -> None:
        """Restore the tables of ``database`` from its backup into the database ``to``, which has none of them.

        ``database`` as it stands in a statement, ``to`` as it is called: it is made, where it is not there.

        ``node`` is asked for it, or any.
        """


class Deployment(Protocol):
    """A database on its placements. What talks to it raises ``HarnessError`` where nobody answers or it is refused."""

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """The ways in, for clients spread over the cluster on purpose."""

    @property
    def credentials(self) -> Credentials:
        """How clients identify themselves."""

    @property
    def administrator(self) -> Credentials:
        """Who may do everything; the same as clients, where these may."""

    @property
    def backups(self) -> Backups | None:
        """How databases are backed up, where they can be. Known after ``prepare``."""

    @property
    def tuned(self) -> tuple[str, ...]:
        """What is set otherwise than by default for the test's sake, ``name = value``: it goes into verdicts."""

    @property
    def services(self) -> tuple[ProcessSpec, ...]:
        """Processes beside the nodes that no fault touches (etcd for Patroni). Known after ``prepare``."""

    def process(self, node: str) -> ProcessSpec:
        """The process that is this node. Known after ``prepare`` or ``place``."""

    async def prepare(self, placements: Sequence[Placement], nodes: Nodes) -> None:
        """Everything before a process starts: programs, certificates, configuration."""

    async def place(self, placement: Placement) -> None:
        """Prepare one more node, which joins a running cluster when its process starts."""

    async def withdraw(self, node: str) -> None:
        """Forget a node that was placed and never joined; its process has ended."""

    async def give(self, node: str, resources: NodeResources) -> None:
        """Give a node other resources, from its next start on. Raises ``HarnessError`` for a node that is not there."""

    async def shown(self, node: str) -> Mapping[str, float]:
        """What a running node itself says of its resources, by their names in ``NodeResources``, as far as it does."""

    async def install(self, node: str, engine: "Engine") -> None:
        """Have a node run this version of the same database, from its next start on.

        Raises ``BadInput`` where it is seen before a start that the node cannot go on with it, ``TimedOut`` where its
        programs say nothing.
        """

    async def running(self, node: str) -> RunningVersion:
        """What a running node itself says of its version."""

    async def licence(self, new: str) -> Health:
        """Whether the cluster's licence lets it go on to a version (of ``Engine.version``); ``why`` tells its state.

        As servers say it; the licence itself is told to nobody.
        """

    async def keep_version(self) -> str:
        """Let the cluster make no later version final by itself, so that there is a way back; returns what it keeps.

        Empty where nothing of the kind is needed.
        """

    async def finalise(self, *, timeout: float) -> None:
        """Make the version that all nodes run final; there is no way back then. Raises ``TimedOut``."""

    async def bootstrap(self) -> None:
        """Make a cluster of the nodes once their processes run; return when every node accepts SQL."""

    async def observe(self) -> Mapping[str, Any]:
        """What the running servers say of themselves, for the evidence: build and settings, no secret.

        Raises ``HarnessError`` when they are not what was to be deployed.
        """

    async def accepting(self, node: str) -> Health:
        """Whether this node takes clients now. Never raises, answers within 3 s."""

    async def healthy(self) -> Health:
        """Whether every node lives and all data has all its replicas. Never raises, answers within 10 s."""

    async def connect(self, node: str | None = None, *, timeout: float = 5.0) -> Connection:
        """A connection of the harness's own, to this node or to any that serves (PostgreSQL: the primary).

        ``timeout`` is for connecting, in seconds. Raises ``SqlError`` when none is to be had.
        """

    async def spread(self, table: str, column: str, values: Sequence[int]) -> None:
        """Split a table at ``values`` of its first key column, and spread the pieces, where there are ranges."""

    async def ranges(self, table: str) -> tuple[RangeInfo, ...]:
        """The table's ranges, one for every part that can fail by itself: of PostgreSQL the table as a whole."""

    async def layout(self) -> Layout:
        """Where all replicas lie now; asked again and again, so it is cheap."""

    async def gauges(self) -> Mapping[str, NodeGauges]:
        """What each node's own metrics say; a node that does not answer within 3 s is left out."""

    async def by_hand(self, seconds: float) -> Mapping[str, int]:
        """What somebody did in the last ``seconds`` that moves replicas, and how often, by the servers' logs."""

    async def moves(self, seconds: float) -> Mapping[str, int]:
        """Replicas added and removed in the last ``seconds``, by reason, most frequent first."""

    async def drain(self, node: str, *, timeout: float) -> None:
        """Hand the node's work over, in good order, so that its process can stop.

        Raises ``NotDrained`` where servers refuse that or fail in it, ``TimedOut`` where it takes longer than
        ``timeout`` seconds.
        """

    async def forget(self, node: str) -> None:
        """Tell the cluster that a node's former store is gone for good, as an operator would.

        Either an empty node runs in its place already, or the node was removed and its process has ended.
        """

    async def remove(self, node: str, *, timeout: float) -> None:
        """Move everything off a living node; its process runs on until it is stopped. Then ``forget`` it.

        Raises ``TimedOut`` when it still has something then, ``HarnessError`` when the cluster refuses, for instance
        because too few nodes would be left.
        """

    async def refusal(self, node: str) -> str | None:
        """Ask for the removal of a living node that cannot be spared, and take that back.

        Returns in words how it was refused; ``None`` where replicas began to leave.
        """


class Engine(Protocol):
    """A database at one version."""

    @property
    def kind(self) -> "EngineKind":
        """What it is one of."""

    @property
    def sql(self) -> SqlTraits:
        """Where it differs in SQL: ``kind.sql``, and what its version changes in that."""

    @property
    def version(self) -> str:
        """As its makers print it, for instance ``v20.2.0``."""

    @property
    def program(self) -> Path:
        """Where it is on this machine: a program, or a directory of programs."""

    @property
    def detection_s(self) -> float:
        """How long the cluster takes, by its documentation, to declare a silent node dead (liveness, leader lease)."""

    @property
    def generator(self) -> Generator | None:
        """The load generator that it brings, if it does."""

    @property
    def fingerprint(self) -> Fingerprint:
        """What identifies it in the evidence."""

    def deploy(self, nodes: Sequence[NodeSpec], *, resources: NodeResources, tuned: bool) -> Deployment:
        """The database on these nodes; ``tuned`` asks for a faster pace of background repair than the defaults."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """Which one is asked for: a ``path`` to its program, or a ``version``; by default whichever can be had.

    Without ``download`` only what is on this machine counts; ``download_s``: seconds that a download may take in all,
    as long as it takes where it is ``None``. ``settings``: what each cluster is given of the engine's own settings.
    ``say`` hears of progress.
    """

    path: str | None = None
    version: str | None = None
    download: bool = True
    download_s: float | None = None
    settings: Mapping[str, str] = field(default_factory=dict, hash=False)
    say: Callable[[str], None] = lambda _: None


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """What is known of a change from one version to another before any cluster runs."""

    against: str = ""
    """Why it may not be made, with the way out; empty where it may."""
    for_licence: bool = False
    """Whether that is a licence which the environment has not, and nothing else: a cluster may have one of its own."""
    notes: tuple[str, ...] = ()
    """What is to be said of it to people."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Opening:
    """How a server is seen to have opened the store of its node.

    ``server``: the program that opens it, of several, ``option``: what stands before the store's directory among its
    arguments, ``sign``: the pattern of files in there that are written when it is opened. ``again``: whether a
    supervisor starts a server again and again that ends.
    """

    server: str = "*"
    option: str = ""
    sign: str = ""
    again: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineKind:
    """What is known of an engine before one is found.

    ``name`` is as ``--engine`` takes it, ``title`` as people call it. ``find`` raises ``BadInput`` where none can be
    had.
    """

    name: str
    title: str
    capabilities: frozenset[Capability]
    """What it can do; the substrate's side of each is asked separately."""
    find: Callable[[Wanted], Engine]
    sql: SqlTraits
    choice: Choice = NO_CHOICE
    """Its own options."""
    tenancy: Tenancy | None = None
    """How it keeps many databases apart, where it can have many."""
    named: Callable[[str], None] = lambda version: None
    """Raises ``BadInput`` for what no version of it can be called, at hand or not."""
    offered: Callable[[str], bool] = lambda version: False
    """Whether a version that is not at hand could be brought here. Raises ``BadInput`` where it says why not."""
    console: Callable[[Engine], str] = lambda engine: "psql"
    """The program with which a person talks to it, ready to be given a URL."""
    adopt: Callable[[Any, Sequence[Placement], Nodes], Awaitable[Callable[[], Awaitable[None]]]] | None = None
    """Where clusters can be taken over that are there already: has a deployment do so, in place of all that starts one.
    Returns what leaves it as it was. Raises ``BadInput``, and then nothing was made there."""
    charted: "Charted | None" = None
    """How such a cluster is known in Kubernetes."""
    embedded: bool = False
    """Whether installed packages are all it needs."""
    ports: tuple[int, ...] = ()
    """At which clients and the harness reach a node that has an address of its own, where they are always the same."""
    packages: tuple[str, ...] = ()
    """Those packages, by what they are called where they come from: their versions go into the evidence."""
    change: Callable[[Fingerprint, Fingerprint], Change] = lambda old, new: Change()
    """What is known of a change from the old version to the new one, each told by its engine's fingerprint; of one that
    is not at hand by ``version`` alone. Raises ``BadInput`` for what is no version."""
    former: Callable[[Engine], Engine | None] = lambda engine: None
    """The newest older version at hand from which a cluster may be given this one as a patch, if there is one."""
    old_joins_final: Callable[[str, str], bool | None] = lambda old, new: None
    """Whether a new node of the old version may join a cluster once the new one is final there; ``None`` where that
    shows only in what servers say of the versions they can run at. Raises ``BadInput`` for what is no version."""
    keeps_out: tuple[str, ...] = ()
    """What a server says when it ends, in lower case, one of these, where a cluster does not take it in for its
    version."""
    opening: Opening = Opening()
    """By what its server is seen to have opened a store, for whoever kills it then."""
    order: Callable[[str], Any] = str
    """What its versions sort by, the oldest first; a series stands for the first of its versions. Raises ``BadInput``
    for what is neither."""


ENGINES: Registry[EngineKind] = known.ENGINES


def title(engine: str) -> str:
    """What people call the engine of this name; its name, where evidence is of one that is not known here."""
    return ENGINES[engine].title if engine in ENGINES else engine


def is_control(engine: str) -> bool:
    """Whether the engine of this name is any but the subject."""
    return engine != SUBJECT


def control_notice(engines: Iterable[str]) -> str:
    """What is to be said first and last of a run of these engines; nothing where each is the subject."""
    others = [title(name) for name in dict.fromkeys(engines) if is_control(name)]
    tested = " and ".join(others)
    return f"CONTROL RUN on {tested}: it says nothing about {title(SUBJECT)}." if others else ""
