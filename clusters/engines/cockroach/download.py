"""Brings a version from the vendor into the cache: checked, then unpacked beside its place, then renamed into it."""

import hashlib
import os
import re
import shutil
import tarfile
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from clusters.archives import write_member
from clusters.engines.cockroach.cache import binary_path, cache_error, lock, writable
from clusters.engines.cockroach.vendor import MIRROR, OWN_BINARY, Progress, Vendor, opened, text_at
from clusters.engines.cockroach.version import Version
from clusters.errors import BadInput

_CHUNK = 1 << 18
_SHA256 = re.compile(r"[0-9a-fA-F]{64}", re.ASCII)


def download(
    version: Version,
    cache: Path,
    vendor: Vendor,
    progress: Progress | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Path:
    """Make sure that the version is in the cache and return its binary's path.

    Parallel runs download once: the others wait. A run that is killed leaves files whose names begin with a dot, which
    never count as a version and which the next run removes. Raises ``BadInput`` for everything that can go wrong, also
    where the vendor's ``whole_s`` are over, in seconds of ``clock``; what came by then is removed.
    """
    place = binary_path(cache, version)
    if place.is_file():
        return place
    room = writable(cache / "cockroach")
    part, unpacked = room / f".download-{version}.tgz", room / f".unpack-{version}"

    until, reported = None if vendor.whole_s is None else clock() + vendor.whole_s, 0.0

    def heard(done: int, total: int) -> None:
        nonlocal reported
        if until is not None and clock() > until:
            came = f"{done >> 20} of {total >> 20} MiB" if total else f"{done >> 20} MiB"
            raise BadInput(
                f"CockroachDB {version}: {came} came in the {vendor.whole_s:g} s that a download which nobody asked "
                f"for may take. --cockroach-version {version} waits for as long as it takes."
            )
        if progress and (done == total or time.monotonic() - reported > 0.1):
            reported = time.monotonic()
            progress(done, total)

    def waiting() -> None:
        heard(part.stat().st_size if part.exists() else 0, 0)

    with lock(cache, version, waiting=waiting):
        if place.is_file():
            return place
        if place.parent.is_dir() and any(place.parent.iterdir()):
            raise BadInput(f"{place.parent} is in the way: it holds no file named cockroach. Remove it, {OWN_BINARY}.")
        try:
            _remove(part, unpacked)
            _receive(version, vendor, part, heard)
            _unpack(version, part, unpacked)
            unpacked.rename(place.parent)
        except OSError as error:
            raise cache_error(place.parent, error) from error
        finally:
            with suppress(OSError):
                _remove(part, unpacked)
    return place


def _remove(part: Path, unpacked: Path) -> None:
    part.unlink(missing_ok=True)
    if unpacked.exists():
        shutil.rmtree(unpacked)


def _receive(version: Version, vendor: Vendor, part: Path, progress: Progress) -> None:
    url, what = vendor.archive(version), f"CockroachDB {version}"
    wanted = checksum(version, vendor)
    hasher, done = hashlib.sha256(), 0
    # The answer is opened first: an OSError from here on is the cache's, not the network's.
    with opened(url, what, timeout=vendor.stall_s) as answer:
        length = answer.headers.get("Content-Length", "")
        total = int(length) if length.isdecimal() else 0
        with part.open("wb") as file:
            while chunk := answer.read1(_CHUNK):
                hasher.update(chunk)
                file.write(chunk)
                done += len(chunk)
                progress(done, total)
            file.flush()
            os.fsync(file.fileno())
    progress(done, total)
    if total and done != total:
        raise BadInput(
            f"{what}: the transfer was cut off: {done} of {total} bytes came from {url}. "
            f"Try again, {MIRROR}, {OWN_BINARY}."
        )
    if hasher.hexdigest() != wanted:
        raise BadInput(
            f"{what}: wrong checksum: {url} has SHA-256 {hasher.hexdigest()}, but {url}.sha256sum says {wanted}. "
            "Nothing of it was kept or run. Try again; if it stays so, don't trust that source: choose another mirror, "
            f"{OWN_BINARY}."
        )


def checksum(version: Version, vendor: Vendor) -> str:
    """What the vendor says is the SHA-256 of a version's archive. Raises ``BadInput`` where there is none."""
    url, what = f"{vendor.archive(version)}.sha256sum", f"CockroachDB {version}"
    words = text_at(url, f"the checksum of {what}", timeout=vendor.stall_s).split()
    if not words or not _SHA256.fullmatch(words[0]):
        raise BadInput(
            f"{what}: {url} does not begin with a SHA-256 checksum of 64 hexadecimal digits, so the archive could not "
            f"be verified: {MIRROR}, {OWN_BINARY}."
        )
    return words[0].lower()


def _unpack(version: Version, part: Path, unpacked: Path) -> None:
    """Write the binary and its ``lib`` directory; names in the archive never decide where a file goes."""
    try:
        with tarfile.open(part, mode="r|gz") as archive:
            for member in archive:
                inner = member.name.removeprefix("./").split("/")[1:]
                library = len(inner) == 2 and inner[0] == "lib" and inner[1] not in ("", ".", "..")
                if member.isreg() and (library or inner == ["cockroach"]):
                    member.mode = 0o755
                    write_member(archive, member, unpacked.joinpath(*inner))
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise _not_the_archive(version, str(error)) from error
    if not (unpacked / "cockroach").is_file():
        raise _not_the_archive(version, "it holds no cockroach-…/cockroach")


def _not_the_archive(version: Version, why: str) -> BadInput:
    return BadInput(
        f"CockroachDB {version}: what was downloaded is not the vendor's archive ({why}), although its checksum is "
        f"right: {MIRROR}, {OWN_BINARY}."
    )
