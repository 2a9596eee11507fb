"""Where evidence is kept: one directory a run, one below it a trial, written as it happens and sealed with digests."""

import hashlib
import json
import os
import re
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from msgspec import UnsetType

from clusters import clocks
from clusters.errors import BadInput, HarnessError
from clusters.events import Happened
from clusters.executables import sha256
from plugin.evidence.events import Event, TrialEnd, without_secrets
from plugin.evidence.records import SCHEMA, MalformedRecord, event_line, read_events
from plugin.evidence.redaction import redacted, redacted_json
from plugin.evidence.trailer import trailer_of
from plugin.judge.model import Verdict

TRIAL_FILE, EVENTS, MEASUREMENTS = "trial.json", "events.jsonl", "measurements.jsonl"
VERDICT, RESULT, MANIFEST = "verdict.json", "result.json", "manifest.json"
CLUSTERS, LEFT_RUNNING = "clusters", "running.txt"
"""In the run directory, where clusters are; and in one's own how to talk to it and to end it, if it runs on."""
UNSEALED = {VERDICT, RESULT, MANIFEST}
"""Files of a trial that are not evidence: verdict and result are made from it, the manifest seals it."""


def unwritable(directory: Path) -> str:
    """Why no file can be written into a directory, which is made if it is missing; empty where one can be."""
    probe = directory / f".writable-{os.getpid()}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        return f"cannot be written ({error.strerror})"
    return ""


def make_run_directory(path: Path) -> Path:
    """Create the directory of a run. Raises ``BadInput`` when it cannot be written."""
    if why := unwritable(path) or unwritable(path / "claims"):
        raise BadInput(f"run directory {path}: {why}; give another with --run-dir DIR")
    return path


def slug(text: str) -> str:
    """A test's name as a file name: at most 80 characters, distinct names stay distinct, never ``.`` or ``..``."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")
    if plain and plain == text and len(plain) <= 80:
        return plain
    return f"{plain[:70]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def write(path: Path, text: str) -> Path:
    """Write a file in one step: a reader sees the old one or the new one. Raises ``OSError``, which names the file."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8", errors="replace")
        return temporary.replace(path)
    except OSError as error:
        error.filename, error.filename2 = str(path), None  # a disk that fills names none, and the other is gone
        raise
    finally:
        temporary.unlink(missing_ok=True)


def not_written(error: OSError) -> str:
    """What could not be written, and why, in words."""
    return f"{error.filename or 'a file'} cannot be written ({error.strerror or error})"


def write_json(path: Path, value: object) -> None:
    """Write a JSON file in one step. Raises ``OSError``."""
    write(path, json.dumps(value, indent=1, ensure_ascii=False, default=str) + "\n")


class TrialStore:
    """Writes the evidence of one trial.

    ``origin_ns`` is the zero of the trial's timeline (``time.monotonic_ns``), and ``began_ms`` the clock's time then,
    in milliseconds since 1970: for people, no measurement uses it. Every time in a file of the trial is of the
    harness's clock, which is named in ``trial.json``; those of nodes are compared with it (event ``clocks``). Every
    record is one ``write`` to a file opened for appending, so what happened up to a crash is there.
    """

    def __init__(self, directory: Path, description: Mapping[str, Any]) -> None:
        self.directory = directory
        self.origin_ns = time.monotonic_ns()
        self.began_ms = time.time_ns() // 1_000_000
        try:
            directory.mkdir(parents=True)
        except FileExistsError as error:
            raise HarnessError(f"evidence directory {directory} already exists: two tests share a name") from error
        self._events = os.open(directory / EVENTS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self.describe(description)

    def describe(self, description: Mapping[str, Any]) -> None:
        """Write what the trial is (``trial.json``); may be called again when more is known, until the store is closed.

        Raises ``HarnessError`` then: the trial's end has its checksum.
        """
        self._still_open(TRIAL_FILE)
        origin = {"origin_ns": self.origin_ns, "began_ms": self.began_ms, "clock": clocks.own()}
        write_json(self.directory / TRIAL_FILE, redacted_json({"schema": SCHEMA, **origin, **description}))

    def now(self) -> int:
        """Microseconds on the trial's timeline."""
        return (time.monotonic_ns() - self.origin_ns) // 1000

    def event(self, what: Happened) -> None:
        """Record that something was done or seen, now."""
        try:
            os.write(self._events, _line(self.directory, Event(self.now(), what)))
        except OSError as error:
            raise HarnessError(f"evidence cannot be written to {self.directory} ({error.strerror})") from error

    def measurement(self, metric: str, value: float, unit: str = "", note: str = "") -> None:
        """Record a measurement of a test's own. Raises ``TypeError`` or ``ValueError`` for what is no number.

        Raises ``HarnessError`` once the store is closed: the trial's end has the checksum of all measurements.
        """
        self._still_open(MEASUREMENTS)
        number = value if isinstance(value, int) else float(value)
        said = {"metric": metric, "value": number, "unit": redacted(unit), "note": redacted(note)}
        with (self.directory / MEASUREMENTS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(said) + "\n")

    def _still_open(self, name: str) -> None:
        if self._events < 0:
            why = "the trial has ended; record everything before judge.decide()"
            raise HarnessError(f"{name} cannot be written to {self.directory}: {why}")

    def close(self) -> None:
        """Close the files; the store writes no more."""
        if self._events >= 0:
            os.close(self._events)
            self._events = -1


def seal(directory: Path) -> None:
    """Write the digest of every evidence file of a trial into its manifest, so that a later edit is noticed."""
    files = {name: sha256(directory / name) for name in sealed_files(directory)}
    write_json(directory / MANIFEST, {"schema": SCHEMA, "sha256": files})


def record(directory: Path, what: Happened) -> None:
    """Record an event in a trial whose store may be closed. (An ``error`` lets no judge pass the trial, ever.)"""
    origin_ns = json.loads((directory / TRIAL_FILE).read_text(encoding="utf-8"))["origin_ns"]
    line = _line(directory, Event((time.monotonic_ns() - origin_ns) // 1000, what))
    with (directory / EVENTS).open("ab") as file:
        file.write(line)
    if (directory / MANIFEST).exists():
        seal(directory)


def _line(directory: Path, event: Event) -> bytes:
    """The event as it is written after those that are there: without secrets, the trial's end as their trailer."""
    if isinstance(event.what, TrialEnd):
        with (directory / EVENTS).open("rb") as before:
            event = Event(event.t, trial_end(directory, before))
    return event_line(without_secrets(event)).encode()


def trial_end(directory: Path, before: Iterable[bytes]) -> TrialEnd:
    """The end of a trial as the trailer of its description, its measurements, these lines of events and its files."""
    files = {name: told for name in sealed_files(directory) if (told := trailer_of(directory / name))}
    return _end(directory, [*before], files)


def _end(directory: Path, before: Sequence[bytes], files: Mapping[str, str] | UnsetType) -> TrialEnd:
    own = (directory / name for name in (TRIAL_FILE, MEASUREMENTS))
    listed = json.dumps(files, sort_keys=True).encode() if isinstance(files, Mapping) else b""
    recorded = b"".join([*(file.read_bytes() for file in own if file.exists()), *before, listed])
    return TrialEnd(lines=len(before), crc=f"{zlib.crc32(recorded):08x}", files=files)


def changed_since_end(directory: Path) -> Iterator[str]:
    """Where the end of a trial, as its trailer, is contradicted, in words."""
    path = directory / EVENTS
    lines = path.read_bytes().splitlines(keepends=True) if path.is_file() else []
    for at, line in enumerate(lines):
        told = _end_in(line)
        if told != TrialEnd() and told != (found := _end(directory, lines[:at], told.files)):
            yield (
                f"{TRIAL_FILE}, {MEASUREMENTS} or {EVENTS} is not as it was when the trial ended: {found.lines} events "
                f"came before, CRC-32 {found.crc}; its end says {told.lines}, {told.crc}"
            )
        for name, written in told.files.items() if isinstance(told.files, Mapping) else ():
            if (here := trailer_of(directory / name)) != written:
                left = "it has lost its end" if (directory / name).is_file() else "it is missing"
                now = f"it says {here}" if here else left
                yield f"{name} is not as it was when the trial ended ({written}): {now}"


def _end_in(line: bytes) -> TrialEnd:
    """The end of a trial that a line of events is; one that says nothing of any other line."""
    if b"trial.end" in line:
        with suppress(MalformedRecord):
            for event in read_events([line.decode("utf-8", "replace")]):
                if isinstance(event.what, TrialEnd):
                    return event.what
    return TrialEnd()


def store_verdict(directory: Path, verdict: Verdict) -> None:
    """Write the verdict beside its evidence, as ``verdict.schema.json`` says."""
    write_json(directory / VERDICT, redacted_json({"schema": SCHEMA, **as_stored(verdict)}))


def as_stored(verdict: Verdict) -> Mapping[str, Any]:
    """A verdict as plain JSON values. JSON has no infinity: such a number is written as text, as Python spells it."""
    plain: Mapping[str, Any] = json.loads(
        json.dumps(asdict(verdict), default=str), parse_constant=lambda name: str(float(name))
    )
    return plain


def stored_verdict(directory: Path) -> Mapping[str, Any] | None:
    """The verdict stored with a trial, or ``None`` where the run ended before one was reached."""
    return stored_object(directory / VERDICT)


def stored_object(path: Path) -> Mapping[str, Any] | None:
    """A JSON object, or ``None`` of a file that is missing, cut off or something else."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"), object_hook=_in_words_of_today)
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _in_words_of_today(found: dict[str, Any]) -> dict[str, Any]:
    """What is refuted was stored as ``fail`` by early releases."""
    return {**found, "outcome": "refuted"} if found.get("outcome") == "fail" else found


def trials_in(directory: Path) -> list[Path]:
    """The directories of the trials of a run, or the one trial that it is."""
    return sorted(path.parent for path in directory.rglob(TRIAL_FILE))


def sealed_files(directory: Path) -> list[str]:
    """The names of a trial's files that are evidence."""
    names = (str(path.relative_to(directory)) for path in sorted(directory.rglob("*")) if path.is_file())
    return [name for name in names if name not in UNSEALED]


def broken_seals(directory: Path) -> tuple[str, ...]:
    """What does not agree with the manifest, in words; empty when the evidence is as it was sealed."""
    path = directory / MANIFEST
    if not path.exists():
        return ("the evidence was never sealed: the run ended early",)
    try:
        sealed: dict[str, str] = dict(json.loads(path.read_text(encoding="utf-8"))["sha256"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        return (f"{MANIFEST} is unreadable ({error})",)
    problems = [f"{name} was added after the run" for name in sealed_files(directory) if name not in sealed]
    for name, expected in sealed.items():
        file = directory / name
        if not file.is_file():
            problems.append(f"{name} is missing")
        elif sha256(file) != expected:
            problems.append(f"{name} was changed after the run")
    return tuple(problems)
