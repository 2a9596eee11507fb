"""An engine and a substrate in memory, whose orders take a moment and can be made to fail."""

import asyncio
import pickle
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, BinaryIO

from msgspec import to_builtins

from clusters import clocks
from clusters.clocks import Reading
from clusters.cluster import Cluster
from clusters.engines import Engine, EngineKind
from clusters.errors import BadInput, HarnessError
from clusters.events import Happened
from clusters.model import (
    Capability,
    Completed,
    Health,
    Layout,
    NodeGauges,
    NodeResources,
    NodeSpec,
    Placement,
    ProcessSpec,
    ProcessState,
    RangeInfo,
    RunningVersion,
    SqlTraits,
    Topology,
)
from clusters.substrates import SubstrateKind

RESOURCES = NodeResources(cache_mib=1, sql_memory_mib=1)


def _nothing(*_: object, **__: object) -> Any:
    raise HarnessError("a fake is made, not found")


def placement_of(node: NodeSpec) -> Placement:
    home = PurePath("/nodes", node.name)
    return Placement(
        node=node,
        address=f"{node.name}.nodes",
        client_address=f"{node.name}.clients",
        home=home,
        store=home / "store",
        logs=home / "logs",
    )


class FakeSubstrate:
    """Processes that are words in a dictionary: refuses what every substrate does (``tests.clusters.substrates``).

    ``fails`` maps an order (``kill n1``) to how often it is refused.

    A refused order did half of its work: ``half`` says whether the node was dead by then.
    """

    kind = SubstrateKind(name="fake", offered=frozenset, why_not=lambda _: "", open=_nothing)
    capabilities = frozenset(Capability)
    scratch = Path("/nonexistent")

    def __init__(self) -> None:
        self.states: dict[str, ProcessState] = {}
        self.files: dict[PurePath, bytes] = {}
        self.free: dict[str, int | None] = {}
        self.clocks: dict[str, Reading] = {}
        self.codes: dict[str, int | None] = {}
        self.last_words: dict[str, str] = {}
        self.outside: dict[str, str] = {}
        self.lost: dict[str, str] = {}
        self.wiped: set[str] = set()
        self.placed: set[str] = set()
        self.services: set[str] = set()
        self.cut_links: set[tuple[str, str]] = set()
        self.fails: dict[str, int] = {}
        self.half = False
        self.orders: list[str] = []
        self.closed = False

    def _open(self) -> None:
        if self.closed:
            raise HarnessError("the cluster is closed")

    def placement_of(self, name: str) -> None:
        self._open()
        if name not in self.placed:
            raise HarnessError(f"{name} was never placed")

    def _new(self, name: str) -> None:
        if name in self.placed or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", name):
            raise BadInput(f"node name {name!r}: must be new to the cluster, and a file name of at most 63")

    def _started(self, name: str) -> ProcessState:
        self._open()
        if (state := self.state(name)) is ProcessState.ABSENT:
            raise HarnessError(f"{name} was never started")
        return state

    async def _order(self, op: str, name: str, becomes: ProcessState, code: int | None) -> None:
        order = f"{op} {name}"
        self.orders.append(order)
        await asyncio.sleep(0)
        refused = self.fails.get(order, 0) > 0
        if not refused or self.half:
            self.states[name], self.codes[name] = becomes, code
        if refused:
            self.fails[order] -= 1
            raise HarnessError(f"{order} was refused")
        await asyncio.sleep(0)

    async def place(self, nodes: Sequence[NodeSpec]) -> tuple[Placement, ...]:
        self._open()
        for node in nodes:
            self._new(node.name)
            self.placed.add(node.name)
        return tuple(map(placement_of, nodes))

    async def beside(self, name: str) -> Placement:
        self._open()
        if not self.placed:
            raise HarnessError(f"no node was placed beside which {name} could be")
        if name not in self.services:
            self._new(name)
            self.services.add(name)
            self.placed.add(name)
        return placement_of(NodeSpec(name=name))

    async def present(self, program: Path, *, runs: Path | None = None) -> PurePath:
        return PurePath("/programs", program.name)

    def _inside(self, name: str, path: PurePath) -> None:
        self.placement_of(name)
        if not path.is_relative_to(placement_of(NodeSpec(name=name)).home) or ".." in path.parts:
            raise HarnessError(f"{path} is not in the home of {name}")

    async def put(self, name: str, path: PurePath, content: bytes) -> None:
        self._inside(name, path)
        self.files[path] = content

    async def archive(self, name: str, directory: PurePath, into: BinaryIO) -> None:
        self._inside(name, directory)
        found = {str(p.relative_to(directory)): c for p, c in self.files.items() if directory in p.parents}
        if not found:
            raise HarnessError(f"{directory}: no such directory")
        pickle.dump(found, into)

    async def extract(self, name: str, directory: PurePath, out_of: BinaryIO) -> None:
        self._inside(name, directory)
        if any(directory in path.parents for path in self.files):
            raise HarnessError(f"{directory} is not empty")
        out_of.seek(0)
        self.files |= {directory / path: content for path, content in pickle.load(out_of).items()}

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
        self._open()
        if node is not None:
            self.placement_of(node)
        return Completed(code=0, out="", err="")

    async def start(self, spec: ProcessSpec) -> None:
        self.placement_of(spec.name)
        if self.state(spec.name) in (ProcessState.RUNNING, ProcessState.PAUSED):
            raise HarnessError(f"{spec.name} runs already")
        await self._order("start", spec.name, ProcessState.RUNNING, None)

    def clock(self, name: str) -> Reading:
        self.placement_of(name)
        return self.clocks.get(name, clocks.here())

    def free_bytes(self, name: str) -> int | None:
        return self.free.get(name, 1 << 40)

    async def signal(self, name: str, signum: int) -> None:
        if self._started(name) is not ProcessState.EXITED:
            await self._order("signal", name, ProcessState.EXITED, -signum)

    async def stop(self, name: str, *, timeout: float) -> int:
        code = self.codes[name] if self._started(name) is ProcessState.EXITED else 0
        await self._order("stop", name, ProcessState.EXITED, code)
        return code or 0

    async def kill(self, name: str) -> None:
        code = self.codes[name] if self._started(name) is ProcessState.EXITED else -9
        await self._order("kill", name, ProcessState.EXITED, code)

    async def delete_pod(self, name: str) -> str:
        self._started(name)
        await self._order("delete", name, ProcessState.EXITED, -9)
        return f"pod of {name} deleted"

    async def pause(self, name: str) -> None:
        if self._started(name) is ProcessState.EXITED:
            raise HarnessError(f"{name} cannot be paused, it is exited")
        await self._order("pause", name, ProcessState.PAUSED, None)

    async def resume(self, name: str) -> None:
        if self._started(name) is not ProcessState.EXITED:
            await self._order("resume", name, ProcessState.RUNNING, None)

    def state(self, name: str) -> ProcessState:
        return self.states.get(name, ProcessState.ABSENT)

    def limits(self, name: str) -> Mapping[str, float]:
        if self.state(name) is not ProcessState.RUNNING:
            raise HarnessError(f"{name} has no limits, it is {self.state(name)}")
        return {"cpus": 1.0}

    def exit_code(self, name: str) -> int | None:
        return self.codes.get(name)

    def ended_by(self, name: str) -> str:
        return self.outside.get(name, "")

    def machine_lost(self, name: str) -> str:
        return self.lost.get(name, "")

    async def cut(self, sender: str, receiver: str) -> str:
        await self._link("cut", sender, receiver)
        return f"{sender} to {receiver} lost"

    async def heal(self, sender: str, receiver: str) -> None:
        await self._link("heal", sender, receiver)

    async def _link(self, op: str, sender: str, receiver: str) -> None:
        for name in (sender, receiver):
            self.placement_of(name)
        if sender == receiver:
            raise HarnessError(f"there is no link between {sender} and {receiver}")
        order = f"{op} {sender} {receiver}"
        self.orders.append(order)
        await asyncio.sleep(0)
        refused = self.fails.get(order, 0) > 0
        if not refused or self.half:
            (self.cut_links.add if op == "cut" else self.cut_links.discard)((sender, receiver))
        if refused:
            self.fails[order] -= 1
            raise HarnessError(f"{order} was refused")

    def cpu_seconds(self) -> float:
        return 0.0

    async def wipe(self, name: str) -> None:
        self.orders.append(f"wipe {name}")
        self.placement_of(name)
        if self.state(name) in (ProcessState.RUNNING, ProcessState.PAUSED):
            raise HarnessError(f"the store of {name} is in use")
        self.wiped.add(name)
        store = placement_of(NodeSpec(name=name)).store
        self.files = {path: content for path, content in self.files.items() if store not in path.parents}

    def log_tail(self, name: str, lines: int = 20) -> str:
        return self.last_words.get(name, "")

    async def close(self, *, keep: bool = False) -> None:
        self.states.clear()
        self.closed = True


class FakeDeployment:
    """Nodes take clients when they run, unless they are ``deaf``; a ``ghost`` answers when it should not."""

    endpoints: tuple[Any, ...] = ()
    services: tuple[ProcessSpec, ...] = ()
    tuned: tuple[str, ...] = ()
    credentials: Any = None
    administrator: Any = None
    backups: Any = None

    def __init__(self, substrate: FakeSubstrate, nodes: Sequence[NodeSpec]) -> None:
        self._substrate = substrate
        self._nodes = [node.name for node in nodes]
        self.deaf: set[str] = set()
        self.ghost = False
        self.forgotten: list[str] = []
        self.given: dict[str, NodeResources] = {}
        self.installed: dict[str, str] = {}
        self.final = False
        self.licensed = True

    def process(self, node: str) -> ProcessSpec:
        nowhere = Path("/nonexistent")
        return ProcessSpec(name=node, argv=("/nonexistent",), env={}, cwd=nowhere, output=nowhere)

    async def prepare(self, placements: object, nodes: object) -> None:
        pass

    async def place(self, placement: Placement) -> None:
        self._nodes.append(placement.node.name)

    async def withdraw(self, node: str) -> None:
        self._nodes.remove(node)

    async def bootstrap(self) -> None:
        pass

    async def refusal(self, node: str) -> str | None:
        return "refused"

    async def give(self, node: str, resources: NodeResources) -> None:
        self.given[node] = resources

    async def shown(self, node: str) -> Mapping[str, float]:
        if node in self.deaf:
            raise HarnessError(f"{node} does not answer")
        return {"cache_mib": self.given.get(node, RESOURCES).cache_mib}

    async def install(self, node: str, engine: Engine) -> None:
        self.installed[node] = engine.version

    async def running(self, node: str) -> RunningVersion:
        if node in self.deaf:
            raise HarnessError(f"{node} does not answer")
        return RunningVersion(build=self.installed.get(node, "v0"), able="0", active="0")

    async def licence(self, new: str) -> Health:
        return Health(ok=self.licensed, why="it has one" if self.licensed else f"{new} needs a licence key: give one")

    async def keep_version(self) -> str:
        return "0"

    async def finalise(self, *, timeout: float) -> None:
        self.final = True

    async def observe(self) -> Mapping[str, Any]:
        return {}

    async def accepting(self, node: str) -> Health:
        await asyncio.sleep(0)
        up = self._substrate.state(node) is ProcessState.RUNNING and node not in self.deaf
        return Health(ok=up or self.ghost, why="" if up else "refused")

    async def healthy(self) -> Health:
        for node in self._nodes:
            if not (answer := await self.accepting(node)).ok:
                return answer
        return Health(ok=True)

    async def connect(self, node: str | None = None, *, timeout: float = 5.0) -> Any:
        raise HarnessError("nothing to connect to")

    async def spread(self, table: str, column: str, values: Sequence[int]) -> None:
        pass

    async def ranges(self, table: str) -> tuple[RangeInfo, ...]:
        return ()

    async def layout(self) -> Layout:
        return Layout(replicas={1: frozenset(self._nodes)}, source="fake")

    async def gauges(self) -> Mapping[str, NodeGauges]:
        return {node: NodeGauges() for node in self._nodes}

    async def by_hand(self, seconds: float) -> Mapping[str, int]:
        return {}

    async def moves(self, seconds: float) -> Mapping[str, int]:
        return {}

    async def drain(self, node: str, *, timeout: float) -> None:
        await asyncio.sleep(0)

    async def forget(self, node: str) -> None:
        self.forgotten.append(node)

    async def remove(self, node: str, *, timeout: float) -> None:
        self._nodes.remove(node)


class FakeEngine:
    """Deploys on the substrate it was made for."""

    kind = EngineKind(
        name="fake",
        title="Fake",
        capabilities=frozenset(Capability),
        find=_nothing,
        sql=SqlTraits(),
        keeps_out=("too old for this cluster",),
    )
    sql = kind.sql
    generator = None
    program = Path("/nonexistent")
    detection_s = 0.1
    fingerprint: Mapping[str, Any] = {}

    def __init__(self, substrate: FakeSubstrate, version: str = "v0") -> None:
        self._substrate = substrate
        self.version = version

    def deploy(self, nodes: Sequence[NodeSpec], *, resources: NodeResources, tuned: bool) -> FakeDeployment:
        return FakeDeployment(self._substrate, nodes)


class Fake:
    """A running cluster of three, with what it is made of."""

    def __init__(self) -> None:
        self.substrate = FakeSubstrate()
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.record_fails: Callable[[str], bool] = lambda _: False
        self.cluster: Cluster
        self.deployment: FakeDeployment

    def record(self, what: Happened) -> None:
        data = to_builtins(what)
        name = data.pop("event")
        if self.record_fails(name):
            raise HarnessError(f"{name} could not be recorded")
        self.events.append((name, data))

    @property
    def names(self) -> list[str]:
        """The names of the events so far."""
        return [name for name, _ in self.events]

    async def up(self) -> "Fake":
        self.cluster = await Cluster.provision(
            engine=FakeEngine(self.substrate),
            substrate=self.substrate,
            topology=Topology(name="t", nodes=tuple(NodeSpec(name=f"n{i}") for i in (1, 2, 3))),
            resources=RESOURCES,
            tuned=False,
            record=self.record,
        )
        assert isinstance(self.cluster.deployment, FakeDeployment)
        self.deployment = self.cluster.deployment
        return self
