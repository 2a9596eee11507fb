"""Logs that nodes and clients wrote themselves, without the secrets that the run was given, each by one name.

Evidence of the harness's own is written without any; a log is mended once nobody writes to it, and before it is sealed.
"""

import os
from collections.abc import Iterator
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import BinaryIO

from clusters.errors import HarnessError
from plugin.evidence.redaction import HIDDEN, given_within

LOGS = "logs"
"""In a trial's directory those of nodes; what clients said lies beside it."""
_BLOCK = 1 << 20


def withhold_given(directory: Path) -> None:
    """Take them out of a trial's logs. Raises ``HarnessError`` where a file that holds one cannot be written."""
    for file in _logs(directory):
        try:
            _withhold(file)
        except OSError as error:
            raise HarnessError(
                f"{file} cannot be rid of secrets that this run was given ({error.strerror}): look into it, or delete "
                "it, before you hand the run directory on"
            ) from error


def drop_links(directory: Path) -> None:
    """Remove further names of logs, as servers have one for their newest: not all that copies a run copies links.

    ``kubectl cp`` leaves them out. What is sealed and not there would seem to have been taken away.
    """
    for file in [file for file in (directory / LOGS).rglob("*") if file.is_symlink()]:
        file.unlink()


def _logs(directory: Path) -> Iterator[Path]:
    for file in (*directory.glob("*.log"), *(directory / LOGS).rglob("*")):
        if file.is_file() and not file.is_symlink():
            yield file


def _withhold(file: Path) -> None:
    """Write the file anew where it holds one, in blocks: a node may have logged more than fits into memory."""
    if file.stat().st_size == 0:
        return
    with file.open("rb") as opened, mmap(opened.fileno(), 0, access=ACCESS_READ) as content:
        pattern = given_within(content)
        if pattern is None:
            return
        instead = file.with_name(f".{file.name}.{os.getpid()}")
        try:
            with instead.open("wb") as written:
                at = 0
                for found in pattern.finditer(content):
                    _copy(content, at, found.start(), written)
                    written.write(HIDDEN.encode())
                    at = found.end()
                _copy(content, at, len(content), written)
            instead.replace(file)
        finally:
            instead.unlink(missing_ok=True)


def _copy(content: mmap, begin: int, end: int, into: BinaryIO) -> None:
    for at in range(begin, end, _BLOCK):
        into.write(content[at : min(at + _BLOCK, end)])
