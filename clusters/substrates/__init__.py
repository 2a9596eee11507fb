"""Where nodes run. A substrate places nodes, runs their processes and can hurt them; it knows no database."""

from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from clusters.model import Capability, Completed, NodeSpec, Placement, ProcessSpec, ProcessState
from clusters.registry import Registry


class Substrate(Protocol):
    """One cluster's place. Everything it started is gone after ``close``, and also if the harness dies."""

    @property
    def kind(self) -> "SubstrateKind":
        """What it is one of."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What can be done to nodes here."""
        ...

    @property
    def scratch(self) -> Path:
        """A directory of the cluster's own (0700), for certificates and configuration."""
        ...

    async def place(self, nodes: Sequence[NodeSpec]) -> tuple[Placement, ...]:
        """Give each node an address and directories. Can be called again to add nodes."""
        ...

    async def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        timeout: float,
        unprivileged: bool = False,
    ) -> Completed:
        """Run a helper command to its end. Raises ``CommandTimedOut`` when it takes longer than ``timeout`` seconds."""
        ...

    async def start(self, spec: ProcessSpec) -> None:
        """Start a node's process; returns once it was spawned."""
        ...

    async def stop(self, name: str, *, timeout: float) -> int:
        """Send its stop signal and wait; kill it after ``timeout`` seconds. Returns its exit code (negative: signal)."""
        ...

    async def kill(self, name: str) -> None:
        """SIGKILL everything the node is; returns when all of it is gone."""
        ...

    async def pause(self, name: str) -> None:
        """SIGSTOP everything the node is; returns when all of it is stopped."""
        ...

    async def resume(self, name: str) -> None:
        """SIGCONT everything the node is."""
        ...

    def state(self, name: str) -> ProcessState:
        """What the node's process does now: asked of the operating system, not remembered."""
        ...

    def exit_code(self, name: str) -> int | None:
        """The exit code of a process that ended (negative: the signal), else ``None``."""
        ...

    async def cut(self, sender: str, receiver: str) -> str:
        """Let nothing pass from one node or service to another any more; returns the proof, in words.

        Raises ``HarnessError`` where that cannot be done or proven.
        """
        ...

    async def heal(self, sender: str, receiver: str) -> None:
        """Undo ``cut``; nothing where nothing is cut. Raises ``HarnessError`` when nothing passes then."""
        ...

    def limits(self, name: str) -> Mapping[str, float]:
        """What the operating system lets a node's process use now: ``cpus`` in cores, ``memory_mib``; without a limit, nothing.

        Raises ``HarnessError`` when it does not run.
        """
        ...

    def cpu_seconds(self) -> float:
        """CPU that all its processes have used since they began, in seconds. Those that have ended no longer count."""
        ...

    async def wipe(self, name: str) -> None:
        """Delete the node's store. The process must be dead."""
        ...

    def log_tail(self, name: str, lines: int = 20) -> str:
        """The last lines the node wrote, for messages."""
        ...

    async def close(self, *, keep: bool = False) -> None:
        """End everything; delete directories unless ``keep``. Safe to call twice and on a half-started cluster."""
        ...


class Opens(Protocol):
    """Opens the place of one cluster."""

    def __call__(
        self,
        *,
        name: str,
        workdir: Path,
        needed: Set[Capability],
        capacity: int,
        say: Callable[[str], None],
        keep: bool,
        keep_logs: Path | None,
    ) -> Awaitable[Substrate]:
        """Wait for so much ``capacity`` (cores, where nodes share a machine), and open it with the capabilities that are ``needed``.

        Its files are in ``workdir``. ``say`` hears what is waited for. The nodes' logs go to ``keep_logs``, if the harness dies, too;
        with ``keep`` everything stays. Raises ``BadInput`` or ``HarnessError``.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class SubstrateKind:
    """What is known of a substrate before a cluster is opened on it. ``name`` is as ``--substrate`` takes it."""

    name: str
    offered: Callable[[Set[Capability]], frozenset[Capability]]
    """Which of these can be done to nodes here; what has to be tried takes a second."""
    why_not: Callable[[Capability], str]
    """Why one of them cannot; nothing where that needs no word."""
    open: Opens


SUBSTRATES: Registry[SubstrateKind] = Registry("substrate", {"processes": "clusters.substrates.processes"})
