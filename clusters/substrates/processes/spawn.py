"""Starting one process out of the single-threaded supervisor. Standard library only.

``subprocess`` is not used because it tells neither which step before ``exec`` failed nor lets one change the user
namespace between them.
"""

import ctypes
import json
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWIPC = 0x08000000
NOBODY = 65534


class Failed(Exception):  # noqa: N818 - the word of the reply
    """An order could not be carried out; the text is for the harness."""


class Refused(Exception):  # noqa: N818 - the word of the reply
    """A process could not be started: the step that failed, the error's number, and the file it was about."""

    def __init__(self, step: str, errno: int, path: str) -> None:
        super().__init__(step, errno, path)
        self.step, self.errno, self.path = step, errno, path


def checked(result: int) -> None:
    """Raise ``OSError`` where a function of the C library says that it failed."""
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def die_with_parent(signum: int) -> None:
    """Have the kernel send us ``signum`` when the thread that is our parent ends."""
    checked(LIBC.prctl(_PR_SET_PDEATHSIG, signum, 0, 0, 0))


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent dies."""
    checked(LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))


def _enter_namespace() -> None:
    """Become nobody, if we are root, in a user namespace of one's own, with System V memory of its own.

    Files stay owned by our user outside, so no directory is closed. A PostgreSQL that is killed leaves a segment of
    shared memory behind, which no exit of a process frees; it goes with the namespace.
    """
    uid, gid = os.geteuid(), os.getegid()
    checked(LIBC.unshare(_CLONE_NEWUSER | _CLONE_NEWIPC))
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid or NOBODY} {uid} 1"),
        ("gid_map", f"{gid if uid else NOBODY} {gid} 1"),
    ):
        Path(f"/proc/self/{name}").write_text(text)


def _become_nobody() -> None:
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def namespaces_work() -> bool:
    """Whether we may make user namespaces here (containers often forbid it): tried once, in a child."""
    pid = os.fork()
    if pid == 0:
        code = 1
        with suppress(OSError):
            _enter_namespace()
            code = 0
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def own_by_nobody(tree: str) -> None:
    """Give a directory and all in it to nobody, for where there are no user namespaces."""
    for place, _, files in os.walk(tree):
        os.chown(place, NOBODY, NOBODY, follow_symlinks=False)
        for name in files:
            with suppress(FileNotFoundError):
                os.chown(f"{place}/{name}", NOBODY, NOBODY, follow_symlinks=False)


def _closed(path: str) -> str | None:
    """The first file on the way to ``path`` that we may not pass, if any."""
    for end in (Path(path), Path(path).resolve()):
        for place in (*reversed(end.parents), end):
            if place.exists() and not os.access(place, os.X_OK):
                return str(place)
    return None


def spawn(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str,
    output: str,
    error: str | None,
    identity: str | None,
    groups: Sequence[str],
    network: int | None = None,
) -> int:
    """Start a process in a session of its own that dies with us, and return its id. Raises ``Refused``.

    ``identity``: ``namespace`` or ``setuid`` to run as nobody (in a namespace only root becomes nobody), ``None`` to
    run as we are. ``groups`` are the files of control groups to join. ``error`` is where standard error goes if not to
    ``output``. ``network`` is the open file of a network namespace to be in.
    """
    supervisor = os.getpid()
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        step, path = "prepare", argv[0]
        try:
            os.setsid()
            # Some are changed here, others ignored where a shell started us in its background: a node must hear its
            # stop signal.
            for signum in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
                signal.signal(signum, signal.SIG_DFL)
            step = "limit"
            for path in groups:
                Path(path).write_text("0")
            step, path = "output", output
            os.umask(0o077)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 1)
            path = error or output
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600) if error else 1, 2)
            if network is not None:
                from clusters.substrates.processes import namespaces

                step, path = "network", "namespace"
                namespaces.enter(network)
            step, path = "identity", argv[0]
            if identity == "namespace":
                _enter_namespace()
            elif identity == "setuid":
                _become_nobody()
                for path in (cwd, argv[0]):
                    if (place := _closed(path)) is not None:
                        step, path = "closed", place
                        raise PermissionError(13, "closed")
            # After the change of user, which clears it.
            die_with_parent(signal.SIGKILL)
            if os.getppid() != supervisor:
                os._exit(127)
            step, path = "cwd", cwd
            os.chdir(cwd)
            step, path = "exec", argv[0]
            os.execve(argv[0], list(argv), dict(env))  # noqa: S606 - starting programs is its purpose
        except BaseException as error_:
            number = (error_.errno if isinstance(error_, OSError) else None) or 0
            os.write(writing, json.dumps([step, number, path if number else f"{path}: {error_}"]).encode())
        finally:
            os._exit(127)
    os.close(writing)
    try:
        told = b""
        while block := os.read(reading, 65536):
            told += block
    finally:
        os.close(reading)
    if told:
        os.waitpid(pid, 0)
        step, number, path = json.loads(told)
        raise Refused(step, number, path)
    return pid
