"""Nodes' and clients' own logs are rid of the secrets that the run was given, and of nothing else."""

import tracemalloc
from pathlib import Path

import pytest

from clusters.errors import HarnessError
from plugin.evidence import logs, redaction
from plugin.evidence.logs import drop_links, withhold_given

SECRET = "velvet-marmot-of-1"


@pytest.fixture(autouse=True)
def given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_GIVEN", {})
    redaction.hide_given(
        {"ROACHPROOF_COCKROACH_LICENSE": SECRET, "PGPASSWORD": "otter", "DB_PASSWORD": "pässe pas wört"}
    )


def log(directory: Path, content: bytes, name: str = "logs/r01/n1/cockroach.log") -> Path:
    file = directory / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


@pytest.mark.parametrize("name", ["logs/r01/n1/cockroach.log", "logs/n2/output.txt", "ledger-0.log"])
def test_what_was_given_is_taken_out_of_a_log_and_all_else_stays(name: str, tmp_path: Path) -> None:
    told = (
        b"\xff\x00I1 set \xe2\x80\xb9'velvet-marmot-of-1'\xe2\x80\xba, %s, otter: otters \r\n"
        b"p\xc3\xa4sse pas w\xc3\xb6rt p%C3%A4sse%20pas%20w%C3%B6rt password=unknown"
    )
    written = log(tmp_path, told, name)
    withhold_given(tmp_path)
    assert written.read_bytes() == (
        b"\xff\x00I1 set \xe2\x80\xb9'\xe2\x80\xa6'\xe2\x80\xba, %s, \xe2\x80\xa6: otters \r\n"
        b"\xe2\x80\xa6 \xe2\x80\xa6 password=unknown"
    )
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == [written]


def test_a_log_that_holds_none_is_not_written_and_evidence_is_not_touched(tmp_path: Path) -> None:
    files = [log(tmp_path, b"otters, VELVET"), log(tmp_path, b"", "logs/n1/empty.log"),
             log(tmp_path, SECRET.encode(), "ledger.tsv")]  # fmt: skip
    (tmp_path / "logs/n1/newest.log").symlink_to(tmp_path / "ledger.tsv")
    before = [(file.stat().st_ino, file.read_bytes()) for file in files]
    withhold_given(tmp_path)
    assert [(file.stat().st_ino, file.read_bytes()) for file in files] == before


def test_a_log_has_one_name_and_what_is_no_log_keeps_its_links(tmp_path: Path) -> None:
    written = log(tmp_path, b"said", "logs/r01/n1/cockroach.host.2026.log")
    elsewhere = log(tmp_path, b"", "claims.tsv")
    for name, to in (("newest.log", written.name), ("gone.log", "nothing"), ("all", ".."), ("away", elsewhere)):
        written.with_name(name).symlink_to(to)
    (tmp_path / "other").symlink_to(elsewhere)
    drop_links(tmp_path)
    assert {*tmp_path.rglob("*")} - {*written.parents} == {written, elsewhere, tmp_path / "other"}
    assert written.read_bytes() == b"said"


def test_memory_does_not_grow_with_a_log(tmp_path: Path) -> None:
    written = log(tmp_path, b"")
    with written.open("wb") as file:
        file.truncate(64 << 20)
        file.seek(40 << 20)
        file.write(SECRET.encode())
    tracemalloc.start()
    withhold_given(tmp_path)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 8 << 20
    assert written.stat().st_size == (64 << 20) - len(SECRET) + len(redaction.HIDDEN.encode())


def test_a_log_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    written = log(tmp_path, SECRET.encode())
    monkeypatch.setattr(logs, "_copy", full)
    with pytest.raises(HarnessError, match=r"cockroach.log cannot be rid of .* \(No space left on device\)") as raised:
        withhold_given(tmp_path)
    assert SECRET not in str(raised.value)
    assert [*written.parent.iterdir()] == [written]
