"""A single edit of a trial's evidence: no refuted one is passed, no passed one refuted, and no judge fails over it.

Sealed anew is the manifest of the trial: the digests are those of the files as they are then. Each file still ends with
its own checksum, what the harness recorded with that of the trial's end, and these contradict any edit. Whoever makes
the checksum anew, too, has evidence of another measurement; the seal of the run finds that, and where it is made
anew as well, nothing but its signature does.
"""

import io
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from _pytest._io import TerminalWriter
from hypothesis import given, settings
from hypothesis import strategies as st

from clusters.errors import BadInput
from fixtures.workloads.ledger.records import FINAL, HISTORY
from plugin import run as runs
from plugin.evidence.events import Event, TrialBegin, TrialEnd
from plugin.evidence.layout import LAYOUT
from plugin.evidence.load import HOST, PROBE
from plugin.evidence.records import SCHEMA, event_line
from plugin.evidence.run_seal import RUN_FILE, broken_run_seal, seal_run
from plugin.evidence.store import (
    EVENTS,
    TRIAL_FILE,
    TrialStore,
    broken_seals,
    changed_since_end,
    seal,
    trial_end,
    trials_in,
    write_json,
)
from plugin.judge.model import Outcome, Verdict
from plugin.replay import conclude, judge_trial, replay
from plugin.status import Status
from tests.plugin.evidence.edits import edit
from tests.plugin.evidence.refuted_trials import CATALOGUE, TRIALS
from tests.slow import examples

OWN = """
[claims.answer]
sentence = "The answer is what it was said to be."
nodes = 1
checks = [{ metric = "answer", comparison = "==", limit = 42, recorded = true }]
"""

randoms = st.integers(0, 2**32).map(Random)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A refuted trial by its name, or as it passes without what refutes it, written once."""

    @cache
    def written(name: str, *, refuted: bool = True) -> Path:
        home = tmp_path_factory.mktemp("refuted" if refuted else "passed")
        TRIALS[name][0](home, refuted=refuted)
        return home

    return written


@pytest.mark.parametrize("name", TRIALS)
def test_it_is_refuted_as_it_was_written_and_by_one_thing_alone(name: str, tmp_path: Path) -> None:
    write, metrics = TRIALS[name]
    for refuted in (True, False):
        home = tmp_path / str(refuted)
        home.mkdir()
        write(home, refuted=refuted)
        verdict = judge_trial(home, CATALOGUE)
        assert all(condition.met for condition in verdict.conditions), verdict.conditions
        against = {r.check.metric for r in verdict.results if r.outcome is Outcome.REFUTED}
        assert against == (set(metrics) if refuted else set())
        assert verdict.outcome is (Outcome.REFUTED if refuted else Outcome.PASS), verdict.why


def judged(directory: Path) -> Verdict | None:
    """``None`` for what is called no trial of this release."""
    try:
        return judge_trial(directory, CATALOGUE)
    except BadInput:
        return None


@pytest.mark.parametrize("name", TRIALS)
@settings(deadline=None, max_examples=examples(21))
@given(random=randoms, sealed_anew=st.booleans())
def test_no_single_edit_passes_it(stored: Callable[..., Path], name: str, random: Random, sealed_anew: bool) -> None:
    with TemporaryDirectory() as directory:
        copy = Path(shutil.copytree(stored(name), Path(directory) / "copy"))
        what = edit(copy, random)
        if sealed_anew:
            seal(copy)
        verdict = judged(copy)
        left = (Outcome.REFUTED, Outcome.INCONCLUSIVE)  # beside others that pass, no run with either is green
        assert verdict is None or verdict.outcome in left, (what, verdict.why)


@pytest.mark.parametrize("name", TRIALS)
@settings(deadline=None, max_examples=examples(12))
@given(random=randoms)
def test_no_single_edit_refutes_what_passed(stored: Callable[..., Path], name: str, random: Random) -> None:
    with TemporaryDirectory() as directory:
        copy = Path(shutil.copytree(stored(name, refuted=False), Path(directory) / "copy"))
        what = edit(copy, random)
        seal(copy)
        verdict = judged(copy)
        assert verdict is None or verdict.outcome is not Outcome.REFUTED, (what, verdict.why)


CUT = [
    ("unavailable ranges", LAYOUT, 2),
    ("open gap", PROBE, 2),
    ("no quorum", HISTORY, 10_000),
    ("lost row", FINAL, 3),
    ("slower side", "tpcc-b0a1.jsonl", 1),
    ("open gap", HOST, 1),
]


@pytest.mark.parametrize(("name", "file", "lines"), CUT, ids=[f"{case[0]}, {case[1]}" for case in CUT])
@pytest.mark.parametrize("refuted", [True, False], ids=["refuted", "passed"])
def test_what_was_cut_off_is_missed(
    stored: Callable[..., Path], tmp_path: Path, name: str, file: str, lines: int, refuted: bool
) -> None:
    """The trailer went with it. What refuted may be gone, and what is left may contradict what was read at the end."""
    copy = Path(shutil.copytree(stored(name, refuted=refuted), tmp_path / "copy"))
    text = (copy / file).read_text().splitlines(keepends=True)
    (copy / file).write_text("".join(text[:-lines]))
    seal(copy)
    verdict = judge_trial(copy, CATALOGUE)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert f"{file} is not as it was when the trial ended" in verdict.why
    assert "it has lost its end" in verdict.why
    (copy / file).unlink()
    seal(copy)
    assert judge_trial(copy, CATALOGUE).outcome is Outcome.INCONCLUSIVE


def test_of_the_trailers_that_the_trial_s_end_has_none_can_be_left_out(
    stored: Callable[..., Path], tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(stored("unavailable ranges"), tmp_path / "copy"))
    edited(copy, EVENTS, r'"layout.jsonl": "[^"]*"', '"nothing": ""')
    (problem,) = changed_since_end(copy)
    assert f"{EVENTS} is not as it was when the trial ended" in problem


EDITED = [
    ("broken condition", EVENTS, r'"3.3.2.1": 1', '"3.3.2.1": 0'),
    ("dead node", EVENTS, r"(?m)^.*node\.died.*\n", ""),
    ("third side", EVENTS, r'"saturated": \[\]', '"saturated": ["9 nodes"]'),
    ("slower side", TRIAL_FILE, r'"sabotage": false', '"sabotage": true'),
    ("lost row", TRIAL_FILE, r'"claim": "survivability"', '"claim": "nobody-s"'),
    ("small capacity", TRIAL_FILE, r'"profile": "small"', '"profile": "laptop"'),
]


def edited(directory: Path, file: str, what: str, becomes: str) -> None:
    text, count = re.subn(what, becomes, (directory / file).read_text())
    assert count == 1
    (directory / file).write_text(text)
    seal(directory)


@pytest.mark.parametrize(("name", "file", "what", "becomes"), EDITED, ids=[case[0] for case in EDITED])
def test_what_would_excuse_it_contradicts_the_trial_s_end(
    stored: Callable[..., Path], tmp_path: Path, name: str, file: str, what: str, becomes: str
) -> None:
    """It stands nowhere else; the digests are those of the edited file."""
    copy = Path(shutil.copytree(stored(name), tmp_path / "copy"))
    edited(copy, file, what, becomes)
    assert broken_seals(copy) == ()
    verdict = judge_trial(copy, CATALOGUE)
    assert verdict.outcome in (Outcome.REFUTED, Outcome.INCONCLUSIVE)
    (integrity,) = (condition for condition in verdict.conditions if condition.name == "integrity")
    assert "is not as it was when the trial ended" in integrity.why


def test_who_makes_all_checksums_anew_is_found_by_the_run_s_seal_alone(
    stored: Callable[..., Path], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    trial = Path(shutil.copytree(stored("broken condition"), run / "claims" / "parity" / "trial"))
    (run / RUN_FILE).write_text("{}")
    seal_run(run, ())
    edited(trial, EVENTS, r'"3.3.2.1": 1', '"3.3.2.1": 0')
    *before, end = (trial / EVENTS).read_bytes().splitlines(keepends=True)
    made = Event(json.loads(end)["t"], trial_end(trial, before))
    (trial / EVENTS).write_bytes(b"".join([*before, event_line(made).encode()]))
    seal(trial)
    assert judge_trial(trial, CATALOGUE).outcome is Outcome.PASS, "evidence of another measurement"
    assert broken_run_seal(run) == ("claims/parity/trial was changed after the run",)


@pytest.fixture(scope="module")
def replay_run(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> runs.Run:
    """As ``--judge`` has one, with a claim of one's own."""
    own = tmp_path_factory.mktemp("own") / "own.toml"
    own.write_text(OWN)
    return runs.Run(settings=replace(runs.open_run(pytestconfig).settings, catalogues=(own,), report=None))


@pytest.fixture(scope="module")
def answered(replay_run: runs.Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two small trials, one of which is refuted."""
    run = tmp_path_factory.mktemp("answered") / "run"
    described = {
        "claim": "answer", "sentence": "The answer is 42.", "test": "test_it.py::test_it", "sabotage": False,
        "parameters": {"guess": 1}, "profile": "laptop", "suite": "gate", "seed": 1, "target": "", "needs": [],
        "context": {"engine": "cockroach", "version": "v24.1.3"}, "tuned": [], "checks": [], "fingerprint": {"x": "y"},
        "sides": {"a": {"date": "today"}}, "observed": {"a": {"commit": "1"}},
    }  # fmt: skip
    for answer in (41, 42):
        store = TrialStore(run / "claims" / "answer" / str(answer), described)
        store.event(TrialBegin())
        store.measurement("answer", answer)
        store.event(TrialEnd())
        store.close()
        conclude(store.directory, replay_run.catalogue)
    return as_a_run(run, "answer")


@pytest.fixture(scope="module")
def survived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of survivability twice, in one of which a row was lost."""
    run = tmp_path_factory.mktemp("survived") / "run"
    for refuted in (True, False):
        trial = run / "claims" / "survivability" / str(refuted)
        trial.mkdir(parents=True)
        TRIALS["lost row"][0](trial, refuted=refuted)
    return as_a_run(run, "survivability")


def as_a_run(run: Path, claim: str) -> Path:
    """The directory with its description, in which this claim was required, and sealed."""
    required = [{"claim": claim}]
    write_json(run / RUN_FILE, {"schema": SCHEMA, "settings": {"suite": "gate"}, "host": {}, "required": required})
    seal_run(run, ())
    return run


@settings(deadline=None, max_examples=examples(60))
@given(random=randoms, sealed_anew=st.booleans())
def test_no_single_edit_makes_a_replay_fail_or_a_refuted_run_green(
    answered: Path, replay_run: runs.Run, random: Random, sealed_anew: bool
) -> None:
    replayed_after_an_edit(answered, replay_run, sealed_anew, random)


@settings(deadline=None, max_examples=examples(12))
@given(random=randoms, sealed_anew=st.booleans())
def test_nor_does_one_of_a_whole_run_of_survivability(
    survived: Path, replay_run: runs.Run, random: Random, sealed_anew: bool
) -> None:
    replayed_after_an_edit(survived, replay_run, sealed_anew, random)


def replayed_after_an_edit(run: Path, replay_run: runs.Run, sealed_anew: bool, random: Random) -> None:
    """Of any file of the run; sealed anew are its trials."""
    with TemporaryDirectory() as directory:
        copy = Path(shutil.copytree(run, Path(directory) / "copy"))
        what = edit(copy, random)
        for trial in trials_in(copy) if sealed_anew else ():
            seal(trial)
        said = io.StringIO()
        try:
            status: int = replay(
                [copy],
                replay_run,
                writer=TerminalWriter(said),
                allure=copy.parent / "allure",
                junit=copy.parent / "x.xml",
            )
        except BadInput:
            return
        assert status in (Status.REFUTED, Status.BAD_INPUT, Status.INCONCLUSIVE, Status.HARNESS), (
            what,
            said.getvalue(),
        )
        first = Status.REFUTED if "1 refuted" in said.getvalue() else Status.INCONCLUSIVE
        assert status in (first, Status.BAD_INPUT), (what, said.getvalue())
        assert "the judge failed" not in said.getvalue(), what
        assert "not written" not in said.getvalue(), (what, said.getvalue())
