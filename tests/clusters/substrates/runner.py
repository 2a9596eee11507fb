"""The substrate ``runner``: the same processes behind a command runner, each with paths of its own, as in a container.

Every node sees its own directory as ``/srv`` and nobody else's; programs are put below it. ``-p
tests.clusters.substrates.runner`` registers it with pytest, for ``--substrate runner``.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from functools import cache
from pathlib import Path, PurePath
from typing import BinaryIO

from clusters.clocks import Reading
from clusters.errors import BadInput, HarnessError
from clusters.model import (
    Capability,
    Completed,
    NodeSpec,
    Placement,
    ProcessSpec,
    ProcessState,
)
from clusters.substrates import SUBSTRATES, SubstrateKind
from clusters.substrates.processes import Processes

INSIDE = PurePath("/srv")
ENTER = (sys.executable, "-I", "-S", str(Path(__file__).with_name("enter.py")))


@cache
def why_not() -> str:
    """Why no process can be given paths of its own on this machine; nothing where one can: tried once, for real."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "seen").touch()
        argv = [*ENTER, directory, str(INSIDE), "/", "/bin/ls", str(INSIDE)]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    return "" if done.stdout == "seen\n" else f"mount namespaces do not work here: {done.stderr.strip()}"


class Runner:
    """Hands everything on to ``Processes``, with paths translated."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self._homes: dict[str, Path] = {}
        self._programs: dict[str, Path] = {}
        self.scratch = processes.scratch
        self.kind = KIND

    @property
    def capabilities(self) -> frozenset[Capability]:
        return self._processes.capabilities

    def _taken_in(self, placement: Placement) -> Placement:
        home = self._homes[placement.node.name] = Path(placement.home)
        home.joinpath("programs").mkdir(exist_ok=True)
        for name, program in self._programs.items():
            self._link(home, name, program)
        return replace(placement, home=INSIDE, store=INSIDE / "store", logs=INSIDE / "logs")

    @staticmethod
    def _link(home: Path, name: str, program: Path) -> None:
        place = home / "programs" / name
        if not place.is_symlink():
            place.symlink_to(program)

    def _outside(self, name: str, path: PurePath) -> PurePath:
        """What the machine calls a path of the node; one that the node has not is left to be refused."""
        home = self._homes.get(name)
        return home / path.relative_to(INSIDE) if home and path.is_relative_to(INSIDE) else path

    def _entered(self, name: str, argv: Sequence[str], cwd: PurePath) -> tuple[str, ...]:
        program = Path(self._outside(name, PurePath(argv[0])))
        if not program.is_file() or not os.access(program, os.X_OK):
            raise BadInput(f"{argv[0]}: no such file in {name}, or not executable; name a program that it has")
        return (*ENTER, str(self._homes[name]), str(INSIDE), str(cwd), *argv)

    async def place(self, nodes: Sequence[NodeSpec]) -> tuple[Placement, ...]:
        return tuple(map(self._taken_in, await self._processes.place(nodes)))

    async def beside(self, name: str) -> Placement:
        return self._taken_in(await self._processes.beside(name))

    async def present(self, program: Path, *, runs: Path | None = None) -> PurePath:
        name = f"{len(self._programs)}-{program.name}"
        self._programs[name] = program
        for home in self._homes.values():
            self._link(home, name, program)
        return INSIDE / "programs" / name

    async def put(self, name: str, path: PurePath, content: bytes) -> None:
        await self._processes.put(name, self._outside(name, path), content)

    async def archive(self, name: str, directory: PurePath, into: BinaryIO) -> None:
        await self._processes.archive(name, self._outside(name, directory), into)

    async def extract(self, name: str, directory: PurePath, out_of: BinaryIO) -> None:
        await self._processes.extract(name, self._outside(name, directory), out_of)

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
        if node in self._homes:
            argv, cwd = self._entered(node, argv, cwd or INSIDE), self._homes[node]
        return await self._processes.run(argv, env=env, timeout=timeout, node=node, cwd=cwd, unprivileged=unprivileged)

    async def start(self, spec: ProcessSpec) -> None:
        if (home := self._homes.get(spec.name)) is not None:
            output, argv = (
                self._outside(spec.name, spec.output),
                self._entered(spec.name, spec.argv, spec.cwd),
            )
            spec = replace(spec, argv=argv, cwd=home, output=output)
        await self._processes.start(spec)

    async def stop(self, name: str, *, timeout: float) -> int:
        return await self._processes.stop(name, timeout=timeout)

    async def signal(self, name: str, signum: int) -> None:
        await self._processes.signal(name, signum)

    async def kill(self, name: str) -> None:
        await self._processes.kill(name)

    async def delete_pod(self, name: str) -> str:
        return await self._processes.delete_pod(name)

    async def pause(self, name: str) -> None:
        await self._processes.pause(name)

    async def resume(self, name: str) -> None:
        await self._processes.resume(name)

    def state(self, name: str) -> ProcessState:
        return self._processes.state(name)

    def exit_code(self, name: str) -> int | None:
        return self._processes.exit_code(name)

    def ended_by(self, name: str) -> str:
        return self._processes.ended_by(name)

    def machine_lost(self, name: str) -> str:
        return self._processes.machine_lost(name)

    async def cut(self, sender: str, receiver: str) -> str:
        return await self._processes.cut(sender, receiver)

    async def heal(self, sender: str, receiver: str) -> None:
        await self._processes.heal(sender, receiver)

    def limits(self, name: str) -> Mapping[str, float]:
        return self._processes.limits(name)

    def cpu_seconds(self) -> float:
        return self._processes.cpu_seconds()

    def clock(self, name: str) -> Reading:
        """As a node is asked that is elsewhere: by a command, of a clock that nobody knows to be ours."""
        if name not in self._homes:
            raise HarnessError(f"{name} was never placed")
        argv = [*ENTER, str(self._homes[name]), str(INSIDE), str(INSIDE), "/bin/date", "+%s.%N"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True)
        return Reading(clock=f"clock of {name}", seconds=float(done.stdout))

    def free_bytes(self, name: str) -> int | None:
        return self._processes.free_bytes(name)

    async def wipe(self, name: str) -> None:
        await self._processes.wipe(name)

    def log_tail(self, name: str, lines: int = 20) -> str:
        return self._processes.log_tail(name, lines)

    async def close(self, *, keep: bool = False) -> None:
        await self._processes.close(keep=keep)


def _offered(asked: Set[Capability]) -> frozenset[Capability]:
    return frozenset() if why_not() else SUBSTRATES["processes"].offered(asked - {Capability.CUT_LINKS})


async def _open(
    *,
    name: str,
    workdir: Path,
    needed: Set[Capability],
    capacity: int,
    nodes: object,
    resources: object,
    say: Callable[[str], None],
    keep: bool,
    keep_logs: Path | None,
) -> Runner:
    processes = await Processes.open(
        name=name, workdir=workdir, capacity=capacity, say=say, keep=keep, keep_logs=keep_logs
    )
    return Runner(processes)


KIND = SubstrateKind(name="runner", offered=_offered, why_not=lambda _: why_not(), open=_open)
SUBSTRATES.modules["runner"] = __name__
