"""Less CPU for nodes that run, slow links, late answers, rows that are held, and a stumbling load generator."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import psutil

from clusters.cluster import Cluster
from clusters.errors import HarnessError
from clusters.model import Endpoint, Host
from clusters.sql import SqlError
from clusters.substrates.processes import cgroups, namespaces
from fixtures.background import beside
from fixtures.workloads.tpcc.loaded_cluster import Loaded

PERIOD_US = 100_000
ROOT_QDISC = 0xFFFFFFFF
"""TC_H_ROOT of linux/pkt_sched.h."""


class Throttle:
    """The CPU limit of nodes that were started with one, all or some: it can be changed while they run."""

    def __init__(self, cluster: Cluster, nodes: Sequence[str] | None = None) -> None:
        self._groups = [_group(cluster, node) for node in (cluster.nodes if nodes is None else nodes)]

    def limit(self, cores: float | None) -> None:
        """Let each node use so many cores, or as many as there are."""
        quota = -1 if cores is None else max(1000, int(cores * PERIOD_US))
        for group in self._groups:
            old = group / "cpu.cfs_quota_us"
            if old.exists():
                old.write_text(str(quota))
            else:
                (group / "cpu.max").write_text(f"{'max' if quota < 0 else quota} {PERIOD_US}")

    @property
    def used_s(self) -> float:
        """How many seconds of CPU time all their processes used so far."""
        times = [psutil.Process(pid).cpu_times() for group in self._groups for pid in _pids(group)]
        return sum(time.user + time.system for time in times)


def _pids(group: Path) -> list[int]:
    return [int(pid) for pid in (group / "cgroup.procs").read_text().split()]


def _group(cluster: Cluster, node: str) -> Path:
    home = cluster.deployment.process(node).cwd
    for group in Path(cgroups.parents()["cpu"]).glob(f"roachproof-*/{node}"):
        for pid in _pids(group):
            with contextlib.suppress(psutil.Error):
                if Path(psutil.Process(pid).cwd()).is_relative_to(home):
                    return group
    raise HarnessError(f"{node} has no control group: start it with a limit of CPU")


@contextlib.asynccontextmanager
async def stumbling(program: str, *, held_s: float = 0.4, free_s: float = 0.1) -> AsyncIterator[None]:
    """Whatever this process starts as that program is stopped for so long, again and again."""

    async def hold() -> None:
        while True:
            found = [p for p in psutil.Process().children(recursive=True) if program in _command(p)]
            for sent, pause in ((signal.SIGSTOP, held_s), (signal.SIGCONT, free_s)):
                for process in found:
                    with contextlib.suppress(psutil.Error):
                        process.send_signal(sent)
                await asyncio.sleep(pause)

    try:
        async with beside(hold()):
            yield
    finally:
        for process in psutil.Process().children(recursive=True):
            if program in _command(process):
                process.send_signal(signal.SIGCONT)


@contextlib.asynccontextmanager
async def slow_link(cluster: Cluster, node: str, kbit: int) -> AsyncIterator[None]:
    """What a node sends, to clients and other nodes, leaves at so many kbit/s; it must have a namespace and a limit."""

    def shape(*command: str, **options: Any) -> None:
        from pyroute2 import IPRoute

        opened = os.open(f"/proc/{_pids(_group(cluster, node))[0]}/ns/net", os.O_RDONLY)
        try:
            with namespaces.inside(opened, home=namespaces.own()), IPRoute() as netlink:
                (link,) = netlink.link_lookup(ifname="eth0")
                netlink.tc(*command, index=link, **options)
        finally:
            os.close(opened)

    # a thread of its own, since it goes into the node's network
    await asyncio.to_thread(shape, "add", "tbf", rate=f"{kbit}kbit", burst=8192, latency="1s")
    try:
        yield
    finally:
        await asyncio.to_thread(shape, "del", parent=ROOT_QDISC)


@contextlib.asynccontextmanager
async def late_answers(loaded: Loaded, delay_s: float) -> AsyncIterator[None]:
    """Meanwhile its nodes are reached through relays that hold each answer back for so long."""
    direct = loaded.cluster
    async with late(direct.endpoints, lambda: delay_s) as endpoints:
        loaded.cluster = detour(direct, endpoints)
        try:
            yield
        finally:
            loaded.cluster = direct


@contextlib.asynccontextmanager
async def late(endpoints: Sequence[Endpoint], delay_s: Callable[[], float]) -> AsyncIterator[tuple[Endpoint, ...]]:
    """Ways to the same servers on which each answer comes so much later, as it is asked then."""
    async with contextlib.AsyncExitStack() as relays:

        async def relayed(host: Host) -> Host:
            async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                try:
                    behind = await asyncio.open_connection(host.address, host.port)
                except OSError:  # nobody listens: whoever came this way is to know it at once
                    writer.close()
                    return
                with contextlib.suppress(OSError):
                    async with asyncio.TaskGroup() as group:
                        group.create_task(_passed_on(reader, behind[1], lambda: 0.0))
                        group.create_task(_passed_on(behind[0], writer, delay_s))

            # its certificate is for this address
            listening = await relays.enter_async_context(await asyncio.start_server(relay, host.address, 0))
            return replace(host, port=listening.sockets[0].getsockname()[1])

        yield tuple(
            [replace(endpoint, hosts=tuple([await relayed(host) for host in endpoint.hosts])) for endpoint in endpoints]
        )


def detour(cluster: Cluster, endpoints: Sequence[Endpoint]) -> Cluster:
    """The cluster, with other ways to it."""
    return cast("Cluster", _Detour(cluster, tuple(endpoints)))


@contextlib.asynccontextmanager
async def held_rows(cluster: Cluster, *, held_s: float = 0.9, free_s: float = 0.05) -> AsyncIterator[None]:
    """Somebody locks the districts, which every new-order changes, for so long, again and again."""

    async def hold() -> None:
        async with await cluster.deployment.connect() as connection:
            while True:
                with contextlib.suppress(SqlError):
                    async with connection.transaction():
                        await connection.query("SELECT d_id FROM district FOR UPDATE")
                        await asyncio.sleep(held_s)
                await asyncio.sleep(free_s)

    async with beside(hold()):
        yield


class _Detour:
    """A cluster with other endpoints."""

    def __init__(self, cluster: Cluster, endpoints: tuple[Endpoint, ...]) -> None:
        self._cluster, self.endpoints = cluster, endpoints

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)


async def _passed_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_s: Callable[[], float]) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            await asyncio.sleep(delay_s())
            writer.write(data)
            await writer.drain()
    writer.close()


def _command(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""
