"""Reads the evidence of a trial back, whole or cut off, for the judge."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, TypeVar

from msgspec import Meta, Struct, ValidationError, convert

from clusters.errors import BadInput
from plugin.evidence.events import KNOWN, Event, SabotageExpected, TrialEnd, seen, tag
from plugin.evidence.layout import LAYOUT, read_layout
from plugin.evidence.plan import read_plan
from plugin.evidence.records import SCHEMA, MalformedRecord, read_events, read_lines, read_probe
from plugin.evidence.store import EVENTS, MEASUREMENTS, TRIAL_FILE, broken_seals, changed_since_end, sealed_files
from plugin.evidence.trailer import contradicted
from plugin.judge.model import Measurement
from plugin.judge.trial import HostSecond, TrialEvidence
from plugin.workloads import WORKLOADS

T = TypeVar("T")


class Described(Struct, frozen=True, kw_only=True):
    """What must be so in a trial's description, or neither judge nor reports can use it."""

    claim: str
    parameters: dict[str, Any]
    profile: str
    seed: int
    context: dict[str, str]
    checks: list[dict[str, Any]]
    needs: list[str]
    tuned: list[str]
    buckets: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    sabotage: bool = False
    test: str = ""
    target: str = ""
    fingerprint: dict[str, Any] = {}
    observed: dict[str, dict[str, Any]] = {}
    sides: dict[str, dict[str, Any]] = {}


PROBE, HOST = "probe.jsonl", "host.jsonl"


def describe_trial(directory: Path) -> Mapping[str, Any]:
    """What the trial is, as written when it began. Raises ``BadInput`` for what is no trial or of another schema."""
    try:
        trial: Mapping[str, Any] = json.loads((directory / TRIAL_FILE).read_text(encoding="utf-8"))
        schema = trial["schema"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _no_trial(directory, error) from error
    if schema != SCHEMA:
        raise BadInput(
            f"{directory / TRIAL_FILE}: evidence of schema {schema}; this release reads schema {SCHEMA}: "
            "judge it with the release that recorded it"
        )
    try:
        convert(trial, Described)
    except ValidationError as error:
        raise _no_trial(directory, error) from error
    return trial


def _no_trial(directory: Path, why: object) -> BadInput:
    return BadInput(
        f"{directory / TRIAL_FILE}: not the description of a trial ({why}); give a directory as a run wrote it"
    )


def load_trial(directory: Path, trial: Mapping[str, Any]) -> TrialEvidence:
    """The evidence of a trial. What is cut off, malformed or was edited is listed in its ``problems``."""
    problems = list(broken_seals(directory))
    problems += filter(None, (contradicted(directory / name) for name in sealed_files(directory)))
    problems += changed_since_end(directory)

    def whole(name: str, parse: Callable[[Iterable[str]], Iterator[T]]) -> list[T]:
        found = _whole(directory / name, parse, problems)
        problems.extend(_backwards(name, found))
        return found

    host, host_problems = _host(directory / HOST)
    probe = _read(directory / PROBE, read_probe, problems)
    problems += _backwards(PROBE, probe[1] if probe else ())
    events = whole(EVENTS, _events)
    if not seen(events, TrialEnd):
        problems.append("the test ended before it had gathered all its evidence (no trial.end)")
    if seen(events, SabotageExpected) and not trial.get("sabotage"):
        problems.append(f"{TRIAL_FILE} says that it is no sabotage, and an event what the sabotage must come to")
    return TrialEvidence(
        claim=trial["claim"],
        parameters={name: str(value) for name, value in trial["parameters"].items()},
        profile=trial["profile"],
        seed=int(trial["seed"]),
        buckets=int(trial.get("buckets", 0)),
        context=trial["context"],
        events=events,
        measurements=whole(MEASUREMENTS, _measurements),
        probe=probe,
        layout=whole(LAYOUT, read_layout),
        workloads={
            name: found
            for name, workload in WORKLOADS.items()
            if workload.left(directory) and (found := workload.read(directory, problems)) is not None
        },
        host=host,
        host_problems=host_problems,
        plan=read_plan(directory),
        problems=tuple(problems),
    )


def _whole(path: Path, parse: Callable[[Iterable[str]], Iterator[T]], problems: list[str]) -> list[T]:
    """All records of a file up to the first malformed one, which is a problem; none where there is no file."""
    records: list[T] = []
    _read(path, lambda lines: records.extend(parse(lines)), problems)  # keeps what came before a malformed line
    return records


def _backwards(name: str, records: Sequence[Any]) -> Iterator[str]:
    """Where times of records (``t``) run backwards, which no clock of ours does."""
    for one, other in pairwise(records):
        if getattr(one, "t", 0) > getattr(other, "t", 0):
            yield f"{name}: {other.t / 1e6:.1f} s after {one.t / 1e6:.1f} s, times run backwards"
            return


def _read(path: Path, parse: Callable[[Iterable[str]], T], problems: list[str]) -> T | None:
    """What ``parse`` makes of a file; ``None`` where there is none, or of a malformed one, which is a problem."""
    with suppress(FileNotFoundError), path.open(encoding="utf-8", errors="replace") as lines:
        try:
            return parse(lines)
        except MalformedRecord as error:
            problems.append(f"{path.name}: {error}")
    return None


def _host(path: Path) -> tuple[list[HostSecond], tuple[str, ...]]:
    """The host's load, second by second, and what is wrong with its record, which only times rest on.

    A line that is no such second is left out; a last one that was cut off is no problem.
    """
    seconds, problems = list[HostSecond](), list[str]()
    lines = path.read_text("utf-8", "replace").splitlines(keepends=True) if path.exists() else []
    for number, line in enumerate(lines, 1):
        if line.startswith("#") or not line.endswith("\n"):
            continue
        try:
            seconds.append(host_second(json.loads(line)))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
            problems.append(f"{path.name}: line {number}: {line[:100]!r} is no second of the host")
    return seconds, (*problems, *_backwards(path.name, seconds))


def host_second(data: Mapping[str, Any]) -> HostSecond:
    """A line of the host's record. Raises what Python does where it is none."""
    parts = (
        None if (part := data.get(name)) is None else float(part)
        for name in ("others_percent", "disk_stalled_percent", "disk_others_percent", "network_percent")
    )
    return HostSecond(int(data["t"]), float(data["cpu_percent"]), *parts)


def events_of(directory: Path) -> list[Event]:
    """The events of a trial, as far as they can be read."""
    return _whole(directory / EVENTS, _events, [])


def _events(lines: Iterable[str]) -> Iterator[Event]:
    """The events, also those of all workloads' own classes. Raises ``MalformedRecord``."""
    own = {tag(kind): kind for workload in WORKLOADS.values() for kind in workload.events}
    return read_events(lines, {**KNOWN, **own})


def _measurements(lines: Iterable[str]) -> Iterator[Measurement]:
    def measurement(line: str) -> Measurement:
        found = Measurement(**json.loads(line))
        if not isinstance(found.value, int | float):
            raise TypeError("its value is no number")
        if not all(isinstance(text, str) for text in (found.metric, found.unit, found.note)) or found.examples:
            raise TypeError("its metric, unit and note are not all texts, or it has more than these and a value")
        return found

    return read_lines(lines, measurement, "a measurement")
