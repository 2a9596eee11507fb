"""What reports say of a change of version: facts, nodes, plan and sources beside, on the page and in Allure's."""

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from plugin.catalogue import load
from plugin.claims import Claim
from plugin.evidence.store import EVENTS
from plugin.judge.mixed import Ended
from plugin.reports.page import write_page
from plugin.reports.stored_run import StoredTrial, stored_run
from plugin.reports.swapping_tables import Row, facts, lasted, moment, plan_rows, swap_rows
from plugin.reports.terminal import trial_lines
from tests.plugin.reports.allure_reading import Result, again
from tests.plugin.reports.browser import opened
from tests.plugin.reports.swaps import NEW, OLD, PLAN, STEPS, begun, done, drawn, event, heard, stored, swapped

NASTY = "<script>alert('pwned')</script> \"'`&amp; 🪳 </script><!--"


def words(rows: list[Row]) -> list[list[str]]:
    return [[cell.text for cell in row] for row in rows]


def test_a_row_a_node_and_swap() -> None:
    found = heard(done()).swapping
    assert found is not None
    first = words(swap_rows(found))[0]
    assert first == [
        "n3", f"{OLD} → {NEW}", "1.0", "16.0 s", "17.0 s – 19.0 s", "2.0 s", "20.0 s", "4.0 s",
        "not recorded", "not recorded", "not recorded", "not recorded", "not recorded",
    ]  # fmt: skip
    assert len(swap_rows(found)) == 6
    ended = Ended(node="n3", begin=18_000_000, at="16.0 s", held=3, drained=2, dropped=1)
    counted = replace(found, swaps=(replace(found.swaps[0], ended=ended, gap_s=3.25, others_gap_s=0.5),))
    assert words(swap_rows(counted))[0][8:] == ["3.2 s", "0.50 s", "3", "2", "1"]
    unknown = replace(counted, swaps=(replace(counted.swaps[0], ended=replace(ended, held=None)),))
    assert words(swap_rows(unknown))[0][10:] == ["not recorded", "2", "1"], "of an earlier release"


def test_what_went_wrong_stands_out() -> None:
    failed = event(20.5, "swap.failed", node="n3", wanted=NEW, why="no\nlog")
    found = heard([drawn(), *swapped(18, "n3", OLD), failed, *swapped(30, "n2", OLD, wanted=NEW)]).swapping
    assert found is not None
    one, other = swap_rows(found)
    assert (one[1].text, one[1].style) == (f"{OLD} → {NEW}: did not come up (no log); it runs {OLD} again", "bad")
    assert (other[1].text, other[1].style) == (f"{OLD} → {NEW}: calls itself {OLD}", "bad")
    told = dict(facts(found))["nodes changed"]
    assert (told.text, told.style) == (f"n3, n2 → {NEW} (2 restarts); n3, n2 did not run what was given", "bad")
    cut = heard([drawn(), *(e for e in swapped(18, "n3", NEW) if e.t < 19.5e6)]).swapping
    assert cut is not None
    ((_, _, active, _, down, away, whole, *_),) = swap_rows(cut)
    assert (active.text, down.text, away.text, whole.text) == ("–", "17.0 s – never recorded", "–", "never recorded")
    assert (down.style, whole.style) == ("bad", "bad")


def test_a_node_that_was_not_drained_or_crashed_is_told() -> None:
    undrained = event(18.5, "drain.failed", node="n3", why="ERROR: drain timeout")
    crashed = event(30.5, "node.stopped", node="n2", code=-11)
    begun = event(29, "step.begin", number=2, kind="swap", says="")
    found = heard(
        [drawn(), *swapped(18, "n3", OLD, wanted=OLD), undrained, begun, *swapped(30, "n2", NEW), crashed]
    ).swapping
    assert found is not None
    (one, _) = swap_rows(found)
    said = f"{OLD} → ?: was not drained (ERROR: drain timeout); it runs {OLD} again"
    assert (one[1].text, one[1].style) == (said, "bad")
    assert any("n2 ended with -11" in step.came for step in found.steps)


def test_a_version_that_was_meant_to_fail_does_not_stand_out() -> None:
    failed = {"node": "n3", "wanted": NEW, "why": "exit code 3", "meant": "dies"}
    for as_meant, style, shown in (
        (True, "", "come up, as it was meant to (dies) (exit code 3)"),
        (False, "bad", "come up (exit"),
    ):
        found = heard([*swapped(18, "n3", OLD), event(20.5, "swap.failed", **failed, as_meant=as_meant)]).swapping
        assert found is not None
        ((_, versions, *_),) = swap_rows(found)
        assert versions.style == style
        assert shown in versions.text
        assert dict(facts(found))["nodes changed"].style == style


def test_an_update_that_failed_as_it_was_meant_to_is_none_of_the_nodes_changed() -> None:
    failed = event(28.5, "swap.failed", node="n2", wanted=NEW, why="exit code 3", meant="dies", as_meant=True)
    events = [*swapped(18, "n3", NEW), *swapped(26, "n2", OLD, wanted=OLD), failed, *swapped(34, "n3", OLD)]
    found = heard([drawn(), *events]).swapping
    assert found is not None
    told = f"n3 → {NEW}; n3 → {OLD} (3 restarts); n2 did not come up, as it was meant to (dies)"
    assert dict(facts(found))["nodes changed"].text == told
    assert "n2 did not come up" in [mark.name for mark in found.marks]


def test_the_plan_says_of_each_step_how_far_it_came(tmp_path: Path) -> None:
    events = [one for one in done() if one.t <= 23.5e6]
    trial = stored_run(stored(tmp_path / "run", events), load()).trials[0]
    assert trial.series is not None
    assert trial.series.swapping is not None
    rows = words(plan_rows(trial.series.swapping))
    assert rows[0] == ["1", "keep the version in force", "15.0 s", "15.2 s", "0.20 s", "done", "1.0 is kept"]
    assert rows[1][-1] == f"n3 calls itself {NEW}, 1.0 in force"
    assert rows[2][:6] == ["3", "swap n2", "20.8 s", "–", "–", "begun, not done"]
    assert rows[3] == ["4", "swap: node n1, to new, pause s 1.0", "–", "–", "–", "not done", ""]
    assert len(rows) == len(STEPS)
    told = dict(facts(trial.series.swapping))
    assert told["plan"].text == "final, seed 7: 2 of 10 steps done; it went no further than step 3, swap n2"
    assert told["plan"].style == "bad"
    assert told["at the end"].text == f"n1: {OLD}; n2: draining; n3: {NEW}, 1.0 in force"
    assert told["time"].text.endswith("; 4.0 s a node until the cluster was whole, as it was after 1 of 2 restarts")
    assert told["way back"].text == "1.0 is kept: there is a way back"


def test_a_release_manager_is_told_what_was_changed() -> None:
    found = heard(done(), plan=PLAN).swapping
    assert found is not None
    told = {name: cell.text for name, cell in facts(found)}
    assert told == {
        "versions": f"old ({OLD}) → new ({NEW})",
        "plan": "final, seed 7: 10 of 10 steps done",
        "nodes changed": f"n3, n2, n1 → {NEW}; n1, n2, n3 → {OLD} (6 restarts)",
        "time": "35.6 s from the first drain to the end of the last step done; 4.0 s a node, 4.0 s to 4.0 s, until "
        "the cluster was whole",
        "connections": "not recorded",
        "longest gap": "not recorded",
        "at the end": f"n1, n2: {OLD}, 1.1 in force; n3: {OLD}, 1.0 in force; n4: {NEW}",
        "way back": "1.1 was made final: there is no way back",
        "looked at before": "nothing forbade it; change v1 → v2: allowed; replicas: all there",
    }
    against = heard(
        [drawn(equal=True), event(3, "preflight", found={}, against=["n1 has 3 MiB of free disk"])]
    ).swapping
    assert against is not None
    cells = dict(facts(against))
    assert (cells["looked at before"].text, cells["looked at before"].style) == ("n1 has 3 MiB of free disk", "bad")
    assert cells["versions"].text.endswith("all the same build: a rolling restart")
    assert cells["nodes changed"].text == "none"


def test_a_plan_that_only_goes_forward_says_that_no_node_went_back() -> None:
    for events, none in (
        ([*swapped(18, "n3", NEW)], True),
        ([*swapped(18, "n3", NEW), *swapped(28, "n3", OLD)], False),
    ):
        found = heard([drawn(), *events]).swapping
        assert found is not None
        told = dict(facts(found)).get("nodes that went back")
        assert (told is not None) is none
    equal = heard([drawn(equal=True), *swapped(18, "n3", NEW)]).swapping
    assert equal is not None
    assert "nodes that went back" not in dict(facts(equal))


@pytest.mark.parametrize(("kept", "there"), [("1.0", False), ("1.1", True), ("", True)])
def test_a_version_that_was_in_force_before_it_is_made_final_takes_no_way_back(kept: str, there: bool) -> None:
    """A patch release changes nothing of what is stored, and the control knows no version that could be kept."""
    before = event(16, "versions.seen", active=dict.fromkeys(("n1", "n2"), "1.1"), builds={})
    final = event(52, "version.final", active=dict.fromkeys(("n1", "n2"), "1.1"), seconds=2.0)
    found = heard([drawn(), before, event(17.1, "version.kept", active=kept), *swapped(18, "n3", NEW), final]).swapping
    assert found is not None
    said = "1.1 is in force, as it was before: making it final changed nothing"
    assert dict(facts(found))["way back"].text == (said if there else "1.1 was made final: there is no way back")


@pytest.mark.parametrize(
    ("t", "shown"), [(None, "–"), (0, "0.0 s"), (119.94, "119.9 s"), (120, "2:00.0"), (3725.25, "1:02:05.2")]
)
def test_moments(t: float | None, shown: str) -> None:
    assert moment(t, 0) == shown


def test_how_long() -> None:
    assert [lasted(s) for s in (None, 0.444, 1, 599.96, 660)] == ["–", "0.44 s", "1.0 s", "600.0 s", "11.0 min"]


# ---- sources beside


@pytest.fixture(scope="module")
def claim() -> Claim:
    return load().claim("hot-swap")


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> StoredTrial:
    return stored_run(stored(tmp_path_factory.mktemp("beside") / "run", done()), load()).trials[0]


def test_the_figure_s_moment_stands_beside_the_same_one_here(trial: StoredTrial, claim: Claim) -> None:
    """A change back, as in the figure: of its second node, when it is down and one is changed."""
    figure, guide = trial.sections["versions"].beside(claim, {"figure_5_10": "figure 5.10"}, ())
    assert (figure.work, figure.title) == ("thesis", "figure 5.10")
    assert figure.head == ("", "from", "to", "nodes", "changed", "down", "not yet changed")
    assert figure.rows == (
        ("thesis printed", "20.2.6", "20.2.5", "3", "1", "1", "1"),
        ("measured here", NEW, OLD, "3", "1", "1", "1"),
    )
    assert f"Here at 37.0 s: n1 {OLD}, n2 down, n3 {NEW}." in figure.note
    assert guide.title == "rolling upgrade"


def test_of_a_build_that_is_given_twice_no_moment_is_shown(tmp_path: Path, claim: Claim) -> None:
    """None of its nodes is changed; counted by builds, each was changed and not."""
    events = [drawn(equal=True, builds={"old": OLD, "new": OLD}), *done()[1:]]
    trial = stored_run(stored(tmp_path / "run", events), load()).trials[0]
    (guide,) = trial.sections["versions"].beside(claim, {"figure_5_10": "figure 5.10"}, ())
    assert guide.title == "rolling upgrade"


def test_the_guide_s_minutes_stand_beside_each_roll(trial: StoredTrial, claim: Claim) -> None:
    setups = (("set-up of the thesis", "pods"), ("set-up here", "two cores"))
    _, guide = trial.sections["versions"].beside(claim, {"adversity_guide": "adversity guide"}, setups)
    assert guide.head == ("", "nodes", "versions", "minutes in all", "minutes a node")
    assert guide.rows[:4] == (
        ("adversity guide printed", "9", "-", "102", "11.3"),
        ("adversity guide printed", "15", "-", "165", "11"),
        ("measured here", "3", f"{OLD} → {NEW}", "0.233", "0.0667"),
        ("measured here", "3", f"{NEW} → {OLD}", "0.233", "0.0667"),
    )
    assert guide.rows[4] == ("measured here, all", "6", "every restart", "0.483", "0.0667")
    assert guide.rows[5] == ("ratio to 9 nodes", "-", "-", "-", "0.00588")
    assert [whose for whose, _ in guide.setups] == ["set-up of the adversity guide", "set-up here"]


def test_a_roll_of_one_node_has_no_such_moment(claim: Claim, tmp_path: Path) -> None:
    run = stored(tmp_path / "run", [drawn(), *swapped(18, "n3", NEW, step=2)])
    (of_one,) = stored_run(run, load()).trials
    figure, guide = of_one.sections["versions"].beside(claim, {}, ())
    assert len(figure.rows) == 1
    assert guide.rows[2][:3] == ("measured here", "1", f"{OLD} → {NEW}")


def test_a_terminal_says_no_more_of_it(trial: StoredTrial) -> None:
    without = replace(trial, sections={name: one for name, one in trial.sections.items() if name != "versions"})
    assert trial_lines(trial, origin=True) == trial_lines(without, origin=True)


# ---- the page


def page_of(place: Path, run: Path) -> Path:
    return write_page(place, [stored_run(run, load())], judge="--judge it")


def test_the_page_shows_all_of_it(chromium: Any, tmp_path: Path) -> None:
    seen = opened(chromium, page_of(tmp_path / "page.html", stored(tmp_path / "run", done())))
    seen.drawn()
    page = seen.page
    assert page.locator("main h3").all_inner_texts()[:4] == [
        "What was changed", "Second by second", "Each node, each time it was given a version",
        "The plan, and what was done",
    ]  # fmt: skip
    titles = page.locator(".u-title").all_inner_texts()
    assert titles[0].startswith("What runs on each node, and in which state it is")
    assert titles[1] == "Acknowledged writes a second"
    assert page.locator(".states").first.inner_text().splitlines() == [
        OLD, "draining", "down", "not ready, starting", NEW,
    ]  # fmt: skip
    assert seen.of_charts(0, "charts.map((u) => u.scales.x.max).every((max, _, all) => max === all[0])")
    page.locator(".charts").first.focus()
    page.evaluate(
        "(() => { const u = [...roachproof.drawn.values()][0][0];"
        " u.setCursor({ left: u.valToPos(22, 'x'), top: 5 }); })()"
    )
    told = page.locator(".told").first.inner_text()
    assert f"n3: {NEW}" in told
    assert "n2: down" in told
    assert page.locator(".swaps tbody tr").count() == 6
    assert page.locator(".plan tbody tr").count() == len(STEPS)
    assert "free disk of n1" in page.locator("details .record").first.inner_html()
    assert "9 MiB" in page.locator("details .record").first.inner_html()
    headings = " ".join(page.locator("h3").all_inner_texts())
    assert "thesis, figure 5.10" in headings
    assert "adversity guide, rolling upgrade" in headings
    assert seen.complaints == []
    page.close()


def test_names_that_are_markup_are_text(chromium: Any, tmp_path: Path) -> None:
    steps = [{"type": "swap", "node": NASTY, "to": NASTY}, {"type": NASTY, NASTY: NASTY}]
    nasty = [
        drawn(path=NASTY, builds={NASTY: NASTY}),
        event(3, "preflight", found={NASTY: NASTY}, against=[NASTY]),
        begun(17, 1, NASTY),
        event(17.5, "version.kept", active=NASTY),
        *swapped(18, NASTY, NASTY, active=NASTY),
        event(20.5, "swap.failed", node=NASTY, wanted=NASTY, why=NASTY),
    ]
    run = stored(tmp_path / "run", nasty, steps)
    seen = opened(chromium, page_of(tmp_path / "page.html", run))
    seen.drawn()
    assert seen.page.evaluate("document.scripts.length") == 3
    for place in (".record", ".swaps", ".plan", ".states"):
        assert "alert('pwned')" in seen.page.locator(place).first.inner_text(), place
    assert seen.complaints == []
    seen.page.close()
    (result,) = again(tmp_path, run)
    assert "<script" not in result.json["descriptionHtml"]
    assert "&lt;script&gt;alert" in result.json["descriptionHtml"]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 400)])
def test_a_run_that_crashed_in_the_middle_can_be_read(chromium: Any, tmp_path: Path, scheme: str, width: int) -> None:
    run = stored(tmp_path / "run", done())
    (directory,) = (run / "claims" / "survivability").iterdir()
    path = directory / EVENTS
    text = path.read_text()
    path.write_text(text[: text.index('"node": "n2", "proof"')])
    seen = opened(chromium, page_of(tmp_path / "page.html", run), scheme=scheme, width=width)
    seen.page.locator(".charts").first.scroll_into_view_if_needed()
    seen.drawn()
    page = seen.page
    assert "ENDED EARLY" in page.locator("h2 .badge").first.inner_text()
    came = page.locator(".plan td[data-is='done?']").all_inner_texts()
    assert came[:4] == ["done", "done", "begun, not done", "not done"]
    assert "never recorded" in page.locator(".swaps tbody tr").nth(1).inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    wider = "[...document.querySelectorAll('.stacked')].filter((t) => t.scrollWidth > t.parentElement.clientWidth + 1)"
    assert page.evaluate(f"{wider}.length") == 0, "no column is out of sight"
    assert seen.complaints == []
    page.close()


@pytest.mark.parametrize("events", [[], [drawn()], [begun(17, 2)]])
def test_what_never_began_has_a_page(tmp_path: Path, events: list[Any]) -> None:
    run = stored(tmp_path / "run", events)
    text = page_of(tmp_path / "page.html", run).read_text()
    assert ("What was changed" in text) is (drawn() in events)
    assert "the evidence cannot be drawn" not in text


# ---- Allure's results


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    place = tmp_path_factory.mktemp("allure")
    (found,) = again(place, stored(place / "run", done()))
    return found


def test_allure_has_tables_and_pictures(result: Result) -> None:
    rows = list(csv.DictReader(io.StringIO(result.attached("Nodes and their versions"))))
    assert [row["node"] for row in rows] == ["n3", "n2", "n1", "n1", "n2", "n3"]
    assert rows[0]["from → to"] == f"{OLD} → {NEW}"
    assert rows[0]["dropped"] == "0"
    plan = list(csv.DictReader(io.StringIO(result.attached("The plan, and what was done"))))
    assert [row["done?"] for row in plan] == ["done"] * len(STEPS)
    picture = result.attached("Timeline")
    assert "What runs on each node" in picture
    assert ">draining<" in picture
    seconds = list(csv.DictReader(io.StringIO(result.attached("Timeline, second by second"))))
    assert seconds[19]["node n3"] == "down"
    assert "Source beside measurement: figure 5.10" in result.names
    assert "Source beside measurement: rolling upgrade" in result.names


def test_allure_describes_what_was_changed(result: Result) -> None:
    text = result.json["descriptionHtml"]
    for told in ("What was changed", "10 of 10 steps done", f"<td>{OLD} → {NEW}</td>", "The plan, and what was done"):
        assert told in text, told


def test_allure_has_the_plan_as_steps(result: Result) -> None:
    names = [step["name"] for step in result.steps]
    assert names[0].startswith("Provision"), "its phases stay"
    plan = next(step for step in result.steps if step["name"] == "The plan: 10 of 10 steps done")
    assert plan["status"] == "passed"
    assert [step["name"] for step in plan["steps"]][:2] == ["1. keep the version in force", "2. swap n3"]
    assert plan["steps"][1]["parameters"][0]["value"] == f"n3 calls itself {NEW}, 1.0 in force"


def test_steps_that_were_not_done_are_skipped_in_allure(tmp_path: Path) -> None:
    run = stored(tmp_path / "run", [one for one in done() if one.t <= 23.5e6])
    (found,) = again(tmp_path, run)
    plan = next(step for step in found.steps if step["name"] == "The plan: 2 of 10 steps done")
    assert plan["status"] == "broken"
    statuses = [step["status"] for step in plan["steps"]]
    assert statuses == ["passed", "passed", "broken", *["skipped"] * 7]
    assert plan["steps"][3]["name"] == "4. swap: node n1, to new, pause s 1.0 – not done"
