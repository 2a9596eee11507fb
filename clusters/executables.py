"""Programs of this machine: what tells one from another, how one ends with us, and why one cannot be run, in words."""

import errno
import hashlib
import os
import platform
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

_MACHINES = {3: "i386", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64", 21: "ppc64le", 22: "s390x"}
"""ELF machine numbers (elf.h), by the names of ``uname -m``."""
_ALSO_RUNS = {"x86_64": ("i386",), "aarch64": ("arm",)}
_MAC = "a program for macOS"
_FOREIGN = {b"MZ": "a program for Windows"} | dict.fromkeys((b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"), _MAC)

DIES_WITH_PARENT = Path(__file__).with_name("dies_with_parent.py")
"""A program that becomes another one, which the kernel then kills with the thread that started it."""


def dying_with_us(argv: Sequence[str]) -> list[str]:
    """A command line that runs this one, of which the first word is a path, until it ends or the calling thread does.

    Elsewhere than on Linux nothing ends it with us.
    """
    if sys.platform != "linux":
        return [*argv]
    return [sys.executable, "-I", "-S", str(DIES_WITH_PARENT), str(os.getpid()), *argv]


def sha256(path: Path) -> str:
    """The file's SHA-256 in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def why_not(program: Path, number: int | None) -> str:
    """Why a program could not be executed, by the error of ``execve``; nothing where that is not the file's own."""
    if number in (errno.ENOENT, errno.ENOTDIR):
        if not program.exists():
            return f"{program}: no such file; name an existing program"
        return (
            f"{program}: its interpreter or loader does not exist on this machine ({_kind_of(program)}); use a binary "
            "made for this system's C library"
        )
    if number == errno.EACCES:
        if program.is_dir():
            return f"{program}: is a directory; name the program in it"
        return f"{program}: not executable for user {os.geteuid()}; chmod +x it, or mount its disk without noexec"
    if number == errno.ENOEXEC:
        return f"{program}: cannot run on this machine ({platform.machine()}): it is {_kind_of(program)}"
    return ""


def unfit(program: object, head: bytes, machine: str) -> str:
    """Why a program that begins so (128 bytes) is not executed on a machine, as ``uname -m`` calls it.

    Nothing for a script, for what that machine or one that we do not know may run, and where nothing was read.
    """
    runs = {*_ALSO_RUNS.get(machine, ()), machine} if machine in _MACHINES.values() else {*_MACHINES.values()}
    if not head or head.startswith(b"#!") or _elf(head) in runs:
        return ""
    return f"{program}: cannot run on this machine ({machine}): it is {_kind(head)}"


def _elf(head: bytes) -> str:
    """The machine that an ELF program is for; empty for what is none."""
    if not head.startswith(b"\x7fELF") or len(head) < 20:
        return ""
    (machine,) = struct.unpack(">H" if head[5] == 2 else "<H", head[18:20])
    return _MACHINES.get(machine, f"machine {machine}")


def _kind_of(program: Path) -> str:
    try:
        with program.open("rb") as opened:
            return _kind(opened.read(128))
    except OSError:
        return "unreadable"


def _kind(head: bytes) -> str:
    if machine := _elf(head):
        return f"an ELF program for {machine}"
    for magic, what in _FOREIGN.items():
        if head.startswith(magic):
            return what
    if head.startswith(b"#!"):
        return "a script for " + head[2:].splitlines()[0].decode(errors="replace").strip()
    return f"no program: it begins with {head[:8]!r}" if head else "an empty file"
