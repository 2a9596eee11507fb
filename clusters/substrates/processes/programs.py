"""What runs in the nodes of a cluster, and beside them: begun, hurt, looked at and ended by way of the supervisor."""

import asyncio
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePath

from clusters.errors import BadInput, CommandTimedOut, HarnessError
from clusters.model import Capability, Completed, ProcessSpec, ProcessState
from clusters.substrates.processes import cgroups, cleanup, proctree
from clusters.substrates.processes.cluster_network import Links
from clusters.substrates.processes.node_directories import Homes
from clusters.substrates.processes.start_errors import disk_error, refusal, refused
from clusters.substrates.processes.supervisor_client import Link
from clusters.substrates.processes.watch import Started, Watch, crash, tail


class Programs(Homes):
    """The processes of a cluster whose supervisor is at the other end of ``_link``."""

    def __init__(self, cluster: str, directory: Path) -> None:
        super().__init__(cluster)
        self.directory = directory
        """The cluster's own directory, deleted by ``close``."""
        self.scratch = directory / "scratch"
        """A directory (0700) for what clients and the harness need."""
        self.capabilities: frozenset[Capability] = frozenset()
        """What can be done to this cluster's nodes: cutting links only if it was opened with namespaces."""
        self._groups: Mapping[str, str] = {}
        self._link: Link | None = None
        self._closing: asyncio.Task[None] | None = None
        self._watch = Watch(cluster=cluster, directory=directory)
        self.state = self._watch.state
        self.exit_code = self._watch.exit_code
        self._links = Links(cluster, self._placements, self._watch.processes)
        self._helpers = 0

    def _linked(self) -> Link:
        if self._link is None or self._closing is not None:
            raise HarnessError(f"{self._cluster}: the cluster is closed")
        return self._link

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
        """Run a command to its end, in the network of the node if one is named; see ``Nodes.run``."""
        cwd = cwd or (self.scratch if node is None else self._placement(node).home)
        self._helpers += 1
        name = f"helper-{self._helpers}"
        out, err = (self.directory / "run" / f"{name}.{kind}" for kind in ("out", "err"))
        started = self._watch.processes[name] = Started(output=err)
        try:
            command = ProcessSpec(name=name, argv=tuple(argv), env=env, cwd=cwd, output=out, unprivileged=unprivileged)
            await self._spawn(command, error=err, network=node and self._links.namespace_of(node))
            try:
                async with asyncio.timeout(timeout):
                    await started.ended.wait()
            except TimeoutError:
                raise CommandTimedOut(
                    f"{self._cluster}: {' '.join(argv)} did not end within {timeout:g} s; its last words: "
                    f"{tail(err, 5) or tail(out, 5) or 'none'}"
                ) from None
            code = self._watch.code_of(name, started)
            return Completed(code=code, out=out.read_text(errors="replace"), err=err.read_text(errors="replace"))
        except OSError as error:
            raise disk_error(f"read what {argv[0]} said", error) from error
        finally:
            with suppress(HarnessError):
                await self._end_helper(name)
            for path in (out, err):
                path.unlink(missing_ok=True)

    async def _end_helper(self, name: str) -> None:
        link = self._linked()
        # Sent before the first wait, so that a cancelled caller leaves nothing running either.
        killed = link.order("kill", name=name)
        try:
            await asyncio.shield(killed)
        finally:
            link.order("forget", name=name)
            self._watch.processes.pop(name, None)

    async def start(self, spec: ProcessSpec) -> None:
        """Start a node's process, what an earlier one left killed first; see ``Substrate.start``.

        Where the machine refuses its program the node is what it was before: dead, or never started.
        """
        self._placement(spec.name)
        if self.state(spec.name) in (ProcessState.RUNNING, ProcessState.PAUSED):
            raise HarnessError(f"{self._cluster}: {spec.name} runs already; stop or kill it before it is started again")
        limits = None
        if spec.resources and (spec.resources.cpus is not None or spec.resources.memory_mib is not None):
            if Capability.NODE_RESOURCES not in self.capabilities:
                raise BadInput(
                    f"{spec.name}: cpus and memory_mib cannot be limited here, where no control groups can be made; "
                    "choose a profile without them, or run where /sys/fs/cgroup is writable"
                )
            limits = {"cpus": spec.resources.cpus, "memory_mib": spec.resources.memory_mib}
        if before := self._watch.processes.get(spec.name):
            await self._linked().carry_out("kill", name=spec.name)
        self._watch.processes[spec.name] = Started(output=Path(spec.output))
        try:
            await self._spawn(spec, limits=limits, network=self._links.namespace_of(spec.name))
        except BadInput:
            if before:
                self._watch.processes[spec.name] = before
            else:
                del self._watch.processes[spec.name]
            raise

    async def _spawn(
        self,
        spec: ProcessSpec,
        *,
        error: Path | None = None,
        limits: Mapping[str, float | int | None] | None = None,
        network: str | None,
    ) -> None:
        home = self._placements[spec.name].home if spec.name in self._placements else None
        own = [home] if home else [placement.home for placement in self._placements.values()]
        answer = await self._linked().order(
            "start",
            name=spec.name,
            argv=spec.argv,
            env=dict(spec.env),
            cwd=str(spec.cwd),
            output=str(spec.output),
            error=None if error is None else str(error),
            home=None if home is None else str(home),
            own=[str(self.scratch), *map(str, own)],
            unprivileged=spec.unprivileged,
            limits=limits,
            network=network,
        )
        if "refused" in answer:
            raise refusal(spec.argv[0], *answer["refused"])
        if "error" in answer:
            raise HarnessError(f"{self._cluster}: cannot start {spec.name}: {answer['error']}")

    async def stop(self, name: str, *, timeout: float) -> int:
        """SIGTERM to what was started, then a kill of what is left; see ``Substrate.stop``.

        A paused process takes the signal only once it is resumed.
        """
        started = self._watch.started(name)
        await self.signal(name, signal.SIGTERM)
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await started.ended.wait()
        await self.kill(name)
        return self._watch.code_of(name, started)

    async def signal(self, name: str, signum: int) -> None:
        """Send a signal to the process that was started, not to what it started; nothing where it has ended."""
        self._watch.started(name)
        await self._linked().carry_out("signal", name=name, signal=int(signum))

    async def kill(self, name: str) -> None:
        """SIGKILL everything the node is; returns when it is gone. Raises ``HarnessError`` if something stays."""
        started = self._watch.started(name)
        await self._linked().carry_out("kill", name=name)
        await started.ended.wait()

    async def delete_pod(self, name: str) -> str:
        """Raises ``HarnessError``: a process has none."""
        self._watch.started(name)
        raise HarnessError(f"{name} runs in no pod")

    async def pause(self, name: str) -> None:
        """SIGSTOP every thread of everything the node is. Raises ``HarnessError`` where one goes on; then all do."""
        self._watch.started(name)
        if self.state(name) not in (ProcessState.RUNNING, ProcessState.PAUSED):
            raise HarnessError(f"{self._cluster}: {name} cannot be paused, it is {self.state(name)}")
        await self._linked().carry_out("pause", name=name)
        if self.state(name) is not ProcessState.PAUSED:
            raise HarnessError(f"{self._cluster}: {name} ended while it was being paused: {self.log_tail(name, 3)}")

    async def resume(self, name: str) -> None:
        """SIGCONT everything the node is; returns when none of it is stopped."""
        self._watch.started(name)
        await self._linked().carry_out("resume", name=name)

    def log_tail(self, name: str, lines: int = 20) -> str:
        """The last lines the node wrote, and how a crash in its logs began, for messages; empty if it wrote none."""
        started = self._watch.processes.get(name)
        if started is None:
            return ""
        ended = name in self._placements and self.state(name) is ProcessState.EXITED
        return "\n".join(filter(None, [tail(started.output, lines), crash(started) if ended else ""]))

    def limits(self, name: str) -> Mapping[str, float]:
        """What the process's control groups let it use now. Raises ``HarnessError`` when it does not run."""
        leader = self._watch.started(name).leader
        if leader is None or self.state(name) is not ProcessState.RUNNING:
            raise HarnessError(f"{self._cluster}: {name} has no limits, it is {self.state(name)}")
        return cgroups.limits(self._groups, self._cluster, name, leader.pid)

    def cpu_seconds(self) -> float:
        """CPU that all its processes have used since they began, in seconds. Those that have ended no longer count."""
        return proctree.cpu_seconds(self._watch.supervisor)

    async def wipe(self, name: str) -> None:
        """Delete the node's store and leave an empty one. Raises ``HarnessError`` if any process of the node lives."""
        store = Path(self._placement(name).store)
        if alive := [p.pid for p in self._watch.members(name) if not p.dead]:
            raise HarnessError(f"{self._cluster}: the store of {name} is in use by process {alive[0]}; kill it first")

        def empty() -> None:
            cleanup.remove_tree(store)
            store.mkdir(mode=0o700)

        with refused(f"wipe the store of {name}"):
            await asyncio.shield(asyncio.to_thread(empty))
