"""Which release is the newest, and where releases come from."""

import hashlib
import platform
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from clusters.engines.cockroach.binary import resolve
from clusters.engines.cockroach.download import download
from clusters.engines.cockroach.vendor import Vendor, newest_release, release_entries
from clusters.engines.cockroach.version import Version
from clusters.errors import BadInput
from tests.clusters.misbehaving import (
    ARCHITECTURE,
    ARCHIVE,
    PROGRAM,
    RELEASES,
    VERSION,
    Server,
    begins,
    serving,
)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving() as server:
        yield server


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def test_newest_is_the_highest_that_can_be_downloaded(server: Server) -> None:
    assert str(newest_release(server.vendor())) == "v26.2.1"


def test_entries() -> None:
    entries = list(release_entries(RELEASES.decode()))
    assert len(entries) == 7
    assert entries[3]["release_name"] == "v26.2.1", "a nested field of that name is passed over"
    assert (entries[2]["withdrawn"], entries[5]["cloud_only"]) == ("true", "true")


@pytest.mark.parametrize("content", [b"", b"<html>", b"- release_name: v1.0\n  release_type: Production\n"])
def test_a_list_that_names_none(server: Server, content: bytes) -> None:
    server.files["/releases.yml"] = content
    with pytest.raises(BadInput, match="names no production release"):
        newest_release(server.vendor())


def test_a_list_that_trickles_is_given_up(server: Server) -> None:
    sent = list[int]()

    def trickles(handler: BaseHTTPRequestHandler, content: bytes) -> None:
        begins(handler, content, 0)
        for at in range(len(content)):
            if server.over.wait(0.1):
                return
            handler.wfile.write(content[at : at + 1])
            sent.append(at)

    server.bad["/releases.yml"] = trickles
    vendor = Vendor(releases=f"{server.url}/releases.yml", look_up_s=1.0)
    with pytest.raises(BadInput, match="the list of CockroachDB releases: the transfer stalled"):
        newest_release(vendor)
    assert 0 < len(sent) < len(RELEASES) / 4, "it would have taken two minutes and a half"


def test_latest_and_nothing_else_given(server: Server, cache: Path) -> None:
    environ = {"PATH": "", "ROACHPROOF_DOWNLOADS": server.url + "/"}
    found = resolve(path=None, version=None, environ=environ, cache=cache)
    assert str(found.version) == "v26.2.1"
    assert found.origin == f"the vendor's newest release, downloaded from {server.url}{ARCHIVE}"
    assert found.sha256 == hashlib.sha256(PROGRAM).hexdigest()
    again = resolve(path=None, version="latest", environ=environ, cache=cache)
    assert again.origin == f"--cockroach-version latest, from the cache {cache}"
    assert server.asked.count(ARCHIVE) == 1


def test_latest_does_not_fall_back_to_the_cache(server: Server, cache: Path) -> None:
    download(VERSION, cache, server.vendor())
    del server.files["/releases.yml"]
    with pytest.raises(BadInput, match="the list of CockroachDB releases can't be had"):
        resolve(path=None, version="latest", environ={"ROACHPROOF_DOWNLOADS": server.url}, cache=cache)


@pytest.mark.parametrize("address", ["ftp://host/x", "/a/directory", "file:///etc", "https://"])
def test_a_mirror_that_is_no_address(cache: Path, address: str) -> None:
    with pytest.raises(BadInput, match=r"ROACHPROOF_DOWNLOADS: .* is not an address"):
        resolve(path=None, version="v26.2.1", environ={"ROACHPROOF_DOWNLOADS": address}, cache=cache)


@pytest.mark.parametrize("user", ["ci:tok", "tok"])
def test_a_mirror_with_a_password(cache: Path, user: str) -> None:
    environ = {"ROACHPROOF_DOWNLOADS": f"https://{user}@mirror.example/x"}
    told = r"a user or a password .* is not sent. Give a mirror of mirror.example that asks for none, .*--cockroach"
    with pytest.raises(BadInput, match=told) as refused:
        resolve(path=None, version="v26.2.1", environ=environ, cache=cache)
    assert "tok" not in str(refused.value)


def test_the_vendor_is_the_default() -> None:
    vendor = Vendor.from_environ({})
    address = vendor.archive(Version.parse("24.1.3"))
    assert address == f"https://binaries.cockroachdb.com/cockroach-v24.1.3.linux-{ARCHITECTURE}.tgz"


def test_a_machine_without_downloads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(BadInput, match="no download for linux on riscv64"):
        Vendor().archive(VERSION)
