"""The user's cache of ``cockroach`` binaries.

A binary lies at ``<cache>/cockroach/<version>/cockroach``, with the vendor's ``lib`` directory beside it if there is
one. Binaries may be put there by hand; the directory's name must be the version that the binary itself reports, for
instance ``v24.1.3``.
"""

import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from clusters.engines.cockroach.version import Version
from clusters.errors import BadInput, HarnessError

LOCK_WAIT_S = 1800.0
"""How long one run waits for another that downloads the same version. A download that stalls ends by itself sooner."""


def binary_path(cache: Path, version: Version) -> Path:
    """Where this version's binary lies, or would lie."""
    return cache / "cockroach" / str(version) / "cockroach"


def told(cache: Path) -> str:
    """The cache in words, with what it has."""
    return f"the cache {cache} (it has {', '.join(map(str, versions(cache))) or 'no version'})"


def versions(cache: Path) -> tuple[Version, ...]:
    """The versions in the cache, oldest first. Unfinished downloads and anything else that lies there don't count."""
    found: set[Version] = set()
    with suppress(OSError):
        for entry in (cache / "cockroach").iterdir():
            with suppress(BadInput, OSError):
                version = Version.parse(entry.name)
                if entry.name == str(version) and (entry / "cockroach").is_file():
                    found.add(version)
    return tuple(sorted(found))


def writable(directory: Path) -> Path:
    """Make a directory of the cache. Raises ``BadInput`` where that cannot be done."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        probe = directory / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise cache_error(directory, error) from error
    return directory


def cache_error(where: Path, error: OSError) -> BadInput:
    """What to tell a user whose cache cannot be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return BadInput(
            f"the disk of the cache is full: {where}: {error.strerror}. A version needs about 600 MB while it is "
            "unpacked and 300 MB afterwards. Free some room, or set ROACHPROOF_CACHE to a directory on another disk."
        )
    return BadInput(
        f"the cache cannot be written: {where}: {error.strerror or error}. Set ROACHPROOF_CACHE to a directory of "
        "your own, or name a binary with --cockroach PATH."
    )


@contextmanager
def lock(cache: Path, version: Version, *, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold the right to bring this version into the cache; it ends with the process that holds it.

    ``waiting`` is called about five times a second while another run holds it. Raises ``HarnessError`` after
    ``LOCK_WAIT_S``.
    """
    path = writable(cache / "cockroach") / f".lock-{version}"
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise cache_error(path, error) from error
    try:
        end = time.monotonic() + LOCK_WAIT_S
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise HarnessError(
                        f"another run has held {path} for {LOCK_WAIT_S:.0f} s to bring {version} into the cache"
                    ) from None
                if waiting:
                    waiting()
                time.sleep(0.2)
        yield
    finally:
        os.close(handle)
