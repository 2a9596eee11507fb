"""The last line of an evidence file that was written to its end: how many lines came before it, and their checksum.

Of what the harness itself records the trial's end is the trailer (``plugin.evidence.store.trial_end``).

It finds what changed between the writing of a file and the sealing of its trial, and what was edited and sealed anew.
A file that is cut off loses its trailer; the trial's end has it, too.
"""

import os
import re
import zlib
from pathlib import Path
from typing import BinaryIO

TRAILER = re.compile(rb"^# (\d+) lines, CRC-32 ([0-9a-f]{8})\n\Z", re.MULTILINE)
LONGEST = 100
"""Bytes; no trailer is longer."""


def trailer(lines: int, crc: int) -> str:
    """The line, newline included; ``crc`` is ``zlib.crc32`` of all lines before it."""
    return f"# {lines} lines, CRC-32 {crc:08x}\n"


def add_trailer(path: Path) -> None:
    """Append the trailer to a file that is written to its end; where nothing was written there is none."""
    if path.exists():
        written = path.read_bytes()
        with path.open("a", encoding="utf-8") as file:
            file.write(trailer(written.count(b"\n"), zlib.crc32(written)))


def trailer_of(path: Path) -> str:
    """The trailer of a file in words, "12 lines, CRC-32 0a1b2c3d"; empty where it has none, or is not there."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        found = _found(file)
    return found[0].decode().strip("# \n") if found else ""


def contradicted(path: Path) -> str:
    """What is wrong with a file that has a trailer, in words; empty where nothing is, or where it has none.

    Whether it should have one, the trial's end says (``plugin.evidence.store.changed_since_end``).
    """
    with path.open("rb") as file:
        if not (found := _found(file)):
            return ""
        left, lines, crc = file.seek(0, os.SEEK_END) - len(found[0]), 0, 0
        file.seek(0)
        while left and (block := file.read(min(left, 1 << 20))):
            left, lines, crc = left - len(block), lines + block.count(b"\n"), zlib.crc32(block, crc)
    if (lines, crc) == (int(found[1]), int(found[2], 16)):
        return ""
    return f"{path.name} does not have the lines that it was written with: {lines} lines, {int(found[1])} were written"


def _found(file: BinaryIO) -> re.Match[bytes] | None:
    file.seek(max(0, file.seek(0, os.SEEK_END) - LONGEST))
    return TRAILER.search(file.read())
