"""Runs of pytest that are forked from a process which has imported all they need, and so start without that wait.

That something is imported no earlier than it is used cannot be seen in such a run, nor that a worker imports it.
"""

import atexit
import io
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from pathlib import Path
from unittest.mock import patch

from tests.plugin import forked_workers

CHECKOUT = Path(__file__).parents[2]


@cache
def server() -> ForkServerContext:
    """What forks; it is started once, and ends with this process."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.plugin.preloaded"])
    with patch.dict(os.environ, PYTHONPATH=str(CHECKOUT)):
        forkserver.ensure_running()
    return context


def run(arguments: Sequence[str], directory: Path, output: Path, timeout: float) -> int:
    """Run pytest in ``directory`` with this process' environment, what it prints going to ``output``.

    Returns its exit status, a signal's number as a negative one. Raises TimeoutError after ``timeout`` seconds.
    """
    process = server().Process(target=_pytest, args=(list(arguments), directory, dict(os.environ), output))
    process.start()
    process.join(timeout)
    if process.is_alive():
        process.kill()
        process.join()
        raise TimeoutError(f"pytest ran for over {timeout} s: {output.read_text()}")
    assert process.exitcode is not None
    return process.exitcode


def said(arguments: Sequence[str], timeout: float = 600.0) -> tuple[int, str]:
    """Run pytest in the checkout; its exit status, and all that it printed."""
    with tempfile.TemporaryDirectory() as place:
        output = Path(place) / "output.txt"
        status = run([*arguments, "-p", "no:cacheprovider"], CHECKOUT, output, timeout)
        return status, output.read_text()


def _pytest(arguments: Sequence[str], directory: Path, environment: Mapping[str, str], output: Path) -> None:
    with output.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.stdout, sys.stderr = (io.TextIOWrapper(open(fd, "wb", closefd=False)) for fd in (1, 2))  # noqa: SIM115
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    sys.dont_write_bytecode = "PYTHONDONTWRITEBYTECODE" in environment
    sys.path.insert(0, str(directory))
    sys.argv = ["pytest", *arguments]
    forked_workers.spared(arguments)
    import pytest

    try:
        status = int(pytest.main([*arguments]))
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    sys.exit(status)
