"""Samples of where replicas lie: written, read back, cut off, lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugin.evidence.layout import LayoutSample, layout_line, read_layout
from plugin.evidence.records import MalformedRecord

counts = st.dictionaries(st.sampled_from(["n1", "n2", "n3"]), st.integers(0, 1000))
maybe = st.none() | st.integers(0, 1000)


@given(
    st.builds(
        LayoutSample,
        t=st.integers(0, 10**12),
        replicas=counts.filter(bool),
        ranges=st.integers(0, 1000),
        moves=maybe,
        leases=st.none() | counts.filter(bool),
        unavailable=maybe,
        underreplicated=maybe,
        source=st.text(),
    )
)
def test_a_sample_comes_back_as_it_was(sample: LayoutSample) -> None:
    assert [*read_layout([layout_line(sample)])] == [sample]


def test_what_was_lost_says_why_and_what_was_cut_off_is_dropped() -> None:
    lost = LayoutSample(t=7, lost="nobody says where the replicas are: TimeoutError")
    line = layout_line(LayoutSample(t=9, replicas={"n1": 3}, ranges=1))
    assert [*read_layout([layout_line(lost), line, line[:-2]])] == [
        lost,
        LayoutSample(t=9, replicas={"n1": 3}, ranges=1),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "{}",
        "[1]",
        '{"t": -1, "replicas": {}}',
        '{"t": 1}',
        '{"t": 1, "replicas": {"n1": "3"}}',
        '{"t": 1, "replicas": 3}',
    ],
)
def test_what_is_no_sample_is_refused(line: str) -> None:
    with pytest.raises(MalformedRecord, match=r"line 1: .* is not a sample"):
        list(read_layout([line + "\n"]))
