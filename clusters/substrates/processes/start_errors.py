"""Why a process could not be started, in words that name the way out."""

import errno
import os
import platform
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from clusters.errors import BadInput, HarnessError

_MACHINES = {3: "i386", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64", 21: "ppc64le", 22: "s390x"}
"""ELF machine numbers (elf.h)."""


def refusal(argv: Sequence[str], step: str, number: int, path: str) -> Exception:
    """The error to raise for a process that could not be started; ``step`` is the supervisor's (see ``spawn``)."""
    program = argv[0]
    if step == "closed":
        return BadInput(
            f"{program}: cannot be run as the user nobody, who may not pass {path}. This program refuses root, and user "
            "namespaces are forbidden here: run the suite as an ordinary user, or from a place that others can read "
            f"(chmod o+x {path})"
        )
    if step == "exec" and number in (errno.ENOENT, errno.ENOTDIR):
        if Path(program).exists():
            return BadInput(
                f"{program}: its interpreter or loader does not exist on this machine ({_kind(program)}); use a binary "
                "made for this system's C library"
            )
        return BadInput(f"{program}: no such file; name an existing program")
    if step == "exec" and number == errno.EACCES:
        if Path(program).is_dir():
            return BadInput(f"{program}: is a directory; name the program in it")
        return BadInput(
            f"{program}: not executable for user {os.geteuid()}; chmod +x it, or mount its disk without noexec"
        )
    if step == "exec" and number == errno.ENOEXEC:
        return BadInput(f"{program}: cannot run on this machine ({platform.machine()}): it is {_kind(program)}")
    if step == "prepare" or number == 0:
        return HarnessError(f"cannot start {program}: {path}")
    reason = os.strerror(number)
    if number in (errno.ENOSPC, errno.EDQUOT):
        reason += "; free some space or use another directory"
    return HarnessError(f"cannot start {program}: {step} {path}: {reason}")


def _kind(program: str) -> str:
    try:
        with Path(program).open("rb") as opened:
            head = opened.read(128)
    except OSError:
        return "unreadable"
    if head.startswith(b"\x7fELF") and len(head) >= 20:
        (machine,) = struct.unpack(">H" if head[5] == 2 else "<H", head[18:20])
        return f"an ELF program for {_MACHINES.get(machine, f'machine {machine}')}"
    if head.startswith(b"#!"):
        return "a script for " + head[2:].splitlines()[0].decode(errors="replace").strip()
    if not head:
        return "an empty file"
    return f"no program: it begins with {head[:8]!r}"


@contextmanager
def refused(what: str) -> Iterator[None]:
    """Raise ``disk_error`` where the machine does not let us write."""
    try:
        yield
    except OSError as error:
        raise disk_error(what, error) from error


def disk_error(what: str, error: OSError) -> HarnessError:
    """The error to raise when the machine did not let us write: what was being done, where, and why not."""
    way_out = "; free some space or use another directory" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
    return HarnessError(f"cannot {what}: {error.filename or ''}: {error.strerror}{way_out}")
