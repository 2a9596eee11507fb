"""What runs in a cluster's pods, and beside the harness: begun, hurt, looked at and ended."""

import asyncio
import base64
import itertools
import os
import shlex
import shutil
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePath
from typing import BinaryIO

from clusters.clocks import Reading
from clusters.errors import BadInput, CommandTimedOut, HarnessError, of_a_node_that_has_run
from clusters.executables import dying_with_us, unfit
from clusters.model import Completed, ProcessSpec, ProcessState
from clusters.substrates.kubernetes import commands
from clusters.substrates.kubernetes.dns import leads_to
from clusters.substrates.kubernetes.manifests import BASE, CONTAINER, HOME, LEAST_GRACE_S, ORDER, Template
from clusters.substrates.kubernetes.places import Node
from clusters.substrates.kubernetes.pods import HARMLESS_S, Pod, UnfitImage
from clusters.substrates.kubernetes.settings import IMAGES, Program
from clusters.substrates.kubernetes.shrinking import Shrinking

_LIVES = (ProcessState.RUNNING, ProcessState.PAUSED)
_START_S = 60.0
_END_S = 60.0
_TELLS_S = 60.0
"""How long a program may take to say its version; measured: a second on two busy cores."""
_NOT_RUN = (126, 127)
"""A shell's exit codes for a program that the kernel does not execute, as one whose libraries are not there."""
_BEAT_S = 0.5
"""How soon a container that answered is asked again whether it does, while a command runs in it."""


class Kubernetes(Shrinking):
    """The place of one cluster. Made with ``open``; belongs to the event loop that opened it."""

    _marks = itertools.count(1)

    # ---- files ----------------------------------------------------------------------------------------------------

    async def present(self, program: Path, *, runs: Path | None = None) -> PurePath:
        """By which path pods have it: from their image, else copied into their volumes before anything runs there."""
        self._opened()
        found = self._given.program(program)
        if runs is not None:
            found = replace(found, beside=self._given.program(runs).image)
        if runs is not None or found.path not in self._programs:
            self._programs[found.path] = found
        return found.path

    def _inside(self, path: PurePath, name: str) -> PurePath:
        self._node(name)
        if not path.is_relative_to(HOME) or ".." in path.parts:
            raise HarnessError(f"{self._cluster}: {path} is not in the home of {name}, {HOME}")
        return path

    async def put(self, name: str, path: PurePath, content: bytes) -> None:
        """Write a file in the node's home; where there is no pod yet, with the first."""
        self._opened()
        node, place = self._node(name), self._inside(path, name)
        if self._pods[node.pod].ready:
            await self._write(node, place, content)
        else:
            node.waiting[place] = content

    async def archive(self, name: str, directory: PurePath, into: BinaryIO) -> None:
        """Pack a directory of the node. Raises ``HarnessError`` if there is none."""
        place = self._inside(directory, name)
        await self._files.archive((await self._up(name)).pod, place, into)

    async def extract(self, name: str, directory: PurePath, out_of: BinaryIO) -> None:
        """Unpack into a directory of the node. Raises ``HarnessError`` if it is not empty."""
        place = self._inside(directory, name)
        await self._files.extract((await self._up(name)).pod, place, out_of)

    async def wipe(self, name: str) -> None:
        """Delete the node's store and leave an empty one. Raises ``HarnessError`` if it lives."""
        if self.state(name) in _LIVES:
            raise HarnessError(f"{self._cluster}: the store of {name} is in use; kill it first")
        node = await self._up(name)
        store = shlex.quote(str(node.placement.store))
        await self._asked(
            node, "eval", f"chmod -R u+rwX {store}; rm -rf {store} && mkdir -m 700 {store}", timeout=120.0
        )

    # ---- commands -------------------------------------------------------------------------------------------------

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
        """Run a command to its end, in the node's container or beside the harness; see ``Nodes.run``.

        Not ``CommandTimedOut`` but ``HarnessError`` is raised where its container did not answer meanwhile: nobody
        knows then whether it was the command that took so long. So it is for one beside the harness that was late or
        failed, where a connection to a node was cut meanwhile: it may have been its own.
        """
        self._opened()
        # Its time begins when it can.
        into = None if node is None else await self._up(node)
        if into is not None:
            await self._executable(into, argv[0])
        heart = into and _Heart(into)
        cut = self._forwards.cut() if self._forwards else 0
        called = f"{self._cluster}: {' '.join(argv)}"
        late = f"{called} did not end within {timeout:g} s"
        try:
            async with asyncio.timeout(timeout) as limit:
                if into is None:
                    done = await run_here(argv, env, Path(cwd or self.scratch))
                    if done.code:
                        self._refuse_cut(cut, f"{called} ended with {done.code} ({done.err.strip()})")
                    return done
                return await self._run_in(into, argv, env, cwd or HOME)
        except TimeoutError:
            if not limit.expired():
                raise
            if heart and heart.silent_s > HARMLESS_S:
                raise HarnessError(
                    f"{late}, and for {heart.silent_s:.0f} s nothing in {node} answered through the API server: that "
                    "says nothing of the command"
                ) from None
            self._refuse_cut(cut, late)
            raise CommandTimedOut(late) from None
        finally:
            if heart:
                await heart.stop()

    def _refuse_cut(self, before: int, what: str) -> None:
        """Raise ``HarnessError`` where connections were cut since there were so many, while this happened."""
        if self._forwards and (cut := self._forwards.cut() - before):
            raise HarnessError(
                f"{what}, and meanwhile the API server cut {cut} of the connections by which nodes are reached: that "
                "says nothing of the database"
            )

    async def _run_in(self, node: Node, argv: Sequence[str], env: Mapping[str, str], cwd: PurePath) -> Completed:
        mark, stop = f"{self._cluster}-{next(self._marks)}x", threading.Event()
        line = commands.command(argv, env=env, cwd=cwd, mark=mark)
        try:
            code, out, err = await asyncio.to_thread(
                self._api.execute, self._settings.namespace, node.pod, line, stop=stop, container=CONTAINER
            )
        finally:
            stop.set()
            # What it left runs on, and so does a command that is no longer waited for.
            await asyncio.shield(asyncio.to_thread(node.shell.ask, "forget_brought", mark))
        return Completed(
            code=commands.exit_code(code), out=out.decode(errors="replace"), err=err.decode(errors="replace")
        )

    async def _executable(self, node: Node, program: str) -> None:
        quoted = shlex.quote(program)
        head = f"if [ -r {quoted} ]; then dd if={quoted} bs=128 count=1 2>/dev/null | base64; fi"
        code, said = await self._answered(node, "eval", f"[ -f {quoted} ] && [ -x {quoted} ] && uname -m && {head}")
        name = node.placement.node.name
        if code:
            raise self._cannot_run(node, program, f"no such file in {name}, or not executable")
        machine, _, encoded = said.partition("\n")
        # `env` would have a shell try what the kernel does not execute.
        if why := unfit(name, base64.b64decode(encoded), machine):
            raise self._cannot_run(node, program, why)

    def _cannot_run(self, node: Node, called: str, why: str) -> Exception:
        """``BadInput``; of a node that has run ``UnfitImage``, where an image was said to have the program."""
        program = next((one for one in self._programs_of(called) if one.image is not None), None)
        if program is None or program.image is None:
            return BadInput(f"{called}: {why}; name a program that it has")
        return self._wrong_line(node, program.image, f"{program.inside}: {why}")

    def _wrong_line(self, node: Node, image: str, why: str) -> Exception:
        pod = self._pods[node.pod]
        runs = f" (its pod has image {pod.template.image})" if pod.template and pod.template.image != image else ""
        why = f"{IMAGES}: image {image}: {why}{runs}; correct that line of the file"
        return UnfitImage(why, image) if pod.starts else BadInput(why)

    async def _as_meant(self, node: Node, spec: ProcessSpec) -> None:
        """Ask a program of an image, once for each container image, which version it is.

        The line that says so may be wrong, and a tag may be of another image on each machine. Asked before the node's
        process is started: else what the database makes of it would be taken for the version's own. Raises ``BadInput``
        where it is another or does not run, ``UnfitImage`` of a node that has run.
        """
        tells, pod = spec.tells, self._pods[node.pod]
        program = tells and self._programs.get(PurePath(tells.argv[0]))
        if not tells or not program or program.image is None or (pod.image_id, program.path) in self._as_said:
            return
        line = shlex.join(("env", "-i", "HOME=/", *tells.argv))
        code, printed = await self._answered(node, "eval", line, timeout=_TELLS_S)
        if code in _NOT_RUN:
            why = f"{program.inside}: cannot be run in {spec.name} (exit code {code}: {printed.strip()})"
            raise self._wrong_line(node, program.image, why)
        if why := self._given.belied(program, tells, printed):
            raise UnfitImage(why, program.image) if pod.starts else BadInput(why)
        self._as_said.add((pod.image_id, program.path))

    # ---- the process that a node is -------------------------------------------------------------------------------

    async def start(self, spec: ProcessSpec) -> None:
        """Start a node's process in a pod of its image and limits; the pod is made anew where it has others."""
        self._opened()
        self._node(spec.name)
        if self.state(spec.name) in _LIVES:
            raise HarnessError(f"{self._cluster}: {spec.name} runs already; stop or kill it before it is started again")
        node = await self._up(spec.name, self._template(spec))
        pod = self._pods[node.pod]
        await self._executable(node, spec.argv[0])
        await self._as_meant(node, spec)
        await self._asked(node, "signalled", "KILL", "[ZX]")
        before, node.output = pod.starts, spec.output
        pod.asked = before + 1
        await self._write(node, ORDER, commands.order(spec).encode())
        await self._asked(node, "kill", "-USR1", "1")
        await self._pods.until(f"{spec.name} to start", pod, lambda: pod.starts > before, timeout=_START_S)
        await self._named(node, pod)

    async def _named(self, node: Node, pod: Pod) -> None:
        """Wait until clients find the pod that is in the place of another: they connect by the name of both."""
        another = self._led.get(pod.name, pod.uid) != pod.uid and self._forwards is None
        name, write = node.placement.client_address, self._history.write
        if not another or await leads_to(name, lambda: pod.addresses, lives=lambda: pod.alive, say=write):
            self._led[pod.name] = pod.uid

    def _programs_of(self, called: str) -> Sequence[Program]:
        """What was made present that is called so, or is a directory above it."""
        path = PurePath(called)
        return [program for there, program in self._programs.items() if there == path or there in path.parents]

    def _template(self, spec: ProcessSpec) -> Template:
        programs = self._programs_of(spec.argv[0])
        image = next((image for program in programs if (image := program.image or program.beside)), None)
        now = self._pod(spec.name).template
        limits = spec.resources
        return Template(
            image=image or (now.image if now else self._image()),
            cpus=limits.cpus if limits else None,
            memory_mib=limits.memory_mib if limits else None,
        )

    def _started(self, name: str) -> tuple[Node, Pod]:
        self._opened()
        node = self._nodes.get(name)
        if node is None or not self._pods[node.pod].starts:
            raise HarnessError(f"{self._cluster}: {name} was never started")
        return node, self._pods[node.pod]

    async def stop(self, name: str, *, timeout: float) -> int:
        """SIGTERM to what was started, then a kill of what is left; see ``Substrate.stop``."""
        _, pod = self._started(name)
        await self.signal(name, signal.SIGTERM)
        with suppress(HarnessError):
            await self._pods.until(f"{name} to end", pod, lambda: not pod.alive, timeout=timeout)
        await self.kill(name)
        code = pod.code
        if code is None:
            raise HarnessError(f"{self._cluster}: nobody saw how {name} ended")
        return code

    async def signal(self, name: str, signum: int) -> None:
        """Send a signal to the process that was started; nothing where it has ended."""
        node, pod = self._started(name)
        if pod.alive:
            code, said = await asyncio.to_thread(node.shell.ask, "kill", f"-{int(signum)}", str(pod.pid))
            if code and "o such process" not in said:
                raise HarnessError(f"{self._cluster}: {name} was not sent signal {signum}: {said}")

    async def kill(self, name: str) -> None:
        """SIGKILL everything the node is; returns when the container's own processes are seen to be gone."""
        node, pod = self._started(name)
        if not pod.ready:
            await self._up(name)  # a pod that is being made anew would go on with the node's order
        await self._asked(node, "eval", f"rm -f {ORDER}; signalled KILL '[ZX]'")
        await self._pods.until(f"{name} to be gone", pod, lambda: not pod.alive, timeout=_END_S)

    async def delete_pod(self, name: str) -> str:
        """Delete the node's pod; returns once another of the same template is in its place, in which nothing runs.

        That another is there is the API server's word, and that of the container which has the volume now.
        """
        node, pod = self._started(name)
        former, template = pod.uid, pod.template
        if template is None:
            raise HarnessError(f"{self._cluster}: {name} has no pod that could be deleted")
        await self._asked(node, "eval", f"rm -f {ORDER}")
        with of_a_node_that_has_run():
            async with self._locks.setdefault(node.group, asyncio.Lock()):
                self._opened()
                await self._declared(node, template)
                await self._replaced(node, pod, grace_s=LEAST_GRACE_S)
        await self._pods.until(f"{name} to be gone", pod, lambda: not pod.alive, timeout=_END_S)
        if (says := await self._has_volume(node, pod)) != pod.uid:
            raise HarnessError(
                f"{self._cluster}: another pod {node.pod} is said to be there, its UID {pod.uid}; its container says "
                f"that the volume of {name} is with {says}"
            )
        return f"pod {node.pod} deleted: its UID was {former} and is {pod.uid}, as its container says, too"

    async def pause(self, name: str) -> None:
        """SIGSTOP everything the node is. Raises ``HarnessError`` where something goes on; then all does."""
        node, pod = self._started(name)
        if pod.state not in _LIVES:
            raise HarnessError(f"{self._cluster}: {name} cannot be paused, it is {pod.state}")
        try:
            await self._asked(node, "signalled", "STOP", "[TtZX]")
        except HarnessError:
            await self.resume(name)
            raise
        if not pod.alive:
            raise HarnessError(f"{self._cluster}: {name} ended while it was being paused: {self.log_tail(name, 3)}")
        pod.paused = True

    async def resume(self, name: str) -> None:
        """SIGCONT everything the node is; returns when none of it is stopped."""
        node, pod = self._started(name)
        if pod.alive:
            await self._asked(node, "signalled", "CONT", "[!Tt]")
        pod.paused = False

    def state(self, name: str) -> ProcessState:
        """What the node's process does now, as its container last said.

        Raises ``HarnessError`` where nothing is heard of pods any more, they are not reached, or nobody guards them.
        """
        self._pods.refuse_unwatched()
        if self._guard is not None:
            self._guard.refuse_dead()
        if self._forwards is not None:
            self._forwards.refuse_failed()
        node = self._nodes.get(name)
        return self._pods[node.pod].state if node else ProcessState.ABSENT

    def exit_code(self, name: str) -> int | None:
        """The exit code of a process that ended (negative: the signal), else ``None``."""
        node = self._nodes.get(name)
        pod = self._pods[node.pod] if node else None
        return None if pod is None or pod.alive else pod.code

    def ended_by(self, name: str) -> str:
        """What outside of it ended a node's process: its memory, its container or its pod; nothing where unknown."""
        node = self._nodes.get(name)
        return self._pods[node.pod].ended_by if node else ""

    def machine_lost(self, name: str) -> str:
        """That the machine of a node's pod was not ready since that was placed, and since when; it may be back.

        Or that somebody ended its pod and the next one went on: it was down meanwhile, and by no doing of its own.
        """
        node = self._nodes.get(name)
        return (self._machines.lost(node.pod) or self._pods[node.pod].went_on) if node else ""

    # ---- looking --------------------------------------------------------------------------------------------------

    def machine(self, name: str) -> str:
        """The machine that a node's pod is on, by its name; empty where it is on none."""
        node = self._nodes.get(name)
        return self._machines.of(node.pod) if node else ""

    def limits(self, name: str) -> Mapping[str, float]:
        """What the container's control group lets it use now. Raises ``HarnessError`` when nothing runs in it."""
        node, pod = self._started(name)
        if pod.state is not ProcessState.RUNNING:
            raise HarnessError(f"{self._cluster}: {name} has no limits, it is {pod.state}")
        return commands.limits(node.looks.ask("limits")[1], name)

    def cpu_seconds(self) -> float:
        """CPU that the containers of all nodes and services that run have used, in seconds.

        Raises ``HarnessError`` where one does not say it: any other figure in its place would make up what was used.
        """
        return sum(self._cpu(node) for node in self._nodes.values() if self._pods[node.pod].alive)

    def _cpu(self, node: Node) -> float:
        code, said = node.looks.ask("cpu")
        try:
            return int(said) / 1e9
        except ValueError:
            name = node.placement.node.name
            raise HarnessError(f"{self._cluster}: the CPU of {name} cannot be read ({code}): {said}") from None

    def clock(self, name: str) -> Reading:
        """The clock of the machine that the node's pod runs on. Raises ``HarnessError`` where it cannot be read."""
        node = self._node(name)
        if not self._pods[node.pod].ready:
            raise HarnessError(f"{self._cluster}: the clock of {name} cannot be read: it has no pod that runs")
        return commands.reading(node.looks.ask("eval", commands.CLOCK)[1], name)

    def free_bytes(self, name: str) -> int | None:
        """Room in the node's volume; ``None`` where nobody says."""
        node = self._node(name)
        if not self._pods[node.pod].ready:
            return None
        with suppress(HarnessError, ValueError, IndexError):
            return int(node.looks.ask("df", "-Pk", str(BASE))[1].splitlines()[-1].split()[3]) * 1024
        return None

    def log_tail(self, name: str, lines: int = 20) -> str:
        """The last lines the node wrote, for messages; empty if it wrote none or cannot be asked."""
        node = self._nodes.get(name)
        if node is None or node.output is None or not self._pods[node.pod].ready:
            return ""
        with suppress(HarnessError):
            code, said = node.looks.ask("tail", "-n", str(lines), str(node.output))
            return "" if code else said.rstrip("\n")
        return ""

    # ---- links ----------------------------------------------------------------------------------------------------

    async def cut(self, sender: str, receiver: str) -> str:
        """Have all that one sends to the other vanish; see ``Substrate.cut``. Pods that are made anew are not cut."""
        if self._links is None:
            raise HarnessError(f"{self._cluster}: {sender} and {receiver}: links between pods cannot be cut")
        if sender == receiver:
            raise HarnessError(f"{self._cluster}: there is no link between {sender} and {receiver}")
        proof = await self._links.cut(*[self._pods[(await self._up(name)).pod] for name in (sender, receiver)])
        return f"{sender} to {receiver}: {proof}"

    async def heal(self, sender: str, receiver: str) -> None:
        """Undo ``cut``; nothing where nothing is cut. Raises ``HarnessError`` too where it was not cut all the time."""
        ends = [self._pod(name) for name in (sender, receiver)]
        if self._links is not None and self._links.has(*ends):
            await asyncio.gather(*(self._up(name) for name in (sender, receiver)))
            await self._links.heal(*ends)


class _Heart:
    """Asks a node's container until ``stop`` whether it answers: what is heard of a command comes the same way."""

    def __init__(self, node: Node) -> None:
        self._node, self._longest_s = node, 0.0
        self._asked: float | None = None
        self._beats = asyncio.create_task(self._beat())

    async def _beat(self) -> None:
        while True:
            self._asked = time.monotonic()
            with suppress(HarnessError):  # which took its time, too
                await asyncio.to_thread(self._node.looks.ask, "eval", ":")
            self._longest_s, self._asked = self.silent_s, None
            await asyncio.sleep(_BEAT_S)

    @property
    def silent_s(self) -> float:
        """For how long it did not answer, at the most; a question that has no answer yet counts."""
        return max(self._longest_s, 0.0 if self._asked is None else time.monotonic() - self._asked)

    async def stop(self) -> None:
        """Ask no more; what was asked last is not waited for."""
        self._beats.cancel()
        await asyncio.wait({self._beats})


async def run_here(argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> Completed:
    """Run a command to its end on the machine of the harness; what it leaves running is killed. Raises ``BadInput``.

    It ends with the harness, however that ends: a drain that went on would be of a cluster that is somebody's.
    """
    program = shutil.which(argv[0], path=env.get("PATH"))
    if program is None:
        raise BadInput(f"{argv[0]}: no such program, or not executable; name one of this machine")
    process = await asyncio.create_subprocess_exec(
        *dying_with_us([program, *argv[1:]]),
        env=dict(env),
        cwd=cwd,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = await process.communicate()
        assert process.returncode is not None
        return Completed(code=process.returncode, out=out.decode(errors="replace"), err=err.decode(errors="replace"))
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
