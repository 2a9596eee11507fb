"""What happens to a run from outside on a real Kubernetes: it waits, or says what it was, and blames no database."""

import asyncio
import base64
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from clusters.errors import BadInput
from clusters.model import NodeSpec, ProcessState
from fixtures.workloads.relay import ROOT
from tests.kubernetes.at_hand import (
    ADMIN,
    AT_HAND,
    HANGS,
    as_account,
    begun,
    eventually,
    history,
    kubectl,
    machines_take_pods,
    namespaces,
    objects,
    opened,
    pod_of,
    spec,
)
from tests.kubernetes.lab.__main__ import two_versions
from tests.kubernetes.lab.remains import CONTROL_GROUPS
from tests.kubernetes.running import Running, on_the_control
from tests.slow import slow

pytestmark = AT_HAND
AWAY_S = 30


def b64(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).rstrip(b"=").decode()


def signed(token: str, **changed: Any) -> str:
    """A token with other claims, signed with the cluster's own key, which the tests' Kubernetes has in a file."""
    head, body, _ = token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    text = f"{head}.{b64(json.dumps({**claims, **changed}).encode())}"
    line = ["openssl", "dgst", "-sha256", "-sign", str(Path(ADMIN).with_name("accounts.key"))]
    return f"{text}.{b64(subprocess.run(line, input=text.encode(), capture_output=True, check=True).stdout)}"


async def test_an_expired_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = kubectl("-n", "default", "create", "token", "default").strip()
    for expires, message in ((60, "lacks rights"), (-60, "its token or certificate is not accepted, or has expired")):
        as_account(tmp_path / "kubeconfig", signed(token, exp=int(time.time()) + expires), monkeypatch)
        with pytest.raises(BadInput, match=message):
            await opened(tmp_path)


async def test_two_runs_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a namespace of its own. One that is named has room for one: the second is told, the first goes on."""
    one, other = await asyncio.gather(opened(tmp_path), opened(tmp_path))
    try:
        (_, space), (_, another) = [pod_of(await begun(each)) for each in (one, other)]
        assert space != another
        assert {f"namespace/{space}", f"namespace/{another}"} <= set(namespaces().split())
        await one.close()
        assert "node-" in objects(another)
        assert other.state("n1") is ProcessState.RUNNING, "the end of one run is none of another's"
    finally:
        for each in (one, other):
            await each.close()
    assert (objects(space), objects(another)) == ("", "")
    monkeypatch.setenv("ROACHPROOF_KUBERNETES_NAMESPACE", "nowhere")
    with pytest.raises(BadInput, match="namespace nowhere is not there; make it, or name another one"):
        await opened(tmp_path)
    monkeypatch.setenv("ROACHPROOF_KUBERNETES_NAMESPACE", "default")
    first = await opened(tmp_path)
    try:
        await begun(first)
        before = objects("default")
        with pytest.raises(BadInput, match="namespace default has another run in it"):
            await opened(tmp_path)
        assert objects("default") == before
        assert first.state("n1") is ProcessState.RUNNING
    finally:
        await first.close()
    assert objects("default") == ""


async def test_a_namespace_that_is_deleted_is_no_end_of_the_database(tmp_path: Path) -> None:
    """Its process is asked to stop, and does in good order, as one that crashes with 0 would."""
    substrate = await opened(tmp_path)
    try:
        _, namespace = pod_of(await begun(substrate, f"trap 'exit 0' TERM; {HANGS}"))
        kubectl("delete", "namespace", namespace, "--wait=false")
        await eventually("it to end", lambda: substrate.state("n1") is ProcessState.EXITED)
        assert "its pod was ended from outside" in substrate.ended_by("n1")
        await eventually("the namespace to go", lambda: namespace not in namespaces())
    finally:
        await substrate.close()
    assert "pod node-region-1-zone-1-0: gone" in history(tmp_path)


@slow
async def test_a_namespace_that_is_deleted_refutes_no_claim(tmp_path: Path) -> None:
    """In the middle of one, all of whose nodes end with it: the harness has failed, and says why they ended."""
    run = Running(tmp_path)
    try:
        await asyncio.to_thread(run.until, "the baseline", lambda: "baseline.begin" in run.events())
        (namespace,) = namespaces().split()
        kubectl("delete", namespace, "--wait=false")
        status = await asyncio.to_thread(run.process.wait)
    finally:
        run.end()
    assert status == 7, run.said
    assert "REFUTED" not in run.said
    assert "its pod was ended from outside" in " ".join(run.said.split())
    await eventually("the namespace to go", lambda: not namespaces())


@slow
@pytest.mark.parametrize("how", [(), ("--grace-period=0", "--force")], ids=["in order", "at once"])
async def test_another_pod_that_is_deleted_while_a_version_is_changed_refutes_no_claim(
    how: tuple[str, ...], tmp_path: Path
) -> None:
    """Two nodes are down at once, the one by somebody else, and that is back before long; nor does a replay refute."""
    if not (versions := two_versions(tmp_path, ["--engine", "postgres"])):
        pytest.skip("the control is here in one version alone")
    run = Running(tmp_path, on_the_control("hot-swap", versions))
    try:
        await asyncio.to_thread(run.until, "the first change", lambda: "fault.begin" in run.events())
        (changed,) = next(one["nodes"] for one in run.told() if one["event"] == "fault.begin")
        (namespace,) = (name.removeprefix("namespace/") for name in namespaces().split())
        other = next(number for number in range(3) if changed != f"n{number + 1}")
        kubectl("-n", namespace, "delete", "pod", f"node-region-1-zone-1-{other}", "--wait=false", *how)
        status = await asyncio.to_thread(run.process.wait)
    finally:
        run.end()
    assert status == 7, run.said
    assert "REFUTED" not in run.said
    assert "its pod was ended from outside" in " ".join(run.said.split())
    line = [sys.executable, "-m", "pytest", "-c", "pyproject.toml", "--judge", str(run.directory)]
    judged = await asyncio.to_thread(subprocess.run, line, cwd=ROOT, capture_output=True, text=True, check=False)
    assert judged.returncode == 7, judged.stdout + judged.stderr
    await eventually("all that it made to go", lambda: not namespaces())


class Memory:
    """What a node's container may use, by the files of its control group, of the first version or the second."""

    def __init__(self, pod: str, namespace: str) -> None:
        shown = json.loads(kubectl("-n", namespace, "get", "pod", pod, "-o", "json"))
        (container,) = (one["containerID"].rpartition("/")[2] for one in shown["status"]["containerStatuses"])
        first = CONTROL_GROUPS / "memory"
        (self._group,) = (first if first.exists() else CONTROL_GROUPS).glob(f"**/*{container}*")
        self._limit, self._used, self._events = (
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.oom_control")
            if first.exists()
            else ("memory.max", "memory.current", "memory.events")
        )

    def killed(self) -> int:
        """How many of its processes the kernel ended so far, as it had no memory for them."""
        told = dict(line.split() for line in (self._group / self._events).read_text().splitlines())
        return int(told["oom_kill"])

    def shrink(self) -> None:
        """Leave it a MiB less than it uses, as far as it is there and the kernel finds one that can be taken away."""
        with suppress(OSError):
            less = int((self._group / self._used).read_text()) - (1 << 20)
            (self._group / self._limit).write_text(str(less))


@slow
async def test_a_database_that_lacks_memory_refutes_no_claim(tmp_path: Path) -> None:
    """Its container's limit shrinks in the middle of one until the kernel ends it: the harness has failed."""
    run = Running(tmp_path)
    try:
        await asyncio.to_thread(run.until, "the baseline", lambda: "baseline.begin" in run.events())
        (namespace,) = (name.removeprefix("namespace/") for name in namespaces().split())
        memory = Memory("node-region-1-zone-1-0", namespace)

        def ended() -> bool:
            memory.shrink()
            return memory.killed() > 0

        await asyncio.to_thread(run.until, "the kernel to end a process", ended)
        while (status := run.process.poll()) is None:  # the first may have been another than the one that the node is
            memory.shrink()
            await asyncio.sleep(0.05)
    finally:
        run.end()
    assert status == 7, run.said
    assert "REFUTED" not in run.said
    assert "killed by the kernel, as its container's memory ran out" in " ".join(run.said.split())
    await eventually("all that it made to go", lambda: not namespaces())


def api_port() -> int:
    return int(json.loads(Path(ADMIN).read_text())["clusters"][0]["cluster"]["server"].rpartition(":")[2])


@contextmanager
def dropped(*ports: int) -> Iterator[None]:
    """Nothing passes to or from these ports, of which connection ever; nobody is told."""
    rules = ["add table inet away"]
    for hook in ("input", "output"):
        rules.append(f"add chain inet away {hook} {{ type filter hook {hook} priority -10; }}")
        of = ", ".join(map(str, ports))
        rules += [f"add rule inet away {hook} tcp {way} {{ {of} }} drop" for way in ("dport", "sport")]
    subprocess.run(["nft", "; ".join(rules)], check=True)
    try:
        yield
    finally:
        subprocess.run(["nft", "delete table inet away"], check=True)


async def test_an_api_server_that_is_away_for_half_a_minute_is_waited_for(tmp_path: Path) -> None:
    substrate = await opened(tmp_path)
    try:
        at = await begun(substrate)
        (other,) = await substrate.place([NodeSpec(name="n2")])
        with dropped(api_port()):
            kill = asyncio.create_task(substrate.kill("n1"))
            start = asyncio.create_task(substrate.start(spec(other, HANGS)))
            asked = time.monotonic()
            assert "Unable to connect" in await asyncio.to_thread(kubectl, "get", "nodes", "--request-timeout=5s")
            await asyncio.sleep(asked + AWAY_S - time.monotonic())
            assert substrate.state("n1") is ProcessState.RUNNING, "as far as anybody knows"
        await start
        await kill
        assert substrate.state("n1") is ProcessState.EXITED
        assert substrate.ended_by("n1") == ""
        await substrate.start(spec(at, HANGS))
        assert substrate.state("n1") is substrate.state("n2") is ProcessState.RUNNING
    finally:
        await substrate.close()
        await machines_take_pods()


@slow
async def test_a_connection_that_is_forgotten_on_its_way_is_made_anew(tmp_path: Path) -> None:
    """As load balancers forget one that is silent for minutes: what is said then is heard all the same."""
    substrate = await opened(tmp_path)
    try:
        pod, namespace = pod_of(await begun(substrate))
        there = [one for one in psutil.Process().net_connections("tcp") if one.raddr and one.raddr.port == api_port()]
        assert len(there) >= 3, "the watches of pods and events, and the node's log"
        with dropped(*(one.laddr.port for one in there)):
            kubectl("-n", namespace, "exec", pod, "--", "kill", "-KILL", str(substrate._pods[pod].pid))
            await eventually("its end to be heard", lambda: substrate.state("n1") is ProcessState.EXITED)
        assert substrate.exit_code("n1") == -signal.SIGKILL
    finally:
        await substrate.close()


@slow
@pytest.mark.parametrize("moment", ["baseline.begin", "fault.begin", "fault.undo"])
async def test_an_api_server_that_is_away_refutes_no_claim(moment: str, tmp_path: Path) -> None:
    """In the middle of one: it is waited for, so that times may tell nothing, or the harness has failed."""
    run = Running(tmp_path)
    try:
        await asyncio.to_thread(run.until, moment, lambda: moment in run.events())
        with dropped(api_port()):
            await asyncio.sleep(AWAY_S)
        status = await asyncio.to_thread(run.process.wait)
    finally:
        run.end()
        await machines_take_pods()
    assert status in (0, 6, 7), run.said
    assert "REFUTED" not in run.said
    await eventually("all that it made to go", lambda: not namespaces())
