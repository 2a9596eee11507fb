"""Where nodes run. A substrate places nodes, runs their processes and can hurt them; it knows no database.

A node is reached by the operations below alone. Paths given to them are as the node itself sees them (``PurePath``); a
``Path`` is always one of the machine that the harness runs on. What is no coroutine answers within milliseconds.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, BinaryIO, Protocol

from clusters import known
from clusters.clocks import Reading
from clusters.generators import Generators
from clusters.known import LOCAL as LOCAL
from clusters.model import Capability, Completed, NodeResources, NodeSpec, Placement, ProcessSpec, ProcessState
from clusters.registry import Registry


class Nodes(Protocol):
    """What a deployment may ask of the nodes to prepare them; for a name never placed it raises ``HarnessError``."""

    @property
    def scratch(self) -> Path:
        """A directory (0700) on the machine of the harness, for what its clients need of the cluster."""

    async def beside(self, name: str) -> Placement:
        """A place for a service beside the nodes, which are placed already; it may share an address with one.

        Raises ``BadInput`` for a name that a node has or that is no file name.
        """

    async def present(self, program: Path, *, runs: Path | None = None) -> PurePath:
        """Have a program of this machine (or a directory of programs) in every node; its path there.

        It is put there, or is there already, as in an image; else ``HarnessError`` is raised. ``runs``: another one,
        that it runs, and that is to be where it is.
        """

    async def put(self, name: str, path: PurePath, content: bytes) -> None:
        """Write a file (0600) in the node's home, in the place of any earlier one; directories on the way are made."""

    async def archive(self, name: str, directory: PurePath, into: BinaryIO) -> None:
        """Write a directory of the node, which must be there, as a tar archive into a file of this machine."""

    async def extract(self, name: str, directory: PurePath, out_of: BinaryIO) -> None:
        """Make a directory of the node, which must be new or empty, with what ``archive`` wrote."""

    async def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        timeout: float,
        node: str | None = None,
        cwd: PurePath | None = None,
        unprivileged: bool = False,
    ) -> Completed:
        """Run a command to its end: in a node that was placed, or without one on the machine of the harness.

        It works in ``cwd``, by default the node's home, or ``scratch``. What it leaves running is killed. Raises
        ``CommandTimedOut`` when it takes longer than ``timeout`` seconds, ``BadInput`` if it cannot be executed.
        """


class Substrate(Nodes, Protocol):
    """One cluster's place. Everything it started is gone after ``close``, and also if the harness dies."""

    @property
    def kind(self) -> "SubstrateKind":
        """What it is one of."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What can be done to nodes here."""

    async def place(self, nodes: Sequence[NodeSpec]) -> tuple[Placement, ...]:
        """Give each node an address and directories. Can be called again to add nodes.

        Raises ``BadInput`` for a name that was placed before or is no file name.
        """

    async def start(self, spec: ProcessSpec) -> None:
        """Start the process of a node or service; returns once it was spawned.

        Raises ``HarnessError`` while an earlier one runs and where it was never placed, ``BadInput`` if it cannot be
        executed, and for a node that has run by nothing else: it tells of the program. ``TimedOut`` is never raised: it
        tells of the database.
        """

    async def stop(self, name: str, *, timeout: float) -> int:
        """Send SIGTERM and wait; kill it after ``timeout`` seconds. Returns its exit code (negative: signal).

        Of a process that has ended it returns the exit code; this and the next four raise ``HarnessError`` where none
        was ever started.
        """

    async def signal(self, name: str, signum: int) -> None:
        """Send a signal to the process that was started; nothing where it has ended."""

    async def kill(self, name: str) -> None:
        """SIGKILL everything the node is; returns when all of it is gone. Nothing where it is gone."""

    async def delete_pod(self, name: str) -> str:
        """Delete the pod that the node runs in; returns the proof, in words, once another is in its place.

        What was started is gone then, and is down until it is started again. Raises ``HarnessError`` where that cannot
        be done or proven.
        """

    async def pause(self, name: str) -> None:
        """SIGSTOP everything the node is, which must not have ended; returns when all of it is stopped."""

    async def resume(self, name: str) -> None:
        """SIGCONT everything the node is."""

    def state(self, name: str) -> ProcessState:
        """What the node's process does now: asked of the operating system, not remembered."""

    def exit_code(self, name: str) -> int | None:
        """The exit code of a process that ended (negative: the signal), else ``None``."""

    def ended_by(self, name: str) -> str:
        """What, other than itself, ended a node's process that has ended, where that was seen; else nothing."""

    def machine_lost(self, name: str) -> str:
        """What became of the machine of a node since that was placed, where it was lost; it may be back. Else nothing.

        A node on such a machine is not heard of, whatever it does: its process runs, as far as anybody knows. So it is
        where somebody ended a node and it came back by itself: whoever looks now sees that it runs.
        """

    async def cut(self, sender: str, receiver: str) -> str:
        """Let nothing pass from one node or service to another any more; returns the proof, in words.

        Raises ``HarnessError`` where that cannot be done or proven.
        """

    async def heal(self, sender: str, receiver: str) -> None:
        """Undo ``cut``; nothing where nothing is cut. Raises ``HarnessError`` when nothing passes then."""

    def limits(self, name: str) -> Mapping[str, float]:
        """What the operating system lets a running node use: ``cpus`` in cores, ``memory_mib``, where it is limited."""

    def cpu_seconds(self) -> float:
        """CPU that all its processes have used since they began, in seconds. Those that have ended no longer count."""

    def clock(self, name: str) -> Reading:
        """What the clock of a node shows now, by which its logs go. Raises ``HarnessError`` where it cannot be read."""

    def free_bytes(self, name: str) -> int | None:
        """Room on the disk that the node keeps its files on; ``None`` where nobody says."""

    async def wipe(self, name: str) -> None:
        """Delete what is in the node's store. Raises ``HarnessError`` unless the node is dead, or was never started."""

    def log_tail(self, name: str, lines: int = 20) -> str:
        """The last lines the node wrote, for messages; empty if it wrote none or was never started."""

    async def close(self, *, keep: bool = False) -> None:
        """End everything; delete directories unless ``keep``. Safe to call twice and on a half-started cluster."""


class Opens(Protocol):
    """Opens the place of one cluster."""

    def __call__(
        self,
        *,
        name: str,
        workdir: Path,
        needed: Set[Capability],
        capacity: int,
        nodes: Sequence[NodeSpec],
        resources: NodeResources | None,
        say: Callable[[str], None],
        keep: bool,
        keep_logs: Path | None,
    ) -> Awaitable[Substrate]:
        """Wait for ``capacity`` (cores, where nodes share a machine) to be free, and open it with what is ``needed``.

        ``nodes`` are to be placed first, each started with ``resources``: where they cannot be, nothing is made.
        Its files are in ``workdir``. ``say`` hears what is waited for. The nodes' logs go to ``keep_logs``, if the
        harness dies, too; with ``keep`` everything stays. One that can be described takes ``allow_disruption``, too.
        Raises ``BadInput`` or ``HarnessError``.
        """


@dataclass(frozen=True, kw_only=True, slots=True)
class SubstrateKind:
    """What is known of a substrate before a cluster is opened on it. ``name`` is as ``--substrate`` takes it."""

    name: str
    offered: Callable[[Set[Capability]], frozenset[Capability]]
    """Which of these can be done to nodes here; what has to be tried takes a second."""
    why_not: Callable[[Capability], str]
    """Why one of them cannot; nothing where that needs no word."""
    open: Opens
    local: bool = False
    """Whether its nodes share the machine that the harness runs on."""
    run_below: Callable[[], Sequence[int]] = lambda: ()
    """Processes of this machine below which its nodes run, where that is not below the harness: what these use is the
    run's own, and no other work. Raises ``BadInput``."""
    describe: Callable[[], Awaitable[Sequence[str]]] | None = None
    """Of a substrate whose clusters are there already: what was found, and what each capability would do to it. Nothing
    is done to it without ``--allow-disruption``; raises as ``open``."""
    fast: Callable[[], bool] = lambda: True
    """Whether servers have a fast pace of repair where a profile counts on one. Where they are started for a test that
    is asked for, and so it is; of a cluster that is there already it takes a look."""
    generators: Callable[[Any], Generators | None] | None = None
    """Of a substrate that can have load generators beside its nodes: those of one of its clusters, where it has any.
    ``open`` takes ``generators`` then, a ``WantedGenerators`` or ``None``."""
    volume_mib: Callable[[NodeResources], int] | None = None
    """Of a substrate that gives each node a volume of its own: how large it is to be, in MiB. Raises ``BadInput``."""
    forwards: bool = False
    """Whether it may bring ports of its nodes to this machine. ``open`` takes ``ports`` then, an engine's."""
    comes_back: Callable[[Any, str, Path | None], None] | None = None
    """Of a substrate on which a node that is stopped comes back by itself: says of which program of this machine one
    does that is stopped next. ``None``: it does not come back. Raises ``HarnessError``."""
    take_away: Callable[[Any, str], Awaitable[None]] | None = None
    """Of a substrate on which the place of a node is room of somebody's: gives that of a node back that was removed and
    has ended, as far as can be. What stays is said in the logs of its cluster. Raises ``HarnessError``."""
    machine: Callable[[Any, str], str] | None = None
    """Of a substrate of several machines: the name of the one that a node is on; empty where it is on none."""
    leave: Callable[[Any], Awaitable[str]] | None = None
    """Lets one of its clusters run on when the harness ends, where that can be; returns the command that ends it."""

    @property
    def there_already(self) -> bool:
        """Whether its clusters are there already, and somebody's."""
        return self.describe is not None


SUBSTRATES: Registry[SubstrateKind] = known.SUBSTRATES
