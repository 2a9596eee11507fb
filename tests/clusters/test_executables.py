"""Programs of this machine that end with us, however we end."""

import asyncio
import os
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from clusters.errors import BadInput
from clusters.executables import DIES_WITH_PARENT, unfit
from clusters.substrates.kubernetes.substrate import run_here
from fixtures.workloads.relay import ROOT

ENV = {"PATH": "/usr/bin:/bin"}
PARENT = """
import asyncio, sys
from pathlib import Path
from clusters.substrates.kubernetes.substrate import run_here
script = "echo $$ >new; mv new pid; sleep 600; :"
asyncio.run(run_here(["/bin/sh", "-c", script], {"PATH": "/usr/bin:/bin"}, Path(sys.argv[1])))
"""


def elf(machine: int, order: str = "<") -> bytes:
    return b"\x7fELF" + bytes([2, 1 if order == "<" else 2]) + bytes(12) + struct.pack(f"{order}H", machine)


@pytest.mark.parametrize(
    ("head", "machine", "why"),
    [
        (elf(62), "x86_64", ""),
        (elf(3), "x86_64", ""),
        (elf(62), "some-machine", ""),
        (b"#!/bin/sh\n", "x86_64", ""),
        (b"", "x86_64", ""),
        (elf(183), "x86_64", "/db: cannot run on this machine (x86_64): it is an ELF program for aarch64"),
        (elf(62), "aarch64", "/db: cannot run on this machine (aarch64): it is an ELF program for x86_64"),
        (elf(22, ">"), "x86_64", "/db: cannot run on this machine (x86_64): it is an ELF program for s390x"),
        (b"this is no program", "x86_64", "/db: cannot run on this machine (x86_64): it is no program: it begins with"),
        (b"MZ", "some-machine", "/db: cannot run on this machine (some-machine): it is a program for Windows"),
    ],
)
def test_a_program_that_a_machine_does_not_run_is_told_by_how_it_begins(head: bytes, machine: str, why: str) -> None:
    said = unfit("/db", head, machine)
    assert said.startswith(why)
    assert bool(said) == bool(why)


async def test_without_the_parent_that_started_it_nothing_is_run(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(DIES_WITH_PARENT),
        "1",
        sys.executable,
        "-c",
        f"open({str(tmp_path / 'ran')!r}, 'w')",
    )
    assert await process.wait() == 5
    assert not (tmp_path / "ran").exists()


async def test_a_command_beside_the_harness_runs_as_it_is_told(tmp_path: Path) -> None:
    done = await run_here(["sh", "-c", "echo $0; pwd; env; echo oops >&2; exit 3", "word"], ENV, tmp_path)
    assert (done.code, done.err) == (3, "oops\n")
    said, where, *environment = done.out.splitlines()
    assert (said, where) == ("word", str(tmp_path))
    assert {line.partition("=")[0] for line in environment} <= {"PATH", "PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE"}
    for argv in (["/no/such/program"], [str(tmp_path)], ["no-such-program"]):
        with pytest.raises(BadInput, match=f"^{argv[0]}: no such program, or not executable"):
            await run_here(argv, ENV, tmp_path)


def test_a_command_beside_the_harness_ends_with_it(tmp_path: Path) -> None:
    """A drain of a cluster that is somebody's went on after the harness was killed."""
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)], cwd=ROOT)
    try:
        until = time.monotonic() + 60
        while not (tmp_path / "pid").exists():
            assert time.monotonic() < until
            assert parent.poll() is None
            time.sleep(0.02)
        child = psutil.Process(int((tmp_path / "pid").read_text()))
        os.kill(parent.pid, signal.SIGKILL)
        psutil.wait_procs([child], timeout=60)
        assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
    finally:
        parent.kill()
        parent.wait(10)
