"""A shell in a container of a pod that stays open: a question costs a message each way, not a command of its own."""

import base64
import contextlib
import shlex
import threading
from collections.abc import Sequence
from typing import Any

from kubernetes.stream.ws_client import STDERR_CHANNEL

from clusters.errors import HarnessError
from clusters.substrates.kubernetes.api import Api
from clusters.substrates.kubernetes.manifests import SCRIPT

NODE = ("/bin/sh", str(SCRIPT), "shell")
"""What answers in a node's container."""
_SHOWN = 40
"""So much of a question is shown in messages."""


class Shell:
    """Asks a container of one pod. Threads may share it; it is opened with the first question, and again if lost.

    ``argv`` is what answers.
    """

    def __init__(self, api: Api, namespace: str, pod: str, argv: Sequence[str] = NODE, *, container: str) -> None:
        self._api, self._namespace, self._pod = api, namespace, pod
        self._argv, self._container = argv, container
        self._lock = threading.Lock()
        self._open: Any = None
        self._asked = 0

    def ask(self, function: str, *arguments: str, timeout: float = 10.0) -> tuple[int, str]:
        """A function of the node's script, or a command: its exit code and what it says. Blocks.

        Raises ``HarnessError`` where no answer comes.
        """
        question = shlex.join((function, *arguments))
        with self._lock:
            for last in (False, True):
                try:
                    return self._ask(question, timeout)
                except (HarnessError, OSError, ValueError) as error:
                    self._close()
                    if last or isinstance(error, TimeoutError):
                        # No more of it: what is written into files stands further on, and may be secret.
                        raise HarnessError(f"pod {self._pod} does not answer `{question[:_SHOWN]}`: {error}") from error
        raise AssertionError

    def _ask(self, question: str, timeout: float) -> tuple[int, str]:
        if "\n" in question:
            raise ValueError("a question stands on one line")
        if self._open is None:
            where = (self._namespace, self._pod, self._argv)
            self._open = self._api.open_exec(*where, stdin=True, container=self._container)
        self._asked += 1
        try:
            self._open.write_stdin(f"{self._asked} {question}\n".encode())
            line = self._open.readline_stdout(timeout=timeout)
            self._open.read_channel(STDERR_CHANNEL)  # else the client keeps all that was ever said there
        except Exception as error:
            raise OSError(str(error)) from error
        if not line:
            if self._open.is_open():
                raise TimeoutError(f"nothing within {timeout:g} s")
            raise OSError("the connection was closed")
        number, code, *said = line.decode().split(" ")
        if int(number) != self._asked:
            raise OSError("an answer to another question came")
        return int(code), base64.b64decode("".join(said)).decode(errors="replace")

    def _close(self) -> None:
        if self._open is not None:
            with contextlib.suppress(Exception):
                self._open.close()
        self._open = None

    def close(self) -> None:
        """Close it; a later question opens it again."""
        with self._lock:
            self._close()
