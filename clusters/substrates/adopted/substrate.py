"""A cluster of others: found, described, watched; hurt only where that was allowed, and left as it was."""

import asyncio
import base64
import os
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
from clusters.model import Completed, Health, NodeSpec, Placement, ProcessSpec, ProcessState
from clusters.substrates import SUBSTRATES, SubstrateKind
from clusters.substrates.adopted import CAPABILITIES
from clusters.substrates.adopted.finding import ADOPT, SECRET, Found, certificates, find
from clusters.substrates.adopted.pods import MEMORY, OUTSIDE, Pods
from clusters.substrates.kubernetes.api import Api
from clusters.substrates.kubernetes.rights import ADOPTED, refuse_without
from clusters.substrates.kubernetes.settings import NAMESPACE, Given
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
        self.capabilities = CAPABILITIES
        """What can be done to nodes here."""
        self._placements: dict[str, Placement] = {}
        self._names: dict[str, str] = {}
        """By node its pod."""
        self._runs: dict[str, str] = {}
        """By node the container that was seen to run when it was placed, or started last."""
        self._ours: set[str] = set()
        """The containers that were ended from here."""
        self._pods = Pods(api, found)
        # Reads until we close it, or are killed: nobody else is to find a key of root there.
        clears = ["/bin/sh", "-c", 'read -r _; rm -rf "$0"', str(scratch)]
        self._guard = subprocess.Popen(clears, stdin=subprocess.PIPE, start_new_session=True)

    @staticmethod
    async def describe() -> Sequence[str]:
        """What is found, and what each capability would do to it. Raises ``BadInput``, ``HarnessError``."""
        api, found, secret, _ = await _look()
        try:
            services = await api.told("look at services", api.core.list_namespaced_service, found.namespace)
            listed = api.policy.list_namespaced_pod_disruption_budget
            budgets = await api.told("look at disruption budgets", listed, found.namespace)
            return [
                f"adopted: StatefulSet {found.name}{f' of {found.of}' if found.of else ''}, namespace "
                f"{found.namespace}, {api.where}",
                f"nodes: {', '.join(map(_on, found.pods, found.machines))}; image {found.image}",
                f"services: {_selecting(services, found, 'selector') or 'none'}; disruption budgets: "
                f"{_selecting(budgets, found, 'matchLabels') or 'none'}; certificate of {found.charted.user}: "
                f"secret {secret}",
                "any load: makes database roachproof, writes to it through every pod, and drops it",
                "kill, restart: deletes a pod, with a second's grace; its StatefulSet makes it anew at once, with its "
                "volume",
                f"drain, restart: `{found.charted.drain}`, and deletes the pod with its own grace of {found.grace_s} s",
                "anything else is not done, and nothing without --allow-disruption",
            ]
        finally:
            api.close()

    @classmethod
    async def open(
        cls,
        *,
        name: str,
        workdir: Path,
        nodes: Sequence[NodeSpec],
        say: Callable[[str], None] = lambda _: None,
        keep_logs: Path | None = None,
        allow_disruption: bool = False,
    ) -> Self:
        """The cluster that the environment names, as it is. Raises ``BadInput``, ``HarnessError``."""
        if not allow_disruption:
            raise BadInput(
                "substrate adopted: the cluster is not Roachproof's, and would be loaded and disturbed; give "
                "--allow-disruption if its owner allows that"
            )
        api, found, secret, files = await _look()
        if nodes and len(nodes) != len(found.pods):
            api.close()
            raise BadInput(
                f"{api.where}: StatefulSet {found.name} has {len(found.pods)} pods, and the test is about {len(nodes)} "
                "nodes; choose a claim or a --topology of so many, or another cluster"
            )
        scratch = (workdir / f"adopted-{re.sub('[^a-z0-9-]+', '-', name.lower())}-{secrets.token_hex(4)}").resolve()
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

    # ---- placing --------------------------------------------------------------------------------------------------

    async def place(self, nodes: Sequence[NodeSpec]) -> tuple[Placement, ...]:
        """Give each node the name of a pod, in their order. Raises ``BadInput`` where there is none left."""
        placed = []
        for node in nodes:
            pod = next((pod for pod in self._found.pods if pod not in self._names.values()), None)
            if pod is None:
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
        """Not done: its image has what it has."""
        self._not_done(f"to put {program} there")

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
        """Wait for the pod that the StatefulSet makes anew by itself."""
        pod, former = self._pods[self._names[spec.name]], self._runs[spec.name]

        async def another() -> Health:
            return Health(ok=pod.container not in ("", former), why=pod.waiting or "its container does not run")

        await wait_until(f"{spec.name} to be made anew", another, timeout=_START_S, interval=0.05)
        self._runs[spec.name] = pod.container

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
        if self.state(name) is not ProcessState.RUNNING:
            return
        if not self._allowed:
            raise BadInput(f"{name} is not Roachproof's; give --allow-disruption if its owner allows that")
        self._ours.add(runs)
        # This one and none that was made in its place meanwhile.
        only = client.V1DeleteOptions(
            grace_period_seconds=grace_s, preconditions=client.V1Preconditions(uid=pod.uid), api_version="v1"
        )
        end = self._api.core.delete_namespaced_pod
        await self._api.call("delete a pod", end, self._names[name], self._found.namespace, body=only)

        async def ended() -> Health:
            return Health(ok=runs in pod.codes or runs in pod.forgotten, why="its container runs")

        await wait_until(f"{name} to be gone", ended, timeout=grace_s + _END_S, interval=0.05)

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
        return ProcessState.RUNNING if runs and pod.container == runs else ProcessState.EXITED

    def exit_code(self, name: str) -> int | None:
        """That of the container, where Kubernetes tells it."""
        running = self.state(name) is ProcessState.RUNNING
        return None if running else self._pods[self._names[name]].codes.get(self._runs[name])

    def ended_by(self, name: str) -> str:
        """What outside of it ended the container: its memory, or its pod's end."""
        if self.state(name) is not ProcessState.EXITED or (runs := self._runs[name]) in self._ours:
            return ""
        pod = self._pods[self._names[name]]
        return MEMORY if runs in pod.memory else OUTSIDE if runs in pod.forgotten else ""

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
            said: str = self._log(self._names[name], tail_lines=lines)
            return said.rstrip("\n")
        return ""

    def _log(self, pod: str, **options: int) -> str:
        read = self._api.core.read_namespaced_pod_log
        return str(read(pod, self._found.namespace, container=self._found.container, _request_timeout=30, **options))

    # ---- the end --------------------------------------------------------------------------------------------------

    async def close(self, *, keep: bool = False) -> None:
        """Keep the nodes' logs, and forget the cluster, which stays; safe to call twice."""
        if self._keep_logs is not None:
            into, self._keep_logs = self._keep_logs, None
            for name, pod in self._names.items():
                with suppress(ApiException, OSError):
                    said = await asyncio.to_thread(self._log, pod)
                    (into / name).mkdir(parents=True, exist_ok=True)
                    (into / name / "output.txt").write_text(said, encoding="utf-8")
        self._pods.close()
        if self._guard.stdin is not None:
            self._guard.stdin.close()
        await asyncio.to_thread(self._guard.wait, 30)
        self._api.close()


async def _look() -> tuple[Api, Found, str, Mapping[str, str]]:
    """The cluster that the environment names, and its administrator's certificate. Changes nothing."""
    given = Given.read()
    if given.namespace is None:
        raise BadInput(f"substrate adopted: no namespace is named; set {NAMESPACE} to that of the cluster")
    namespace, wanted = given.namespace, os.environ.get(ADOPT, "")
    api = await asyncio.to_thread(Api, given.context)
    try:
        await refuse_without(api, ADOPTED, namespace)
        sets = await api.told("look at StatefulSets", api.apps.list_namespaced_stateful_set, namespace)
        pods = await api.told("look at pods", api.core.list_namespaced_pod, namespace)
        found = find(wanted, api.where, sets, pods, namespace=namespace)
        secret, files = await _root(api, found)
    except BaseException:
        api.close()
        raise
    return api, found, secret, files


async def _root(api: Api, found: Found) -> tuple[str, Mapping[str, str]]:
    """The secret that has the administrator's certificate, and its files."""
    asked = os.environ.get(SECRET, "")
    looked = (asked,) if asked else found.secrets
    for name in looked:
        try:
            read = await api.call("read a secret", api.core.read_namespaced_secret, name, found.namespace)
        except HarnessError as error:
            if "not found" not in str(error):
                raise
            continue
        if files := certificates({"data": read.data}):
            return name, files
    keys = ", ".join(" or ".join(names) for names in found.charted.certificate.values())
    raise BadInput(
        f"{api.where}: namespace {found.namespace}: no secret has the certificate of the client {found.charted.user} "
        f"of StatefulSet {found.name}: looked for {keys} in {', '.join(looked)}; "
        f"name the secret that has them in {SECRET}"
    )


def _on(pod: str, machine: str) -> str:
    return f"{pod} on {machine}"


def _selecting(objects: Sequence[Mapping[str, object]], found: Found, key: str) -> str:
    """The names of the objects whose selector means the cluster's pods."""
    names = []
    for one in objects:
        spec: Mapping[str, object] = one["spec"]  # type: ignore[assignment]
        selector = spec.get("selector") or {}
        chosen = selector.get(key, selector) if isinstance(selector, dict) else {}
        if (chosen and chosen.items() <= found.labels.items()) or chosen == found.labels:
            metadata: Mapping[str, str] = one["metadata"]  # type: ignore[assignment]
            names.append(metadata["name"])
    return ", ".join(names)
