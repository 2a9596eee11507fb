"""Samples of where replicas lie: written, read back, cut off, lost; and what moved between two of them."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.cluster import Cluster
from clusters.errors import HarnessError
from clusters.model import Layout, NodeGauges
from fixtures.sampler import METRICS, Recorder, moved
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


def layout(**ranges: str) -> Layout:
    return Layout(
        replicas={int(name[1:]): frozenset(f"n{node}" for node in held) for name, held in ranges.items()},
        source="test",
    )


def test_moves_are_replicas_added_and_removed_of_ranges_that_were_there() -> None:
    before = layout(r1="123", r2="123")
    assert moved(before, before) == 0
    assert moved(before, layout(r1="124", r2="123")) == 2
    assert moved(before, layout(r1="1234", r2="123")) == 1
    assert moved(before, layout(r1="123", r2="123", r3="456")) == 0, "a range that was split off moved nothing"
    assert moved(before, layout(r1="456")) == 6


class Servers:
    """Say what they are told to, one answer after the other."""

    def __init__(self, *answers: Layout | None, gauges: dict[str, NodeGauges] | None = None) -> None:
        self._answers = list(answers)
        self._gauges = gauges or {}

    async def layout(self) -> Layout:
        answer = self._answers.pop(0)
        if answer is None:
            raise HarnessError("nobody says where the replicas are")
        return answer

    async def gauges(self) -> dict[str, NodeGauges]:
        return self._gauges


async def test_a_lost_sample_is_a_hole_and_moves_are_counted_across_it(tmp_path: Path) -> None:
    answers = (layout(r1="123", r2="123"), None, layout(r1="124", r2="134"), layout(r1="124", r2="134"))
    gauges = {node: NodeGauges(leases=2, unavailable=0, underreplicated=1) for node in ("n1", "n2", "n3")}
    cluster: Any = SimpleNamespace(deployment=Servers(*answers, gauges=gauges), nodes=["n1", "n2", "n3"])
    recorder = Recorder(cast("Cluster", cluster), tmp_path / "layout.jsonl", now=iter(range(9)).__next__)
    taken = [await recorder.record(gauges=number in (0, 3)) for number in range(3)]
    cluster.nodes.append("n4")
    taken.append(await recorder.record(gauges=True))
    with (tmp_path / "layout.jsonl").open() as lines:
        assert [*read_layout(lines)] == taken
    first, hole, after, last = taken
    assert (first.replicas, first.moves, first.leases) == (
        {"n1": 2, "n2": 2, "n3": 2},
        0,
        {"n1": 2, "n2": 2, "n3": 2},
    )
    assert (first.unavailable, first.underreplicated) == (0, 3)
    assert "nobody says" in hole.lost
    assert (after.moves, after.replicas, after.leases) == (4, {"n1": 2, "n2": 1, "n3": 1, "n4": 2}, None)
    assert (last.moves, last.unavailable, last.underreplicated) == (4, 0, 3), "what the others say is a lower bound"
    assert (first.silent, last.silent, last.leases) == ((), ("n4",), None)


async def test_where_no_range_is_listed_each_node_is_asked_how_many_it_has(tmp_path: Path) -> None:
    """Internal tables may be forbidden (26.1), or a range with system tables away."""
    gauges = {f"n{n}": NodeGauges(replicas=10 * n, leases=n, unavailable=0, underreplicated=0) for n in (1, 2)}
    servers = Servers(layout(r1="12"), None, None, gauges=gauges)
    cluster: Any = SimpleNamespace(deployment=servers, nodes=["n1", "n2"])
    recorder = Recorder(cast("Cluster", cluster), tmp_path / "layout.jsonl", now=iter(range(9)).__next__)
    await recorder.record(gauges=False)
    counted = await recorder.record(gauges=False)
    assert (counted.replicas, counted.moves, counted.source) == ({"n1": 10, "n2": 20}, None, METRICS)
    assert (counted.leases, counted.unavailable, counted.lost) == ({"n1": 1, "n2": 2}, 0, "")
    gauges["n2"] = NodeGauges(replicas=None)
    assert "nobody says" in (await recorder.record(gauges=False)).lost, "a node that does not say leaves a hole"
    with (tmp_path / "layout.jsonl").open() as lines:
        assert [bool(sample.lost) for sample in read_layout(lines)] == [False, False, True]
