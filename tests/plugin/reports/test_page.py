"""The interactive page, looked at in a real browser: what is shown, how it is moved in, and what it bears."""

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from plugin.catalogue import load
from plugin.evidence.layout import LAYOUT, layout_line
from plugin.evidence.records import event_line
from plugin.evidence.store import EVENTS, TRIAL_FILE, VERDICT, seal
from plugin.reports.page import write_page
from plugin.reports.stored_run import stored_run
from tests.plugin.conftest import edited
from tests.plugin.judge.test_growth import NINE, grown
from tests.plugin.reports.browser import opened
from tests.plugin.reports.samples import run_of, trial_of

HOUR_S = 3600
STOOD = 2  # from when samples count, in seconds after the test began
NASTY = "<script>alert('pwned')</script> \"'`&amp; 🪳 </script><!--"


def page_of(place: Path, *runs: Path) -> Path:
    return write_page(place, [stored_run(run, load()) for run in runs], judge=f"--judge {runs[0]}")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def hour(home: Path) -> Path:
    """The page of an hour on nine nodes."""
    faults = [("kill", f"n{number % 9 + 1}", 60 + number * 300) for number in range(11)]
    run = run_of(home / "hour", trials=[{"seconds": HOUR_S, "nodes": 9, "rate": 15, "faults": faults, "judged": False}])
    return page_of(home / "hour.html", run)


@pytest.fixture(scope="module")
def two(home: Path) -> Path:
    """Two runs of the same claim on two versions."""
    context = {"engine": "cockroach", "version": "v24.2.0", "nodes": "3"}
    one = run_of(home / "one")
    other = run_of(home / "other", trials=[{"context": context, "faults": [("kill", "n2", 25)], "seconds": 70}])
    return page_of(home / "two.html", one, other)


def test_the_words_of_the_page_are_told_without_markdowns_marks(tmp_path: Path) -> None:
    page = page_of(tmp_path / "page.html", run_of(tmp_path / "run")).read_text()
    words = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page[page.index('id="words"') :]))
    assert len(words) > 100
    assert words["page"].startswith("report.html, one file with everything of a run")
    assert "see not evaluated;" in words["evaluated"]
    assert words["lag, late"]
    assert not [meaning for meaning in words.values() if re.search(r"[`*]|\]\(", meaning)]


def test_an_hour_is_small_and_can_be_moved_in(chromium: Any, hour: Path) -> None:
    assert hour.stat().st_size < 5_000_000
    seen = opened(chromium, hour)
    seen.drawn()
    assert seen.page.evaluate("document.getElementsByTagName('*').length") < 3000, "it stays fluid"
    page, over = seen.page, seen.page.locator(".u-over").first
    assert seen.of_charts(0, "charts.length") == 4
    assert seen.of_charts(0, "charts.map(u => [u.scales.x.min, u.scales.x.max])") == [[0, HOUR_S - 1 - STOOD]] * 4
    # hover: every chart's line stands at the same second, and what was there is said
    over.hover(position={"x": 300, "y": 60})
    (at,) = {*seen.of_charts(0, "charts.map(u => u.cursor.idx)")}
    told = page.locator(".told").inner_text()
    assert 0 < at < HOUR_S
    assert "writes/s 15" in told or "writes/s 0" in told
    assert "p99" in page.locator(".u-legend").nth(1).inner_text()
    # drag: a stretch is zoomed into, in all of them; a double click shows everything again
    box = over.bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 300, box["y"] + 60, steps=4)
    page.mouse.up()
    zoomed = seen.of_charts(0, "charts.map(u => u.scales.x.max - u.scales.x.min)")
    assert max(zoomed) == min(zoomed)
    assert 200 < zoomed[0] < 500
    over.dblclick(position={"x": 100, "y": 60})
    assert seen.of_charts(0, "charts[3].scales.x.max") == HOUR_S - 1 - STOOD
    assert seen.complaints == []
    assert seen.requests == [hour.as_uri()] or seen.requests == [hour.as_uri(), "data:,"]
    page.close()


def test_the_keyboard_does_what_the_mouse_does(chromium: Any, two: Path) -> None:
    seen = opened(chromium, two)
    seen.drawn()
    page, charts = seen.page, seen.page.locator(".charts").first
    charts.focus()
    assert charts.get_attribute("role") == "group"
    assert "arrow keys" in charts.get_attribute("aria-label")
    page.keyboard.press("ArrowRight")
    first = seen.of_charts(0, "charts[0].cursor.idx")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    assert seen.of_charts(0, "charts.map(u => u.cursor.idx)") == [first + 11] * 4
    live = charts.locator("[aria-live=polite]")
    page.keyboard.press("Shift+ArrowLeft")
    assert live.inner_text().startswith(f"{first + 1} s: ")
    whole = seen.of_charts(0, "charts[2].scales.x.max - charts[2].scales.x.min")
    page.keyboard.press("+")
    assert seen.of_charts(0, "charts.map(u => u.scales.x.max - u.scales.x.min)") == [whole / 2] * 4
    page.keyboard.press("-")
    page.keyboard.press("+")
    page.keyboard.press("+")
    page.keyboard.press("0")
    assert seen.of_charts(0, "charts[1].scales.x.max - charts[1].scales.x.min") == whole
    for _ in range(9):
        page.keyboard.press("Shift+ArrowLeft")
    assert seen.of_charts(0, "charts[0].cursor.idx") == 0, "it ends where the run begins"
    page.close()


def test_what_happened_is_told(chromium: Any, two: Path) -> None:
    """Fault, states, errors and what each fault cost, in words as in pictures."""
    seen = opened(chromium, two)
    seen.drawn()
    page = seen.page
    assert page.title() == "RUN PASSED: 1 claim – Roachproof: cockroach v24.1.3, cockroach v24.2.0"
    assert page.locator("p.sum").inner_text() == "Trials: 2 pass"
    cost = page.locator("section.trial").first.locator(".wide").first.inner_text()
    assert "n1 killed" in cost
    assert "18.0 to 30.0 s" in cost
    page.locator(".charts").first.focus()
    page.evaluate(
        "(() => { const u = [...roachproof.drawn.values()][0][0];"
        " u.setCursor({ left: u.valToPos(19, 'x'), top: 5 }); })()"
    )
    told = page.locator(".told").first.inner_text()
    for words in (
        "19 s: writes/s 0",
        "1 load",
        "probe: timeout",
        "n1: killed, 0 % of ranges reached",
    ):
        assert words in told
    page.close()


def test_time_counts_from_when_the_cluster_stood(home: Path, two: Path) -> None:
    text = two.read_text()
    assert text.count("Time counts from when the cluster stood, 2 s after the test began.") == 2
    assert '<td class="n">-2.00</td><td>trial.begin</td>' in text
    assert '<td class="n">0.00</td><td>provisioned</td>' in text
    assert '<td class="n">18.00</td><td>fault.begin</td>' in text
    never = run_of(home / "never")
    (trial,) = never.glob("claims/*/*")
    events = (trial / EVENTS).read_text().splitlines(keepends=True)
    (trial / EVENTS).write_text("".join(line for line in events if '"provisioned"' not in line))
    page = page_of(home / "never.html", never).read_text()
    assert "Time counts from when the test began." in page
    assert '<td class="n">20.00</td><td>fault.begin</td>' in page


def test_two_runs_on_one_axis(chromium: Any, two: Path) -> None:
    seen = opened(chromium, two)
    page = seen.page
    seen.drawn("#comparison")
    assert [page.locator(f"#{name}").evaluate("e => e.selectedIndex") for name in ("one", "two")] == [0, 1]
    # both faults begin at zero
    fell = "charts[0].data.slice(1).map(d => charts[0].data[0][d.findIndex((v, i) => v === 0 && d[i - 1] > 0)])"
    assert seen.of_charts(2, fell) == [0, 0]
    page.locator("#zero").select_option("begin")
    assert seen.of_charts(2, fell) == [20 - STOOD, 25 - STOOD]
    head = page.locator("#side tr").first.inner_text()
    assert "first: cockroach v24.1.3" in head
    assert "second: cockroach v24.2.0" in head
    table = page.locator("#side").inner_text()
    assert "throughput_before" in table
    page.locator("#two").select_option("0")
    assert "v24.2.0" not in page.locator("#side tr").first.inner_text()
    assert seen.complaints == []
    page.close()


@pytest.fixture(scope="module")
def odd(home: Path) -> Path:
    """A run with a trial for everything that may be wrong with one."""
    run = home / "odd"
    thousands = {"nodes": 3, "seconds": 60}
    trials: dict[str, dict[str, Any]] = {
        "a-nasty": {
            "test": f"test_x.py::test_{NASTY}",
            "sentence": NASTY,
            "tuned": [NASTY],
            "context": {"engine": NASTY, "version": NASTY},
        },
        "b-half": {"judged": False},
        "c-older": {"judged": False},
        "d-silent": {"silent": True},
        "e-errors": thousands,
        "f-calm": {"faults": []},
        "g-empty": {"judged": False},
        "h-mangled": {"judged": False},
        "i-sabotage": {"sabotage": True},
        "j-harness": {},
    }
    run_of(run, trials=[{"name": name, **trial} for name, trial in trials.items()])
    place = run / "claims" / "survivability"
    for name in ("ledger.tsv", "probe.jsonl", EVENTS):
        path = place / "b-half" / name
        path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    edited(place / "c-older" / TRIAL_FILE, schema=0)
    with (place / "e-errors" / "probe.jsonl").open() as file:
        header, *seconds = map(json.loads, file)
    for second in seconds:
        for route in second["routes"].values():
            route["errors"] = {f"error {NASTY} {number}": 400 for number in range(12)}
    lines = [json.dumps(line) + "\n" for line in (header, *seconds)]
    (place / "e-errors" / "probe.jsonl").write_text("".join(lines))
    for path in (place / "g-empty").iterdir():
        if path.name != TRIAL_FILE:
            path.unlink()
    text = (place / "h-mangled" / "probe.jsonl").read_text()
    (place / "h-mangled" / "probe.jsonl").write_text(text.replace('"n2":"', '"n2":"AAAA'))
    with (place / "j-harness" / EVENTS).open("a") as file:
        file.write(json.dumps({"t": 60_000_000, "event": "error", "what": "OSError: cannot clear away"}) + "\n")
    edited(place / "f-calm" / VERDICT, results=[{}])
    return page_of(home / "odd.html", run)


def test_bad_input_is_shown_for_what_it_is(chromium: Any, odd: Path) -> None:
    seen = opened(chromium, odd)
    page = seen.page
    badges = page.locator("section.trial h2 .badge").all_inner_texts()
    trials = page.locator("section.trial")
    by_words = {trials.nth(i).locator("p strong").inner_text(): badges[i] for i in range(trials.count())}
    assert trials.count() == 10

    def find(text: str) -> str:
        return str(next(badge for why, badge in by_words.items() if text in why))

    assert find("schema 0; this release reads schema 1") == "… UNREADABLE"
    assert find("the run ended early, after") == "… ENDED EARLY"
    assert find("OSError: cannot clear away") == "… HARNESS FAILED"
    assert sum(badge == "✘ NOT AS EXPECTED" for badge in badges) == 1
    assert "ENDED EARLY" in page.locator("#a7").inner_text(), "its probe's seconds cannot be read"
    assert NASTY in page.locator("main").inner_text(), "as it was written, and as text"
    assert page.evaluate("document.scripts.length") == 3
    for number in range(page.locator(".charts").count()):
        page.locator(".charts").nth(number).scroll_into_view_if_needed()
    seen.wait("roachproof.drawn.size === document.querySelectorAll('.charts').length")
    assert seen.complaints == []
    page.close()


def test_half_written_evidence_is_shown_as_far_as_it_goes(chromium: Any, odd: Path) -> None:
    seen = opened(chromium, odd)
    section = seen.page.locator("section.trial", has_text="the run ended early, after fault").first
    section.locator(".charts").scroll_into_view_if_needed()
    section.locator(".uplot").first.wait_for()
    number = section.locator(".charts").evaluate("e => [...document.querySelectorAll('.charts')].indexOf(e)")
    assert seen.of_charts(number, "charts[0].data[1].filter(v => v > 0).length") > 20
    assert seen.of_charts(number, "charts[1].data[3].filter(v => v > 0).length") > 20
    seen.page.close()


def test_trials_that_somebody_must_look_at_come_first(home: Path) -> None:
    """In the list on top and below it; sabotages are no part of the verdict, and stay last."""
    names = ("a-pass", "b-inconclusive", "c-pass", "d-refuted")
    small = {"seconds": 20, "faults": []}
    trials = [{"name": name, "test": f"test_x.py::{name}", **small} for name in names]
    run = run_of(home / "mixed", trials=[*trials, {"name": "e", "test": "test_x.py::e", "sabotage": True, **small}])
    for name in names:
        edited(run / "claims" / "survivability" / name / VERDICT, outcome=name[2:])
    text = page_of(home / "mixed.html", run).read_text()
    order = ["d-refuted", "b-inconclusive", "a-pass", "c-pass", "e"]
    assert re.findall(r'<a href="#a\d">survivability</a><br><span class="quiet">([^<]*)<', text) == order
    assert re.findall(r'<section id="a(\d)"', text) == ["3", "1", "0", "2", "4"]


def test_what_decided_stands_before_what_was_not_evaluated(home: Path) -> None:
    """The latter is folded, below what holds; nothing of it is open, nor is anything of a claim that passed."""
    run = run_of(home / "unseen", trials=[{"seconds": 20, "faults": []}])
    place = run / "claims" / "survivability"
    (verdict,) = place.glob(f"*/{VERDICT}")
    results = json.loads(verdict.read_text())["results"]
    for result, outcome in zip(results, ("not evaluated", "refuted", "not evaluated"), strict=False):
        result["outcome"] = outcome
    rest = [result["outcome"] for result in results[3:]]
    edited(verdict, results=results, outcome="refuted")
    page = page_of(home / "unseen.html", run).read_text()
    shown, first, second = page[page.index("<h3>Checks</h3>") :].split("<details>", 3)[:3]
    open_ = re.findall(r'<tr><td class="[a-z]+ keep">. ([A-Z ]+)<', shown)
    assert open_ == ["REFUTED", *(outcome.upper() for outcome in rest if outcome in ("refuted", "inconclusive"))]
    told = f"{rest.count('pass')} passed, {rest.count('reported')} reported"
    assert first.startswith(f"<summary>{told}</summary>")
    assert "NOT EVALUATED" not in first
    unseen = 2 + rest.count("not evaluated")
    assert second.startswith(f"<summary>{unseen} not evaluated: this profile, version or plan cannot show them</")
    assert second.count("NOT EVALUATED</td>") == unseen


@pytest.mark.parametrize(
    ("scheme", "width", "media"), [("light", 1200, "screen"), ("dark", 400, "screen"), ("dark", 800, "print")]
)
def test_it_can_be_read_everywhere(chromium: Any, two: Path, odd: Path, scheme: str, width: int, media: str) -> None:
    """Nothing hangs over the edge, and every colour of text and line stands out from the ground."""
    for path in (two, odd):
        seen = opened(chromium, path, scheme=scheme, width=width, media=media)
        if media == "print":
            seen.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
        for name, least in {
            "ink": 7,
            "quiet": 4.5,
            "good": 4.5,
            "bad": 4.5,
            "unsure": 4.5,
            "a": 4.5,
            "b": 4.5,
            "c": 4.5,
        }.items():
            assert contrast(seen.page, name, "paper") >= least, name
        for lane in ("up", "new", "newer", "hit", "back", "wait"):
            assert contrast(seen.page, "ink", lane) >= 4.5, lane
        if width == 400:
            seen.page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true; })")
            seen.page.locator("#compare").scroll_into_view_if_needed()
            seen.wait("!!document.querySelector('#side table')")
            over = "[...document.querySelectorAll('.wide')].filter(one => one.scrollWidth > one.clientWidth)"
            assert seen.page.evaluate(f"{over}.map(one => one.innerText)") == []
        if media == "print":
            assert seen.page.evaluate("[...document.querySelectorAll('details')].every(part => part.open)")
            assert seen.page.evaluate("roachproof.drawn.size === document.querySelectorAll('.charts').length")
        seen.page.close()


def test_every_table_that_stands_has_a_name_and_every_heading_says_what_it_heads(
    chromium: Any, two: Path, odd: Path
) -> None:
    """Of the tables that a script makes, too: the source says nothing of those."""
    for path in (two, odd):
        seen = opened(chromium, path)
        seen.page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true; })")
        seen.page.locator("#compare").scroll_into_view_if_needed()
        seen.page.locator("#side table th").first.wait_for()
        lacking = "(name, ask) => [...document.querySelectorAll(name)].filter(ask).map(one => one.outerHTML)"
        named = "one => !(one.getAttribute('aria-label') || one.caption)"
        assert seen.page.evaluate(f"({lacking})('table', {named})") == []
        assert seen.page.locator("table.u-legend").count()
        assert seen.page.evaluate(f"({lacking})('th', one => !one.scope || !one.textContent.trim())") == []
        seen.page.close()


@pytest.mark.parametrize("width", [1200, 400])
def test_a_table_is_one_to_a_screen_reader_on_any_screen(chromium: Any, two: Path, odd: Path, width: int) -> None:
    """As the browser tells it: rows that stand as blocks would be none, and their cells nothing but text."""
    for path in (two, odd):
        seen = opened(chromium, path, width=width)
        seen.page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true; })")
        seen.page.locator("#compare").scroll_into_view_if_needed()
        seen.page.locator("#side table td").first.wait_for()
        asked = seen.page.context.new_cdp_session(seen.page)
        nodes = asked.send("Accessibility.getFullAXTree")["nodes"]
        told = Counter(node.get("role", {}).get("value") for node in nodes if not node["ignored"])
        here = "one => one.getClientRects().length > 0 && !one.closest('.u-legend')"
        shown = f"name => [...document.querySelectorAll(name)].filter({here}).length"
        tables, rows = (seen.page.evaluate(shown, name) for name in ("table", "tr"))
        assert told["table"] >= tables > 3
        assert told["row"] >= rows > 10
        first = "[...document.querySelectorAll('#side tbody tr')].map(one => one.cells[0].getAttribute('role'))"
        assert set(seen.page.evaluate(first)) == {"rowheader"}
        assert told["rowheader"] >= seen.page.evaluate("document.querySelectorAll('#side tbody tr').length")
        assert told["cell"] > told["row"]
        seen.page.close()


def contrast(page: Any, one: str, other: str) -> float:
    """As the Web Content Accessibility Guidelines count it."""

    def luminance(name: str) -> float:
        text = page.evaluate(f"getComputedStyle(document.documentElement).getPropertyValue('--{name}').trim()").lstrip(
            "#"
        )
        digits = "".join(2 * c for c in text) if len(text) == 3 else text
        parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
        red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_the_page_is_one_file_without_an_address(two: Path) -> None:
    text = two.read_text()
    assert "default-src 'none'" in text
    links = re.findall(r'href="(http[^"]*)"', text)
    assert links == ["http://urn.kb.se/resolve?urn=urn:nbn:se:bth-21671"] * 2, "those of the claims"
    for asked in ('src="', '<link rel="stylesheet', "@import", "url(", "fetch(", "XMLHttpRequest"):
        assert asked not in text.replace("https://github.com/leeoniya/uPlot", ""), asked


def test_a_page_that_cannot_be_written_leaves_nothing(home: Path) -> None:
    run = run_of(home / "small", trials=[{"seconds": 20, "judged": False, "faults": []}])
    place = home / "taken.html"
    place.mkdir()
    with pytest.raises(OSError, match="taken"):
        page_of(place, run)
    assert not list(home.glob(".taken*"))
    shutil.rmtree(place)


@pytest.fixture(scope="module", autouse=True)
def _one(home: Path) -> Iterator[None]:
    yield
    shutil.rmtree(home)


def test_a_trial_of_one_second(home: Path) -> None:
    trial = trial_of(home / "short" / "claims" / "survivability" / "trial", seconds=5, faults=[], judged=False)
    assert stored_run(trial, load()).trials[0].series is not None
    assert page_of(home / "short.html", trial).stat().st_size > 50_000


@pytest.mark.parametrize(
    ("without", "heads"),
    [
        ((), ["recovery", "gap", "gap through the hit node", "degraded", "writes not made"]),
        (("probe.jsonl",), ["recovery", "degraded", "writes not made"]),
        (("probe.jsonl", "ledger.tsv", "ledger-final.tsv"), ["recovery"]),
    ],
)
def test_no_place_for_what_nobody_recorded(tmp_path: Path, without: Sequence[str], heads: list[str]) -> None:
    """A claim of a user's own need have neither."""
    run = run_of(tmp_path / "run", trials=[{"seconds": 40, "judged": False}])
    (trial,) = (run / "claims" / "survivability").iterdir()
    for name in without:
        (trial / name).unlink()
    seal(trial)
    page = page_of(tmp_path / "page.html", run).read_text()
    cost = page[page.index("<h3>What each fault cost") : page.index("<h3>Checks") if "<h3>Checks" in page else None]
    told = cost[: cost.index("</table>")]
    assert re.findall(r'<th scope="col" class="n">(.*?)</th>', told) == heads
    assert re.findall(r'<td class="n" data-is="(.*?)">[\d.]', told) == heads
    assert ("red below" in page) == ("Gap: " in cost) == ("gap" in heads)


def test_without_cluster_load_and_probe_there_is_no_chart(tmp_path: Path) -> None:
    """Nor a place for one, which the page's script would look for charts to put into."""
    run = run_of(tmp_path / "run", trials=[{"name": name, "seconds": 5, "judged": False} for name in ("one", "two")])
    for trial in (run / "claims" / "survivability").iterdir():
        for name in ("probe.jsonl", "ledger.tsv", "ledger-final.tsv"):
            (trial / name).unlink()
        events = (trial / EVENTS).read_text().splitlines(keepends=True)
        (trial / EVENTS).write_text("".join(line for line in events if '"trial.' in line))
        seal(trial)
    page = page_of(tmp_path / "page.html", run).read_text()
    body, data = page[: page.index('id="data"')], page[page.index('id="data"') :]
    assert 'class="charts"' not in body
    assert data.count('"groups":{}') == 2


def test_replicas_are_drawn_over_the_traffic(chromium: Any, tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", trials=[{"seconds": 120, "faults": (), "judged": False}])
    (trial,) = (run / "claims" / "survivability").iterdir()
    (trial / LAYOUT).write_text("".join(map(layout_line, grown().layout)))
    (trial / "probe.jsonl").unlink()
    with (trial / EVENTS).open("a") as file:
        file.writelines(map(event_line, grown().events))
    seal(trial)
    seen = opened(chromium, page_of(run / "page.html", run))
    seen.drawn()
    titles = seen.page.locator(".u-title").all_inner_texts()
    assert titles[0].startswith("Replicas on each node")
    assert titles[2].startswith("Latency of acknowledged writes"), "there was no probe"
    assert seen.of_charts(0, "charts[0].series.map((s) => s.label)") == ["time", *NINE, "mean"]
    assert seen.of_charts(0, "[charts[0].data[1][18], charts[0].data[9][98]]") == [45, 20]
    assert seen.of_charts(0, "charts[2].data[2][58]") == 4, "milliseconds"
    (spans,) = {tuple(span) for span in seen.of_charts(0, "charts.map((u) => [u.scales.x.min, u.scales.x.max])")}
    assert spans[0] == 0
    assert seen.complaints == []
    seen.page.close()
