"""Links between pods, cut by real rules in networks that are joined like those of pods, without a Kubernetes."""

import os
import queue
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clusters.errors import BadInput, HarnessError
from clusters.substrates.kubernetes import links
from clusters.substrates.kubernetes.links import Links, rules
from clusters.substrates.kubernetes.manifests import CUT, CUTTER
from clusters.substrates.kubernetes.pods import RUNS, Pod
from clusters.substrates.kubernetes.settings import CUTS
from clusters.substrates.processes import namespaces
from clusters.substrates.processes.network import Network, candidates

SCRIPT = Path(links.__file__).with_name(CUT.name)
WHY_NOT = "nft is not installed" if shutil.which("nft") is None else namespaces.forbidden()
linked = pytest.mark.skipif(WHY_NOT is not None, reason=f"links cannot be cut here: {WHY_NOT}")


class Answering:
    """What answers in a pod's container, as the client has it."""

    def __init__(self, namespace: int) -> None:
        home = namespaces.own()
        with namespaces.inside(namespace, home=home):
            line = [sys.executable, str(SCRIPT), "answers"]
            self._process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        os.close(home)
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.rstrip(b"\n"))

    def write_stdin(self, line: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line)
        self._process.stdin.flush()

    def readline_stdout(self, timeout: float) -> bytes:
        return self._lines.get(timeout=timeout)

    def read_channel(self, channel: int) -> bytes:
        return b""

    def is_open(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


class Cluster:
    """Pods ``a`` and ``b``, their networks, and the API server that puts containers into them."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.pods = {name: self._pod(name, number) for number, name in enumerate("ab", 1)}
        self.runs = (RUNS, "")
        self.core = self
        self.asked: list[tuple[str, ...]] = []

    def _pod(self, name: str, number: int) -> Pod:
        return Pod(name, uid=f"{name}-1", addresses=(self._network.attach(name, number),))

    async def call(self, what: str, function: Any, *args: Any) -> Any:
        return function(*args)

    def patch_namespaced_pod_ephemeralcontainers(self, pod: str, namespace: str, body: Any) -> None:
        (container,) = body["spec"]["ephemeralContainers"]
        self.asked.append((pod, namespace, container["image"]))
        self.pods[pod].cutter, self.pods[pod].cutter_stuck = self.runs

    def open_exec(self, namespace: str, pod: str, argv: Any, *, stdin: bool, container: str) -> Answering:
        assert (tuple(argv), container) == (("python", str(CUT), "answers"), CUTTER)
        return Answering(self._network.namespace(pod))

    async def until(self, what: str, pod: Pod, check: Any, *, timeout: float) -> None:
        assert check()


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    network = Network(prefixes=candidates(os.getpid() % 64 + 128, os.getpid() % 251), device=f"rk-{os.getpid()}")
    try:
        yield Cluster(network)
    finally:
        network.close()


@pytest.fixture
def of(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Links]:
    monkeypatch.setattr(links, "_LOST_S", 0.3)
    api: Any = cluster
    made = Links(api, "space", api, "cutter:1")
    yield made
    made.close()


@linked
async def test_what_is_cut_one_way_or_both_vanishes_and_comes_back(cluster: Cluster, of: Links) -> None:
    a, b = cluster.pods["a"], cluster.pods["b"]
    await of.heal(a, b)
    assert cluster.asked == [], "a pod is not touched before a link of it is cut"
    all_ways = "nothing arrives by datagrams, an open connection, a new connection, as it did before"
    assert await of.cut(a, b) == all_ways
    assert cluster.asked == [("a", "space", "cutter:1"), ("b", "space", "cutter:1")]
    assert await of.cut(a, b) == "nothing arrives by datagrams, a new connection, it was cut already"
    assert await of.cut(b, a) == "nothing arrives by datagrams, as it did before", "connections need both ways"
    await of.heal(a, b)
    assert not of.has(a, b)
    await of.heal(b, a)
    assert await of.cut(b, a) == all_ways
    await of.heal(b, a)
    assert len(cluster.asked) == 2, "one container a pod is enough"


@linked
async def test_what_does_not_pass_before_or_still_passes_proves_nothing(
    cluster: Cluster, of: Links, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = cluster.pods["a"], cluster.pods["b"]
    with monkeypatch.context() as hidden:
        hidden.setattr(links, "_LOST_S", links._ARRIVES_S)
        hidden.setattr(links, "rules", lambda _: rules(["192.0.2.1"]))
        with pytest.raises(HarnessError, match="what a sends still reaches b by datagrams, an open connection, a new"):
            await of.cut(a, b)
        assert of.has(a, b), "what was begun is undone by whoever heals it"
    await of.heal(a, b)
    await of._asked(b, "rules", rules(a.addresses))
    monkeypatch.setattr(links, "_ARRIVES_S", 0.3)
    with pytest.raises(HarnessError, match="does not reach b even before the link is cut by datagrams, an open con"):
        await of.cut(a, b)
    assert not of.has(a, b)
    with pytest.raises(HarnessError, match=r"container cutter cannot carry out `rules`: .*syntax error"):
        await of._asked(b, "rules", "nonsense")


@linked
async def test_a_pod_that_is_made_anew_was_not_cut_all_the_time(cluster: Cluster, of: Links) -> None:
    a, b = cluster.pods["a"], cluster.pods["b"]
    await of.cut(a, b)
    b.uid = "b-2"
    with pytest.raises(HarnessError, match="from a to b was not cut all the time: a pod was made anew meanwhile"):
        await of.heal(a, b)
    assert not of.has(a, b)


@linked
async def test_a_container_that_never_runs_is_said_with_the_way_out(cluster: Cluster, of: Links) -> None:
    cluster.runs = ("ErrImagePull: not found", "name an image that the cluster can pull")
    with pytest.raises(BadInput, match=f"{CUTS}=cutter:1: pod a: container cutter: ErrImagePull: not found; name an "):
        await of.cut(cluster.pods["a"], cluster.pods["b"])


def test_rules_are_set_all_at_once_and_for_both_kinds_of_addresses() -> None:
    assert rules([]) == "add table inet roachproof; delete table inet roachproof"
    assert rules(["10.0.0.1", "fd00::1"]) == (
        f"{rules([])}; add table inet roachproof; "
        "add chain inet roachproof cut { type filter hook prerouting priority -300; }; "
        "add rule inet roachproof cut ip saddr 10.0.0.1 drop; add rule inet roachproof cut ip6 saddr fd00::1 drop"
    )


def test_it_ends_when_it_is_told_to() -> None:
    """As the first process of a container it would hear no signal that it does not ask for."""
    process = subprocess.Popen([sys.executable, "-c", _FIRST, str(SCRIPT)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"stays\n"
    process.terminate()
    process.communicate()
    assert process.returncode == 0


_FIRST = """
import runpy, signal, sys
wait = signal.sigwait
def stays(signals):
    print("stays", flush=True)
    return wait(signals)
signal.sigwait = stays
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
