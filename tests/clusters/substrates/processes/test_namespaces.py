"""A network namespace a node: links are cut and healed on real traffic, and nothing of it outlives a cluster."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from clusters.errors import HarnessError
from clusters.model import Capability, NodeSpec, Placement, ProcessSpec
from clusters.substrates.processes import Processes, leases, namespaces, network, proctree
from tests.clusters.substrates.processes.process_nodes import PATIENCE_S, eventually, leader

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[3]
PORT = 7000
CAP_NET_ADMIN = 12
SILENT_S = 0.5
"""For what must not come at all."""

needs_namespaces = pytest.mark.skipif(
    namespaces.forbidden() is not None, reason=f"links cannot be cut here: {namespaces.forbidden()}"
)


pytestmark = pytest.mark.usefixtures("state")


class Peers:
    """Nodes that talk to each other, and what each says when it is asked."""

    def __init__(self, place: Processes, placements: Sequence[Placement]) -> None:
        self.place = place
        self.placements = {placement.node.name: placement for placement in placements}
        self.addresses = {placement.node.name: placement.address for placement in placements}

    async def ask(self, node: str, *words: str, seconds: float = PATIENCE_S) -> str:
        """A ping is waited for so many seconds."""
        words = tuple(self.addresses.get(word, word) for word in words)
        if words[0] in ("new", "kept"):
            words = (*words, str(seconds))
        reader, writer = await asyncio.open_connection(self.addresses[node], PORT)
        try:
            writer.write((" ".join(words) + "\n").encode())
            return (await asyncio.wait_for(reader.readline(), seconds + PATIENCE_S)).decode().strip()
        finally:
            writer.transport.abort()

    async def said(self, *questions: tuple[str, ...], seconds: float = PATIENCE_S) -> list[str]:
        return list(await asyncio.gather(*(self.ask(*question, seconds=seconds) for question in questions)))


def peer(at: Placement) -> ProcessSpec:
    return ProcessSpec(
        name=at.node.name,
        argv=(sys.executable, "-I", "-S", str(HERE / "peer.py"), at.address),
        env={},
        cwd=at.home,
        output=at.logs / "out",
    )


@asynccontextmanager
async def talking(tmp_path: Path, *, nodes: int = 3) -> AsyncIterator[Peers]:
    place = await Processes.open(name="test", workdir=tmp_path / "work", slots=4, namespaces=True)
    try:
        if place.cannot_cut is not None:
            pytest.skip(f"links cannot be cut here: {place.cannot_cut}")
        placements = await place.place([NodeSpec(name=f"n{i}") for i in range(1, nodes + 1)])
        for placement in placements:
            await place.start(peer(placement))
        peers = Peers(place, placements)
        for placement in placements:
            await eventually(lambda at=placement: accepts(at.address))  # type: ignore[misc]
        yield peers
    finally:
        await place.close()
        assert devices(place.directory) == []


def accepts(address: str) -> bool:
    with suppress(OSError), socket.create_connection((address, PORT), timeout=5):
        return True
    return False


def devices(directory: Path) -> list[str]:
    """The host's ends of a cluster's network."""
    return [name for _, name in socket.if_nameindex() if name == f"rp-{directory.name[-8:]}"]


@needs_namespaces
async def test_nodes_reach_each_other_and_clients_reach_them(tmp_path: Path) -> None:
    async with talking(tmp_path) as peers:
        assert Capability.CUT_LINKS in peers.place.capabilities
        assert namespaces.why_not() is None
        assert await peers.said(("n1", "new", "n2"), ("n2", "new", "n1"), ("n3", "new", "n3")) == ["pong"] * 3
        inodes = {inode(leader(peers.place, name)) for name in peers.addresses}
        assert len(inodes | {inode("self")}) == 4, "each is in a namespace of its own"
        (added,) = await peers.place.place([NodeSpec(name="n4")])
        await peers.place.start(peer(added))
        await eventually(lambda: accepts(added.address))
        assert await peers.ask("n1", "new", added.address) == "pong"
        done = await peers.place.run(["/bin/readlink", "/proc/self/ns/net"], env={}, cwd=added.home, timeout=PATIENCE_S)
        assert f"[{inode('self')}]" in done.out, "helper commands run where clients are"
        inner = (
            f"import socket; s = socket.create_server(('127.0.0.1', {PORT})); "
            f"socket.create_connection(('localhost', {PORT}))"
        )
        await peers.place.kill("n4")
        loopback = ProcessSpec(
            name="n4",
            argv=(sys.executable, "-I", "-S", "-c", inner),
            env={},
            cwd=added.home,
            output=added.logs / "o",
        )
        await peers.place.start(loopback)
        await eventually(lambda: peers.place.exit_code("n4") is not None)
        assert peers.place.exit_code("n4") == 0, peers.place.log_tail("n4")


@needs_namespaces
async def test_a_cut_swallows_old_and_new_connections_until_it_is_healed(tmp_path: Path) -> None:
    async with talking(tmp_path) as peers:
        both = [("n1", "n2"), ("n2", "n1")]
        traffic = [(frm, how, to) for frm, to in both for how in ("kept", "new")]
        elsewhere = [("n1", "kept", "n3"), ("n3", "new", "n1"), ("n2", "new", "n3"), ("n3", "kept", "n2")]
        assert await peers.said(*traffic, *elsewhere) == ["pong"] * 8
        for link in both:
            proof = await peers.place.cut(*link)
            assert "3 datagrams lost" in proof
            assert "the one before the cut arrived" in proof
        # Silent, not refused: as when a cable is pulled.
        assert await peers.said(*traffic, seconds=SILENT_S) == ["silent"] * 4
        assert await peers.said(*elsewhere) == ["pong"] * 4
        await peers.place.cut("n1", "n3")
        assert (await peers.place.cut("n1", "n3")).endswith("it was cut already")
        await peers.place.heal("n1", "n3")
        # What a node is started as again stays cut.
        await peers.place.kill("n2")
        await peers.place.start(peer(peers.placements["n2"]))
        await eventually(lambda: accepts(peers.addresses["n2"]))
        assert await peers.said(("n1", "new", "n2"), ("n2", "new", "n1"), seconds=SILENT_S) == ["silent"] * 2
        for link in both:
            await peers.place.heal(*link)
            await peers.place.heal(*link)
        assert await peers.said(("n1", "new", "n2"), ("n2", "new", "n1")) == ["pong"] * 2


@needs_namespaces
async def test_a_connection_lives_through_a_short_cut(tmp_path: Path) -> None:
    async with talking(tmp_path, nodes=2) as peers:
        assert await peers.ask("n1", "kept", "n2") == "pong"
        await peers.place.cut("n2", "n1")
        assert await peers.ask("n1", "kept", "n2", seconds=SILENT_S) == "silent"
        await peers.place.heal("n2", "n1")
        assert await peers.ask("n1", "kept", "n2") == "pong"


@needs_namespaces
async def test_a_link_is_cut_one_way(tmp_path: Path) -> None:
    async with talking(tmp_path, nodes=2) as peers:

        async def exchange(word: str, *arrives: bool) -> None:
            """Whether a word from n1 to n2 is heard, and one from n2 to n1."""
            await peers.said(("n1", "tell", "n2", word), ("n2", "tell", "n1", word))
            await asyncio.sleep(0.1)
            until, found = time.monotonic() + PATIENCE_S, [False, False]
            while found != [*arrives]:
                found = [word in heard.split() for heard in await peers.said(("n2", "heard"), ("n1", "heard"))]
                assert not [heard for heard, may in zip(found, arrives, strict=True) if heard and not may]
                assert time.monotonic() < until, "a word never arrived"

        await exchange("before", True, True)
        await peers.place.cut("n1", "n2")
        await exchange("one-way", False, True)
        # A conversation needs both ways, whoever begins it.
        assert await peers.said(("n1", "new", "n2"), ("n2", "new", "n1"), seconds=SILENT_S) == ["silent"] * 2
        await peers.place.cut("n2", "n1")
        await peers.place.heal("n1", "n2")
        await exchange("the-other-way", True, False)
        await peers.place.heal("n2", "n1")
        await exchange("after", True, True)


@needs_namespaces
async def test_what_is_no_link_is_refused(tmp_path: Path) -> None:
    plain = await Processes.open(name="plain", workdir=tmp_path / "work", slots=1)
    try:
        (at,) = await plain.place([NodeSpec(name="n1")])
        assert at.address.startswith("127.")
        assert Capability.CUT_LINKS not in plain.capabilities
        with pytest.raises(HarnessError, match="cannot be cut: the cluster was opened without namespaces"):
            await plain.cut("n1", "n1")
    finally:
        await plain.close()


@needs_namespaces
async def test_two_clusters_at_once_do_not_meet(tmp_path: Path) -> None:
    async with AsyncExitStack() as both:
        one = await both.enter_async_context(talking(tmp_path, nodes=2))
        other = await both.enter_async_context(talking(tmp_path, nodes=2))
        assert not set(one.addresses.values()) & set(other.addresses.values())
        await one.place.cut("n1", "n2")
        beyond = [("n1", "new", address) for address in other.addresses.values()]
        told = await one.said(*beyond, seconds=SILENT_S)
        assert [word for word in told if word == "pong"] == []
        assert await other.ask("n1", "new", "n2") == "pong", "what is cut in one is whole in the other"
        assert await one.ask("n1", "new", "n2", seconds=SILENT_S) == "silent"


WITHOUT = """
import asyncio, ctypes, json, os, sys
sys.path.insert(0, sys.argv[1])
if sys.argv[3] == "drop":
    ctypes.CDLL(None).prctl(24, int(sys.argv[4]), 0, 0, 0)  # PR_CAPBSET_DROP: gone at the next exec
    os.execv(sys.executable, [sys.executable, "-c", sys.orig_argv[2], sys.argv[1], sys.argv[2], "dropped"])
from pathlib import Path
from clusters.model import Capability, NodeSpec
from clusters.substrates.processes import Processes, cannot_cut

async def main():
    place = await Processes.open(name="poor", workdir=Path(sys.argv[2]), slots=1, namespaces=True)
    try:
        (at,) = await place.place([NodeSpec(name="n1")])
        said = {"open": place.cannot_cut, "machine": cannot_cut(), "address": at.address}
        said["beside"] = (await place.beside("service")).address
        print(json.dumps(said | {"cuts": Capability.CUT_LINKS in place.capabilities}))
    finally:
        await place.close()

asyncio.run(main())
"""


@pytest.mark.parametrize("capability", [CAP_NET_ADMIN, 21], ids=["CAP_NET_ADMIN", "CAP_SYS_ADMIN"])
def test_without_the_right_to_make_networks_nodes_stay_on_loopback(tmp_path: Path, capability: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, str(REPOSITORY), str(tmp_path / "work"), "drop", str(capability)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    assert said["address"].startswith("127."), said
    assert (said["beside"], said["cuts"]) == (said["address"], False)
    assert said["open"] == said["machine"]
    assert "is missing" in said["open"], said
    if namespaces.forbidden() is None:
        assert ("CAP_NET_ADMIN" if capability == CAP_NET_ADMIN else "CAP_SYS_ADMIN") in said["open"]


async def test_without_the_library_nodes_stay_on_loopback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespaces, "packages", lambda: None)
    place = await Processes.open(name="poor", workdir=tmp_path / "work", slots=1, namespaces=True)
    try:
        (at,) = await place.place([NodeSpec(name="n1")])
        assert at.address.startswith("127.")
        assert place.cannot_cut == "the package pyroute2 is not installed"
        assert Capability.CUT_LINKS not in place.capabilities
    finally:
        await place.close()


@needs_namespaces
def test_routes_and_other_clusters_are_kept_clear_of() -> None:
    program = (
        "import ctypes, json, sys\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "assert ctypes.CDLL(None).unshare(0x40000000) == 0\n"
        "from pyroute2 import IPRoute\n"
        "from clusters.substrates.processes import network\n"
        "host, prefixes, found = IPRoute(), network.candidates(64, 3), []\n"
        "host.link('set', index=1, state='up')\n"
        "def make(device):\n"
        "    try:\n"
        "        return network.Network(prefixes=prefixes, device=device)\n"
        "    except network.Failed as error:\n"
        "        found.append(str(error))\n"
        "for taken, table in json.loads(sys.argv[2]):\n"
        "    if taken:\n"
        "        host.route('add', dst=taken, oif=1, table=table)\n"
        "    made = [one for one in (make('rp-one'), make('rp-two')) if one]\n"
        "    found.append([one.prefix for one in made])\n"
        "    for one in made:\n"
        "        one.close()\n"
        "    assert not host.link_lookup(ifname='rp-one')\n"
        "print(json.dumps(found))\n"
    )
    taken = [
        [None, 0],
        ["10.64.3.128/25", 254],
        ["10.0.0.0/8", 254],
        ["172.16.0.0/12", 77],
        ["192.168.0.0/16", 254],
        ["198.18.0.0/15", 254],
    ]
    done = subprocess.run(
        [sys.executable, "-c", program, str(REPOSITORY), json.dumps(taken)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *found, error, again, none = json.loads(done.stdout)
    assert found == [
        ["10.64.3", "10.128.3"],
        ["10.128.3", "10.192.3"],
        ["172.16.3", "192.168.3"],
        ["192.168.3", "198.18.3"],
        "the host has routes to all of " + ", ".join(f"{p}.0/24" for p in network.candidates(64, 3)),
        ["198.18.3"],
    ]
    assert error == again == found[4]
    assert none == []


def inode(pid: int | str) -> int:
    """What identifies a process' network namespace."""
    return Path(f"/proc/{pid}/ns/net").stat().st_ino


def doomed(workdir: Path) -> "subprocess.Popen[str]":
    program = [sys.executable, str(HERE / "harness_to_kill.py"), str(workdir), "namespaces"]
    return subprocess.Popen(program, stdout=subprocess.PIPE, text=True)


def routes() -> str:
    return Path("/proc/net/fib_trie").read_text()


def in_namespaces(inodes: set[int]) -> list[int]:
    """The processes whose network namespace is one of these."""
    found = []
    for pid in proctree.snapshot():
        with suppress(OSError):
            if inode(pid) in inodes:
                found.append(pid)
    return found


@needs_namespaces
@pytest.mark.parametrize("killed", ["the harness", "the harness and the supervisor", "everything"])
async def test_nothing_of_the_network_outlives_a_kill(tmp_path: Path, killed: str) -> None:
    harness = doomed(tmp_path / "work")
    assert harness.stdout is not None
    try:
        told = json.loads(harness.stdout.readline())
        directory = Path(told["directory"])
        assert devices(directory)
        assert not told["address"].startswith("127.")
        prefix = told["address"].rpartition(".")[0]
        table = proctree.snapshot()
        of_it = [table[pid] for pid in proctree.descendants(table, [harness.pid]) if not table[pid].dead]
        inodes = {inode(process.pid) for process in of_it} - {inode("self")}
        assert len(inodes) == 3
        victims = {
            "the harness": [],
            "the harness and the supervisor": [process for process in of_it if process.pid == told["supervisor"]],
            "everything": of_it,
        }[killed]
        harness.kill()
        for process in victims:
            proctree.send(process, signal.SIGKILL)
    finally:
        harness.kill()
        harness.wait()
        harness.stdout.close()
    await eventually(lambda: not devices(directory))
    await eventually(lambda: not in_namespaces(inodes))
    await eventually(lambda: not [p for p in of_it if (now := proctree.read(p.pid)) and now.start == p.start])
    assert f"{prefix}." not in routes()
    if killed != "everything":
        await eventually(lambda: not directory.exists())
    swept = await asyncio.to_thread(leases.sweep)
    assert [s.resists for s in swept] == ([""] if killed == "everything" else [])
    assert list((tmp_path / "work").glob("*")) == []
