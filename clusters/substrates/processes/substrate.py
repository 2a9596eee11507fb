"""One cluster's nodes as processes of this machine."""

import asyncio
import errno
import os
import re
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from clusters.errors import BadInput, HarnessError
from clusters.model import PLANNED, Capability, NodeSpec, Placement
from clusters.substrates import LOCAL, SUBSTRATES, SubstrateKind
from clusters.substrates.processes import cgroups, cleanup, leases
from clusters.substrates.processes.node_directories import housed
from clusters.substrates.processes.programs import Programs
from clusters.substrates.processes.start_errors import disk_error
from clusters.substrates.processes.supervisor_client import Link
from clusters.waiting import to_the_end

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_CLOSE_S = 1800.0
"""How long clearing away may take: mostly the deletion of the stores. The files of 156 450 tables on three nodes of
PostgreSQL took seven minutes on a busy machine, and a growth curve may make twice as many."""
_ALWAYS = frozenset(Capability) - PLANNED - {Capability.CUT_LINKS, Capability.NODE_RESOURCES, Capability.DELETE_POD}
CAPABILITIES = _ALWAYS | ({Capability.NODE_RESOURCES} if cgroups.parents() else frozenset())
"""What can be done to nodes of any cluster on this machine.

What only the engine can do or not (draining, reporting ranges …) is offered: a substrate is not in its way.
"""


class Processes(Programs):
    """The place of one cluster: an address range, a directory, and a supervisor that is the parent of every process.

    Made with ``open``. Belongs to the event loop that opened it. Whatever happens to the harness, the supervisor ends
    every process and deletes the directory; should it be killed as well, ``leases.sweep`` of a later run does.
    """

    swept: ClassVar[bool] = False
    """Whether this process of the harness has cleared away what killed runs left."""

    def __init__(self, *, cluster: str, directory: Path) -> None:
        # As the kernel names working directories below it.
        super().__init__(cluster, directory.resolve())
        self.capabilities = _ALWAYS
        self._subnet: leases.Subnet | None = None
        self._slots: leases.Lease | None = None
        self._left_behind: Mapping[str, Any] = {}
        """What is to be removed of a cluster that runs on: all of it."""

    @classmethod
    async def open(
        cls,
        *,
        name: str,
        workdir: Path,
        capacity: int = 1,
        slots: int | None = None,
        say: Callable[[str], None] = lambda _: None,
        keep: bool = False,
        keep_logs: Path | None = None,
        nobody: Literal["namespace", "setuid"] | None = None,
        namespaces: bool = False,
    ) -> Self:
        """Clear away what killed runs left, wait for ``capacity``, then lease addresses and start.

        ``slots``: how much capacity the machine has; its cores, if not given. The cluster's directory is made in
        ``workdir``. ``say`` hears every few seconds what is waited for. If the harness dies, the directory is deleted
        unless ``keep``, after the nodes' logs were moved to ``keep_logs``.
        ``nobody`` says how an unprivileged process is run by root; by default a user namespace where one can be had.
        With ``namespaces`` each node is in a network namespace of its own, so that links can be cut, where the machine
        allows it; elsewhere it stays on loopback, and ``cannot_cut`` says why.

        Raises ``BadInput`` for a name, capacity or directory that cannot be used, ``HarnessError`` if the machine
        fails.
        """
        if sys.platform != "linux":
            raise BadInput(f"platform {sys.platform}: the processes substrate needs Linux; use another substrate")
        if not _NAME.fullmatch(name):
            raise BadInput(f"cluster name {name!r}: letters, digits, '.', '_' and '-' only, at most 63; rename it")
        cluster = f"{name}-{secrets.token_hex(4)}"
        self = cls(cluster=cluster, directory=workdir / cluster)
        try:
            await _sweep_once(say)
            of = len(os.sched_getaffinity(0)) if slots is None else slots
            self._slots = await leases.lease_slots(capacity, of=of, name=name, say=say)
            self._subnet = leases.lease_subnet()
            await self._begin(keep=keep, keep_logs=keep_logs, nobody=nobody, linked=namespaces)
        except BaseException as error:
            try:
                await self.close()
            except HarnessError as further:
                error.add_note(str(further))
            raise
        return self

    async def _begin(self, *, keep: bool, keep_logs: Path | None, nobody: str | None, linked: bool) -> None:
        assert self._subnet is not None
        assert self._slots is not None
        record = self._record(keep=keep, keep_logs=keep_logs, device=f"rp-{self._cluster[-8:]}" if linked else None)
        # Before anything exists: whoever finds the lock free knows what to remove.
        self._subnet.record(record)
        self._make_groups(record)
        self._make_directories()
        files = [*self._subnet.files, *self._slots.files]
        config = {**record, "identity": nobody, "record": self._subnet.files[0], "slots": self._slots.files}
        self._left_behind = {**record, "keep": False, "keep_logs": None}
        self._link = Link(config, files=files, heard=self._watch.heard, lost=self._watch.lost)
        self._subnet.hand_over()
        self._slots.hand_over()
        self._watch.supervisor = await self._link.hello()
        if linked:
            await self._links.make(self._link, self._subnet.prefix)
        if self._links.cannot_cut is None:
            self.capabilities |= {Capability.CUT_LINKS}

    def _record(self, *, keep: bool, keep_logs: Path | None, device: str | None) -> dict[str, Any]:
        """What is to be removed at the end; ``device`` names the host's end of the network, if it is to have one."""
        return {
            "id": self._cluster,
            "directory": str(self.directory),
            "keep": keep,
            "keep_logs": None if keep_logs is None else str(keep_logs.resolve()),
            "cgroups": cgroups.parents(),
            "device": device,
        }

    def _make_groups(self, record: dict[str, Any]) -> None:
        try:
            cgroups.create(record["cgroups"], self._cluster)
        except OSError:
            cgroups.remove(record["cgroups"], self._cluster)
            record["cgroups"] = {}
        self._groups = record["cgroups"]
        if self._groups:
            self.capabilities |= {Capability.NODE_RESOURCES}

    def _make_directories(self) -> None:
        # As root, others may pass (not look): nodes that run as nobody must reach their homes.
        passage = 0o711 if os.geteuid() == 0 else 0o700
        try:
            self.directory.parent.mkdir(parents=True, exist_ok=True)
            for place, mode in ((self.directory, passage), ("nodes", passage), ("scratch", 0o700), ("run", 0o700)):
                made = self.directory / place
                made.mkdir()
                made.chmod(mode)
                if made == self.directory:
                    made.joinpath(cleanup.MARKER).write_text(self._cluster)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EEXIST, errno.ENOTDIR, errno.EPERM, errno.EROFS):
                raise BadInput(
                    f"{self.directory.parent}: clusters cannot be kept there ({error.strerror}: {error.filename}); "
                    "name a directory you may write to"
                ) from error
            raise disk_error(f"make the directory of {self._cluster}", error) from error

    @property
    def kind(self) -> SubstrateKind:
        """``processes``."""
        return SUBSTRATES[LOCAL]

    @property
    def cannot_cut(self) -> str | None:
        """Why links between nodes cannot be cut here; ``None`` where they can."""
        return self._links.cannot_cut

    @property
    def guards(self) -> tuple[int, int]:
        """The process ids of the two processes that watch over the cluster, the guard and the supervisor proper."""
        return (self._linked().guard, self._watch.supervisor)

    async def place(self, nodes: Sequence[NodeSpec]) -> tuple[Placement, ...]:
        """Give each node an address and directories; see ``Substrate.place``."""
        link = self._linked()
        assert self._subnet is not None
        made: list[Placement] = []
        for node in nodes:
            self._new(node.name)
            number = len(self._placements) + 1
            address = await self._links.attach(link, node.name, number) or self._subnet.address(number)
            made.append(housed(node, address, self.directory / "nodes" / node.name))
            self._placements[node.name] = made[-1]
        return tuple(made)

    def _new(self, name: str) -> None:
        """Raise ``BadInput`` for a name that is taken, or no name of a file."""
        taken = name in self._placements or name in self._services or name.startswith("helper-")
        if taken or not _NAME.fullmatch(name):
            raise BadInput(
                f"node name {name!r}: must be new to the cluster and at most 63 letters, digits, '.', '_' and '-' "
                "(not helper-…); rename it in the topology"
            )

    async def beside(self, name: str) -> Placement:
        """A place for a service: in a network of its own at an address of all services, else at the first node's."""
        self._linked()
        if not self._placements:
            raise HarnessError(f"{self._cluster}: no node was placed beside which {name} could be")
        if name not in self._services:
            self._new(name)
            address = self._links.beside or next(iter(self._placements.values())).address
            self._services[name] = housed(NodeSpec(name=name), address, self.scratch / name)
        return self._services[name]

    async def cut(self, sender: str, receiver: str) -> str:
        """Have all packets from one to the other vanish; services count as one. See ``Substrate.cut``.

        A node that is started again stays cut, and so does one of which it could not be proven.
        """
        told = await self._links.order(self._linked(), "cut", sender, receiver)
        before = ", the one before the cut arrived" if told["arrived_before"] else ", it was cut already"
        return f"{sender} to {receiver}: all {told['sent']} datagrams lost{before}"

    async def heal(self, sender: str, receiver: str) -> None:
        """Undo ``cut``; nothing where nothing is cut. Raises ``HarnessError`` when packets do not pass then."""
        await self._links.order(self._linked(), "heal", sender, receiver)

    async def leave(self) -> str:
        """Let everything run on when the harness ends; returns the command that ends it, and deletes its directory.

        Addresses and capacity stay leased until then. ``close`` does nothing any more.
        """
        self._closing = asyncio.create_task(self._leave(self._linked()))
        await to_the_end(self._closing)
        return f"kill {self._watch.supervisor}"

    async def _leave(self, link: Link) -> None:
        await link.leave(self._left_behind)
        for lease in (self._subnet, self._slots):
            if lease is not None:
                lease.release()

    async def close(self, *, keep: bool = False) -> None:
        """See ``Substrate.close``; finishes when it is cancelled, too. Raises ``HarnessError`` if something resists."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(keep=keep))
        await to_the_end(self._closing)

    async def _close(self, *, keep: bool) -> None:
        try:
            if self._link is not None:
                await self._link.close(keep=keep, timeout=_CLOSE_S)
        finally:
            for lease in (self._subnet, self._slots):
                if lease is not None:
                    lease.release()
        if self._link is not None and not self._link.trouble and (keep or not self.directory.exists()):
            return
        if self._subnet is None:
            return
        # There was no supervisor yet, or it and its guard were killed, or something resisted: once more, from here.
        for swept in await asyncio.to_thread(leases.sweep):
            if swept.resists and swept.directory == str(self.directory):
                raise HarnessError(f"{self._cluster}: {self.directory} could not be cleared away: {swept.resists}")


async def _sweep_once(say: Callable[[str], None]) -> None:
    """What killed runs left is cleared away before the first cluster of a process."""
    if Processes.swept:
        return
    Processes.swept = True
    for swept in await asyncio.to_thread(leases.sweep):
        became = f"could not be cleared away: {swept.resists}" if swept.resists else "cleared away"
        say(f"left by a killed run: {swept.directory}: {became}")
