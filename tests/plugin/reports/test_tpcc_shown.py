"""TPC-C runs as they are shown: the page in a real browser, Allure's results, and the terminal of a replay."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from plugin.catalogue import load
from plugin.reports.allure import content
from plugin.reports.allure_attachments import attachments
from plugin.reports.page import write_page
from plugin.reports.section import Attached, Step
from plugin.reports.stored import StoredArm, stored_run
from tests.plugin.conftest import Gate
from tests.plugin.reports.browser import Seen, opened
from tests.plugin.reports.tpcc_samples import parity, stress

SECRET = "postgresql://root:hunter2@localhost/db"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shown")


@pytest.fixture(scope="module")
def compared(home: Path) -> Path:
    return parity(home / "compared", builtin=80.0)


@pytest.fixture(scope="module")
def ramped(home: Path) -> Path:
    return stress(home / "ramped")


def page_of(run: Path, name: str = "page.html") -> Path:
    return write_page(run / name, [stored_run(run, load())], judge=f"--judge={run}")


@pytest.fixture(scope="module")
def pages(compared: Path, ramped: Path) -> dict[str, Path]:
    return {"compared": page_of(compared), "ramped": page_of(ramped)}


def all_drawn(seen: Seen) -> int:
    """Bring every chart into sight, and count their homes."""
    homes = seen.page.locator(".charts")
    for index in range(homes.count()):
        homes.nth(index).scroll_into_view_if_needed()
        seen.wait(f"roachproof.drawn.has(document.querySelectorAll('.charts')[{index}])")
    return int(homes.count())


# ---- the page


def test_the_page_of_a_comparison(chromium: Any, pages: dict[str, Path]) -> None:
    seen = opened(chromium, pages["compared"])
    assert all_drawn(seen) == 2, "the runs, and the source's table"
    text = seen.page.inner_text("body")
    for said in (
        "Six nodes reached 0.994 of the tpmC of three nodes at 20 warehouses (0.984 to 1.004, n = 3), within ±10 %",
        "The two drivers disagree at 3 nodes, 20 warehouses",
        "From table 5.5 of the thesis alone the judge says: inconclusive: n = 1, no p90 by type.",
        "A/A: the same arm again",
        "Declared before the first run: looks at 3 pairs, with 90 % intervals.",
    ):
        assert said in text
    assert text.count("The two drivers disagree") == 1
    titles = seen.page.locator(".u-title").all_inner_texts()
    assert titles[:3] == [
        "What ran when (r01: the first run)",
        "New-orders a minute (tpmC, means of 2 s)",
        "Latency of all transactions, from when each was due (logarithmic, stretches of 2 s)",
    ]
    assert titles[4] == "tpmC over warehouses, printed by the thesis"
    lines = seen.of_charts(0, "charts[1].data[1].filter(v => v != null).length")
    assert lines == 10 * 45, "every second of ten runs of 5 and 40 s"
    assert seen.complaints == []
    assert [url for url in seen.requests if not url.startswith(("file:", "data:"))] == []


def test_the_interval_is_drawn_where_its_figures_are(chromium: Any, pages: dict[str, Path]) -> None:
    seen = opened(chromium, pages["compared"])
    where = seen.page.evaluate(
        """() => { const of = (css) => document.querySelector(".forest tbody tr svg " + css).getBoundingClientRect();
        const band = of("rect.margin"), line = of("line.interval"), mean = of("circle.mean"), one = of("line.equal");
        const scale = [...document.querySelectorAll(".forest .scale text")].map((t) => [+t.textContent, t.getBoundingClientRect().left + t.getBoundingClientRect().width / 2]);
        return { band: [band.left, band.right], line: [line.left, line.right], mean: mean.left + mean.width / 2, one: one.left, scale }; }"""
    )
    (low, left), *_, (high, right) = where["scale"]

    def value(x: float) -> float:
        return float(low + (x - left) / (right - left) * (high - low))

    assert value(where["mean"]) == pytest.approx(0.994, abs=0.002)
    assert [value(x) for x in where["line"]] == pytest.approx([0.984, 1.004], abs=0.003)
    assert [value(x) for x in where["band"]] == pytest.approx([1 / 1.1, 1.1], abs=0.003)
    assert value(where["one"]) == pytest.approx(1.0, abs=0.002)


def test_the_page_of_a_ramp(chromium: Any, pages: dict[str, Path]) -> None:
    seen = opened(chromium, pages["ramped"])
    assert all_drawn(seen) == 3
    assert seen.of_charts(0, "charts[0].data[0]") == [10, 20, 40, 80, 120, 160, 200, 240]
    assert seen.of_charts(0, "charts[0].series.slice(1).map(s => s.label)") == [
        "3 nodes", "ideal: 12.86 a warehouse", "asked: 10.714 a warehouse (85 % of 12.605)",
    ]  # fmt: skip
    ideal = seen.of_charts(0, "charts[0].data[2]")
    assert ideal[0] == pytest.approx(128.6)
    assert seen.of_charts(2, "charts[0].data[0].length") == 25
    seen.page.locator(".charts").first.focus()
    seen.page.keyboard.press("ArrowRight")
    assert seen.page.locator(".told").first.inner_text().startswith("160 warehouses: 3 nodes 1868 tpmC (90.8 % of ideal) · p90 2")  # fmt: skip
    assert seen.complaints == []


def test_a_cursor_says_which_run_it_stands_in(chromium: Any, pages: dict[str, Path]) -> None:
    seen = opened(chromium, pages["compared"])
    all_drawn(seen)
    for second, said in ((30, "3 nodes, native: r01 measured · tpmC 2"), (66, "r02 loading"), (62, "no run")):
        seen.of_charts(0, f"charts[1].setCursor({{ left: charts[1].valToPos({second}, 'x'), top: 10 }})")
        assert said in seen.page.locator(".told").first.inner_text()


@pytest.mark.parametrize("name", ["compared", "ramped"])
@pytest.mark.parametrize(("width", "scheme", "media"), [(400, "dark", "screen"), (1200, "dark", "screen"), (700, "light", "print")])  # fmt: skip
def test_nothing_sticks_out(
    chromium: Any, pages: dict[str, Path], name: str, width: int, scheme: str, media: str
) -> None:
    seen = opened(chromium, pages[name], width=width, scheme=scheme, media=media)
    if media == "print":
        seen.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    else:
        all_drawn(seen)
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width + 2
    assert seen.complaints == []


def test_what_is_drawn_on_lines_is_seen_in_the_dark(chromium: Any, pages: dict[str, Path]) -> None:
    colours = set()
    for scheme in ("light", "dark"):
        seen = opened(chromium, pages["compared"], scheme=scheme)
        colours.add(
            seen.page.evaluate("getComputedStyle(document.querySelector('.forest line.interval')).stroke")
        )
    assert colours == {"rgb(17, 99, 41)", "rgb(87, 171, 90)"}


def test_two_runs_on_one_axis_compare_their_tpmc(chromium: Any, compared: Path, home: Path) -> None:
    other = parity(home / "other", arms={"3 nodes": 95.0, "6 nodes": 95.0})
    page = write_page(home / "two.html", [stored_run(run, load()) for run in (compared, other)], judge="")
    seen = opened(chromium, page)
    all_drawn(seen)
    assert "New-orders a minute (tpmC)" in seen.page.locator("#comparison").inner_text()
    assert seen.page.evaluate(
        "roachproof.drawn.get(document.getElementById('comparison'))[0].data.slice(1).every(d => d.some(v => v > 100))"
    )


def test_judged_again_the_page_is_the_same(compared: Path, gate: Gate) -> None:
    before = page_of(compared, "report.html").read_text()
    assert gate(f"--judge={compared}").status == 0
    after = (compared / "report.html").read_text()

    def shown(text: str) -> str:
        return re.sub(r"pytest --judge=\S+", "", text)

    assert shown(after) == shown(before)


# ---- Allure


def content_of(run: Path) -> tuple[StoredArm, Any, dict[str, Attached]]:
    stored = stored_run(run, load())
    (arm,) = stored.arms
    files = attachments(
        arm, title="it", run=stored.described, began_ms=0, passed=arm.result.outcome == "pass"
    )
    return arm, content(arm, run=stored.described, began_ms=0), {one.name: one for one in files}


def outline(steps: tuple[Step, ...] | list[Step], deep: int = 3) -> list[Any]:
    return [
        (step.name, outline(step.steps, deep - 1)) if step.steps and deep else step.name for step in steps
    ]


def test_allure_s_steps_are_the_blocks_and_their_runs(compared: Path) -> None:
    _, said, _ = content_of(compared)
    declared, first, second, third, *_ = said.steps
    assert declared.name == "Declared before the first run: looks at 3 pairs, with 90 % intervals"
    assert first.name == "Block 1: 3 nodes, 3 nodes (A/A), 6 nodes"
    pair, six, builtin = first.steps
    assert pair.name == "A/A pair: three nodes twice, ratio of tpmC 1.000"
    assert [step.name.partition(":")[0] for step in pair.steps] == ["r01", "r02"]
    assert six.name.startswith("r03: 6 nodes, 20 warehouses, native: 249.0 tpmC, efc 96.8 %, p90 ")
    assert builtin.name.startswith("r04: 3 nodes, 20 warehouses, builtin: 205.5 tpmC")
    assert [step.name.partition(":")[0] for step in six.steps] == [
        "Connect (8 s)", "Ramp (5 s)", "Measured", "Stop (1 s)",
    ]  # fmt: skip
    assert [step.name.partition("  ")[2] for step in six.steps[0].steps] == ["provision.begin", "provisioned"]
    assert six.start < six.steps[1].start < six.steps[2].start < six.stop
    assert [len(block.steps) for block in (second, third)] == [3, 3]
    assert {step.status for step in said.steps[:4]} == {"passed"}


def test_allure_s_steps_of_a_ramp(ramped: Path) -> None:
    _, said, _ = content_of(ramped)
    names = [step.name for step in said.steps]
    assert names[0].startswith("r01: 3 nodes, 10 warehouses, native: 124.0 tpmC, efc 96.4 %")
    assert names[7].startswith("r08: 3 nodes, 240 warehouses, native: 1266 tpmC")


def test_a_run_without_evidence_is_a_broken_step(home: Path) -> None:
    run = parity(home / "lost", judged=False)
    (next(run.rglob("arm.json")).parent / "tpcc-r05.jsonl").unlink()
    _, said, _ = content_of(run)
    block = said.steps[2]
    assert (block.name, block.status) == ("Block 2: 3 nodes, 6 nodes", "broken")
    assert (block.steps[1].name, block.steps[1].status) == (
        "r05: 6 nodes: run r05 left no evidence",
        "broken",
    )


def test_allure_has_tables_and_pictures(compared: Path, ramped: Path) -> None:
    _, said, files = content_of(compared)
    assert {name: one.extension for name, one in files.items() if one.extension != "json"} == {
        "Timeline": "svg", "Ratios of tpmC against the margin": "svg", "All runs, as the papers print them": "csv",
        "Ratios of the arms": "csv", "What was found": "txt", "Timeline, second by second": "csv",
        "Source beside measurement: table 5.5": "csv",
    }  # fmt: skip
    assert "six nodes / three nodes" in files["Ratios of tpmC against the margin"].text
    assert all(f">r{number:02}</text>" in files["Timeline"].text for number in range(1, 11))
    assert files["Source beside measurement: table 5.5"].text.count("the judge on what was printed,") == 4
    assert "new-order p90 s (≤ 5)" in files["All runs, as the papers print them"].text.splitlines()[0]
    assert "<b>What was found</b>: Six nodes reached 0.994 of the tpmC" in said.description
    assert "<td>A/A: the same arm again</td>" in said.description
    assert "The two drivers disagree at 3 nodes, 20 warehouses" in said.description
    _, _, files = content_of(ramped)
    assert "ideal: 12.86 a warehouse" in files["Ramp"].text


def test_what_a_run_s_arms_are_called_shows_no_secret(home: Path) -> None:
    run = parity(home / "secret", arms={"3 nodes": 97.0, f"{SECRET} & <b>6</b>": 96.8})
    _, said, files = content_of(run)
    shown = [
        page_of(run).read_text(), said.description, json.dumps(outline(said.steps)), *(file.text for file in files.values()),
    ]  # fmt: skip
    assert not any("hunter2" in text for text in shown)
    assert not any("<b>6</b>" in text for text in (shown[0], shown[1]))


# ---- the terminal


def test_a_replay_says_it_on_the_terminal(compared: Path, ramped: Path, gate: Gate) -> None:
    said = gate(f"--judge={compared}").text
    for line in (
        "Six nodes reached 0.994 of the tpmC of three nodes at 20 warehouses",
        "The two drivers disagree at 3 nodes, 20 warehouses",
        "A/A: the same arm again",
        "From table 5.5 of the thesis alone the judge says: inconclusive: n = 1, no p90 by type.",
        "same verdict as stored",
    ):
        assert line in said
    said = gate(f"--judge={ramped}").text
    assert "The cluster carried 160 warehouses by efficiency and p90 by type; 200 do not pass" in said
    assert "table 5.3, 10 warehouses: tpmc 123.4 printed, 124.0 here (1.00)" in said
