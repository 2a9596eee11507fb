"""Archives are unpacked below a directory, with links between their files, and with nothing that leads out of it."""

import io
import os
import tarfile
from pathlib import Path

import pytest

from clusters.archives import unpack


def packed(*members: tarfile.TarInfo) -> tarfile.TarFile:
    """An archive of these, each file with its name as content."""
    into = io.BytesIO()
    with tarfile.open(fileobj=into, mode="w") as archive:
        for member in members:
            content = member.name.encode() if member.isreg() else b""
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    into.seek(0)
    return tarfile.open(fileobj=into)


def member(name: str, kind: bytes = tarfile.REGTYPE, to: str = "", mode: int = 0o644) -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type, found.linkname, found.mode = kind, to, mode
    return found


def test_what_was_packed_is_there(tmp_path: Path) -> None:
    source, copy = tmp_path / "source", tmp_path / "copy"
    (source / "logs" / "empty").mkdir(parents=True)
    (source / "logs" / "node.1.log").write_text("started")
    (source / "logs" / "node.log").symlink_to("node.1.log")
    os.link(source / "logs" / "node.1.log", source / "twice")
    (source / "run").write_text("#!/bin/sh")
    (source / "run").chmod(0o777)
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        archive.add(source, ".")
    with tarfile.open(tmp_path / "a.tar") as archive:
        unpack(archive, copy)
    assert (copy / "logs" / "empty").is_dir()
    assert (copy / "logs" / "node.log").readlink() == Path("node.1.log")
    assert (copy / "twice").read_text() == (copy / "logs" / "node.log").read_text() == "started"
    assert (copy / "run").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(
    "bad",
    [
        member("../out"),
        member("/etc/out"),
        member("in/../../out"),
        member("link", tarfile.SYMTYPE, "../out"),
        member("link", tarfile.SYMTYPE, "/etc"),
    ],
    ids=lambda one: f"{one.name} {one.linkname}".strip(),
)
def test_what_leads_out_is_refused(bad: tarfile.TarInfo, tmp_path: Path) -> None:
    into = tmp_path / "into"
    with packed(bad) as archive, pytest.raises(tarfile.TarError, match="leads out of the archive"):
        unpack(archive, into)
    assert [path.name for path in tmp_path.rglob("*") if path.name == "out" or path.is_symlink()] == []


def test_devices_stay_away(tmp_path: Path) -> None:
    with packed(member("null", tarfile.CHRTYPE), member("fifo", tarfile.FIFOTYPE), member("file")) as archive:
        unpack(archive, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
