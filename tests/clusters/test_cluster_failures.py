"""What goes wrong on real processes is said at once, in words, and leaves nothing behind."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from clusters.cluster import Cluster
from clusters.engines import Deployment, Engine
from clusters.engines.cockroach.access import SQL_PORT
from clusters.errors import BadInput, HarnessError, NodeDied, TimedOut
from clusters.faults.disturbance import disturb
from clusters.faults.node import KILL
from clusters.model import Health, NodeSpec, Placement, ProcessSpec, ProcessState, Topology
from clusters.substrates import Nodes
from clusters.substrates.processes import Processes, proctree
from clusters.waiting import wait_until
from tests.clusters.real_cockroach import RESOURCES, ask, cockroach
from tests.clusters.substrates.processes.process_nodes import PATIENCE_S


@dataclass
class Twisted:
    """An engine like another, with something wrong: before its processes start, or in how they are started."""

    engine: Any = field(default_factory=cockroach)
    before: Callable[[Sequence[Placement]], None] = lambda _: None
    process: Callable[[ProcessSpec], ProcessSpec] = lambda spec: spec
    bootstrap: Callable[[], Any] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def deploy(self, nodes: Sequence[NodeSpec], **how: Any) -> Deployment:
        deployment = self.engine.deploy(nodes, **how)
        prepare, process = deployment.prepare, deployment.process

        async def prepare_and_twist(placements: Sequence[Placement], nodes: Nodes) -> None:
            await prepare(placements, nodes)
            self.before(placements)

        deployment.prepare = prepare_and_twist
        deployment.process = lambda node: self.process(process(node))
        if self.bootstrap is not None:
            deployment.bootstrap = self.bootstrap
        return cast("Deployment", deployment)


@asynccontextmanager
async def provisioned(workdir: Path, engine: object, *, nodes: int = 1) -> AsyncIterator[Cluster]:
    """A cluster, of one node if not said otherwise; afterwards nothing of it is left."""
    substrate = await Processes.open(name="failing", workdir=workdir, say=print)
    try:
        yield await Cluster.provision(
            engine=cast("Engine", engine),
            substrate=substrate,
            topology=Topology(name="t", nodes=tuple(NodeSpec(name=f"n{i + 1}") for i in range(nodes))),
            resources=RESOURCES,
            tuned=True,
        )
    finally:
        await substrate.close()
        assert left_in(workdir) == []


async def fails_to_start(workdir: Path, engine: object, *, nodes: int = 1) -> str:
    """What is said of a cluster that does not start, before the time for a start is over."""
    with pytest.raises(HarnessError) as caught:
        async with provisioned(workdir, engine, nodes=nodes):
            pytest.fail("it started")
    assert not isinstance(caught.value, TimedOut)
    return str(caught.value)


def left_in(directory: Path) -> list[object]:
    """Files in a directory, and processes that work there."""
    working = [pid for pid in proctree.snapshot() if proctree.inside(pid, str(directory))]
    return [*directory.iterdir(), *working]


def occupy(server: socket.socket, address: str) -> None:
    """Listen on the SQL port of an address."""
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((address, SQL_PORT))
    server.listen()


async def dies(cluster: Cluster, node: str) -> None:
    async def dead() -> Health:
        return Health(ok=cluster.substrate.state(node) is ProcessState.EXITED)

    await wait_until(f"{node} to die", dead, timeout=PATIENCE_S)


async def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with contextlib.ExitStack() as taken:

        def take(placements: Sequence[Placement]) -> None:
            taken.enter_context(socket.create_server((placements[1].address, SQL_PORT)))

        said = await fails_to_start(tmp_path, Twisted(before=take), nodes=2)
    assert said.startswith("n2 ended with exit code 1, let down by this machine (address already in use)")
    assert f":{SQL_PORT}: bind: address already in use" in said


async def test_a_flag_that_the_server_does_not_know(tmp_path: Path) -> None:
    twisted = Twisted(process=lambda spec: replace(spec, argv=(*spec.argv, "--no-such-flag")))
    said = await fails_to_start(tmp_path, twisted)
    assert said.startswith("n1 ended with exit code ")
    assert said.rstrip().endswith('ERROR: unknown flag: --no-such-flag\nFailed running "start"')


async def test_a_store_that_is_corrupt(tmp_path: Path) -> None:
    def corrupt(placements: Sequence[Placement]) -> None:
        store = Path(placements[0].store)
        store.joinpath("CURRENT").write_text("MANIFEST-000009\n")
        store.joinpath("marker.manifest.000001.MANIFEST-000009").touch()  # what later versions have instead
        store.joinpath("MANIFEST-000009").write_bytes(b"x" * 100)

    said = await fails_to_start(tmp_path, Twisted(before=corrupt))
    assert said.startswith("n1 ended with exit code ")
    assert 'malformed manifest file "MANIFEST-000009"' in said


async def test_a_program_that_is_no_server(tmp_path: Path) -> None:
    def instead(path: str) -> Twisted:
        return Twisted(process=lambda spec: replace(spec, argv=(path, *spec.argv[1:])))

    said = await fails_to_start(tmp_path, instead("/bin/true"))
    assert "n1 ended with exit code 0, by itself" in said
    with pytest.raises(BadInput, match="/no/such/cockroach: no such file"):
        async with provisioned(tmp_path, instead("/no/such/cockroach"), nodes=3):
            pytest.fail("it started")


async def test_a_cluster_that_cannot_be_made_of_its_nodes(tmp_path: Path) -> None:
    """Neither a time-out of the bootstrap's own nor any other error of it is waited for until the end."""

    async def times_out() -> None:
        await asyncio.sleep(0.1)
        raise TimeoutError("of its own")

    said = await fails_to_start(tmp_path, Twisted(bootstrap=times_out))
    assert "TimeoutError of its own" in said


async def test_a_start_that_is_cancelled(tmp_path: Path) -> None:
    for seconds in (0.1, 0.8, 1.5):

        async def start() -> None:
            async with provisioned(tmp_path, Twisted(bootstrap=lambda: asyncio.sleep(1000))):
                pytest.fail("it started")

        task = asyncio.create_task(start())
        await asyncio.sleep(seconds)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert left_in(tmp_path) == []


async def test_a_disk_that_is_full(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    binary = str(cockroach().binary.path)
    mount = f'mount -t tmpfs -o size=4m none {small} && exec "$@"'
    process = await asyncio.create_subprocess_exec(
        *("unshare", "-Urm", "sh", "-c", mount, "sh"),
        *(sys.executable, str(Path(__file__).with_name("full_disk.py")), binary, str(small)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        # In there we are root, and the directory that root uses by default may be somebody else's out here.
        env={**os.environ, "ROACHPROOF_STATE": str(tmp_path / "state")},
    )
    try:
        async with asyncio.timeout(120):
            out, _ = await process.communicate()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    said = out.decode()
    if said.startswith(("unshare:", "mount:")):
        pytest.skip(f"no file system can be mounted here: {said.strip()}")
    assert "HarnessError: n1 ended with exit code" in said
    assert "let down by this machine (" in said


async def test_whose_fault_the_end_of_a_running_node_is(tmp_path: Path) -> None:
    async with provisioned(tmp_path, cockroach()) as cluster:
        await cluster.substrate.signal("n1", signal.SIGABRT)
        await dies(cluster, "n1")
        died: pytest.ExceptionInfo[Exception]
        with pytest.raises(NodeDied, match=r"n1 ended with exit code .*, by itself") as died:
            await cluster.healthy()
        assert "SIGABRT" in str(died.value), "the crash itself stands in a log of its own"

        await cluster.restart("n1")
        await cluster.substrate.signal("n1", signal.SIGKILL)
        await dies(cluster, "n1")
        with pytest.raises(HarnessError, match="n1 ended with exit code -9, by a SIGKILL that was not sent") as died:
            await cluster.healthy()
        assert "SIGABRT" not in str(died.value), "that was the crash before"

        await cluster.restart("n1")
        assert isinstance(cluster.substrate, Processes)
        for guard in reversed(cluster.substrate.guards):
            os.kill(guard, signal.SIGKILL)
        await dies(cluster, "n1")
        with pytest.raises(HarnessError, match=r"n1 ended (unseen|with exit code -9, by a SIGKILL)"):
            await cluster.healthy()


async def test_a_test_that_is_cancelled_in_a_fault_leaves_a_whole_cluster(tmp_path: Path) -> None:
    async with provisioned(tmp_path, cockroach()) as cluster:
        async with await cluster.deployment.connect() as connection:
            await connection.execute("CREATE TABLE kept AS SELECT 7 AS x")
        hurt = asyncio.Event()

        async def test() -> None:
            async with disturb(cluster, KILL, ["n1"]):
                hurt.set()
                await asyncio.sleep(1000)

        task = asyncio.create_task(test())
        await hurt.wait()
        assert cluster.down == {"n1"}
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not cluster.down
        cluster.watch()
        assert [tuple(row) for row in await ask(cluster, "SELECT x FROM kept")] == [(7,)]


async def test_an_undo_that_fails_is_said(tmp_path: Path) -> None:
    """The node's address is taken while it is dead."""
    async with provisioned(tmp_path, cockroach()) as cluster:
        address = cluster.endpoints[0].hosts[0].address
        said = pytest.raises(HarnessError, match=r"kill could not be undone: n1 ended .*already in use")
        with socket.socket() as server, said:
            async with disturb(cluster, KILL, ["n1"]):
                occupy(server, address)
