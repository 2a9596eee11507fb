"""Workers of pytest-xdist for runs that are forked: processes that have imported what a worker needs.

Each is forked before its run begins, while there are no threads, and waits. When xdist asks for a worker it is given
what the program that xdist would start would have of the run at that moment: environment, directory, and the other ends
of its pipes. One more than were forked is a program, as after a worker's death.
"""

import atexit
import io
import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from execnet import gateway_base, gateway_io

OPTION = "-n"


@dataclass(frozen=True, kw_only=True)
class Spare:
    """A child that waits to become a worker; what execnet asks of the process of one."""

    pid: int
    told: socket.socket

    def begin(self, *files: int) -> None:
        """Become a worker, with these as its standard input, output and error."""
        given = {"directory": str(Path.cwd()), "environment": dict(os.environ)}
        with self.told:
            socket.send_fds(self.told, [b"\n"], files)
            self.told.sendall(json.dumps(given).encode())
            self.told.shutdown(socket.SHUT_WR)  # its end is seen although those that were forked later have it, too

    def wait(self) -> int:
        """Until it has ended."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def kill(self) -> None:
        """At once."""
        os.kill(self.pid, signal.SIGKILL)


class SpareIO(gateway_io.Popen2IOMaster):
    """execnet's pipes to a worker that is a spare process."""

    def __init__(self, spare: Spare, execmodel: gateway_base.ExecModel) -> None:
        stdin, outfile = os.pipe()
        infile, stdout = os.pipe()
        spare.begin(stdin, stdout, 2)
        os.close(stdin)
        os.close(stdout)
        self.popen = spare
        gateway_base.Popen2IO.__init__(self, os.fdopen(outfile, "wb"), os.fdopen(infile, "rb"), execmodel=execmodel)


def spared(arguments: Sequence[str]) -> None:
    """Fork as many as pytest's arguments ask for, and have xdist take them. There must be no threads yet."""
    if OPTION not in arguments:
        return
    spares = [_spare() for _ in range(int(arguments[arguments.index(OPTION) + 1]))]
    programs = gateway_io.create_io

    def create_io(spec: Any, execmodel: gateway_base.ExecModel) -> gateway_io.Popen2IOMaster:
        return SpareIO(spares.pop(0), execmodel) if spares else programs(spec, execmodel)

    gateway_io.create_io = create_io


def _spare() -> Spare:
    ours, theirs = socket.socketpair()
    if pid := os.fork():
        theirs.close()
        return Spare(pid=pid, told=ours)
    ours.close()
    status = 1
    try:
        _work(theirs)
        status = 0
    finally:
        os._exit(status)


def _work(told: socket.socket) -> None:
    """What ``python -c`` with execnet's line does, once it is asked for; nothing if it never is."""
    _, files, *_ = socket.recv_fds(told, 1, 3)
    if not files:
        return
    with told, told.makefile() as file:
        given = json.load(file)
    for number, fd in enumerate(files):
        os.dup2(fd, number)
        os.close(fd)
    sys.stdin = io.TextIOWrapper(open(0, "rb", closefd=False))  # noqa: SIM115
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(open(fd, "wb", 0, closefd=False), write_through=True)  # noqa: SIM115
        for fd in (1, 2)
    )
    os.chdir(given["directory"])
    os.environ.clear()
    os.environ.update(given["environment"])
    sys.argv = ["-c"]
    try:
        exec(eval(sys.stdin.readline()), {"__name__": "__main__"})
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
