"""What is done to a cluster and what is seen of it, as events of the evidence.

An event is a class; its name on disk is the class' tag, its fields are the facts beside it
(``plugin.evidence.records.event_line``). A field that is ``UNSET`` is not written.
"""

from collections.abc import Mapping, Sequence

from msgspec import UNSET, Struct, UnsetType

from clusters.clocks import Offset


class Happened(Struct, frozen=True, kw_only=True, tag_field="event"):
    """An event of any kind."""


class Provisioned(Happened, frozen=True, kw_only=True, tag="provisioned"):
    """The cluster runs, and every node takes clients."""

    nodes: Sequence[str] = ()


class ClocksCompared(Happened, frozen=True, kw_only=True, tag="clocks"):
    """How the clocks of the nodes stand to the harness's (``own``); ``unread``: why one could not be read.

    ``machines``: by node that of which it is the clock, where the substrate has several.
    """

    own: str = ""
    sources: Mapping[str, Offset] = {}
    unread: Mapping[str, str] = {}
    machines: Mapping[str, str] | UnsetType = UNSET


class GeneratorClocks(Happened, frozen=True, kw_only=True, tag="generator.clocks"):
    """How the clock of a load generator stands to the harness's (``own``), beside how it was taken to stand.

    Its evidence is in times of the trial, by what its clock was taken for when a program was started in it.
    """

    own: str = ""
    sources: Mapping[str, Offset] = {}


class NodeDeath(Happened, frozen=True, kw_only=True, tag="node.died"):
    """A node ended by itself; ``code``: its exit code, negative for a signal."""

    node: str
    code: int | None = None


class Replicated(Happened, frozen=True, kw_only=True, tag="replicated"):
    """All data had all its replicas, after waiting for this many ``seconds``."""

    seconds: float = 0.0


class Recovered(Happened, frozen=True, kw_only=True, tag="recovered"):
    """Every node lived and all data had all its replicas again, after waiting for this many ``seconds``."""

    seconds: float = 0.0


class FaultBegin(Happened, frozen=True, kw_only=True, tag="fault.begin"):
    """A fault is about to be injected. ``leases``, ``connections``: what each node holds of the load just before.

    ``blocks``: a majority goes on purpose, so that nothing may be acknowledged.
    """

    fault: str = "fault"
    nodes: Sequence[str] = ()
    leases: Mapping[str, int] = {}
    connections: Mapping[str, int] = {}
    blocks: bool = False


class FaultBit(Happened, frozen=True, kw_only=True, tag="fault.bit"):
    """A node is proven to be hit."""

    node: str
    proof: str = ""


class FaultUndo(Happened, frozen=True, kw_only=True, tag="fault.undo"):
    """A fault is about to be undone."""

    nodes: Sequence[str] = ()


class FaultUndone(Happened, frozen=True, kw_only=True, tag="fault.undone"):
    """A fault is undone on all its nodes."""

    nodes: Sequence[str] = ()


class UndoSlow(Happened, frozen=True, kw_only=True, tag="undo.slow"):
    """A node runs again, and the database on it takes long to come back."""

    node: str
    why: str = ""


class NodeDrained(Happened, frozen=True, kw_only=True, tag="node.drained"):
    """A node has handed over its work, and is about to be told to stop."""

    node: str


class DrainFailed(Happened, frozen=True, kw_only=True, tag="drain.failed"):
    """A node did not hand over its work, and was stopped all the same. ``late``: the time was up."""

    node: str
    why: str = ""
    late: bool | UnsetType = UNSET


class NodeStopped(Happened, frozen=True, kw_only=True, tag="node.stopped"):
    """A node that was told to stop has ended; ``code``: its exit code, negative for a signal.

    ``late``: it ran on when the time was up, and was killed.
    """

    node: str
    code: int
    late: bool | UnsetType = UNSET


class NodeResized(Happened, frozen=True, kw_only=True, tag="node.resized"):
    """A node runs with other resources. ``shown``: what the operating system and the node itself say of them."""

    node: str
    shown: Mapping[str, int | float] = {}
    size: str | UnsetType = UNSET


class NodeSwapped(Happened, frozen=True, kw_only=True, tag="node.swapped"):
    """A node runs again after it was given another version.

    ``wanted`` is what it was given, ``build`` what it calls itself; ``able`` and ``active`` are those of
    ``RunningVersion``. ``seconds``: from the begin of its drain until it took clients and said its build.
    """

    node: str
    wanted: str
    build: str = ""
    able: str = ""
    active: str = ""
    seconds: float = 0.0


class SwapFailed(Happened, frozen=True, kw_only=True, tag="swap.failed"):
    """A node did not come up with the version that it was given; it is to be started with its former one.

    ``former``: the build that it ran before, by its own word. ``late``: its process ran on, and the time was up.
    ``meant``: how it was to fail, of a version that is there to fail; ``as_meant``: whether that is how it failed.
    """

    node: str
    wanted: str
    former: str | UnsetType = UNSET
    why: str = ""
    late: bool | UnsetType = UNSET
    meant: str | UnsetType = UNSET
    as_meant: bool | UnsetType = UNSET


class VersionKept(Happened, frozen=True, kw_only=True, tag="version.kept"):
    """The cluster was told to keep the version in force, so that there is a way back."""

    active: str = ""


class VersionFinal(Happened, frozen=True, kw_only=True, tag="version.final"):
    """The version that all nodes run was made final. ``active``: by node, what it says is in force."""

    active: Mapping[str, str] = {}
    seconds: float = 0.0
