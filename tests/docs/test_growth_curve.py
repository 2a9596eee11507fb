"""The growth curves of ``docs/tenancy.md``: batches, table, text and picture say the same."""

import re
from collections.abc import Sequence

import pytest

from clusters.engines import ENGINES
from fixtures.workloads.tenants.judge.curve import fitted
from fixtures.workloads.tenants.judge.extrapolation import ARTICLE, TARGET
from tests.docs.growth_curve import DOCUMENT, MEASURED, PICTURE, Measured, drawn, measured

TEXT = DOCUMENT.read_text()
BUILDS = {one.build: one for one in measured()}
HOURS = {"min": 1 / 60, "h": 1.0}
MOST_ROWS = 120
"""Of a build in the file: a reader looks through them."""


def table(begins: str) -> dict[str, dict[str, str]]:
    """Cells of the document's table, by what stands first in each row (to the comma), and by head."""
    head, _, *lines = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in TEXT[TEXT.index(begins) :].partition("\n\n")[0].splitlines()
    ]
    return {line[0].partition(",")[0]: dict(zip(head, line, strict=True)) for line in lines}


ROWS = table("| build | tables |")


def figures(text: str) -> list[float]:
    return [float(figure) for figure in re.findall(r"\d+(?:\.\d+)?", text)]


def digits(value: float) -> float:
    """As many as the document has of what it prints."""
    return float(f"{value:.2g}")


def hours(cell: str) -> list[float]:
    """``4.6 h (3.8 to 5.4)``: the estimate, and its interval where it has one."""
    unit = re.search(r"[a-z]+", cell)
    return [HOURS[unit[0]] * figure for figure in figures(cell)] if unit else []


@pytest.fixture(params=BUILDS)
def one(request: pytest.FixtureRequest) -> Measured:
    return BUILDS[request.param]


def test_the_picture_is_drawn_from_the_file() -> None:
    assert PICTURE.read_text() == drawn([*BUILDS.values()]) + "\n", "tox -e pictures draws it anew"
    assert f"]({PICTURE.name})" in TEXT
    assert f"]({MEASURED.name})" in TEXT


def test_the_table_has_the_builds_of_the_file_and_how_far_each_came() -> None:
    assert len(BUILDS) > 1
    assert [(build, int(row["tables"].replace(" ", ""))) for build, row in ROWS.items()] == [
        (build, found.tables[-1]) for build, found in BUILDS.items()
    ]
    assert all(len(found.costs) <= MOST_ROWS for found in BUILDS.values())


def test_the_line_is_that_of_what_was_measured(one: Measured) -> None:
    """To the digits of the table, which rows of several batches leave as they are."""
    row, line = ROWS[one.build], one.model.line
    ends = [figures(row[f"the {end}, by the line"])[0] for end in ("first", "last")]
    assert ends == pytest.approx([1e3 * line.first.value, 1e3 * line.cost(line.largest).value], rel=0.03)
    grows = row["the line through the costs"]
    slope, *interval = [1e6 * value for value in (line.growth.value, line.growth.low, line.growth.high)]
    assert grows.startswith("falls" if line.falls else "rises")
    assert figures(grows)[0] == pytest.approx(abs(slope), rel=0.25 if line.falls else 0.02)
    assert (f"costs bend {line.bends}" in grows) is bool(line.bends)
    assert (figures(grows)[1:3] == pytest.approx(interval, rel=0.02)) is not bool(line.bends)


def test_the_articles_size_takes_what_the_table_says(one: Measured) -> None:
    """No interval of costs that bend, and no line of those that fall."""
    row, model = ROWS[one.build], one.model
    told = {"if the cost stayed": [model.linear], "in the line": [] if model.line.falls else [model.quadratic]}
    for name, found in told.items():
        values = [(each.value,) if model.line.bends else (each.value, each.low, each.high) for each in found]
        expected = [second / 3600 for value in values for second in value]
        assert hours(row[f"300 000 tables {name}"]) == pytest.approx(expected, rel=0.03), name
    assert int(row["300 000 are, times what was measured"]) == round(TARGET / one.tables[-1])


def test_the_text_says_between_what_costs_lay() -> None:
    falling, rising = BUILDS.values()
    assert falling.model.line.falls
    (told,) = re.findall(
        r"cost ([\d.]+) to ([\d.]+) ms a table up to ([\d ]+) tables, "
        r"([\d.]+) to ([\d.]+) ms up to ([\d ]+), and ([\d.]+) to ([\d.]+) ms beyond", TEXT,
    )  # fmt: skip
    ends = [int(told[place].replace(" ", "")) for place in (2, 5)]
    found: Sequence[float] = []
    for low, high in ((0, ends[0]), (ends[0], ends[1]), (ends[1], falling.tables[-1])):
        costs = [cost for end, cost in zip(falling.tables[1:], falling.costs, strict=True) if low < end <= high]
        found = [*found, digits(min(costs)), digits(max(costs))]
    assert [float(told[place]) for place in (0, 1, 3, 4, 6, 7)] == found
    later = fitted([point for point in falling.points if point[0] > ends[1]])
    assert later is not None
    (rise,) = re.findall(r"these last alone rises by ([\d.]+) ms \(([\d.]+) to ([\d.]+)\) a 1000 tables", TEXT)
    grows = (later.growth.value, later.growth.low, later.growth.high)
    assert [*map(float, rise)] == [round(1e6 * value, 3) for value in grows]
    between = f"between {min(rising.costs):.0f} and {max(rising.costs):.0f} ms"
    assert TEXT.count(between) == 2, "in the text, and in what is read instead of the picture"


def test_a_dry_run_costs_as_many_tables_as_were_made_what_they_took(one: Measured) -> None:
    engine = next(kind for kind in ENGINES.values() if (kind.tenancy and kind.tenancy.tables_timed) == one.tables[-1])
    assert engine.tenancy is not None
    assert engine.tenancy.tables_s(one.tables[-1]) / 3600 == pytest.approx(one.hours(one.tables[-1]), rel=0.1)


def test_what_is_marked_is_told_below_the_picture() -> None:
    told = re.sub(r"\s+", " ", TEXT)
    assert [what for _, what in ARTICLE if what not in told] == []
