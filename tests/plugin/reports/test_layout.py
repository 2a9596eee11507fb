"""Where replicas lay, as reports draw it: second by second, in the picture and in the table."""

import csv
import io
from dataclasses import replace

from msgspec.structs import replace as changed

from plugin.evidence.layout import LayoutSample
from plugin.judge.trial import TrialEvidence
from plugin.reports.series import Series, series
from plugin.reports.svg import as_svg
from plugin.reports.timeline import as_csv, charts
from tests.plugin.judge.histories import event
from tests.plugin.judge.test_growth import NINE, SIX, THREE, grown, shrunk


def drawn(evidence: TrialEvidence) -> Series:
    events = [event(0, "provision.begin", nodes=list(THREE)), event(1, "provisioned", nodes=list(THREE))]
    events = sorted([*events, *evidence.events, event(120, "trial.end")], key=lambda each: each.t)
    return series(replace(evidence, events=events))


def test_a_sample_holds_until_the_next_and_a_hole_stays_empty() -> None:
    samples = [*grown().layout]
    samples[3] = LayoutSample(t=samples[3].t, lost="nobody says")
    del samples[10:20]
    layout = drawn(grown(layout=samples)).layout
    assert layout is not None
    assert list(layout.replicas) == NINE
    n1, n4, n7 = (layout.replicas[node] for node in ("n1", "n4", "n7"))
    assert n1[9] is None, "nothing was sampled before"
    assert n1[10:18] == [60, 60, 57, 57, 54, 54, 54, 54], "the lost sample is bridged"
    assert n4[14] == n4[17] == 6
    assert n1[33] == 33
    assert n1[34:50] == [None] * 16, "ten samples that are missing are a hole"
    assert n7[40] is None, "it was not there"
    assert n7[108] == 20
    assert layout.mean[20] == 30
    assert [layout.joined[node] for node in ("n1", "n4", "n9")] == [0, 1, 2]
    assert [(band.name, band.begin) for band in layout.changes] == [("3 → 6", 10), ("6 → 9", 60)]


def test_a_change_that_never_becomes_even_lasts_until_the_next() -> None:
    stuck = [changed(sample, replicas={**sample.replicas, "n1": 300}) for sample in grown().layout]
    layout = drawn(grown(layout=stuck)).layout
    assert layout is not None
    assert layout.changes[0].end == 60


def test_picture_and_table_have_them() -> None:
    found = drawn(grown())
    picture = as_svg(charts(found), "grown")
    for words in ("Replicas on each node", ">n1, n2, n3<", ">n7, n8, n9<", "3 → 6", "mean"):
        assert words in picture
    rows = list(csv.DictReader(io.StringIO(as_csv(found))))
    assert rows[100]["replicas n9"] == "20"
    assert rows[20]["replicas n9"] == ""
    calm = drawn(replace(grown(), layout=[]))
    assert calm.layout is None
    assert "Replicas on each node" not in as_svg(charts(calm), "calm")


def test_nodes_that_come_and_go_have_their_lanes() -> None:
    events = [
        event(10, "scale.begin", kind="out", nodes=SIX, added=SIX[3:], quiet_s=20, stall_s=24),
        *(event(12 + number, "node.joined", node=node) for number, node in enumerate(SIX[3:5])),
        event(60, "scale.begin", kind="in", nodes=[*SIX[:4]], removed=["n5"], quiet_s=20, stall_s=24),
        event(80, "node.removed", node="n5", code=0),
    ]
    lanes = drawn(replace(shrunk(), events=events)).nodes
    assert [(band.name, band.begin, band.end) for band in lanes["n4"]] == [
        ("starting", 10, 12),
        ("up", 12, 120),
    ]
    assert [(band.name, band.begin, band.end) for band in lanes["n5"]] == [
        ("starting", 10, 13), ("up", 13, 60), ("leaving", 60, 80),
    ]  # fmt: skip
    assert [band.name for band in lanes["n6"]] == ["starting"], "it never joined"
