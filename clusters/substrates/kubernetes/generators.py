"""Load generators in a cluster's namespace: the pods of an indexed Job, each told what to run by commands in it."""

import asyncio
import json
import queue
import shlex
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Self

from kubernetes.stream.ws_client import ERROR_CHANNEL, STDERR_CHANNEL, STDOUT_CHANNEL
from websocket import WebSocketException

from clusters.errors import BadInput, HarnessError, TimedOut
from clusters.generators import Ended, Heard, WantedGenerators
from clusters.model import Health
from clusters.substrates.kubernetes import manifests
from clusters.substrates.kubernetes.api import Api, Refused
from clusters.substrates.kubernetes.manifests import EVIDENCE, GENERATOR, PRIVATE, Settings
from clusters.substrates.kubernetes.pods import Pod, Pods, unpulled
from clusters.waiting import wait_until

PYTHON = ("python", "-m")
RELAY = "fixtures.workloads.relay"
"""The module by which an image says which suite it has; the harness runs programs through it."""
_WAY_OUT = "name an image that was made of this checkout (docs/ci.md)"
_CHECK_S = 60.0
"""How long the suite in a pod may take to say which it is."""
_POLL_S = 0.05
"""How long a line to be sent may wait for one to be heard."""
_PART = 1 << 18
"""Bytes that are sent at once."""
_STATE_S = 2.0
"""How long the end of a pod may take to be told after what ran in it has ended."""


class Generators:
    """The load generators of one cluster."""

    argv: Sequence[str] = PYTHON
    private, evidence = str(PRIVATE), str(EVIDENCE)

    def __init__(self, api: Api, settings: Settings, pods: Pods) -> None:
        self._api, self._settings, self._watched = api, settings, pods
        self._pods: dict[str, Pod] = {}
        self._clocks: dict[str, str] = {}
        self.running: Counter[str] = Counter()
        self.addresses: Mapping[str, str] = {}
        """See ``clusters.generators``."""

    @classmethod
    async def begin(cls, api: Api, settings: Settings, pods: Pods, wanted: WantedGenerators, start_s: float) -> Self:
        """Make the Job and wait until all its pods run (``start_s`` seconds), with this very suite.

        Raises ``BadInput``, ``HarnessError``.
        """
        self = cls(api, settings, pods)
        body = manifests.job(settings, wanted)
        try:
            await api.make("make load generators", api.batch.create_namespaced_job, settings.namespace, body)
        except Refused as error:
            if not error.is_there:
                raise
            left = f"kubectl -n {settings.namespace} delete job {manifests.GENERATORS}"
            raise BadInput(
                f"{api.where}: namespace {settings.namespace} has load generators of another run; wait for its end, or "
                f"remove what a lost run left (`{left}`)"
            ) from error

        async def up() -> Health:
            return self._up(wanted)

        try:
            await wait_until("load generators", up, timeout=start_s, interval=0.1)
        except TimedOut as error:
            if any(unpulled(pod.waiting) for pod in pods.generators().values()):
                raise self._unfit(wanted, str(error)) from error
            raise BadInput(f"{api.where}: {error}; make room for them, or give fewer --generators") from error
        await asyncio.gather(*(asyncio.to_thread(self._check, name, wanted) for name in self._pods))
        return self

    def _up(self, wanted: WantedGenerators) -> Health:
        """Whether all pods run. Raises ``BadInput`` where one never will, ``HarnessError`` where nobody hears."""
        self._watched.refuse_unwatched()
        there = sorted(self._watched.generators().items())
        told = {number: f"generator {number}: {pod.waiting or pod.described}" for number, pod in there}
        for number, pod in there:
            if pod.stuck:
                raise self._unfit(wanted, told[number])
            if pod.described.startswith("Failed"):
                raise BadInput(
                    f"{self._api.where}: {told[number]}; see what ended its pod, make room for it, or give fewer "
                    "--generators"
                )
        self._watched.refuse_not_admitted(manifests.GENERATORS, "a load generator")
        self._pods = {f"generator {number}": pod for number, pod in there if pod.container}
        down = "; ".join(told[number] for number, pod in there if not pod.container)
        why = f"{len(self._pods)} of {wanted.number} run" + (f" ({down})" if down else "")
        return Health(ok=len(self._pods) >= wanted.number, why=why)

    def _unfit(self, wanted: WantedGenerators, why: str) -> BadInput:
        return BadInput(
            f"--generator-image {wanted.image}: {why}; name one that the cluster can pull, with this suite in it "
            "(docs/ci.md)"
        )

    def _check(self, name: str, wanted: WantedGenerators) -> None:
        """Ask the suite in a pod which it is. Raises ``BadInput`` for another."""
        # By a shell, which says in words what is not there.
        asked = ["/bin/sh", "-c", shlex.join(["exec", *PYTHON, RELAY, "--about"])]
        code, out, err = self._api.execute(
            self._settings.namespace, self._pods[name].name, asked, container=GENERATOR, timeout=_CHECK_S
        )
        try:
            told = json.loads(out)
            there, self._clocks[name] = str(told["code"]), str(told["clock"])
        except (ValueError, KeyError, TypeError):
            said = (err or out).decode(errors="replace").strip()[-300:]
            raise BadInput(
                f"--generator-image {wanted.image}: has no suite that runs in {manifests.SUITE} (exit code {code}: "
                f"{said}); {_WAY_OUT}"
            ) from None
        if there != wanted.code:
            raise BadInput(
                f"--generator-image {wanted.image}: has another version of the suite ({there}, not {wanted.code}); "
                f"{_WAY_OUT}"
            )

    @property
    def names(self) -> Sequence[str]:
        """See ``clusters.generators``."""
        return tuple(self._pods)

    def clock(self, name: str) -> str:
        """See ``clusters.generators``."""
        return self._clocks[name]

    def open(self, name: str, argv: Sequence[str], *, heard: Heard, ended: Ended) -> "ExecChannel":
        """See ``clusters.generators``."""

        def over(why: str) -> None:
            self.running[name] -= 1
            ended(why)

        opened = self._api.open_exec(
            self._settings.namespace, self._pods[name].name, argv, stdin=True, container=GENERATOR
        )
        self.running[name] += 1
        return ExecChannel(opened, heard, over)

    def state(self, name: str) -> str:
        """See ``clusters.generators``. Waits a moment, for a pod's end is told after what ran in it has ended."""
        pod, until = self._pods[name], time.monotonic() + _STATE_S
        while pod.container and time.monotonic() < until:
            time.sleep(0.05)
        warned = self._watched.warnings(pod)
        return f"pod {pod.name}: {pod.described}" + (f"; last warnings: {warned}" if warned else "")


class ExecChannel:
    """Lines to and from a command in a pod. The client is no thread's but its own."""

    def __init__(self, opened: Any, heard: Heard, ended: Ended) -> None:
        self._opened, self._heard, self._ended = opened, heard, ended
        self._lines: queue.SimpleQueue[Callable[[], bytes]] = queue.SimpleQueue()
        self._closing = threading.Event()
        threading.Thread(target=self._run, name="generator", daemon=True).start()

    def send(self, line: Callable[[], bytes]) -> None:
        """See ``clusters.generators.Channel``."""
        self._lines.put(line)

    def close(self) -> None:
        """See ``clusters.generators.Channel``."""
        self._closing.set()

    def _run(self) -> None:
        rest, errors, why = b"", b"", ""
        try:
            goes_on = True
            while goes_on:
                # Once more after the end, which may have come with the last lines while errors were read.
                if goes_on := self._opened.is_open() and not self._closing.is_set():
                    self._write()
                    self._opened.update(timeout=_POLL_S)
                at = time.monotonic_ns()
                *lines, rest = (rest + self._opened.read_channel(STDOUT_CHANNEL)).split(b"\n")
                errors = (errors + self._opened.read_channel(STDERR_CHANNEL))[-500:]
                for line in lines:
                    self._heard(line, at)
            status = self._opened.read_channel(ERROR_CHANNEL)
            why = (errors or status).decode(errors="replace").strip()
        except (WebSocketException, OSError, HarnessError) as error:
            why = f"{type(error).__name__} {error}".strip()
        finally:
            with suppress(Exception):
                self._opened.close()
            self._ended(why)

    def _write(self) -> None:
        with suppress(queue.Empty):
            while True:
                line = self._lines.get_nowait()()
                for at in range(0, len(line), _PART):
                    self._opened.write_stdin(line[at : at + _PART])
