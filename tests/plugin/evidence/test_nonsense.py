"""Nonsense in one line of sealed evidence: a verdict all the same, inconclusive by that line, never a crash."""

from pathlib import Path

import pytest

from plugin.catalogue import load
from plugin.evidence.store import seal
from plugin.judge.model import Outcome
from plugin.replay import judge_trial
from tests.plugin.reports.samples import trial_of


@pytest.mark.parametrize(
    ("file", "named", "old", "new"),
    [
        ("ledger.tsv", "history", "\nO\t1", "\nO\t9999999999999999999999991"),
        ("events.jsonl", "events.jsonl", '"provisioned", "nodes": ["n1", "n2", "n3"]', '"provisioned", "nodes": null'),
        ("probe.jsonl", "probe.jsonl", '"lag_us":', '"lag_us":"long","was":'),
        ("probe.jsonl", "probe.jsonl", '"ok":', '"ok":"five","was":'),
        ("probe.jsonl", "probe.jsonl", '"latency":{"n1":"HIST', '"latency":{"n1":"SLOW'),
    ],
    ids=[
        "a time of 25 digits",
        "nodes that are null",
        "a lag that is a word",
        "successes that are a word",
        "latencies that are none",
    ],
)
def test_it_is_named_and_the_rest_is_judged(file: str, named: str, old: str, new: str, tmp_path: Path) -> None:
    trial = trial_of(tmp_path / "claims" / "survivability" / "trial")
    assert judge_trial(trial, load()).outcome is Outcome.PASS
    text = (trial / file).read_text()
    assert old in text, text[:2000]
    (trial / file).write_text(text.replace(old, new, 1))
    seal(trial)
    verdict = judge_trial(trial, load())
    assert verdict.outcome is Outcome.INCONCLUSIVE, verdict.why
    assert not verdict.failures
    assert f"{named}: line " in verdict.why, verdict.why
    assert len(verdict.results) > 20


@pytest.mark.parametrize(
    ("file", "starts"),
    [("ledger.tsv", "S\t"), ("events.jsonl", "{"), ("probe.jsonl", "{")],
    ids=["history", "events", "probe"],
)
def test_times_that_run_backwards_are_noticed(file: str, starts: str, tmp_path: Path) -> None:
    """A line from near the end stands among the first."""
    trial = trial_of(tmp_path / "claims" / "survivability" / "trial")
    lines = (trial / file).read_text().splitlines(keepends=True)
    at = max(number for number, line in enumerate(lines[:-1]) if line.startswith(starts))
    lines.insert(2, lines.pop(at))
    (trial / file).write_text("".join(lines))
    seal(trial)
    verdict = judge_trial(trial, load())
    assert verdict.outcome is Outcome.INCONCLUSIVE, verdict.why
    (integrity,) = (condition for condition in verdict.conditions if condition.name == "integrity")
    assert not integrity.met
    assert "times run backwards" in integrity.why
