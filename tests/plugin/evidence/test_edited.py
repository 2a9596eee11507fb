"""A single edit of a refuted trial's evidence: it is never passed, and the judge never fails over it."""

import atexit
import json
import re
import shutil
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory, mkdtemp
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusters.errors import BadInput
from fixtures.workloads.ledger.records import (
    FINAL,
    FINAL_HEADER,
    HISTORY,
    HISTORY_HEADER,
    final_line,
    history_line,
)
from plugin.catalogue import load
from plugin.evidence.load import HOST, PROBE
from plugin.evidence.records import SCHEMA, event_line, probe_header, probe_line
from plugin.evidence.store import EVENTS, MANIFEST, TRIAL_FILE, seal
from plugin.evidence.trailer import trailer
from plugin.judge.model import Outcome, Verdict
from plugin.replay import judge_trial
from tests.plugin.judge.histories import SEED, events, probe
from tests.plugin.judge.whole_trial import history, host, last_read, seen

CATALOGUE = load()
LOST = 17
"""The acknowledged row that the final read lacks."""


@cache
def refuted() -> Path:
    """A trial on disk, as a run leaves it, in which one acknowledged row was lost."""
    home = Path(mkdtemp(prefix="roachproof-edited-"))
    claim = CATALOGUE.claims["survivability"]
    described = {
        "schema": SCHEMA, "claim": claim.id, "parameters": {"inserts": "2000"}, "profile": "laptop", "seed": SEED,
        "buckets": 3, "context": {"engine": "cockroach", "nodes": "3"}, "checks": [], "needs": [*claim.needs],
        "tuned": [],
    }  # fmt: skip
    lines = history()
    header, seconds = probe(seen)
    machine = ({"t": s.t, "cpu_percent": s.cpu, "others_percent": s.others} for s in host(others=1.0))
    for name, text in {
        TRIAL_FILE: [json.dumps(described, indent=1)],
        EVENTS: map(event_line, events()),
        HISTORY: [HISTORY_HEADER + "\n", *map(history_line, lines)],
        FINAL: [FINAL_HEADER + "\n", *map(final_line, last_read(lines, without=(LOST,)))],
        PROBE: [probe_header(header["interval_us"], header["routes"]), *map(probe_line, seconds)],
        HOST: (json.dumps(second) + "\n" for second in machine),
    }.items():
        written = list(text)
        ends = name in (HISTORY, FINAL, PROBE)
        end = trailer(len(written), crc32("".join(written).encode())) if ends else ""
        (home / name).write_text("".join(written) + end)
    seal(home)
    atexit.register(shutil.rmtree, home)
    return home


def drop(lines: list[str], random: Random) -> None:
    del lines[random.randrange(len(lines))]


def double(lines: list[str], random: Random) -> None:
    at = random.randrange(len(lines))
    lines.insert(at, lines[at])


def swap(lines: list[str], random: Random) -> None:
    at, other = random.randrange(len(lines)), random.randrange(len(lines))
    lines[at], lines[other] = lines[other], lines[at]


def cut(lines: list[str], random: Random) -> None:
    at = random.randrange(len(lines))
    lines[at:] = [lines[at][: random.randrange(len(lines[at]))]]


def change(lines: list[str], random: Random) -> None:
    """A character of a line becomes another one, or a word or number of it something strange."""
    at = random.randrange(len(lines))
    line = lines[at]
    if random.random() < 0.5:
        place = random.randrange(len(line))
        lines[at] = line[:place] + random.choice('0123456789-,.:"{}[]\t\nnulIOFUé') + line[place + 1 :]
    else:
        found = random.choice([*re.finditer(r"[\w.]+", line)] or [re.match("", line)])
        begin, end = found.span() if found else (0, 0)
        lines[at] = line[:begin] + random.choice(STRANGE) + line[end:]


STRANGE = (
    "", "null", "true", "-1", "1e999", "NaN", "9" * 25, "0.5", '"x"', "[]", "{}", "n9", "pass", "expected", "\x00",
)  # fmt: skip
EDITS = (drop, double, swap, cut, change, change, change)


def edit(copy: Path, random: Random) -> None:
    """One edit of one file; small files as often as long ones."""
    file = copy / random.choice([TRIAL_FILE, EVENTS, HISTORY, FINAL, PROBE, HOST, MANIFEST])
    lines = file.read_text().splitlines(keepends=True)
    random.choice(EDITS)(lines, random)
    file.write_text("".join(lines))


def judged(directory: Path) -> Verdict | None:
    """``None`` for what is called no trial of this release."""
    try:
        return judge_trial(directory, CATALOGUE)
    except BadInput:
        return None


def test_it_is_refuted_as_it_was_written() -> None:
    verdict = judged(refuted())
    assert verdict is not None
    assert verdict.outcome is Outcome.FAIL
    assert [r.check.metric for r in verdict.results if r.outcome is Outcome.FAIL] == ["lost", "rows_missing"]
    assert all(condition.met for condition in verdict.conditions)


@pytest.mark.parametrize("sealed_anew", [False, True])
@settings(deadline=None, max_examples=50)
@given(random=st.integers(0, 2**32).map(Random))
def test_no_single_edit_passes_it(sealed_anew: bool, random: Random) -> None:
    with TemporaryDirectory() as directory:
        copy = Path(shutil.copytree(refuted(), Path(directory) / "copy"))
        edit(copy, random)
        if sealed_anew:
            seal(copy)
        verdict = judged(copy)
        assert verdict is None or verdict.outcome in (Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.NOT_EVALUATED)
