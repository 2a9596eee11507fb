"""A process of this suite's beside the harness: told what to do a line at a time, and not ended by what ends that."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from clusters.errors import HarnessError

_ROOT = Path(__file__).resolve().parents[3]
_END_S = 30.0
_LAST_BYTES = 4096


def _absolute(environment: Mapping[str, str]) -> Mapping[str, str]:
    """The files of kubeconfig by paths that hold in another directory, too."""
    files = [
        str(Path(one).expanduser().absolute()) for one in environment.get("KUBECONFIG", "").split(os.pathsep) if one
    ]
    return {"KUBECONFIG": os.pathsep.join(files)} if files else {}


class Companion:
    """A module that runs in a session of its own. Its standard input ends with the harness, however that ended.

    ``does``: what it is there for, in words.
    """

    def __init__(self, module: str, does: str) -> None:
        self._does = does
        # Of the disk and no pipe: it goes on writing where we have ended.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - `end` closes it
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
            cwd=_ROOT,
            env={**os.environ, **_absolute(os.environ)},
            text=True,
        )

    def refuse_ended(self) -> None:
        """Raise ``HarnessError`` where it has ended before it was told to: nobody does what it was there for."""
        if self._process.poll() is not None:
            raise self._ended()

    def tell(self, what: Any) -> None:
        """Send it a line of JSON. Raises ``HarnessError`` where it has ended."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(what) + "\n")
            self._process.stdin.flush()
        except OSError as error:
            raise self._ended() from error

    def ask(self, what: Any) -> Any:
        """The same, and what it answers with such a line. Blocks. Raises ``HarnessError``."""
        self.tell(what)
        assert self._process.stdout is not None
        try:
            return json.loads(self._process.stdout.readline())
        except (OSError, ValueError) as error:
            raise self._ended() from error

    def _ended(self) -> HarnessError:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=_END_S)
        why = f": {said[-1]}" if (said := self._said()) else ""
        return HarnessError(f"the process that {self._does} ended with {self._process.returncode}{why}")

    def _said(self) -> list[str]:
        """The last lines of its standard error; none once it was told to end."""
        if self._errors.closed:
            return []
        size = os.fstat(self._errors.fileno()).st_size
        last = os.pread(self._errors.fileno(), _LAST_BYTES, max(0, size - _LAST_BYTES))
        return last.decode(errors="replace").split("\n")[:-1]

    def end(self, last: Any = None) -> None:
        """End its input, after a ``last`` word where one is given, and wait until it has ended; not for ever."""
        if last is not None and self._process.poll() is None:
            self.tell(last)
        for end in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                assert end is not None
                end.close()
        try:
            self._process.wait(timeout=_END_S)
        except subprocess.TimeoutExpired:  # as one whose API server does not answer; it was told all that there is
            self._process.kill()
            self._process.wait()
        self._errors.close()
