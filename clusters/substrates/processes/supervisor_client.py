"""The harness's end of its conversation with a cluster's supervisor."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from clusters.errors import HarnessError

Answer = dict[str, Any]
"""The line that answers an order: ``ok``, or ``error`` (a text), or ``refused`` (step, error number, file)."""


class Link:
    """Orders to a supervisor and what it tells. Belongs to the event loop that opened it."""

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        files: Sequence[int],
        heard: Callable[[Answer], None],
        lost: Callable[[], None],
    ) -> None:
        """Start a supervisor that inherits ``files``. ``heard`` is called with each event, ``lost`` when it is gone."""
        self._cluster = str(config["id"])
        self._heard = heard
        self._lost = lost
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._number = 0
        self._text = b""
        self.trouble = ""
        """What the supervisor said could not be done at its end."""
        self.gone = asyncio.Event()
        """Set when guard and supervisor have both ended."""
        self._loop = asyncio.get_running_loop()
        self._hello: asyncio.Future[Answer] = self._loop.create_future()
        self._waiting[0] = self._hello
        # Seen by the supervisor as readable when this process ends, even if a fork of it keeps the pipe open.
        # Where that is not to be had (a kernel older than 5.3, a strict container), the end of the pipe must do.
        own = -1
        with suppress(OSError):
            own = os.pidfd_open(os.getpid())
        try:
            handed = [*files, own] if own >= 0 else [*files]
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(Path(__file__).with_name("supervisor.py"))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd="/",
                pass_fds=handed,
                start_new_session=True,
            )
        except OSError as error:
            raise HarnessError(f"cannot start the supervisor of {self._cluster}: {error}") from error
        finally:
            if own >= 0:
                os.close(own)
        self.guard = self._process.pid
        """The process id of the guard."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._pipes = (self._process.stdin, self._process.stdout)
        self._input, self._output = (pipe.fileno() for pipe in self._pipes)
        os.set_blocking(self._output, False)
        self._loop.add_reader(self._output, self._readable)
        self._send({**config, "harness": own, "handed": handed})

    async def hello(self) -> int:
        """The process id of the supervisor proper, once it serves. Raises ``HarnessError``."""
        async with asyncio.timeout(30):
            return int((await self._hello)["ok"]["supervisor"])

    def _send(self, fields: Mapping[str, Any]) -> None:
        text = json.dumps(fields).encode() + b"\n"
        try:
            while text:
                text = text[os.write(self._input, text) :]
        except OSError as error:
            raise self._gone_error() from error

    def _gone_error(self) -> HarnessError:
        said = f": {self.trouble}" if self.trouble else ""
        return HarnessError(
            f"the supervisor of {self._cluster} ended by itself or was killed{said}; its nodes are dead"
        )

    def _readable(self) -> None:
        try:
            block = os.read(self._output, 65536)
        except BlockingIOError:
            return
        if not block:
            self._loop.remove_reader(self._output)
            self.gone.set()
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(self._gone_error())
                    waiting.exception()  # Nobody may be waiting any more; that is not worth a warning.
            self._lost()
            return
        *lines, self._text = (self._text + block).split(b"\n")
        for line in lines:
            told: Answer = json.loads(line)
            if told.get("event") == "trouble":
                self.trouble = told["error"]
            elif "event" in told:
                self._heard(told)
            elif not (waiting := self._waiting.pop(told["id"])).done():
                waiting.set_result(told)

    def order(self, op: str, **fields: Any) -> asyncio.Future[Answer]:
        """Send an order; the future is its answer. Raises ``HarnessError`` if the supervisor is gone."""
        if self.gone.is_set():
            raise self._gone_error()
        self._number += 1
        waiting: asyncio.Future[Answer] = self._loop.create_future()
        self._waiting[self._number] = waiting
        self._send({"id": self._number, "op": op, **fields})
        return waiting

    async def carry_out(self, op: str, **fields: Any) -> Answer:
        """Send an order and wait for its answer. Raises ``HarnessError`` if it could not be carried out."""
        answer = await self.order(op, **fields)
        if "error" in answer:
            raise HarnessError(f"{self._cluster}: {op}: {answer['error']}")
        return answer

    async def leave(self, record: Mapping[str, Any]) -> None:
        """Have the supervisor go on without us; ``record``: what is to be removed at its end."""
        await self.carry_out("leave", record=record)
        self._loop.remove_reader(self._output)
        for pipe in self._pipes:
            pipe.close()
        self._process.returncode = 0  # it is not waited for

    async def close(self, *, keep: bool, timeout: float) -> None:
        """End the supervisor and everything below it. Raises ``HarnessError`` where that takes over ``timeout`` s."""
        with suppress(HarnessError):
            self.order("close", keep=keep)
        try:
            async with asyncio.timeout(timeout):
                await self.gone.wait()
        except TimeoutError:
            raise HarnessError(
                f"{self._cluster}: not cleared away {timeout:.0f} s after its end was asked for"
            ) from None
        finally:
            self._loop.remove_reader(self._output)
            for pipe in self._pipes:
                pipe.close()
            for _ in range(1000):  # The end of its output comes a moment before its own.
                if self._process.poll() is not None:
                    break
                await asyncio.sleep(0.002)
