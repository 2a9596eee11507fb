"""The typed vocabulary of clusters: capabilities, topologies, placements, processes and endpoints."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path, PurePath
from typing import Any


class Capability(StrEnum):
    """What an engine on a substrate can do. A claim asks for capabilities; both sides must offer each of them."""

    REPLICATE = "replicate"
    """Keeps every row on several nodes and acknowledges a write only when a majority has it."""
    KILL = "kill"
    """A node can be ended at once, with everything it is."""
    RESTART = "restart"
    """A dead node can be started again with its store."""
    REPLACE = "replace"
    """A node can be started with an empty store in the place of one whose store is lost."""
    DELETE_POD = "delete_pod"
    """The pod that a node runs in can be deleted; another is made in its place, with its store."""
    PAUSE = "pause"
    """A node can be frozen and thawed."""
    DRAIN = "drain"
    """A node can be asked to hand over its work before it stops."""
    ADD_NODE = "add_node"
    REMOVE_NODE = "remove_node"
    REPORT_RANGES = "report_ranges"
    """Says which node holds which range's replicas and lease."""
    REBALANCE = "rebalance"
    """Spreads data over added nodes without a manual step."""
    SWAP_VERSION = "swap_version"
    NODE_RESOURCES = "node_resources"
    """CPU and memory of one node can be limited."""
    CUT_LINKS = "cut_links"
    """The network between two nodes can be cut."""
    STALL_DISK = "stall_disk"
    ZONES = "zones"
    REGIONS = "regions"
    BACKUP = "backup"
    CHANGEFEED = "changefeed"
    ONLINE_INDEX = "online_index"
    MANY_DATABASES = "many_databases"
    """Keeps many databases apart, each with a role of its own."""
    TRANSACTIONS = "transactions"
    """Carries out several statements as one transaction, with joins and foreign keys."""
    YCSB = "ycsb"


PLANNED = frozenset(
    {
        Capability.STALL_DISK,
        Capability.CHANGEFEED,
        Capability.ONLINE_INDEX,
        Capability.YCSB,
    }
)
"""What nothing here makes an engine or a substrate do yet: offered by none, asked for by planned claims alone."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeSpec:
    """One declared node: its name (``n1`` …) and where it stands."""

    name: str
    zone: str = "zone-1"
    region: str = "region-1"


@dataclass(frozen=True, kw_only=True, slots=True)
class Topology:
    """The declared shape of a cluster."""

    name: str
    nodes: tuple[NodeSpec, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The nodes' names in their declared order."""
        return tuple(node.name for node in self.nodes)


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeResources:
    """What one node may use, as the profile says. Sizes in MiB; ``cpus`` in cores, ``None`` for no limit.

    ``disk_mib``: how large a volume it gets, where it gets one of its own.
    """

    cache_mib: int
    sql_memory_mib: int
    cpus: float | None = None
    memory_mib: int | None = None
    disk_mib: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Placement:
    """Where a substrate put a node (or a service beside the nodes). All paths are as the node itself sees them.

    ``address`` is what this node listens on and what other nodes reach it by, ``client_address`` what clients and the
    harness reach it by. ``home`` holds all the node's own files; ``store`` and ``logs`` are inside it. Only ``store``
    is lost when a node is lost with its disk.
    """

    node: NodeSpec
    address: str
    client_address: str
    home: PurePath
    store: PurePath
    logs: PurePath
    binds_to: str = ""
    """The IP address of all networks of its machine, where that is its own: what to listen on in place of a name."""
    command: tuple[str, ...] = ()
    """What runs there, where the cluster was there already."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tells:
    """What a program calls itself: that which ``read`` finds in what ``argv`` prints, empty where it is no version."""

    argv: tuple[str, ...]
    read: Callable[[str], str]
    version: str
    """The one that is meant."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessSpec:
    """One process that a substrate is to run for a node (or for a service beside the nodes).

    ``name`` is the node's name. All paths are as the node itself sees them, ``argv[0]`` is absolute. ``env`` is the
    whole environment. Standard output and error go to ``output``. SIGTERM asks it to stop in good order.
    ``unprivileged`` asks the substrate to run it as somebody other than root where the harness itself is root
    (PostgreSQL refuses root).
    """

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: PurePath
    output: PurePath
    unprivileged: bool = False
    resources: NodeResources | None = None
    program: Path | None = None
    """The program of the harness's machine that it is of, where ``argv`` does not say it: of one that was there."""
    tells: Tells | None = None
    """How its program is asked for its version, for substrates on which it may be another than the harness has."""


class ProcessState(StrEnum):
    """What a substrate knows of a node's process."""

    ABSENT = "absent"
    RUNNING = "running"
    PAUSED = "paused"
    EXITED = "exited"


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """One address that answers SQL."""

    node: str
    address: str
    port: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoint:
    """A way in for clients.

    A client of the endpoint tries ``hosts`` in order, each with a time-out of its own, until one accepts it. With
    ``primary_only`` a host that says it is a replica is passed over. CockroachDB has one endpoint a node, each with one
    host; a PostgreSQL cluster has a single endpoint with all hosts and ``primary_only``.
    """

    name: str
    hosts: tuple[Host, ...]
    primary_only: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Credentials:
    """How clients identify themselves. Paths of TLS files, or a password; never shown in a report."""

    user: str
    database: str
    password: str | None = field(default=None, repr=False)
    tls_ca: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RangeInfo:
    """One range of a table: its id, first key as the engine prints it, the node with the lease, nodes with replicas."""

    range_id: int
    start: str
    lease: str
    replicas: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """Where all replicas of a cluster lie: by range id, the nodes that have one. ``source``: who said so."""

    replicas: Mapping[int, frozenset[str]]
    source: str


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeGauges:
    """What one node counts of the ranges it leads, and its replicas; some seconds old. ``None``: it does not say."""

    replicas: int | None = None
    leases: int | None = None
    unavailable: int | None = None
    underreplicated: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RunningVersion:
    """What a running node says of its version, in its makers' words.

    ``build`` is what it is. ``able`` is the newest version of data and protocol that this build knows, ``active`` the
    one in force: they differ until a new version was made final.
    """

    build: str
    able: str
    active: str

    @property
    def final(self) -> bool:
        """Whether its version is in force."""
        return self.able == self.active


@dataclass(frozen=True, kw_only=True, slots=True)
class Health:
    """Whether a cluster is whole, and in a few words why it is not."""

    ok: bool
    why: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Completed:
    """A helper command that ended: its exit code, standard output and error as text."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SqlTraits:
    """Where engines differ in SQL, for workloads that write statements of their own."""

    own_place: str = "CREATE SCHEMA IF NOT EXISTS {name}"
    """Makes a place for tables that are to collide with nobody else's."""
    enter_place: str = "SET search_path = {name}"
    """Brings a session there."""
    names_indexes: bool = False
    """Whether a query may name the index that it is to read (``table@index``)."""
    annotation: str = "::"
    """What stands between a parameter and its type (``$1::INT8``)."""
    descending_keys: bool = False
    """Whether the columns of a primary key may descend."""
    indexes_in_tables: bool = False
    """Whether a statement that makes a table may have its indexes in it (``INDEX name (column)``)."""
    covering: str = "INCLUDE"
    """Which word adds columns to an index that are no part of its key."""
    checks_added_keys: bool = True
    """Whether a foreign key that is added looks for rows that refer to nothing in about the time that it takes to read
    them."""
    connections_left: str = ""
    """A statement whose one value is how many more connections a server takes: below 0, or none, where there is no
    limit."""
    reads_as_of: bool = False
    """Whether tables can be read AS OF SYSTEM TIME, which waits for nobody."""
    bulk_copy: str = ""
    """The setting, as ``name = value``, under which a COPY that fails may leave some of its rows: that takes half of a
    server's time."""
    bulk_joins: str = ""
    """The setting, as ``name = value``, under which joins of whole tables are answered rightly and soon."""
    other_joins: str = ""
    """Another value of it, under which the server answers them in another way: where the two differ, one answer is
    wrong."""
    given_up: str = ""
    """A statement for the changes of schema that the server gave up for good, neither done nor undone: of each its
    statement and the server's words. Empty where a server cannot leave one so."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Generator:
    """The load generator that an engine brings: its program, and flags of all its commands and of ``run``."""

    program: Path
    flags: tuple[str, ...] = ()
    run_flags: tuple[str, ...] = ()


Fingerprint = Mapping[str, Any]
"""What identifies an engine for the evidence: JSON values only (version, binary path and digest, settings)."""
