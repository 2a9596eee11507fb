"""Downloads from a server that misbehaves in every way that was thought of."""

import errno
import hashlib
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from clusters.engines.cockroach import binary
from clusters.engines.cockroach import cache as store
from clusters.engines.cockroach.binary import offered, resolve
from clusters.engines.cockroach.download import download
from clusters.engines.cockroach.vendor import Vendor
from clusters.engines.cockroach.version import Version
from clusters.errors import BadInput
from tests.clusters.misbehaving import (
    ARCHIVE,
    GOOD,
    PROGRAM,
    SUM,
    TOP,
    VERSION,
    Server,
    begins,
    packed,
    serving,
)
from tests.clusters.substrates.processes.process_nodes import PATIENCE_S

ROOT = Path(__file__).parents[4]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving() as server:
        yield server


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def refusal(server: Server, cache: Path, stall_s: float = 60.0) -> str:
    """What is said; afterwards nothing counts as a version, and a good server makes everything good."""
    with pytest.raises(BadInput) as caught:
        download(VERSION, cache, server.vendor(stall_s))
    assert store.versions(cache) == ()
    assert not [p for p in (cache / "cockroach").iterdir() if not p.name.startswith(".lock-")]
    server.bad.clear()
    server.offer(GOOD)
    assert download(VERSION, cache, server.vendor()).is_file()
    return str(caught.value)


def test_a_good_download(server: Server, cache: Path) -> None:
    seen: list[tuple[int, int]] = []
    path = download(VERSION, cache, server.vendor(), lambda done, total: seen.append((done, total)))
    assert path == cache / "cockroach" / "v26.2.1" / "cockroach"
    assert path.read_bytes() == PROGRAM
    assert os.access(path, os.X_OK)
    assert (path.parent / "lib" / "libgeos.so").read_bytes() == b"geos"
    assert sorted(p.name for p in path.parent.iterdir()) == ["cockroach", "lib"]
    assert seen[-1] == (len(GOOD), len(GOOD))
    assert seen == sorted(seen)
    asked = len(server.asked)
    assert download(VERSION, cache, server.vendor()) == path
    assert len(server.asked) == asked


def test_a_download_that_nobody_asked_for_ends_with_its_time(server: Server, cache: Path) -> None:
    """By the clock that is given, which each look at it moves on. Nothing is kept; one without a limit goes on."""
    looks = itertools.count(step=61)

    def slowly(handler: BaseHTTPRequestHandler, content: bytes) -> None:
        begins(handler, content, 0.5)
        server.over.wait(PATIENCE_S)

    server.bad[ARCHIVE] = slowly
    vendor = replace(server.vendor(), whole_s=60.0)
    told = r"0 of 0 MiB came in the 60 s that .* --cockroach-version v26.2.1 waits for as long as it takes"
    with pytest.raises(BadInput, match=told):
        download(VERSION, cache, vendor, clock=lambda: next(looks))
    assert not [p for p in (cache / "cockroach").iterdir() if not p.name.startswith(".lock-")]
    server.bad.clear()
    looks = itertools.count(step=61)
    assert download(VERSION, cache, server.vendor(), clock=lambda: next(looks)).is_file()


def test_so_does_waiting_for_another_run_that_downloads_it(server: Server, cache: Path) -> None:
    looks = itertools.count(step=61)
    vendor = replace(server.vendor(), whole_s=60.0)
    with store.lock(cache, VERSION), pytest.raises(BadInput, match="0 MiB came in the 60 s"):
        download(VERSION, cache, vendor, clock=lambda: next(looks))
    assert server.asked == []


@pytest.mark.parametrize("limited", [True, False])
def test_only_what_is_not_named_has_a_limit(
    server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch, limited: bool
) -> None:
    given = list[float | None]()

    def seen(version: Version, cache: Path, vendor: Vendor, progress: object) -> Path:
        given.append(vendor.whole_s)
        return download(version, cache, vendor)

    monkeypatch.setattr(binary, "download", seen)
    environ = {"PATH": "", "ROACHPROOF_DOWNLOADS": server.url}
    resolve(path=None, version=None if limited else "latest", environ=environ, cache=cache, download_s=7.0)
    assert given == [7.0 if limited else None]


def test_whether_it_is_offered_is_asked_by_its_checksum_alone(server: Server, cache: Path) -> None:
    assert offered(str(VERSION), cache=cache, vendor=server.vendor())
    assert server.asked == [SUM]
    assert not cache.exists()
    with pytest.raises(BadInput, match=r"--cockroach-version v9.9.9: it is not in the cache .*answers 404"):
        offered("v9.9.9", cache=cache, vendor=server.vendor())
    download(VERSION, cache, server.vendor())
    assert not offered(str(VERSION), cache=cache, vendor=server.vendor()), "it is here: what is wrong is something else"


def test_a_version_that_does_not_exist(server: Server, cache: Path) -> None:
    del server.files[SUM], server.files[ARCHIVE]
    said = refusal(server, cache)
    assert "CockroachDB v26.2.1 can't be had" in said
    assert "answers 404. It does not exist, or it was withdrawn or removed" in said
    assert "https://www.cockroachlabs.com/docs/releases/" in said


def test_a_version_that_is_nowhere_is_told_with_what_there_is_and_then_the_way_out(server: Server, cache: Path) -> None:
    del server.files[SUM], server.files[ARCHIVE]
    with pytest.raises(BadInput) as refused:
        resolve(path=None, version=str(VERSION), environ={}, cache=cache, vendor=server.vendor())
    missing = f"--cockroach-version {VERSION}: {VERSION} is not in the cache {cache} (it has no version), and "
    assert str(refused.value).startswith(missing)
    assert str(refused.value).endswith("or name a binary you have with --cockroach PATH.")


def test_a_server_in_trouble(server: Server, cache: Path) -> None:
    server.bad[ARCHIVE] = lambda handler, _: handler.send_error(503)
    assert "answers 503 Service Unavailable. Try again later" in refusal(server, cache)


def test_truncated(server: Server, cache: Path) -> None:
    server.bad[ARCHIVE] = lambda handler, content: begins(handler, content, 0.5)
    assert f"the transfer was cut off: {len(GOOD) // 2} of {len(GOOD)} bytes" in refusal(server, cache)


def test_truncated_without_a_length(server: Server, cache: Path) -> None:
    def unsized(handler: BaseHTTPRequestHandler, content: bytes) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(content[:1000])

    server.bad[ARCHIVE] = unsized
    assert "wrong checksum" in refusal(server, cache)


def test_wrong_checksum(server: Server, cache: Path) -> None:
    server.files[ARCHIVE] = packed({f"{TOP}/cockroach": b"#!/bin/sh\necho something else\n"})
    said = refusal(server, cache)
    assert "wrong checksum" in said
    assert hashlib.sha256(GOOD).hexdigest() in said
    assert "Nothing of it was kept or run" in said


@pytest.mark.parametrize("content", [b"", b"<html>hello</html>", b"abc123  file.tgz\n"])
def test_a_checksum_that_is_none(server: Server, cache: Path, content: bytes) -> None:
    server.files[SUM] = content
    assert "does not begin with a SHA-256 checksum" in refusal(server, cache)
    assert server.asked.count(ARCHIVE) == 1, "the archive is not asked for without its checksum"


def test_stalled_in_the_middle(server: Server, cache: Path) -> None:
    def stalls(handler: BaseHTTPRequestHandler, content: bytes) -> None:
        begins(handler, content, 0.5)
        server.over.wait(30)

    server.bad[ARCHIVE] = stalls
    assert "the transfer stalled: no byte from" in refusal(server, cache, stall_s=1.0)


def test_stalled_before_the_first_byte(server: Server, cache: Path) -> None:
    def silent(handler: BaseHTTPRequestHandler, content: bytes) -> None:
        server.over.wait(30)

    server.bad[SUM] = silent
    assert "no byte from" in refusal(server, cache, stall_s=1.0)


def test_slow_is_not_stalled(server: Server, cache: Path) -> None:
    def slow(handler: BaseHTTPRequestHandler, content: bytes) -> None:
        begins(handler, content, 0)
        step = len(content) // 15 + 1
        for at in range(0, len(content), step):
            time.sleep(0.2)
            handler.wfile.write(content[at : at + step])

    server.bad[ARCHIVE] = slow
    seen: list[int] = []
    download(VERSION, cache, server.vendor(stall_s=2.5), lambda done, _: seen.append(done))
    assert len(seen) > 4, "progress is reported as bytes come, not at the end"


def test_connection_refused(server: Server, cache: Path) -> None:
    vendor = Vendor(downloads="http://127.0.0.1:9", stall_s=2)
    with pytest.raises(BadInput, match=r"can't be reached: .*refused.*ROACHPROOF_DOWNLOADS"):
        download(VERSION, cache, vendor)


def test_no_such_host(cache: Path) -> None:
    with pytest.raises(BadInput, match="can't be reached"):
        download(VERSION, cache, Vendor(downloads="http://downloads.invalid", stall_s=2))


@pytest.mark.parametrize(
    ("archive", "said"),
    [
        (b"not an archive at all", "is not the vendor's archive"),
        (GOOD[: len(GOOD) // 2], "is not the vendor's archive"),
        (packed({f"{TOP}/README": b"no binary"}), "it holds no cockroach"),
        (packed({}, links={f"{TOP}/cockroach": "/bin/sh"}), "it holds no cockroach"),
    ],
)
def test_an_archive_that_is_another(server: Server, cache: Path, archive: bytes, said: str) -> None:
    server.offer(archive)
    assert said in refusal(server, cache)


def test_names_in_the_archive_decide_nothing(server: Server, cache: Path, tmp_path: Path) -> None:
    evil = {
        f"{TOP}/lib/../../../evil": b"1",
        "../evil": b"2",
        f"/{tmp_path}/evil": b"3",
        f"{TOP}/lib/..": b"4",
    }
    server.offer(packed({**evil, f"{TOP}/cockroach": PROGRAM}, links={f"{TOP}/lib/passwd": "/etc/passwd"}))
    path = download(VERSION, cache, server.vendor())
    assert [p.name for p in path.parent.iterdir()] == ["cockroach"]
    assert not list(tmp_path.rglob("evil"))


def test_disk_full(server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("clusters.engines.cockroach.download.os.fsync", full)
        with pytest.raises(
            BadInput,
            match=r"the disk of the cache is full: .*ROACHPROOF_CACHE to a directory on another disk",
        ):
            download(VERSION, cache, server.vendor())
    assert not list((cache / "cockroach").glob(".download*"))
    assert download(VERSION, cache, server.vendor()).is_file()


def test_unwritable_cache(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(BadInput, match=r"the cache cannot be written: .*Set ROACHPROOF_CACHE"):
        download(VERSION, tmp_path / "file" / "cache", server.vendor())


def test_a_directory_in_the_way(server: Server, cache: Path) -> None:
    (cache / "cockroach" / "v26.2.1" / "cockroach-v26.2.1").mkdir(parents=True)
    with pytest.raises(BadInput, match="is in the way: it holds no file named cockroach"):
        download(VERSION, cache, server.vendor())


CHILD = """
import sys
from pathlib import Path
from clusters.engines.cockroach.binary import offered
from clusters.engines.cockroach.download import download
from clusters.engines.cockroach.vendor import Vendor
from clusters.engines.cockroach.version import Version
from clusters.engines.cockroach.version import Version
seen = []
print(download(Version.parse("v26.2.1"), Path(sys.argv[2]), Vendor(downloads=sys.argv[1]), lambda *p: seen.append(p)))
print(len(seen))
"""


def child(server: Server, cache: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, server.url, str(cache)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )


def until(true: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def at_the_lock(pid: int, cache: Path) -> bool:
    """Whether a process has opened the version's lock: it holds it, or waits for it."""
    lock = cache / "cockroach" / f".lock-{VERSION}"
    with suppress(OSError):
        return any(opened.readlink() == lock for opened in Path(f"/proc/{pid}/fd").iterdir())
    return False


def test_two_runs_at_once_download_once(server: Server, cache: Path) -> None:
    def slow(handler: BaseHTTPRequestHandler, content: bytes) -> None:
        begins(handler, content, 0.5)
        until(lambda: sum(at_the_lock(run.pid, cache) for run in runs) == 2, "one of them never came")
        time.sleep(1.5)
        handler.wfile.write(content[int(len(content) * 0.5) :])

    server.bad[ARCHIVE] = slow
    runs = list[subprocess.Popen[str]]()
    for _ in range(2):
        runs.append(child(server, cache))
    said = [run.communicate(timeout=PATIENCE_S)[0].split() for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    assert said[0][0] == said[1][0] == str(store.binary_path(cache, VERSION))
    assert all(int(words[1]) > 1 for words in said), "the one that waits reports progress too"
    assert server.asked.count(ARCHIVE) == 1


def test_sigkill_in_the_middle(server: Server, cache: Path) -> None:
    def stalls(handler: BaseHTTPRequestHandler, content: bytes) -> None:
        begins(handler, content, 0.5)
        server.over.wait(30)

    server.bad[ARCHIVE] = stalls
    run = child(server, cache)
    part = cache / "cockroach" / ".download-v26.2.1.tgz"
    try:
        until(lambda: part.exists() and part.stat().st_size > 0, "the download never began")
    finally:
        run.send_signal(signal.SIGKILL)
        run.communicate(timeout=PATIENCE_S)
    assert part.exists(), "the kill was to leave something behind"
    half_unpacked = part.with_name(".unpack-v26.2.1") / "lib" / "stale.so"
    half_unpacked.parent.mkdir(parents=True)
    half_unpacked.touch()
    assert store.versions(cache) == ()
    server.bad.clear()
    waited = list[int]()
    path = download(VERSION, cache, server.vendor(), lambda _, total: waited.append(total))
    assert path.read_bytes() == PROGRAM
    assert {*waited} == {len(GOOD)}, "the lock died with its holder: whoever waits for it knows no length"
    assert sorted(p.name for p in (cache / "cockroach" / "v26.2.1").rglob("*")) == [
        "cockroach",
        "lib",
        "libgeos.so",
    ]
    assert not part.exists()
