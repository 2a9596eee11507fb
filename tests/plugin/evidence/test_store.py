"""The store of evidence: appended record by record, sealed, and honest about what was changed later."""

import errno
import json
import os
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clusters.errors import BadInput, HarnessError
from plugin.evidence.events import Errored, OwnEvent, TrialEnd
from plugin.evidence.records import read_events
from plugin.evidence.store import (
    EVENTS,
    MANIFEST,
    MEASUREMENTS,
    TRIAL_FILE,
    VERDICT,
    TrialStore,
    broken_seals,
    changed_since_end,
    make_run_directory,
    record,
    seal,
    slug,
    stored_verdict,
    write_json,
)
from plugin.evidence.trailer import add_trailer


@pytest.fixture
def store(tmp_path: Path) -> TrialStore:
    return TrialStore(tmp_path / "claims" / "answer" / "trial", {"claim": "answer"})


def names(store: TrialStore) -> list[str]:
    with (store.directory / EVENTS).open() as lines:
        return [event.name for event in read_events(lines)]


def test_every_record_is_one_write_at_the_end_of_its_file(store: TrialStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another process appends meanwhile stays, and nothing waits in a buffer."""
    writes: list[bytes] = []
    write = os.write

    def recorded(descriptor: int, data: bytes) -> int:
        writes.append(data)
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", recorded)
    store.event(OwnEvent(name="first", data={"what": "ü\nnew line"}))
    assert names(store) == ["first"], "it is there at once"
    with (store.directory / EVENTS).open("a") as file:
        file.write('{"t": 1, "event": "by another process"}\n')
    store.event(OwnEvent(name="last"))
    assert names(store) == ["first", "by another process", "last"]
    assert [data.count(b"\n") for data in writes] == [1, 1]
    assert all(data.endswith(b"\n") for data in writes)


def test_times_never_go_back(store: TrialStore) -> None:
    for _ in range(50):
        store.event(OwnEvent(name="tick"))
    with (store.directory / EVENTS).open() as lines:
        times = [event.t for event in read_events(lines)]
    assert times == sorted(times)
    assert 0 <= times[0] <= times[-1] <= store.now()


def test_two_tests_never_share_a_directory(store: TrialStore) -> None:
    with pytest.raises(HarnessError, match="already exists: two tests share a name"):
        TrialStore(store.directory, {})


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_evidence_that_cannot_be_written_fails_the_harness(
    store: TrialStore, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def full(*_: Any) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(HarnessError, match=f"cannot be written to .*{os.strerror(code)}"):
        store.event(OwnEvent(name="lost"))


def test_a_closed_store_writes_no_more(store: TrialStore) -> None:
    store.event(OwnEvent(name="only"))
    store.close()
    store.close()
    with pytest.raises(HarnessError, match="cannot be written"):
        store.event(OwnEvent(name="late"))
    with pytest.raises(HarnessError, match=r"the trial has ended; record everything before judge\.decide\(\)"):
        store.measurement("answer", 42)
    with pytest.raises(HarnessError, match=r"trial\.json cannot be written"):
        store.describe({})
    assert names(store) == ["only"]


@pytest.mark.parametrize("value", ["much", None, [1]])
def test_a_measurement_is_a_number(store: TrialStore, value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        store.measurement("answer", value)
    assert not (store.directory / MEASUREMENTS).exists()


def test_seals(store: TrialStore) -> None:
    store.event(OwnEvent(name="begun"))
    store.measurement("answer", 42)
    (store.directory / "logs").mkdir()
    (store.directory / "logs" / "n1.log").write_text("a log")
    assert broken_seals(store.directory) == ("the evidence was never sealed: the run ended early",)
    seal(store.directory)
    assert broken_seals(store.directory) == ()
    write_json(store.directory / VERDICT, {"outcome": "pass"})
    assert broken_seals(store.directory) == (), "the verdict is made from evidence, it is none"
    (store.directory / "logs" / "n1.log").write_text("another log")
    (store.directory / MEASUREMENTS).unlink()
    (store.directory / "note").touch()
    assert set(broken_seals(store.directory)) == {
        "note was added after the run",
        "logs/n1.log was changed after the run",
        f"{MEASUREMENTS} is missing",
    }


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"sha256": 3}', '{"sha256": ["x"]}'])
def test_a_manifest_that_cannot_be_read_seals_nothing(store: TrialStore, text: str) -> None:
    seal(store.directory)
    (store.directory / MANIFEST).write_text(text)
    (problem,) = broken_seals(store.directory)
    assert problem.startswith(f"{MANIFEST} is unreadable")


@given(position=st.integers(0, 10_000), flip=st.integers(1, 255))
def test_no_changed_byte_goes_unnoticed(tmp_path_factory: pytest.TempPathFactory, position: int, flip: int) -> None:
    store = TrialStore(tmp_path_factory.mktemp("trial") / "trial", {"claim": "answer"})
    store.event(OwnEvent(name="begun", data={"by": "a test"}))
    store.close()
    seal(store.directory)
    for name in (EVENTS, TRIAL_FILE):
        content = bytearray((store.directory / name).read_bytes())
        content[position % len(content)] ^= flip
        (store.directory / name).write_bytes(content)
    assert broken_seals(store.directory) == tuple(
        f"{name} was changed after the run" for name in sorted((EVENTS, TRIAL_FILE))
    )


def test_an_error_is_recorded_after_the_store_is_closed(store: TrialStore) -> None:
    """Sealed evidence stays sealed, what was never sealed does not become so."""
    store.event(TrialEnd())
    store.close()
    record(store.directory, Errored(what="the harness broke"))
    assert names(store) == ["trial.end", "error"]
    assert broken_seals(store.directory) == ("the evidence was never sealed: the run ended early",)
    seal(store.directory)
    record(store.directory, Errored(what="and once more"))
    assert names(store) == ["trial.end", "error", "error"]
    assert broken_seals(store.directory) == ()


def test_the_end_of_a_trial_is_the_trailer_of_what_was_recorded(store: TrialStore) -> None:
    """Of its description, its measurements and all events before; what is recorded later is none of it."""
    store.event(OwnEvent(name="begun"))
    store.measurement("answer", 42)
    store.event(TrialEnd())
    store.close()
    record(store.directory, Errored(what="and later"))
    record(store.directory, TrialEnd())
    assert [*changed_since_end(store.directory)] == []
    events = (store.directory / EVENTS).read_text()
    ends = [json.loads(line) for line in events.splitlines() if "trial.end" in line]
    assert [end["lines"] for end in ends] == [1, 3]
    for name, old, new, contradicted in (
        (EVENTS, "begun", "began", 2),
        (EVENTS, "and later", "and never", 1),
        (EVENTS, events.splitlines(keepends=True)[2], "", 1),
        (EVENTS, '"lines": 1, ', "", 2),
        (MEASUREMENTS, "42", "41", 2),
        (TRIAL_FILE, '"answer"', '"question"', 2),
    ):
        path = store.directory / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        found = [*changed_since_end(store.directory)]
        assert len(found) == contradicted, (old, found)
        assert all("is not as it was when the trial ended" in problem for problem in found)
        path.write_text(text)


def test_the_end_of_a_trial_has_the_trailers_of_its_files(store: TrialStore) -> None:
    """Of those that were written to their end by then; what is written to its end later has only its own."""
    lines = "a\nb\n"
    for name in ("one.tsv", "other.tsv", "open.tsv"):
        (store.directory / name).write_text(lines)
    for name in ("one.tsv", "other.tsv"):
        add_trailer(store.directory / name)
    store.event(TrialEnd())
    store.close()
    add_trailer(store.directory / "open.tsv")
    assert [*changed_since_end(store.directory)] == []
    told = json.loads((store.directory / EVENTS).read_text())["files"]
    written = f"2 lines, CRC-32 {zlib.crc32(lines.encode()):08x}"
    assert told == dict.fromkeys(("one.tsv", "other.tsv"), written)
    (store.directory / "one.tsv").write_text("a\n")
    (store.directory / "other.tsv").unlink()
    cut, missing = changed_since_end(store.directory)
    assert cut.startswith("one.tsv is not as it was when the trial ended (2 lines, CRC-32")
    assert cut.endswith("it has lost its end")
    assert missing.endswith("it is missing")


def test_an_end_without_trailers_of_files_is_read(store: TrialStore) -> None:
    """As those of the releases before."""
    crc = zlib.crc32((store.directory / TRIAL_FILE).read_bytes())
    (store.directory / "one.tsv").write_text("a\n")
    (store.directory / EVENTS).write_text(f'{{"t": 1, "event": "trial.end", "lines": 0, "crc": "{crc:08x}"}}\n')
    assert [*changed_since_end(store.directory)] == []


def test_an_end_that_says_nothing_of_what_was_before_is_read(store: TrialStore) -> None:
    """As those of early releases, and one that is no event."""
    with (store.directory / EVENTS).open("a") as file:
        file.write('{"t": 1, "event": "trial.end"}\n{"t": 2, "event": "trial.end", "lines": []}\n')
    assert [*changed_since_end(store.directory)] == []


def test_a_json_file_is_whole_or_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "verdict.json"
    write_json(path, {"outcome": "pass"})

    def broken(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", broken)
        with pytest.raises(OSError, match="No space"):
            write_json(path, {"outcome": "refuted"})
    assert json.loads(path.read_text()) == {"outcome": "pass"}


@pytest.mark.parametrize("text", [None, "", "{", "[]", "3", "null", "\x00"])
def test_no_verdict_is_no_verdict(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / VERDICT).write_text(text)
    assert stored_verdict(tmp_path) is None


def test_a_run_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/roachproof")):
        with pytest.raises(BadInput, match=r"cannot be written \(.+\); give another with --run-dir DIR"):
            make_run_directory(path)
    made = make_run_directory(tmp_path / "a" / "b")
    assert [entry.name for entry in made.iterdir()] == ["claims"]


@given(one=st.text(max_size=120), other=st.text(max_size=120))
@example(one="test[a/b]", other="test[a-b]")
@example(one="", other="-")
@example(one=".", other="..")
@example(one="x" * 81, other="x" * 82)
@example(one="Ä", other="Ö")
def test_distinct_names_stay_distinct(one: str, other: str) -> None:
    for name in (one, other):
        assert 0 < len(slug(name)) <= 80
        assert slug(name).isascii()
        assert "/" not in slug(name)
        assert slug(name) not in (".", "..")
    assert (slug(one) == slug(other)) == (one == other)


def test_what_early_releases_stored_as_fail_is_refuted(tmp_path: Path) -> None:
    write_json(tmp_path / VERDICT, {"outcome": "fail", "results": [{"outcome": "fail"}, {"outcome": "pass"}]})
    assert stored_verdict(tmp_path) == {"outcome": "refuted", "results": [{"outcome": "refuted"}, {"outcome": "pass"}]}
