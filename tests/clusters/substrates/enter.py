"""Run a program in a node of the substrate ``runner``: with the node's directory where every node has its own.

Usage: enter.py DIRECTORY MOUNTPOINT WORKING-DIRECTORY PROGRAM ARGUMENT… Standard library only, and an ordinary user
will do where user namespaces are allowed.
"""

import ctypes
import os
import signal
import sys
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
NEWNS, NEWUSER = 0x00020000, 0x10000000
BIND, REC, PRIVATE = 1 << 12, 1 << 14, 1 << 18
PR_SET_PDEATHSIG = 1


def checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        sys.exit(f"enter.py: {what}: {os.strerror(number)}")


def main() -> None:
    directory, point, working, *argv = sys.argv[1:]
    uid, gid = os.geteuid(), os.getegid()
    checked(LIBC.unshare(NEWNS | (NEWUSER if uid else 0)), "unshare")
    if uid:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    checked(LIBC.mount(None, b"/", None, REC | PRIVATE, None), "mount / private")
    checked(LIBC.mount(directory.encode(), point.encode(), None, BIND, None), f"mount {directory}")
    # A new user namespace took away what the supervisor had asked for.
    checked(LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
    os.chdir(working)
    os.execv(argv[0], argv)


main()
