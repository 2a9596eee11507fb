"""What the terminal shows: tables that fit, words beside every colour, and names that break nothing."""

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from plugin.catalogue import load
from plugin.evidence.redaction import redacted
from plugin.judge.model import Check, CheckResult, Comparison, Condition, Kind, Measurement, Outcome, Verdict
from plugin.reports.terminal import (
    MARKUP,
    as_table,
    origin_lines,
    paper_lines,
    verdict_lines,
)
from plugin.reports.text import WIDTH, limit_text, machine, measured_text, number, word, wrapped
from tests.plugin.conftest import Gate

NAMES = st.from_regex(r"[a-z][a-z0-9]{0,20}(_[a-z0-9]{1,20}){0,2}", fullmatch=True).filter(
    lambda name: redacted(name) == name  # some look like a key
)
WORDS = st.text(max_size=300)
FIGURES = st.floats() | st.integers(-(10**20), 10**20).map(float)
CHECKS = st.builds(
    Check,
    metric=NAMES,
    comparison=st.sampled_from(Comparison),
    limit=st.none() | FIGURES,
    kind=st.sampled_from(Kind),
    mark=st.sampled_from("SDR"),
    source=WORDS,
    unit=st.sampled_from(["", "s", "rows", "operations", "a very long unit of measurement"]),
)
RESULTS = st.builds(
    CheckResult,
    check=CHECKS,
    measurement=st.builds(
        Measurement,
        metric=NAMES,
        value=st.none() | FIGURES,
        note=WORDS,
        examples=st.lists(WORDS, max_size=3).map(tuple),
    ),
    outcome=st.sampled_from(Outcome),
    why=WORDS,
)
VERDICTS = st.builds(
    Verdict,
    claim=NAMES,
    outcome=st.sampled_from(Outcome),
    results=st.lists(RESULTS, max_size=4).map(tuple),
    conditions=st.lists(st.builds(Condition, name=NAMES, met=st.booleans(), why=WORDS), max_size=3).map(tuple),
    why=WORDS,
    tuned=st.lists(WORDS, max_size=3).map(tuple),
    context=st.dictionaries(NAMES, WORDS, max_size=4),
)


@given(verdict=VERDICTS)
def test_a_table_of_100_columns_that_leaves_nothing_out(verdict: Verdict) -> None:
    text = as_table(verdict)
    assert all(len(line) <= WIDTH for line in text.split("\n")), text
    text = " ".join(text.split())
    assert f"claim {verdict.claim}: {word(verdict.outcome)}" in text
    for result in verdict.results:
        assert result.check.metric in text
        assert number(result.measurement.value) in text
        assert word(result.outcome) in text
    for condition in verdict.conditions:
        assert condition.met or f"evidence: {condition.name} not met" in text


@given(text=WORDS, most=st.none() | st.integers(1, 3))
def test_wrapped(text: str, most: int | None) -> None:
    lines = wrapped(text, most=most)
    assert lines
    assert all(len(line) <= WIDTH and "\n" not in line for line in lines)
    assert most is None or len(lines) <= most


def test_numbers_are_told_apart_from_their_limits() -> None:
    shown = {None: "-", 0: "0", 2000: "2000", 30.0: "30", 0.949: "0.949", 3.187: "3.19", 0.00412: "0.00412",
             1234.56: "1234.6", 1e300: "1e+300", float("nan"): "nan", float("-inf"): "-inf"}  # fmt: skip
    assert {value: number(value) for value in shown} == shown


def test_one_of_a_thing_is_told_in_the_singular() -> None:
    check = {"unit": "rows", "limit": 1.0, "comparison": "<="}
    assert limit_text(check) == "<= 1 row"
    for value, told in ((1.0, "1 row"), (0, "0 rows"), (1.5, "1.5 rows"), ("inf", "inf rows"), (None, "-")):
        assert measured_text({"check": check, "measurement": {"value": value}}) == told
    assert machine({"cores": 1, "memory_total_gib": 1.0}) == "1 core, 1 GiB memory"


def test_no_outcome_is_told_by_colour_alone() -> None:
    words = [word(outcome) for outcome in MARKUP]
    assert all(words)
    assert len(set(words)) == len(words) >= 6


def test_colours_change_no_word(gate: Gate) -> None:
    names = ("passes", "refuted", "inconclusive", "harness", "sabotage", "skipped")
    plain, coloured = (gate(*gate.tests(*names), "--color", color) for color in ("no", "yes"))
    assert plain.status == coloured.status == 1
    assert "\x1b[" not in plain.text
    assert re.search(r"\x1b\[.*answer  REFUTED", coloured.text)
    summaries = [
        re.sub(r"\x1b\[[0-9;]*m", "", ran.text).partition("= claims =")[2].partition("evidence:")[0]
        for ran in (plain, coloured)
    ]
    seed = re.compile(r"\d{8}T\d+-\d+|\d+\.\d+s| +\d+ s ")
    assert seed.sub("", summaries[0]) == seed.sub("", summaries[1])
    assert plain.verdicts() == [
        "answer  PASS", "answer  REFUTED", "answer  REFUTED AS EXPECTED", "question  HARNESS FAILED",
        "question  INCONCLUSIVE", "question  SKIPPED",
    ]  # fmt: skip


def test_names_with_brackets_colons_and_emoji(gate: Gate) -> None:
    (gate.path / "test_claims.py").write_text(
        "import pytest\n"
        "@pytest.mark.claim('answer')\n"
        "@pytest.mark.parametrize('flavour', ['a::b', '[x]', '{0}', '%s', '🦀/🪳', '../..', 'long ' * 30], ids=str)\n"
        "async def test_it(judge, flavour):\n"
        "    judge.measure('answer', 41, note='[bold]no markup[/bold] 🪳')\n"
        "    assert judge.decide()\n"
    )
    ran = gate("--run-dir", "out", "-n", "2")
    assert ran.status == 1, ran.text
    assert len(gate.trials) == 7
    assert all(trial.parent.parent == gate.run_dir / "claims" for trial in gate.trials)
    summary = ran.text.partition("= claims =")[2]
    for name in ("test_it[a::b]", "test_it[[x]]", "test_it[{0}]", "test_it[%s]", "test_it[../..]"):
        assert f"\n  {name}\n" in summary
    assert "[bold]no markup[/bold]" in (gate.run_dir / "report.html").read_text()
    assert summary.count("answer  REFUTED") == 7
    assert all(len(line) <= WIDTH for line in summary.splitlines())
    again = gate("--judge", "out")
    assert again.text.count("same verdict as stored") == 7


def test_a_claims_source_and_what_it_printed() -> None:
    claim = load().claim("survivability")
    lines = origin_lines(claim)
    assert " ".join(lines).startswith("  Every acknowledged insert is present exactly once")
    assert "  source: thesis, 5.4 (RQ4), table 5.6" in lines
    assert "deletes the pod gracefully before it inserts" in " ".join(" ".join(lines).split())
    counted, missing, sampled = (
        {"check": {"metric": metric}, "measurement": {"value": value, "note": note}, "outcome": "pass"}
        for metric, value, note in (
            ("rows_counted", 6702, "SELECT count(*) at the end"),
            ("rows_missing", 0, "6702 rows counted, 6702 expected"),
            ("sampled_row_mismatch", 0, "1 sampled"),
        )
    )
    verdict = {
        "context": {"engine": "cockroach", "inserts": "2000"},
        "results": [counted, missing, sampled],
        "conditions": [{"name": "fault_bit", "met": True, "why": "proven on n1"}],
    }
    assert paper_lines(claim, verdict) == [
        "  table 5.6, thesis printed: inserts 2000, dead node yes, rows 2000, row number is id yes (row 245)",
        "  table 5.6, measured here: inserts 2000, dead node yes (proven on n1), rows 6702 of 6702 expected,",
        "  row number is id yes (1 sampled)",
        "  table 5.6, ratio: rows 1.00 of the rows expected",
    ]
    assert paper_lines(claim, {"context": {"inserts": "2001"}, "results": [], "conditions": []}) == []
    assert paper_lines(claim, {"context": {}, "results": [], "conditions": []}) == []
    long = replace(claim, note="word " * 100)
    assert len(origin_lines(long)) == len(origin_lines(replace(claim, note=""))) + 2
    assert origin_lines(long)[-1].endswith("…")
    for each in load():
        assert all(len(line) <= WIDTH for line in origin_lines(each))


def test_the_summary_says_once_for_each_claim_where_it_comes_from(gate: Gate) -> None:
    gate.edit("claims.toml", "nodes = 1\ndisturbs", """nodes = 1
source = { work = "guide", section = "42", where = "table 1" }
note = "The table and the text disagree."
disturbs""")  # fmt: skip
    ran = gate(*gate.tests("passes", "refuted", "inconclusive"))
    assert ran.text.count("  source: guide, 42, table 1\n  note: The table and the text disagree.\n") == 1


def test_a_limit_elsewhere_is_said_in_the_plan(gate: Gate) -> None:
    old = "limit = 42, recorded = true }]"
    gate.edit("claims.toml", old, 'limit = 42, recorded = true }, '
              '{ metric = "speed", comparison = ">=", kind = "profile", limit = { medium = 3 }, recorded = true }, '
              '{ metric = "mood", kind = "report", recorded = true }]')  # fmt: skip
    plan = gate("--dry-run", *gate.tests("passes")).text
    assert re.search(r"^ +answer +== 42 +absolute, R$", plan, re.MULTILINE)
    assert re.search(r"^ +speed +not evaluated at this profile +profile, R$", plan, re.MULTILINE)
    assert re.search(r"^ +mood +reported +report, R$", plan, re.MULTILINE)


def test_stored_verdicts_of_an_empty_trial() -> None:
    verdict = {"context": {}, "tuned": [], "results": [], "conditions": [], "why": ""}
    assert all(len(line) <= WIDTH for line in verdict_lines(verdict))
