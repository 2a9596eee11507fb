"""What is not done to a cluster of others: nothing of it is written, frozen, cut or read but what its owner allowed."""

from pathlib import PurePath
from typing import BinaryIO, NoReturn

from clusters.errors import HarnessError
from clusters.model import Placement
from clusters.substrates.adopted.finding import Found


class Untouched:
    """What of ``clusters.substrates.Substrate`` no such cluster has; no claim that needs it is evaluated there."""

    _found: Found

    def _not_done(self, what: str) -> NoReturn:
        raise HarnessError(f"StatefulSet {self._found.name}: {what} is not done to a cluster that we did not make")

    async def beside(self, name: str) -> Placement:
        """Not done."""
        self._not_done(f"to place {name} beside it")

    async def put(self, name: str, path: PurePath, content: bytes) -> None:
        """Not done."""
        self._not_done(f"to write {path}")

    async def archive(self, name: str, directory: PurePath, into: BinaryIO) -> None:
        """Not done."""
        self._not_done(f"to read {directory}")

    async def extract(self, name: str, directory: PurePath, out_of: BinaryIO) -> None:
        """Not done."""
        self._not_done(f"to write {directory}")

    async def wipe(self, name: str) -> None:
        """Not done."""
        self._not_done("to delete a store")

    async def signal(self, name: str, signum: int) -> None:
        """Not done."""
        self._not_done(f"to send signal {signum}")

    async def pause(self, name: str) -> None:
        """Not done."""
        self._not_done("to freeze a node")

    async def resume(self, name: str) -> None:
        """Nothing, as nothing is frozen."""

    async def cut(self, sender: str, receiver: str) -> str:
        """Not done."""
        self._not_done("to cut a link")

    async def heal(self, sender: str, receiver: str) -> None:
        """Nothing, as nothing is cut."""

    def cpu_seconds(self) -> float:
        """Not done."""
        self._not_done("to read how much CPU it used")

    def free_bytes(self, name: str) -> int | None:
        """Nobody says."""
        return None
