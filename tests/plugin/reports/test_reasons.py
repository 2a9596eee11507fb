"""What the page says to somebody who reads it cold, and how it looks in other colours, on paper, on a narrow screen."""

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from allure_commons import model2

from plugin.catalogue import load
from plugin.evidence.store import EVENTS, seal
from plugin.judge.conditions import KNOWN_CONDITIONS
from plugin.replay import conclude
from plugin.reports.allure import fill
from plugin.reports.junit import write_junit
from plugin.reports.page import write_page
from plugin.reports.reasons import decided
from plugin.reports.stored_run import stored_run, stored_trial
from plugin.result import ENDED_EARLY
from tests.plugin.reports.browser import Seen, opened
from tests.plugin.reports.samples import run_of

SHA = "0123456789abcdef" * 4
FINGERPRINT = {
    "engine": "cockroach",
    "sha256": SHA,
    "origin": "--cockroach /opt/cockroach",
    "commands": {"n1": ["cockroach"]},
}
NOT_RUN = "documented, not run; the newest that was is v26.1.0-alpha.1"
STRANGE = {
    **FINGERPRINT,
    "date": "2026-05-01",
    "commit": "abc123",
    "not_run": NOT_RUN,
    "behaviour": {"kv.leases": "leader", "kv.buffered": "off"},
    "notes": ["throttled without a key"],
}
OLD = {**FINGERPRINT, "version": "v1"}
NEW = {**FINGERPRINT, "version": "v2", "sha256": SHA[::-1], "origin": "cache"}


def cut(trial: Path, after: str) -> None:
    """As a run leaves it that was killed after this event: judged later, by what there is."""
    (trial / "manifest.json").unlink()
    lines = (trial / EVENTS).read_text().splitlines(keepends=True)
    until = next(number for number, line in enumerate(lines) if f'"{after}"' in line)
    (trial / EVENTS).write_text("".join(lines[: until + 1]))
    conclude(trial, load())


def rewritten(trial: Path, name: str, pattern: str, by: str) -> None:
    """As if this had been recorded."""
    text = (trial / name).read_text()
    found = re.sub(pattern, by, text, flags=re.MULTILINE)
    assert found != text
    (trial / name).write_text(found)
    (trial / "manifest.json").unlink()
    seal(trial)
    conclude(trial, load())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    trials: dict[str, dict[str, Any]] = {
        "a-pass": {"fingerprint": FINGERPRINT},
        "b-refuted": {"judged": False, "fingerprint": STRANGE},
        "c-killed": {"judged": False},
        "d-sabotage-killed": {"judged": False, "sabotage": True},
        "e-sabotage": {"sabotage": True},
        "f-unproven": {"judged": False},
        "g-versions": {
            "fingerprint": OLD,
            "sides": {"old v1": OLD, "old v1 (A/A)": OLD, "new v2": NEW},
            "observed": {"block 2, new v2": {"behaviour": {"kv.leases": "leader"}}},
        },
    }
    run = run_of(
        tmp_path_factory.mktemp("said") / "run",
        trials=[{"name": name, **trial} for name, trial in trials.items()],
    )
    described = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**described, "suite_revision": "abc123def456"}))
    place = run / "claims" / "survivability"
    cut(place / "c-killed", "fault.bit")
    cut(place / "d-sabotage-killed", "audit.begin")
    rewritten(place / "b-refuted", "ledger-final.tsv", r"^R\t10\t1\t\w+$", f"R\t10\t1\t{'f' * 32}")
    rewritten(place / "f-unproven", EVENTS, r"^.*fault\.bit.*\n", "")
    return run


@pytest.fixture(scope="module")
def page(run: Path) -> Path:
    return write_page(run.parent / "page.html", [stored_run(run, load())], judge="")


@pytest.fixture
def seen(chromium: Any, page: Path) -> Iterator[Seen]:
    seen = opened(chromium, page)
    yield seen
    seen.page.close()


def section(seen: Seen, number: int) -> Any:
    return seen.page.locator(f"section#a{number}")


def test_a_trial_is_the_same_in_every_report(run: Path, seen: Seen) -> None:
    """A test that was killed before it ended is no refuted claim and no failed sabotage, on the page as in Allure."""
    badges = [section(seen, number).locator("h2 .badge").inner_text() for number in range(7)]
    assert badges == [
        "✔ PASS",
        "✘ REFUTED",
        "… ENDED EARLY",
        "… ENDED EARLY",
        "✘ NOT AS EXPECTED",
        "? INCONCLUSIVE",
        "✔ PASS",
    ]
    for trial, badge in zip(stored_run(run, load()).trials, badges, strict=True):
        told = fill(model2.TestResult(), trial, run={}, began_ms=0)
        assert told.status == ("passed" if "PASS" in badge else "broken" if badge[0] in "…?" else "failed")
        assert told.statusDetails is None or told.statusDetails.message.startswith(badge[2:])


def test_what_refuted_it_stands_first_with_its_meaning_and_examples(seen: Seen) -> None:
    refuted = section(seen, 1)
    assert refuted.locator("p strong").inner_text() == "altered: 1 row, must be == 0"
    point = refuted.locator(".points li").inner_text()
    assert point.startswith("altered (with a content that nobody wrote)")
    assert "\nkey 10: " in point
    rows = refuted.locator(".checks tbody tr")
    open_ = refuted.locator(".wide > .checks:visible tbody tr")
    assert open_.count() == 1, "what holds, and what is only reported, is folded"
    assert refuted.locator("details summary").first.inner_text().endswith(" reported")
    refuted.locator("details").evaluate_all("all => all.forEach(each => { each.open = true })")
    assert rows.first.locator("td").nth(1).inner_text() == "altered\nwith a content that nobody wrote"
    assert rows.first.locator("td").first.inner_text() == "✘ REFUTED"
    assert "key 10: " not in rows.first.inner_text(), "told once"
    metrics = rows.locator("td:nth-child(2)").all_inner_texts()
    claim = load().claims["survivability"]
    assert sorted(text.split("\n")[0] for text in metrics) == sorted(check.metric for check in claim.checks)
    assert all("\n" in text for text in metrics), "each with what it means"
    index = seen.page.locator(".index tr", has_text="✘ REFUTED").inner_text()
    assert "altered: 1 row, must be == 0" in index
    assert section(seen, 0).locator(".points").count() == 0
    assert re.fullmatch(
        r"all \d+ judged checks hold; \d+ more only reported",
        section(seen, 0).locator("p strong").inner_text(),
    )


def test_a_killed_run_says_first_that_it_ended_early(seen: Seen) -> None:
    killed = section(seen, 2)
    expected = "The test ended early after fault.bit; everything up to there is shown. Nothing was decided."
    assert killed.locator("p strong").inner_text() == expected
    points = killed.locator(".points li").all_inner_texts()
    assert len(points) > 3
    assert points[0].startswith("integrity (the evidence is as it was recorded and free of contradictions): ")
    assert not any("To change" in point for point in points), "nothing but to let it end"
    assert killed.locator(".notice").count() == 0, "said above"


def test_what_is_missing_of_the_evidence_is_said_with_a_way_out(run: Path, seen: Seen) -> None:
    unproven = section(seen, 5)
    told = unproven.locator("p strong").inner_text()
    assert re.fullmatch(r"The evidence is not good enough to decide: 1 of \d+ conditions is not met\.", told)
    (point,) = unproven.locator(".points li").all_inner_texts()
    assert point.startswith("fault_bit (every fault is proven on every node it was aimed at): not proven")
    assert point.endswith(f"To change: {KNOWN_CONDITIONS['fault_bit'].advice}.")
    assert not any("are not met" in words for words in unproven.locator(".checks").all_inner_texts())
    trial = stored_trial(run / "claims" / "survivability" / "c-killed", load())
    assert trial.result.outcome == ENDED_EARLY
    assert decided(trial)[1], "the same without a browser"


def test_what_only_a_reported_check_asks_for_decides_nothing(run: Path) -> None:
    """By what each check needs, in whatever words the verdict says it."""
    trial = stored_trial(run / "claims" / "survivability" / "f-unproven", load())
    assert trial.verdict
    shown = {"check": {"metric": "lag", "needs": ["lag_known"], "limit": None}, "outcome": "reported"}
    verdict = {
        **trial.verdict,
        "why": "lag_known is not met, says somebody",
        "results": [*trial.verdict["results"], shown],
        "conditions": [*trial.verdict["conditions"], {"name": "lag_known", "met": False, "why": "nobody asked"}],
    }
    assert [point.name for point in decided(replace(trial, verdict=verdict))[1]] == ["fault_bit"]


def test_the_page_says_which_binary_and_which_suite(run: Path, seen: Seen) -> None:
    facts = section(seen, 0).locator("dl.facts").inner_text()
    assert SHA in facts
    both = section(seen, 6).inner_text()
    assert SHA in both
    assert NEW["sha256"] in both
    told = fill(model2.TestResult(), stored_run(run, load()).trials[6], run={}, began_ms=0).descriptionHtml
    assert f"sha256 of v1 {SHA}" in told
    assert "settings of v2 kv.leases = leader" in told
    assert f"sha256 of v2 {NEW['sha256']}" in told
    assert "--cockroach /opt/cockroach" in facts
    assert "sha256" not in section(seen, 2).locator("dl.facts").inner_text(), "an older run says nothing of it"
    assert "Roachproof abc123def456" in seen.page.locator("header").inner_text()


def test_every_report_says_of_a_build_that_it_was_never_run(run: Path, seen: Seen) -> None:
    shown = {
        "build": "2026-05-01 abc123",
        "run before": NOT_RUN,
        "settings": "kv.leases = leader, kv.buffered = off",
        "note": "throttled without a key",
    }
    told = stored_run(run, load())
    facts = section(seen, 1).locator("dl.facts").inner_text()
    description = fill(model2.TestResult(), told.trials[1], run={}, began_ms=0).descriptionHtml
    write_junit(run.parent / "junit.xml", [told])
    cases = ET.parse(run.parent / "junit.xml").findall(".//testcase")
    properties = {str(p.get("name")): p.get("value") for p in cases[1].iter("property")}
    assert shown.items() <= properties.items()
    for name, value in shown.items():
        assert f"{name}\n{value}" in facts
        assert f"{name} {value}" in description
    assert "run before" not in section(seen, 0).locator("dl.facts").inner_text(), "it was run"


def test_the_source_s_table_with_both_set_ups(seen: Seen) -> None:
    text = section(seen, 0).inner_text()
    assert "Source beside measurement: thesis, table 5.6" in text
    assert "Set-up of the thesis: a running cluster of three nodes" in text
    assert "Set-up here: cockroach v24.1.3, 3 nodes, profile laptop, 2 cores, 8 GiB memory, Linux" in text
    assert "What differs: The script published with the thesis" in text


MARKERS = (
    "[...document.querySelectorAll('.charts')[0].querySelectorAll('.u-marker')]"
    ".map(m => m.style.border).filter(Boolean)"
)
"""The borders of the first trial's swatches."""


def colours(seen: Seen, *names: str) -> list[str]:
    """As the browser writes them: ``rgb(1, 2, 3)``."""
    text = (
        f"{list(names)}.map(name => {{ const e = document.createElement('i'); e.style.color = "
        "getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim(); return e.style.color; })"
    )
    return list(seen.page.evaluate(text))


def check_swatches(seen: Seen) -> None:
    a, b, c, quiet = colours(seen, "a", "b", "c", "quiet")
    assert seen.page.evaluate(MARKERS) == [
        f"2px solid {a}",
        f"2px dashed {quiet}",
        f"2px solid {a}",
        f"2px dashed {c}",
        f"2px dotted {b}",
        f"2px solid {b}",
    ]


def test_swatches_look_like_their_lines_in_every_colour_scheme(seen: Seen) -> None:
    """Told apart by dashes; in the colours of the screen they are on, or of paper; what was zoomed into stays so."""
    browser = seen.page
    seen.drawn()
    check_swatches(seen)
    box = browser.locator(".charts").first.locator(".u-marker").nth(4).bounding_box()
    assert box["width"] > 5 * box["height"], "a line, not a square"
    light = browser.evaluate(MARKERS)
    browser.evaluate("roachproof.drawn.get(document.querySelector('.charts'))[0].setScale('x', {min: 10, max: 30})")
    browser.evaluate("roachproof.drawn.get(document.querySelector('.charts'))[1].setSeries(2, {show: false})")
    browser.emulate_media(color_scheme="dark")
    seen.wait(f"{MARKERS}[0] !== '{light[0]}'")
    check_swatches(seen)
    browser.evaluate("dispatchEvent(new Event('beforeprint'))")
    check_swatches(seen)
    assert browser.evaluate(MARKERS)[0] == light[0], "paper is white"
    assert seen.of_charts(0, "charts.map(u => u.width)") == [680] * 4
    browser.evaluate("dispatchEvent(new Event('afterprint'))")
    check_swatches(seen)
    assert seen.of_charts(0, "charts[0].width") > 1000
    assert seen.of_charts(0, "[charts[0].scales.x.min, charts[0].scales.x.max]") == [10, 30]
    assert seen.of_charts(0, "charts[1].series.map(s => s.show)") == [True, True, False, True]
    assert browser.locator(".charts").first.locator(".uplot").count() == 4
    assert browser.locator(".charts").first.locator(".told").count() == 1
    browser.locator(".charts").first.focus()
    browser.keyboard.press("ArrowRight")
    assert " s: " in browser.locator(".charts").first.locator(".told").inner_text(), "it can still be moved in"
    assert seen.complaints == []


def test_a_narrow_screen_cuts_nothing_and_squeezes_nothing(chromium: Any, page: Path) -> None:
    seen = opened(chromium, page, width=400)
    browser = seen.page
    assert browser.evaluate("document.documentElement.scrollWidth") <= 400
    cells = browser.locator(".index td:not(:empty)")
    assert cells.count() >= 24
    for box in (cells.nth(number).bounding_box() for number in range(cells.count())):
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 400, "the whole index is seen without moving sideways"
    tables = browser.locator("section > .wide table")
    assert tables.count() >= 6
    assert max(tables.evaluate_all("all => all.map(table => table.getBoundingClientRect().right)")) <= 400
    browser.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
    cells = browser.locator(".checks td:is([data-is='measured'], [data-is='must be'])")
    assert cells.count() >= 24
    right = cells.evaluate_all("all => all.map(cell => cell.getBoundingClientRect().right)")
    assert max(right) <= 400, "each check's measured value and its limit are on the screen"
    rows = browser.locator(".checks tbody tr").evaluate_all("all => all.map(row => row.clientHeight)")
    assert max(rows) < 400
    seen.page.close()


def test_what_a_sabotage_did_is_told(tmp_path: Path) -> None:
    about = "With a single <replica> nobody takes over."
    run = run_of(tmp_path / "run", trials=[{"sabotage": True, "about": about}])
    page = write_page(tmp_path / "page.html", [stored_run(run, load())], judge="").read_text()
    assert "What was done wrongly on purpose: With a single &lt;replica&gt; nobody takes over." in page


def test_what_cannot_be_drawn_is_told_and_the_verdict_is_shown_all_the_same(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(evidence: object) -> None:
        raise ValueError("somebody wrote into the files")

    monkeypatch.setattr("plugin.reports.stored_run.series", broken)
    trial = stored_trial(run / "claims" / "survivability" / "c-killed", load())
    assert trial.problem == "the evidence cannot be drawn (ValueError: somebody wrote into the files)"
    assert trial.series is None
