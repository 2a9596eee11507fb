"""What is in the nodes' volumes: files that are put there, directories taken along, programs that images lack.

And where the harness keeps what is secret of a cluster on its own machine.
"""

import asyncio
import shlex
import tarfile
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import IO, BinaryIO

from clusters.archives import unpack
from clusters.errors import BadInput, HarnessError
from clusters.substrates.kubernetes.api import Api
from clusters.substrates.kubernetes.manifests import CONTAINER, LOGS
from clusters.substrates.kubernetes.settings import Program

_END = bytes(2 * tarfile.BLOCKSIZE)
"""With what an archive ends; what is cut off may have an exit code of 0 all the same."""
_LOGS_S = 60.0
"""How long the logs of one node may take."""


def private(directory: Path) -> Path:
    """A new directory of this machine (0700), with its whole path. Raises ``BadInput``."""
    try:
        directory.mkdir(mode=0o700, parents=True)
    except OSError as error:
        raise BadInput(
            f"{directory.parent}: clusters cannot be kept there ({error}); name a directory you may write to"
        ) from error
    return directory.resolve()


def pack_program(source: Path, into: BinaryIO) -> None:
    """A program, or a directory of them, as a tar archive with its name."""
    with tarfile.open(fileobj=into, mode="w") as archive:
        archive.add(source, arcname=source.name)
    into.flush()


def _unpack(packed: IO[bytes], into: Path) -> None:
    packed.seek(0)
    into.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=packed) as archive:
        unpack(archive, into)


def link(program: Program) -> str:
    """Commands that give a program of the image the path by which it is called."""
    there = shlex.quote(str(program.path))
    return f"mkdir -p {shlex.quote(str(program.path.parent))} && ln -sfn {shlex.quote(program.inside)} {there}"


class Files:
    """Archives to and from the container of a pod; each is a command of its own there."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api, self._namespace = api, namespace

    async def _executed(
        self, pod: str, argv: Sequence[str], what: str, *, feed: BinaryIO | None = None, into: BinaryIO | None = None
    ) -> None:
        stop = threading.Event()
        try:
            code, _, said = await asyncio.to_thread(
                self._api.execute, self._namespace, pod, argv, feed=feed, into=into, stop=stop, container=CONTAINER
            )
        finally:
            stop.set()
        if code:
            raise HarnessError(
                f"cannot {what} of {pod}: {said.decode(errors='replace').strip() or f'exit code {code}'}"
            )

    async def archive(self, pod: str, directory: PurePath, into: BinaryIO) -> None:
        """Pack a directory of the pod into a file that can be read, too. Raises ``HarnessError``."""
        await self._packed(pod, directory, into)
        size = into.seek(0, 2)
        into.seek(max(0, size - len(_END)))
        if size % tarfile.BLOCKSIZE or into.read() != _END:
            raise HarnessError(f"cannot pack {directory} of {pod}: the archive was cut off after {size} bytes")

    async def extract(self, pod: str, directory: PurePath, out_of: BinaryIO) -> None:
        """Unpack into a directory of the pod, which must be new or empty. Raises ``HarnessError``."""
        there = shlex.quote(str(directory))
        empty = f"mkdir -p {there} && [ -z \"$(ls -A {there})\" ] || {{ echo 'not empty' >&2; exit 1; }}"
        await self._unpacked(pod, directory, out_of, empty)

    async def copy(self, pod: str, program: Program) -> None:
        """Copy a program of this machine there. Raises ``HarnessError``."""
        with tempfile.TemporaryFile() as packed:
            await asyncio.to_thread(pack_program, program.source, packed)
            await self._unpacked(pod, program.path.parent, packed, f"mkdir -p {shlex.quote(str(program.path.parent))}")

    async def save_logs(self, pod: str, into: Path) -> None:
        """Keep the logs of the pod's node in a directory of this machine. What cannot be had any more is not kept."""
        with tempfile.TemporaryFile() as packed, suppress(HarnessError, TimeoutError, OSError, tarfile.TarError):
            async with asyncio.timeout(_LOGS_S):
                await self._packed(pod, LOGS, packed)
            await asyncio.to_thread(_unpack, packed, into)

    async def _packed(self, pod: str, directory: PurePath, into: BinaryIO) -> None:
        await self._executed(pod, ("tar", "-C", str(directory), "-cf", "-", "."), f"pack {directory}", into=into)
        into.flush()

    async def _unpacked(self, pod: str, directory: PurePath, out_of: BinaryIO, first: str) -> None:
        size = out_of.seek(0, 2)
        out_of.seek(0)
        script = f"{first} && head -c {size} | tar -C {shlex.quote(str(directory))} -xf -"
        await self._executed(pod, ("/bin/sh", "-c", script), f"unpack into {directory}", feed=out_of)
