"""The homes of nodes and services: directories of the disk that nodes and harness share here."""

import asyncio
import errno
import os
import shutil
import tarfile
from contextlib import suppress
from pathlib import Path, PurePath
from typing import BinaryIO

from clusters import clocks
from clusters.archives import unpack
from clusters.clocks import Reading
from clusters.errors import HarnessError
from clusters.model import NodeSpec, Placement
from clusters.substrates.processes.start_errors import refused


class Homes:
    """What was placed, and the operations on its files."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._placements: dict[str, Placement] = {}
        self._services: dict[str, Placement] = {}

    def _placement(self, name: str) -> Placement:
        found = self._placements.get(name) or self._services.get(name)
        if found is None:
            raise HarnessError(f"{self._cluster}: {name} was never placed")
        return found

    async def present(self, program: Path, *, runs: Path | None = None) -> PurePath:
        """The same path: nodes see what this machine has."""
        return program

    def _inside(self, name: str, path: PurePath) -> Path:
        home = self._placement(name).home
        if not path.is_relative_to(home) or ".." in path.parts:
            raise HarnessError(f"{self._cluster}: {path} is not in the home of {name}, {home}")
        return Path(path)

    async def put(self, name: str, path: PurePath, content: bytes) -> None:
        """Write a file in the node's home. Raises ``HarnessError`` for a path outside it, or if the disk refuses."""
        place = self._inside(name, path)
        with refused(f"write a file of {name}"):
            await asyncio.to_thread(_write, place, content)

    async def archive(self, name: str, directory: PurePath, into: BinaryIO) -> None:
        """Pack a directory of the node. Raises ``HarnessError`` if there is none, or if the disk refuses."""
        place = self._inside(name, directory)
        with refused(f"pack what {name} has"):
            await asyncio.to_thread(_pack, place, into)

    async def extract(self, name: str, directory: PurePath, out_of: BinaryIO) -> None:
        """Unpack into a directory of the node. Raises ``HarnessError`` if it is not empty, or if the disk refuses."""
        place = self._inside(name, directory)
        with refused(f"unpack into a directory of {name}"):
            await asyncio.to_thread(_unpack, out_of, place)

    def clock(self, name: str) -> Reading:
        """The clock of this machine, which is every node's. Raises ``HarnessError`` for one that was never placed."""
        self._placement(name)
        return clocks.here()

    def ended_by(self, name: str) -> str:
        """Nothing: nobody here sees more of it than the exit code tells."""
        return ""

    def machine_lost(self, name: str) -> str:
        """Nothing: a harness whose machine is lost asks no more."""
        return ""

    def free_bytes(self, name: str) -> int | None:
        """Room on the disk of the node's home; ``None`` where that is gone."""
        with suppress(OSError):
            return shutil.disk_usage(self._placement(name).home).free
        return None


def housed(node: NodeSpec, address: str, home: Path) -> Placement:
    """A node or service with its directories made. Raises ``HarnessError`` if the disk refuses."""
    store, logs = home / "store", home / "logs"
    with refused(f"make the directories of {node.name}"):
        for place in (home, store, logs):
            place.mkdir(mode=0o700, exist_ok=True)
    return Placement(node=node, address=address, client_address=address, home=home, store=store, logs=logs)


def _write(path: Path, content: bytes) -> None:
    """Write a file in one step: whoever looks sees all of it or what was there before. Raises ``OSError``."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    fresh.replace(path)


def _pack(directory: Path, into: BinaryIO) -> None:
    """Write a directory as a tar archive. Raises ``OSError``."""
    with tarfile.open(fileobj=into, mode="w") as archive:
        archive.add(directory, arcname=".")
    into.flush()


def _unpack(out_of: BinaryIO, directory: Path) -> None:
    """Read a tar archive from its begin into a directory, which must be new or empty. Raises ``OSError``."""
    directory.mkdir(parents=True, exist_ok=True)
    if any(directory.iterdir()):
        raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), directory)
    out_of.seek(0)
    with tarfile.open(fileobj=out_of) as archive:
        unpack(archive, directory)
