"""Time counts from when the cluster stood, in charts and in words."""

from msgspec import to_builtins

from plugin.judge.moments import seconds, zero_of
from plugin.reports.charts import Chart, Lane, Line, Mark, as_told
from tests.plugin.recorded import recorded

BEGAN = recorded(0, "trial.begin", {"past_recovery_s": 5.0})
STOOD = recorded(12_700_000, "provisioned", {"nodes": ["n1"]})
AGAIN = recorded(30_000_000, "provisioned", {"nodes": ["n1"]})


def test_it_begins_in_the_second_in_which_the_first_cluster_stood() -> None:
    assert zero_of([BEGAN, STOOD, AGAIN]) == 12
    assert zero_of([BEGAN]) == 0, "a run that recorded no such thing counts from its begin"


def test_words_count_from_there() -> None:
    assert (seconds(62_500_000, 0), seconds(62_500_000, 12), seconds(2_000_000, 12)) == ("62.5 s", "50.5 s", "-10.0 s")


def test_charts_begin_there() -> None:
    marks = [Mark(begin=begin, end=end, name=name, colour="a") for begin, end, name in
             ((0, 2.5, "starting"), (2.5, 6, "up"), (1.0, 2.0, "over before"))]  # fmt: skip
    line = Line(label="writes", values=[0, 0, 0, 7, 8, 9], colour="a")
    lane = Lane(name="n1", states=marks, shares=[None, None, 0.5, 1, 1, 1])
    over_time = Chart(title="x", seconds=6, lines=[line], lanes=[lane], behind=marks, notes={1: "lost", 4: "1 load"})
    over_tables = Chart(title="y", x=[10, 20], lines=[Line(label="ms", values=[1, 2], colour="a")])
    short = Chart(title="z", seconds=2, lines=[Line(label="ms", values=[1, 2], colour="a")])
    assert as_told([over_time], 0) == [over_time]
    told, same = as_told([over_time, short, over_tables], 2)
    (begun,) = as_told([short], 1)
    assert "lanes" not in to_builtins(begun), "the page takes a chart that has them for one of states"
    assert same == over_tables
    assert (told.seconds, told.lines[0].values, told.notes) == (4, [0, 7, 8, 9], {2: "1 load"})
    assert told.lanes[0].shares == [0.5, 1, 1, 1]
    assert [(mark.begin, mark.end, mark.name) for mark in told.behind] == [(0, 0.5, "starting"), (0.5, 4, "up")]
    assert told.lanes[0].states == told.behind
