"""The probe's seconds are kept small in memory, and say what was written."""

from contextlib import suppress

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

from plugin.evidence.records import (
    MalformedRecord,
    ProbeSecond,
    RouteSecond,
    probe_header,
    probe_line,
    read_probe,
)
from plugin.judge.latency import together

NUMBERS = st.integers(0, 10**12)
ROUTES = st.builds(
    RouteSecond, NUMBERS, NUMBERS, NUMBERS, NUMBERS, st.dictionaries(st.sampled_from(["timeout", "40001"]), NUMBERS)
)
SECONDS = st.builds(ProbeSecond, NUMBERS, NUMBERS, st.dictionaries(st.sampled_from(["n1/0", "n1/1", "n2/0"]), ROUTES))


@given(st.lists(SECONDS, max_size=5))
def test_what_was_written_is_read(seconds: list[ProbeSecond]) -> None:
    _, found = read_probe([probe_header(200_000, ["n1/0"]), *map(probe_line, seconds)])
    assert found == seconds
    for one, other in zip(found, seconds, strict=True):
        assert [*one.routes.items()] == [*other.routes.items()]
        assert one.routes.get("n9/9") is None


def test_usual_seconds_and_one_without_a_success() -> None:
    t = 43_200_000_000
    seconds = [
        ProbeSecond(t, 0, {"n1/0": RouteSecond(5, t + 1, t + 900_000, 7), "n2/0": RouteSecond(0, 0, 0, 0, {"x": 2})}),
        ProbeSecond(t + 1_000_000, 0, {"n2/0": RouteSecond(1, t, t, 0)}),
    ]
    _, found = read_probe([probe_header(200_000, []), *map(probe_line, seconds)])
    assert found == seconds


def encoded(*values: int, lowest: int = 1, highest: int = 10**8, digits: int = 2) -> str:
    histogram = HdrHistogram(lowest, highest, digits)
    for value in values:
        histogram.record_value(value)
    return str(histogram.encode().decode())


def watched(text: str) -> list[str]:
    line = probe_line(ProbeSecond(0, 0, {"n1/0": RouteSecond(1, 1, 1, 0)}, {"n1": text}))
    return [probe_header(200_000, ["n1/0"]), line, line]


@settings(deadline=None)
@given(st.lists(st.integers(1, 10**8)))
def test_histograms_that_were_written_are_read(values: list[int]) -> None:
    text = encoded(*values)
    _, found = read_probe(watched(text))
    assert [second.latency["n1"] for second in found] == [text, text]


@pytest.mark.parametrize(
    "text",
    [
        "", "garbage", "!", "AAAA", "é", encoded(5)[:-4], encoded(5)[:20], encoded(5) + "AAAA", encoded(5)[4:],
        encoded(5, digits=3), encoded(5, highest=10**6), encoded(5, lowest=1000),
    ],
)  # fmt: skip
def test_what_is_no_histogram_of_ours_is_named_by_its_line(text: str) -> None:
    with pytest.raises(MalformedRecord, match=r"line 2: .* is not a probe record"):
        read_probe(watched(text))


@settings(deadline=None)
@given(data=st.data())
def test_no_changed_character_of_a_histogram_stops_the_judge(data: st.DataObject) -> None:
    text = encoded(*data.draw(st.lists(st.integers(1, 10**8), min_size=1)))
    at = data.draw(st.integers(0, len(text) - 1))
    changed = text[:at] + data.draw(st.sampled_from("ABCxyz019+/= \x00")) + text[at + 1 :]
    with suppress(MalformedRecord):
        _, found = read_probe(watched(changed))
        assert together(second.latency["n1"] for second in found) is not None
