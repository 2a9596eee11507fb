"""A cluster of others: found, described, watched; hurt only where that was allowed, and left as it was."""

import asyncio
import base64
import itertools
import re
import secrets
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import BinaryIO, NoReturn, Self

from kubernetes import client
from kubernetes.client.exceptions import ApiException
from kubernetes.utils.quantity import parse_quantity

from clusters.clocks import Reading
from clusters.errors import BadInput, CommandTimedOut, HarnessError
from clusters.generators import WantedGenerators
from clusters.model import Completed, Health, NodeSpec, Placement, ProcessSpec, ProcessState
from clusters.substrates import SUBSTRATES, SubstrateKind
from clusters.substrates.adopted import CAPABILITIES, CHANGES
from clusters.substrates.adopted.beside import Beside
from clusters.substrates.adopted.changes import Changes
from clusters.substrates.adopted.finding import Found
from clusters.substrates.adopted.look import look
from clusters.substrates.adopted.pods import MEMORY, OUTSIDE, Pods
from clusters.substrates.kubernetes.api import Api
from clusters.substrates.kubernetes.generators import Generators
from clusters.substrates.kubernetes.history import History
from clusters.substrates.kubernetes.manifests import GENERATORS
from clusters.substrates.kubernetes.rights import ADOPTED_CHANGES, refuse_without
from clusters.substrates.kubernetes.settings import IMAGES, Given
from clusters.substrates.kubernetes.substrate import run_here
from clusters.waiting import wait_until

_KILL_S = 1
"""The grace of a pod that is killed. With none the API server forgets it at once, and nobody says that it has ended."""
_END_S, _START_S = 60.0, 300.0


class Adopted:
    """One cluster that is there already. Made with ``open``; belongs to the event loop that opened it."""

    def __init__(self, api: Api, found: Found, scratch: Path, *, allowed: bool, keep_logs: Path | None) -> None:
        self._api, self._found, self._allowed, self._keep_logs = api, found, allowed, keep_logs
        self.scratch = scratch
        """A directory (0700) for what clients and the harness need, the administrator's certificate among it."""
        self.capabilities = CAPABILITIES if found.custom else CAPABILITIES | CHANGES
        """What can be done to nodes here."""
        self._placements: dict[str, Placement] = {}
        self._names: dict[str, str] = {}
        """By node its pod."""
        self._runs: dict[str, str] = {}
        """By node the container that was seen to run when it was placed, or started last."""
        self._ours: set[str] = set()
        """The containers that were ended from here."""
        self._ended: dict[str, str] = {}
        """By node the pod of it that was deleted last."""
        self._changes = Changes(api, found)
        self._images: dict[Path, str] = {}
        """By program of this machine the image that has it."""
        self._next: dict[str, str | None] = {}
        """The image with which a node that is ended next comes back; ``None``: it does not."""
        self._out: set[str] = set()
        """The nodes that were taken out."""
        self._pods = Pods(api, found)
        logs = None if keep_logs is None else keep_logs / "kubernetes" / "pods.log"
        of = re.compile(rf"([a-z0-9.-]+-)?{re.escape(found.name)}(-\d+)?$|{GENERATORS}")
        self._history = History(api, found.namespace, logs, of=of)
        self._beside: Beside | None = None
        # Reads until we close it, or are killed: nobody else is to find a key of root there.
        clears = ["/bin/sh", "-c", 'read -r _; rm -rf "$0"', str(scratch)]
        self._guard = subprocess.Popen(clears, stdin=subprocess.PIPE, start_new_session=True)

    @classmethod
    async def open(
        cls,
        *,
        name: str,
        workdir: Path,
        nodes: Sequence[NodeSpec],
        say: Callable[[str], None] = lambda _: None,
        keep_logs: Path | None = None,
        generators: WantedGenerators | None = None,
        allow_disruption: bool = False,
        changes: bool = False,
    ) -> Self:
        """The cluster that the environment names, as it is. Raises ``BadInput``, ``HarnessError``.

        ``changes``: whether its StatefulSet is to be changed, which takes further rights.
        """
        if not allow_disruption:
            raise BadInput(
                "substrate adopted: the cluster is not Roachproof's, and would be loaded and disturbed; give "
                "--allow-disruption if its owner allows that"
            )
        api, found, secret, files = await look()
        if changes:
            await refuse_without(api, ADOPTED_CHANGES, found.namespace)
        if nodes and len(nodes) != len(found.pods):
            api.close()
            raise BadInput(
                f"{api.where}: StatefulSet {found.name} has {len(found.pods)} pods, and the test is about {len(nodes)} "
                "nodes; choose a claim or a --topology of so many, or another cluster"
            )
        called = f"{re.sub('[^a-z0-9-]+', '-', name.lower()).strip('-')[:40]}-{secrets.token_hex(4)}"
        scratch = (workdir / f"adopted-{called}").resolve()
        certs = scratch / "certs"
        certs.mkdir(mode=0o700, parents=True)
        scratch.chmod(0o700)
        self = cls(api, found, scratch, allowed=allow_disruption, keep_logs=keep_logs)
        try:
            for file, content in files.items():
                (certs / file).touch(mode=0o600)
                (certs / file).write_bytes(base64.b64decode(content))
            await asyncio.to_thread(self._pods.listed.wait, 30)
            if self._pods.refused:
                raise self._pods.refused
            await self._history.begin()
            if generators:
                self._beside = await Beside.begin(
                    api,
                    found,
                    generators,
                    cluster=f"roachproof-{called}",
                    context=Given.read().context,
                    history=self._history,
                    say=say,
                )
        except BaseException:
            await self.close()
            raise
        user = found.charted.user
        say(f"adopted: StatefulSet {found.name} of namespace {found.namespace}, {user} by secret {secret}")
        return self

    @property
    def kind(self) -> SubstrateKind:
        """``adopted``."""
        return SUBSTRATES["adopted"]

    @property
    def generators(self) -> Generators | None:
        """Its load generators, if it has some."""
        return None if self._beside is None else self._beside.generators

    # ---- placing --------------------------------------------------------------------------------------------------

    async def place(self, nodes: Sequence[NodeSpec]) -> tuple[Placement, ...]:
        """Give each node the name of a pod, in their order: of those that are there, then of those that come next.

        Raises ``BadInput`` where there is none left.
        """
        placed = []
        for node in nodes:
            taken = {pod for name, pod in self._names.items() if name not in self._out}
            number = next(number for number in itertools.count() if self._found.pod(number) not in taken)
            pod = self._found.pod(number)
            if number >= len(self._found.pods) and self._found.custom:
                raise BadInput(f"{node.name}: all {len(self._found.pods)} pods of {self._found.name} are taken already")
            address, store = self._found.address(pod), self._found.store
            placement = Placement(
                node=node,
                address=address,
                client_address=address,
                home=store.parent,
                store=store,
                logs=store / "logs",
                command=self._found.command,
            )
            self._placements[node.name], self._names[node.name] = placement, pod
            self._runs[node.name] = self._pods[pod].container
            placed.append(placement)
        return tuple(placed)

    def _not_done(self, what: str) -> NoReturn:
        raise HarnessError(f"StatefulSet {self._found.name}: {what} is not done to a cluster that we did not make")

    async def beside(self, name: str) -> Placement:
        """Not done."""
        self._not_done(f"to place {name} beside it")

    async def present(self, program: Path) -> PurePath:
        """See which image has a program: the first is what runs there. Raises ``BadInput`` where none is known."""
        self._image(program)
        return PurePath(program)

    def _image(self, program: Path | None) -> str:
        if program is None:
            return self._found.image
        known = program.resolve()
        if known not in self._images:
            image = Given.read().program(program).image if self._images else self._found.image
            if image is None:
                raise BadInput(
                    f"{program}: no image is known that has it, and the nodes of StatefulSet {self._found.name} get "
                    f"another version by another image; say in a file that {IMAGES} names which one has it "
                    "(docs/kubernetes.md)"
                )
            self._images[known] = image
        return self._images[known]

    async def put(self, name: str, path: PurePath, content: bytes) -> None:
        """Not done."""
        self._not_done(f"to write {path}")

    async def archive(self, name: str, directory: PurePath, into: BinaryIO) -> None:
        """Not done."""
        self._not_done(f"to read {directory}")

    async def extract(self, name: str, directory: PurePath, out_of: BinaryIO) -> None:
        """Not done."""
        self._not_done(f"to write {directory}")

    async def wipe(self, name: str) -> None:
        """Not done."""
        self._not_done("to delete a store")

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
        """Run a command to its end on the machine of the harness; in a pod that is not done."""
        if node is not None:
            self._not_done(f"to run {argv[0]}")
        try:
            async with asyncio.timeout(timeout):
                return await run_here(argv, env, Path(cwd or self.scratch))
        except TimeoutError:
            raise CommandTimedOut(f"{' '.join(argv)} did not end within {timeout:g} s") from None

    # ---- what is done to a pod ------------------------------------------------------------------------------------

    async def start(self, spec: ProcessSpec) -> None:
        """Wait for the pod that the StatefulSet makes anew by itself; one of another image is made anew once more."""
        name, image = spec.name, self._image(spec.program)
        pod, former = self._pods[self._names[name]], self._runs[name]
        if self._number(name) >= self._changes.replicas:
            await self._changes.free(self._names[name])
            await self._changes.ask(image=image, replicas=self._number(name) + 1)

        async def there() -> Health:
            return Health(ok=pod.uid not in ("", self._ended.get(name)), why="its pod is not there")

        async def another() -> Health:
            if pod.stuck:
                raise HarnessError(f"{name}: pod {self._names[name]}: {pod.waiting}")
            return Health(ok=pod.container not in ("", former), why=pod.waiting or "its container does not run")

        await wait_until(f"{name} to be made anew", there, timeout=_START_S, interval=0.05)
        if pod.image != image:
            await self._changes.ask(image=image)
            await self._delete(name, _KILL_S)
            await wait_until(f"{name} to be made anew", there, timeout=_START_S, interval=0.05)
        await wait_until(f"{name} to run {image}", another, timeout=_START_S, interval=0.05)
        self._runs[name] = pod.container
        self._history.begins(self._names[name])

    def _number(self, name: str) -> int:
        """How many pods come before a node's."""
        return int(self._names[name].rpartition("-")[2]) - self._found.first

    def comes_back(self, name: str, program: Path | None) -> None:
        """Say with which program a node comes back that is ended next, or that it does not.

        Raises ``HarnessError`` for a node that was not added last: no other can be scaled away.
        """
        if program is not None:
            self._next[name] = self._image(program)
            return
        if self._number(name) != self._changes.replicas - 1 or self._names[name] in self._found.pods:
            raise HarnessError(
                f"{name} ({self._names[name]}) cannot be taken out: a StatefulSet gives up its last pod alone, and "
                "none that was found is"
            )
        self._next[name] = None

    async def stop(self, name: str, *, timeout: float) -> int:
        """Delete its pod, with its own grace, at most ``timeout`` seconds; returns the exit code of its container."""
        await self._end(name, max(_KILL_S, int(min(timeout, self._found.grace_s))))
        code = self.exit_code(name)
        if code is None:
            raise HarnessError(f"nobody saw how {name} ended")
        return code

    async def kill(self, name: str) -> None:
        """Delete its pod, with the least grace; returns when Kubernetes says that its container has ended."""
        await self._end(name, _KILL_S)

    async def _end(self, name: str, grace_s: int) -> None:
        pod, runs = self._pods[self._names[name]], self._runs[name]
        runs_now, image = self.state(name) is ProcessState.RUNNING, self._next.pop(name, pod.image)
        if not runs_now and image is not None:
            return
        if not self._allowed:
            raise BadInput(f"{name} is not Roachproof's; give --allow-disruption if its owner allows that")
        self._ours.add(runs)
        if image is None:
            await asyncio.to_thread(self._save_log, name)
            grace_s = self._found.grace_s
            await self._changes.ask(replicas=self._number(name))
        else:
            # It is made anew at once, from what its StatefulSet says then.
            await self._changes.ask(image=image)
            await self._delete(name, grace_s)

        async def ended() -> Health:
            over = not runs_now or runs in pod.codes or runs in pod.forgotten
            return Health(ok=over and (image is not None or not pod.uid), why="its container runs")

        await wait_until(f"{name} to be gone", ended, timeout=grace_s + _END_S, interval=0.05)
        if image is None:
            self._out.add(name)
            await self._changes.forget(self._names[name])

    async def _delete(self, name: str, grace_s: int) -> None:
        """Delete a node's pod: this one, and none that was made in its place meanwhile."""
        pod = self._pods[self._names[name]]
        self._ended[name] = pod.uid
        only = client.V1DeleteOptions(
            grace_period_seconds=grace_s, preconditions=client.V1Preconditions(uid=pod.uid), api_version="v1"
        )
        end = self._api.core.delete_namespaced_pod
        await self._api.call("delete a pod", end, self._names[name], self._found.namespace, body=only)

    async def signal(self, name: str, signum: int) -> None:
        """Not done."""
        self._not_done(f"to send signal {signum}")

    async def pause(self, name: str) -> None:
        """Not done."""
        self._not_done("to freeze a node")

    async def resume(self, name: str) -> None:
        """Nothing, as nothing is frozen."""

    async def cut(self, sender: str, receiver: str) -> str:
        """Not done."""
        self._not_done("to cut a link")

    async def heal(self, sender: str, receiver: str) -> None:
        """Nothing, as nothing is cut."""

    # ---- looking --------------------------------------------------------------------------------------------------

    def state(self, name: str) -> ProcessState:
        """Whether the container runs that did when it was placed or started last; another in its place does not count.

        So a node that Kubernetes made anew by itself has ended all the same.
        """
        if name not in self._names:
            return ProcessState.ABSENT
        pod, runs = self._pods[self._names[name]], self._runs[name]
        if not runs:
            return ProcessState.ABSENT
        return ProcessState.RUNNING if pod.container == runs else ProcessState.EXITED

    def exit_code(self, name: str) -> int | None:
        """That of the container, where Kubernetes tells it."""
        running = self.state(name) is ProcessState.RUNNING
        return None if running else self._pods[self._names[name]].codes.get(self._runs[name])

    def ended_by(self, name: str) -> str:
        """What outside of it ended the container: its memory, or its pod's end."""
        if self.state(name) is not ProcessState.EXITED or (runs := self._runs[name]) in self._ours:
            return ""
        pod = self._pods[self._names[name]]
        if runs in pod.memory:
            return MEMORY
        # Before Kubernetes ends one that fails its owner's probe it says so.
        probed = self._history.probed(self._names[name]) if runs in pod.codes else ""
        return f"by Kubernetes ({probed})" if probed else OUTSIDE if runs in pod.forgotten else ""

    def limits(self, name: str) -> Mapping[str, float]:
        """What the pod's container may use, as it says."""
        limits = self._pods[self._names[name]].limits
        found = {"cpus": float(parse_quantity(limits["cpu"]))} if "cpu" in limits else {}
        return found | ({"memory_mib": float(parse_quantity(limits["memory"])) / 2**20} if "memory" in limits else {})

    def cpu_seconds(self) -> float:
        """Not done."""
        self._not_done("to read how much CPU it used")

    def clock(self, name: str) -> Reading:
        """The clock of the machine that the node's pod runs on. Raises ``HarnessError`` where it cannot be read."""
        line = ("/bin/sh", "-c", "cat /proc/sys/kernel/random/boot_id; date +%s.%N")
        pod, container = self._names[name], self._found.container
        _, out, err = self._api.execute(self._found.namespace, pod, line, container=container)
        try:
            boot, seconds = out.decode().split()
            return Reading(clock=f"boot {boot}", seconds=float(seconds))
        except ValueError:
            raise HarnessError(f"the clock of {name} cannot be read ({(out + err).decode(errors='replace')})") from None

    def free_bytes(self, name: str) -> int | None:
        """Nobody says."""
        return None

    def log_tail(self, name: str, lines: int = 20) -> str:
        """The last lines of the container's log."""
        with suppress(ApiException, OSError, KeyError):
            return self._log(self._names[name], tail_lines=lines).rstrip("\n")
        return ""

    def _save_log(self, name: str) -> None:
        if self._keep_logs is not None:
            with suppress(ApiException, OSError):
                said = self._log(self._names[name])
                (self._keep_logs / name).mkdir(parents=True, exist_ok=True)
                (self._keep_logs / name / "output.txt").write_text(said, encoding="utf-8")

    def _log(self, pod: str, **options: int) -> str:
        return self._api.log(self._found.namespace, pod, self._found.container, **options)

    # ---- the end --------------------------------------------------------------------------------------------------

    async def close(self, *, keep: bool = False) -> None:
        """Keep the nodes' logs, and forget the cluster, which stays and is put back; safe to call twice."""
        try:
            for name in [*self._names]:
                if name not in self._out:
                    await asyncio.to_thread(self._save_log, name)
            self._keep_logs = None
            self._pods.close()
            self._history.close()
            beside, self._beside = self._beside, None
            try:
                if beside is not None:
                    await beside.close()
            finally:
                await self._changes.put_back()
        finally:
            if self._guard.stdin is not None:
                self._guard.stdin.close()
            await asyncio.to_thread(self._guard.wait, 30)
            self._api.close()
