"""What charts are drawn from, by the page and in pictures (``svg.py``), in colours of the page's palette."""

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, floor, log10
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

DASHED, DOTTED = (8, 3), (2, 2)
STYLES: Sequence[tuple[str, tuple[int, ...]]] = (
    ("a", ()), ("b", DASHED), ("c", DOTTED), ("good", (10, 3, 2, 3)),
    ("unsure", (5, 5)), ("bad", (1, 3)), ("ink", (12, 4)), ("quiet", (4, 2)),
)  # fmt: skip
"""Colour and dashes of each line, in turn: how many lines there are is not known before."""
STEPS_S = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800)
"""Distances of the marks of a time axis."""


class Mark(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A stretch of the axis with a name; ``short`` is written where the name has no room."""

    begin: float
    end: float
    name: str
    colour: str
    short: str = ""


class Line(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A value for each place of the axis, ``None`` where there is none.

    ``shape``: a plain line; one that has a ``dot`` where a value stands alone, or at every value (``dots``); ``steps``;
    ``bars``. ``width``: 0 leaves dots alone. ``quiet``: not said of the place at which the reader points.
    """

    label: str
    values: Sequence[float | None]
    colour: str
    unit: str = ""
    dash: tuple[int, ...] = ()
    width: float = 1.5
    shape: Literal["plain", "dot", "dots", "steps", "bars"] = "plain"
    quiet: bool = False


class Lane(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A row of states; ``shares``: by second, the part of what was asked there that answered."""

    name: str
    states: Sequence[Mark]
    shares: Sequence[float | None] = ()
    quiet: bool = False


class Chart(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Lines or lanes over one axis: the seconds ``0 … seconds - 1``, or the places ``x``, in units of ``across``.

    ``behind``: what the lines are drawn over. ``room``: how much higher than the highest value an axis ends that is not
    ``logarithmic``. ``empty``: what is said where no line has a value. ``notes``: what is said at a place beside the
    values. ``usual``: what is said where every lane is "up" or empty. ``compared``: in what two trials are compared by
    this chart, and the label of the line that shows it.
    """

    title: str
    height: int = 190
    seconds: int = 0
    x: Sequence[float] = ()
    across: str = ""
    lines: Sequence[Line] = ()
    lanes: Sequence[Lane] = ()
    behind: Sequence[Mark] = ()
    logarithmic: bool = False
    room: float = 1.2
    empty: str = ""
    notes: Mapping[int, str] = {}
    usual: str = ""
    compared: tuple[str, str] = ("", "")


def as_told(charts: Iterable[Chart], zero: int) -> list[Chart]:
    """The same from the second ``zero`` on, without those that end before.

    Charts over anything but the trial's time stay as they are.
    """
    whole = [chart for chart in charts if chart.x or chart.seconds > zero]
    return [_from(chart, zero) if zero and not chart.x else chart for chart in whole]


def _from(chart: Chart, zero: int) -> Chart:
    return replace(
        chart,
        seconds=chart.seconds - zero,
        lines=tuple(replace(line, values=line.values[zero:]) for line in chart.lines),
        lanes=tuple(
            replace(lane, states=_marks_from(lane.states, zero), shares=lane.shares[zero:]) for lane in chart.lanes
        ),
        behind=_marks_from(chart.behind, zero),
        notes={second - zero: note for second, note in chart.notes.items() if second >= zero},
    )


def _marks_from(marks: Iterable[Mark], zero: int) -> tuple[Mark, ...]:
    return tuple(
        replace(mark, begin=max(0.0, mark.begin - zero), end=mark.end - zero) for mark in marks if mark.end > zero
    )


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers between the two."""
    if not high > low:
        return [low]
    rough = (high - low) / most
    power = 10 ** floor(log10(rough))
    step = next(power * n for n in (1, 2, 5, 10) if power * n >= rough)
    return [step * n for n in range(ceil(low / step), floor(high / step) + 1)]


def powers(low: float, high: float) -> list[float]:
    """Powers of ten that hold the two between them; with steps between them where there are few."""
    first, last = floor(log10(low)), max(ceil(log10(high)), floor(log10(low)) + 1)
    tens = [10.0**power for power in range(first, last + 1)]
    return tens if last - first > 2 else sorted([*tens, *(n * ten for ten in tens[:-1] for n in (2, 5))])


def clock(seconds: float) -> str:
    """A time as the axes of both have it: seconds in the first two minutes, then minutes and hours."""
    if seconds < 120:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
