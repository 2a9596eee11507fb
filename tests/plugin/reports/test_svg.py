"""Charts as static pictures: nothing that was recorded is left out, and nothing that was written can do harm."""

import re
from xml.etree import ElementTree

import pytest

from plugin.reports.charts import Chart, Lane, Line, Mark, clock, powers, ticks
from plugin.reports.svg import as_svg
from plugin.reports.svg_elements import in_the_dark

SPACE = "{http://www.w3.org/2000/svg}"


def drawn(*charts: Chart, title: str = "a trial") -> ElementTree.Element:
    return ElementTree.fromstring(as_svg(charts, title))


def texts(root: ElementTree.Element) -> list[str]:
    return [each.text or "" for each in root.iter(f"{SPACE}text")]


def path_of(chart: Chart) -> str:
    """The chart's one line; strokes of the grid are straight ones of the same element."""
    longest = max(drawn(chart).iter(f"{SPACE}path"), key=lambda path: len(path.attrib["d"]))
    return longest.attrib["d"]


def test_a_single_second_of_a_long_trial_is_seen() -> None:
    values: list[float | None] = [10.0] * 7200
    values[4001] = 90.0
    values[4002] = 0.0
    heights = [
        float(y)
        for y in re.findall(
            r" ([\d.]+)", path_of(Chart(title="x", seconds=7200, lines=[Line(label="a", values=values, colour="a")]))
        )
    ]
    floor, top, usual = max(heights), min(heights), heights[0]
    assert (floor - top) / (floor - usual) == pytest.approx(9, rel=0.01)
    assert len(heights) < 1700


def test_a_line_has_a_gap_where_nothing_is_known_and_a_dot_where_a_value_stands_alone() -> None:
    line = Line(label="a", values=[1, 2, None, 3, None, 4, 5, 6], colour="a", shape="dot")
    chart = Chart(title="x", seconds=8, lines=[line])
    assert path_of(chart).count("M") == 3
    assert len(list(drawn(chart).iter(f"{SPACE}circle"))) == 1


def test_dots_that_nothing_joins_are_drawn_and_named_as_dots() -> None:
    line = Line(label="a", values=[1, 2, None, 3], colour="a", shape="dots", width=0)
    root = drawn(Chart(title="x", seconds=4, lines=[line]))
    assert len([*root.iter(f"{SPACE}circle")]) == 3 + 1
    (colour,) = {each.attrib["fill"] for each in root.iter(f"{SPACE}circle")}
    assert colour not in {each.attrib["stroke"] for each in root.iter(f"{SPACE}path")}


@pytest.mark.parametrize("logarithmic", [False, True])
def test_nothing_recorded_is_said(logarithmic: bool) -> None:
    chart = Chart(
        title="x",
        seconds=9,
        logarithmic=logarithmic,
        empty="nobody wrote",
        lines=[Line(label="a", values=[None] * 9, colour="a")],
    )
    assert "nobody wrote" in texts(drawn(chart))


def test_zeros_are_left_out_of_a_logarithmic_chart() -> None:
    chart = Chart(
        title="x", seconds=3, logarithmic=True, lines=[Line(label="a", values=[0, 5, 50], colour="a", unit="ms")]
    )
    assert {"1 ms", "10 ms", "100 ms"} <= set(texts(drawn(chart)))


def test_lines_that_look_alike_share_their_place_in_the_legend() -> None:
    lines = [Line(label=name, values=[1, 2], colour=colour) for name, colour in (("n1", "a"), ("n2", "a"), ("n3", "b"))]
    shown = texts(drawn(Chart(title="x", seconds=2, lines=lines)))
    assert "n1, n2" in shown
    assert "n3" in shown


def test_names_that_would_touch_lie_below_each_other_or_are_left_out() -> None:
    marks = [Mark(begin=10 + n / 10, end=20, name=f"kill node {n}", colour="fault") for n in range(5)]
    root = drawn(Chart(title="x", seconds=600, behind=marks, lines=[Line(label="a", values=[1.0] * 600, colour="a")]))
    rows = [each.attrib["y"] for each in root.iter(f"{SPACE}text") if (each.text or "").startswith("kill")]
    assert len(rows) == len(set(rows)) == 3


def test_states_are_named_where_there_is_room_and_in_the_legend() -> None:
    states = [Mark(begin=0, end=500, name="up", colour="up"), Mark(begin=500, end=501, name="frozen", colour="hit")]
    shown = texts(drawn(Chart(title="x", seconds=600, lanes=[Lane(name="n1", states=states, shares=[1, 0.5])])))
    assert (shown.count("up"), shown.count("frozen")) == (2, 1)


def test_whatever_was_written_is_text() -> None:
    nasty = "<script>alert(1)</script>\0\x1b\ud83e \"'&"
    root = drawn(
        Chart(title=nasty, seconds=2, lines=[Line(label=nasty, values=[1, 2], colour="a")], lanes=[]), title=nasty
    )
    assert not list(root.iter(f"{SPACE}script"))
    assert any("<script>alert(1)</script>" in text for text in texts(root))


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.9, 1.1, [0.9, 0.95, 1.0, 1.05, 1.1]), (79, 98, [80, 85, 90, 95]), (1, 1, [1])],
)
def test_ticks_are_round(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(3, 40, [1, 2, 5, 10, 20, 50, 100]), (10, 10, [10, 20, 50, 100]), (0.5, 5000, [0.1, 1, 10, 100, 1000, 10000])],
)  # fmt: skip
def test_powers_hold_their_values(low: float, high: float, expected: list[float]) -> None:
    assert powers(low, high) == pytest.approx(expected)


def test_times_are_written_as_people_write_them() -> None:
    assert [clock(seconds) for seconds in (0, 90, 120, 3725)] == ["0 s", "90 s", "2:00", "1:02:05"]


def test_each_colour_has_another_one_on_a_dark_ground() -> None:
    lines = [Line(label=colour, values=[1, 2], colour=colour) for colour in ("a", "b")]
    chart = Chart(title="x", seconds=2, lines=lines, behind=[Mark(begin=0, end=1, name="killed", colour="fault")])
    head, _, drawing = in_the_dark(as_svg([chart], "a trial")).partition("</style>")
    used = set(re.findall(r'((?:fill|stroke)="(?!none)[^"]+")', drawing))
    assert len(used) > 5
    assert [colour for colour in used if f"[{colour}]" not in head] == []
