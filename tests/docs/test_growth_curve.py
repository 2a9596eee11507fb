"""The growth curves of ``docs/tenancy.md``: the table and the picture say the same."""

import re

import pytest

from fixtures.workloads.tenants.judge.extrapolation import ARTICLE, TARGET
from tests.docs.growth_curve import DOCUMENT, HEAD, PICTURE, drawn, rows

TEXT = DOCUMENT.read_text()


def test_the_picture_is_drawn_from_the_table() -> None:
    assert PICTURE.read_text() == drawn(rows(TEXT)) + "\n", "tox -e pictures draws it anew"
    assert f"]({PICTURE.name})" in TEXT


def test_the_curves_end_at_what_the_table_says_of_the_articles_size() -> None:
    found = rows(TEXT)
    assert len(found) > 1
    for row in found:
        assert row.hours_if_it_stays(TARGET) == pytest.approx(row.stays[0], rel=0.05), row.build
        if row.in_line:
            assert row.hours(TARGET) == pytest.approx(row.in_line[0], rel=0.05), row.build


def test_how_far_beyond_what_was_measured_stands_beside_each_curve() -> None:
    head, _, *lines = TEXT[TEXT.index(HEAD) :].partition("\n\n")[0].splitlines()
    place = [cell.strip() for cell in head.split("|")].index("300 000 are, times what was measured")
    for row, line in zip(rows(TEXT), lines, strict=True):
        assert int(line.split("|")[place]) == round(TARGET / row.tables), row.build
        assert not ("bend" in line and len(row.stays) + len(row.in_line) > 2), "no interval of costs that bend"


def test_what_is_marked_is_told_below_the_picture() -> None:
    told = re.sub(r"\s+", " ", TEXT)
    assert [what for _, what in ARTICLE if what not in told] == []
