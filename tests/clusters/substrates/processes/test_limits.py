"""The substrate ``processes``: programs that cannot run, a full disk, limited resources, and another user."""

import asyncio
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from clusters.errors import BadInput, HarnessError
from clusters.model import (
    Capability,
    NodeResources,
    ProcessSpec,
    ProcessState,
)
from clusters.substrates.processes import Processes, spawn
from tests.clusters.substrates.processes.process_nodes import PATIENCE_S, PYTHON, eventually, leader, one, shell, spec

ROOT = os.geteuid() == 0


def program(path: Path, content: bytes, mode: int = 0o755) -> Path:
    path.write_bytes(content)
    path.chmod(mode)
    return path


async def test_what_cannot_be_executed_is_said_plainly(place: Processes, tmp_path: Path) -> None:
    at = await one(place)
    elf = b"\x7fELF\x02\x01\x01" + bytes(9) + (2).to_bytes(2, "little") + (243).to_bytes(2, "little") + bytes(100)
    cases = {
        tmp_path / "missing": "no such file",
        tmp_path: "is a directory",
        program(tmp_path / "plain", b"#!/bin/sh\n", 0o644): "not executable for user",
        program(tmp_path / "foreign", elf): "it is an ELF program for riscv64",
        program(tmp_path / "empty", b""): "it is an empty file",
        program(tmp_path / "text", b"hello there"): "it begins with b'hello th'",
        program(tmp_path / "orphan", b"#!/no/such/shell\n"): "interpreter or loader does not exist.*/no/such/shell",
    }
    for path, words in cases.items():
        with pytest.raises(BadInput, match=words) as caught:
            await place.start(spec(at, str(path)))
        assert str(path) in str(caught.value)
        with pytest.raises(BadInput, match=words):
            await place.run([str(path)], env={}, cwd=place.scratch, timeout=PATIENCE_S)
    assert place.state("n1") is ProcessState.ABSENT
    gone = ProcessSpec(name="n1", argv=("/bin/true",), env={}, cwd=at.home / "gone", output=at.logs / "out")
    with pytest.raises(HarnessError, match=r"cwd .*/gone: No such file"):
        await place.start(gone)


FULL = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from clusters.errors import HarnessError
from clusters.model import NodeSpec
from clusters.substrates.processes import Processes

async def main():
    place = await Processes.open(name="full", workdir=Path(sys.argv[2]), slots=2)
    try:
        for i in range(100):
            await place.place([NodeSpec(name=f"n{i}")])
    except HarnessError as error:
        print(error)
    await place.close()
    print(list(Path(sys.argv[2]).iterdir()))
    try:
        for i in range(100):
            Path(sys.argv[2], str(i)).touch()
    except OSError:
        await Processes.open(name="full", workdir=Path(sys.argv[2]), slots=2)

try:
    asyncio.run(main())
except HarnessError as error:
    print(error)
"""


async def test_a_full_disk_is_named_as_such(place: Processes, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount = f'mount -t tmpfs -o nr_inodes=30 none {small} && exec "$@"'
    repository = Path(__file__).parents[4]
    done = await place.run(
        [
            "/usr/bin/unshare",
            "-Urm",
            "/bin/sh",
            "-c",
            mount,
            "sh",
            sys.executable,
            "-c",
            FULL,
            str(repository),
            str(small),
        ],
        env=dict(os.environ),
        cwd=place.scratch,
        timeout=PATIENCE_S,
    )
    if "unshare" in done.err or "mount" in done.err:
        pytest.skip(f"no file system can be mounted here: {done.err}")
    placing, left, opening = done.out.splitlines()
    assert placing.startswith("cannot make the directories of n"), done
    assert placing.endswith("No space left on device; free some space or use another directory")
    assert left == "[]"
    assert opening.startswith("cannot make the directory of full-")


def groups_of(place: Processes) -> list[Path]:
    return list(Path("/sys/fs/cgroup").glob(f"**/roachproof-{place.directory.name}"))


async def test_resources_are_limited_or_refused(place: Processes) -> None:
    at = await one(place)
    limited = ProcessSpec(
        name="n1",
        argv=(*PYTHON, "while True: pass"),
        env={},
        cwd=at.home,
        output=at.logs / "out",
        resources=NodeResources(cache_mib=1, sql_memory_mib=1, cpus=0.2, memory_mib=64),
    )
    if Capability.NODE_RESOURCES not in place.capabilities:
        with pytest.raises(BadInput, match="choose a profile without them"):
            await place.start(limited)
        return
    await place.start(limited)
    pid = leader(place, "n1")
    groups = groups_of(place)
    assert groups
    assert place.limits("n1") == {"cpus": 0.2, "memory_mib": 64.0}

    def used() -> float:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    before, begun = used(), time.monotonic()
    await asyncio.sleep(1.5)
    assert (used() - before) / (time.monotonic() - begun) < 0.35
    await place.kill("n1")
    greedy = replace(limited, argv=(*PYTHON, "x = bytearray(256 << 20)\nprint(len(x))"))
    await place.start(greedy)
    await eventually(lambda: place.state("n1") is ProcessState.EXITED)
    assert place.exit_code("n1") == -signal.SIGKILL, place.log_tail("n1")
    with pytest.raises(HarnessError, match="n1 has no limits, it is exited"):
        place.limits("n1")
    sleeping = replace(limited, argv=(*PYTHON, "import time; time.sleep(60)"))
    for cpus, memory, shown in ((0.5, 128, {"cpus": 0.5, "memory_mib": 128.0}), (1.0, None, {"cpus": 1.0})):
        given = NodeResources(cache_mib=1, sql_memory_mib=1, cpus=cpus, memory_mib=memory)
        await place.start(replace(sleeping, resources=given))
        assert place.limits("n1") == shown, "an earlier limit must not stay"
        await place.kill("n1")
    await place.close()
    assert [group for group in groups if group.exists()] == []


@pytest.fixture
def passable() -> Iterator[Path]:
    """A directory that others may pass, which pytest's own are not."""
    made = Path(f"/var/tmp/roachproof-test-{os.getpid()}")
    made.mkdir()
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.mark.usefixtures("state")
@pytest.mark.skipif(not ROOT, reason="only root must become somebody else")
@pytest.mark.parametrize("way", ["namespace", "setuid"])
async def test_root_runs_the_unprivileged_as_nobody(way: Literal["namespace", "setuid"], passable: Path) -> None:
    if way == "namespace" and not spawn.namespaces_work():
        pytest.skip("user namespaces are forbidden here")
    place = await Processes.open(
        name="nobody",
        workdir=passable,
        slots=2,
        nobody=way,
    )
    try:
        at = await one(place)
        place.scratch.joinpath("key").write_text("secret")
        place.scratch.joinpath("key").chmod(0o600)
        done = await place.run(
            ["/bin/sh", "-c", "id -u; cat key; grep CapEff /proc/self/status; echo x > mine; exit 4"],
            env={"PATH": "/usr/bin:/bin"},
            cwd=place.scratch,
            timeout=PATIENCE_S,
            unprivileged=True,
        )
        assert (done.code, done.out.split()) == (4, ["65534", "secretCapEff:", "0000000000000000"])
        script = "trap 'exit 6' TERM; id -u; cd store; echo $$ > pid; while :; do sleep 0.05; done"
        await place.start(shell(at, script, unprivileged=True))
        await eventually(lambda: at.store.joinpath("pid").exists() and at.store.joinpath("pid").read_text())
        assert int(at.store.joinpath("pid").read_text()) == leader(place, "n1")
        assert place.log_tail("n1") == "65534"
        assert place.state("n1") is ProcessState.RUNNING
        await place.pause("n1")
        await place.resume("n1")
        assert await place.stop("n1", timeout=PATIENCE_S) == 6
        await place.wipe("n1")
        await place.start(shell(at, "echo again > store/x; exec sleep 100", unprivileged=True))
        await eventually(lambda: at.store.joinpath("x").exists())
        closed = passable / "closed"
        closed.mkdir(mode=0o700)
        shutil.copy("/bin/true", closed / "true")
        if way == "namespace":
            assert (
                await place.run(
                    [str(closed / "true")], env={}, cwd=place.scratch, timeout=PATIENCE_S, unprivileged=True
                )
            ).code == 0
        else:
            with pytest.raises(BadInput, match=rf"may not pass {closed}\..*chmod o\+x {closed}"):
                await place.run(
                    [str(closed / "true")], env={}, cwd=place.scratch, timeout=PATIENCE_S, unprivileged=True
                )
    finally:
        await place.close()
