"""Charts as static pictures (SVG) for every viewer: without scripts, style sheets or fonts of their own."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from html import escape
from math import log10
from pathlib import Path
from typing import Any

from plugin.reports.charts import STEPS_S, Chart, Lane, Line, Mark, clock, powers, ticks
from plugin.reports.text import number

WIDTH, RIGHT = 1000, 16
MOST_POINTS = 800
"""Of a longer line each stretch is drawn by its least and its greatest value."""
TEXT, SMALL = 12, 11
ROWS = 3
"""In which names of marks lie one below the other; those that find no room are left out."""
PALETTE = Path(__file__).with_name("assets") / "page.css"
MOST_STATES = 10
"""Of more the lanes have no legend: they are named one by one."""
UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
"""What XML may not hold."""


@cache
def _palette() -> Mapping[str, str]:
    """The page's colours on a light ground."""
    light = PALETTE.read_text(encoding="utf-8").partition("@media")[0]
    return dict(re.findall(r"--([\w-]+): ([^;}]+)", light))


def _colour(name: str) -> str:
    return _palette().get(name, "#57606a")


def _wide(text: str, size: float = TEXT) -> float:
    """About so many units are taken by a text; the reader's font is not known, so rather more."""
    return size * sum(1.0 if ord(c) > 0x2E7F else 0.61 for c in text)


def _short(text: str, room: float, size: float = TEXT) -> str:
    while _wide(text, size) > room and len(text) > 1:
        text = text[:-2].rstrip() + "…"
    return text


def _told(text: str) -> str:
    return escape(UNFIT.sub("�", text))


def _element(tag: str, inner: str = "", **attributes: str | float | None) -> str:
    """An element of attributes that have a value; ``inner`` is SVG."""
    told = (
        f' {name.replace("_", "-")}="{round(value, 1) if isinstance(value, float) else _told(str(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    return f"<{tag}{''.join(told)}>{inner}</{tag}>"


def _text(
    x: float,
    y: float,
    text: str,
    *,
    colour: str = "ink",
    size: int = TEXT,
    anchor: str = "start",
    halo: bool = False,
) -> str:
    around: dict[str, str | float] = (
        {"stroke": _colour("paper"), "stroke_width": 3, "paint_order": "stroke"} if halo else {}
    )
    return _element(
        "text", _told(text), x=x, y=y, font_size=size, fill=_colour(colour), text_anchor=anchor, **around
    )


def _rect(x: float, y: float, wide: float, tall: float, colour: str) -> str:
    return _element("rect", x=x, y=y, width=wide, height=tall, fill=_colour(colour))


def _dot(x: float, y: float, radius: float, colour: str) -> str:
    return _element("circle", cx=x, cy=y, r=radius, fill=_colour(colour))


def _path(path: str, colour: str, width: float = 1, dash: Sequence[int] = ()) -> str:
    dashes = " ".join(map(str, dash)) or None
    return _element(
        "path", d=path, fill="none", stroke=_colour(colour), stroke_width=width, stroke_dasharray=dashes
    )


def _stroke(
    x1: float, y1: float, x2: float, y2: float, colour: str, *, width: float = 1, dash: Sequence[int] = ()
) -> str:
    return _path(f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}", colour, width, dash)


def _whole(title: str, height: float, parts: Sequence[str]) -> str:
    tall, ground = int(height), _rect(0, 0, WIDTH, height, "paper")
    return _element(
        "svg", "".join([_element("title", _told(title)), ground, *parts]), xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {tall}", width=WIDTH, height=tall, role="img", aria_label=title,
        font_family="system-ui, Verdana, DejaVu Sans, sans-serif",
    )  # fmt: skip


def as_svg(charts: Sequence[Chart], title: str) -> str:
    """Charts of one axis, one below the other, with their legends."""
    names = [lane.name for chart in charts for lane in chart.lanes]
    left = min(200.0, max([64.0, *(_wide(name, SMALL) + 12 for name in names)]))
    parts, y = [_text(8, 22, _short(title, WIDTH - 16, 14), size=14)], 34.0
    for chart in charts:
        drawn = _Drawn(chart, left, y)
        parts += drawn.parts()
        y = drawn.end
    return _whole(title, y + 4, parts)


class _Drawn:
    """One chart of a picture, whose upper edge is at ``top``."""

    def __init__(self, chart: Chart, left: float, top: float) -> None:
        self.chart, self.left, self.right, self.top = chart, left, WIDTH - RIGHT, top
        self.lines = [line for line in chart.lines if any(value is not None for value in line.values)]
        self.legend = list(self._legend())
        self.plot = top + 24 + 16 * max((row + 1 for row, _, _ in self.legend), default=0)
        self.floor = self.plot + (26 * len(chart.lanes) if chart.lanes else max(60, chart.height - 60))
        self.end = self.floor + 34
        self.first: float = chart.x[0] if chart.x else 0
        self.last: float = max(self.first + 1, chart.x[-1] if chart.x else chart.seconds - 1)
        known = [
            value
            for line in self.lines
            for value in line.values
            if value is not None and (value > 0 or not chart.logarithmic)
        ]
        self.powers = powers(min(known), max(known)) if chart.logarithmic and known else []
        self.high = self.powers[-1] if self.powers else max([1.0, *(chart.room * value for value in known)])

    def x(self, value: float) -> float:
        share = (value - self.first) / (self.last - self.first)
        return self.left + min(1.0, max(0.0, share)) * (self.right - self.left)

    def y(self, value: float) -> float:
        share = value / self.high
        if self.powers:
            low = self.powers[0]
            share = log10(max(value, low) / low) / log10(self.high / low)
        return self.floor - share * (self.floor - self.plot)

    def parts(self) -> Iterator[str]:
        chart = self.chart
        yield _text(self.left, self.top + 14, chart.title)
        for row, x, (label, look) in self.legend:
            y = self.top + 31 + 16 * row
            if isinstance(look, Line):
                yield _stroke(x, y - 4, x + 24, y - 4, look.colour, width=2, dash=look.dash)
            else:
                yield _rect(x, y - 9, 24, 11, look.colour)
            yield _text(x + 30, y, label, colour="quiet", size=SMALL)
        for mark in chart.behind:
            wide = max(1.5, self.x(mark.end) - self.x(mark.begin))
            yield _rect(
                min(self.x(mark.begin), self.right - wide),
                self.plot,
                wide,
                self.floor - self.plot,
                mark.colour,
            )
        yield from self._across()
        if chart.lanes:
            for row, lane in enumerate(chart.lanes):
                yield from self._lane(lane, self.plot + 26 * row)
        elif self.lines:
            yield from self._upwards()
            for line in self.lines:
                yield from self._bars(line) if line.shape == "bars" else self._line(line)
        else:
            yield _text(
                (self.left + self.right) / 2,
                (self.plot + self.floor) / 2,
                chart.empty or "nothing was recorded",
                anchor="middle",
            )
        yield from self._names(chart.behind)

    def _legend(self) -> Iterator[tuple[int, float, tuple[str, Line | Mark]]]:
        """Row, place, text and look of each kind of line or state; what looks alike is named together."""
        alike: dict[tuple[object, ...], list[tuple[str, Line | Mark]]] = {}
        for line in self.lines:
            alike.setdefault((line.colour, line.dash, line.shape), []).append((line.label, line))
        states = {state.name: state for lane in self.chart.lanes if not lane.quiet for state in lane.states}
        for name, state in states.items() if len(states) <= MOST_STATES else ():
            alike.setdefault((state.colour,), []).append((name, state))
        row, x = 0, self.left
        for named in alike.values():
            label = _short(", ".join(name for name, _ in named), 0.6 * (WIDTH - self.left), SMALL)
            wide = 54 + _wide(label, SMALL)
            if x + wide > self.right and x > self.left:
                row, x = row + 1, self.left
            yield row, x, (label, named[0][1])
            x += wide

    def _across(self) -> Iterator[str]:
        """The horizontal axis: marks as many as have room, and what it counts."""
        if self.chart.x:
            whole = all(place == int(place) for place in self.chart.x)
            found = [place for place in ticks(self.first, self.last, 10) if place == int(place) or not whole]
            places = [(place, number(place)) for place in found]
        else:
            step = next((s for s in STEPS_S if (self.last - self.first) / s <= 12), STEPS_S[-1])
            places = [(step * n, clock(step * n)) for n in range(int(self.last // step) + 1)]
        taken = 0.0
        for place, text in places:
            x, half = self.x(place), _wide(text, SMALL) / 2
            yield _stroke(x, self.plot, x, self.floor + 4, "line")
            if x - half > taken and x + half < WIDTH:
                yield _text(x, self.floor + 17, text, colour="quiet", size=SMALL, anchor="middle")
                taken = x + half + 6
        yield _stroke(self.left, self.floor, self.right, self.floor, "quiet")
        if self.chart.across:
            yield _text(
                self.right, self.floor + 30, self.chart.across, colour="quiet", size=SMALL, anchor="end"
            )

    def _upwards(self) -> Iterator[str]:
        milliseconds = any(line.unit == "ms" for line in self.lines)
        for value in self.powers or ticks(0, self.high):
            y = self.y(value)
            text = number(value)
            if milliseconds:
                text = f"{number(value / 1000)} s" if value >= 1000 else f"{text} ms"
            yield _stroke(self.left, y, self.right, y, "line")
            yield _text(self.left - 6, y + 4, text, colour="quiet", size=SMALL, anchor="end")

    def _points(self, line: Line) -> list[tuple[float, float | None]]:
        places = self.chart.x or range(len(line.values))
        points = list(zip(places, line.values, strict=False))
        every = -(-len(points) // MOST_POINTS)
        if every == 1:
            return points
        thinned: list[tuple[float, float | None]] = []
        for begin in range(0, len(points), every):
            stretch = [(place, value) for place, value in points[begin : begin + every] if value is not None]
            if not stretch:
                thinned.append((points[begin][0], None))
                continue
            ends = {min(stretch, key=lambda p: p[1]), max(stretch, key=lambda p: p[1])}
            thinned += sorted(ends)
        return thinned

    def _line(self, line: Line) -> Iterator[str]:
        path, dots, pen = [], [], False
        points = self._points(line)
        missing = [True, *(value is None for _, value in points), True]
        for index, (place, value) in enumerate(points):
            if value is None or (self.powers and value <= 0):
                pen = False
                continue
            x, y = self.x(place), self.y(value)
            if pen and line.shape == "steps":
                path.append(f"H{x:.1f}V{y:.1f}")
            else:
                path.append(f"{'L' if pen else 'M'}{x:.1f} {y:.1f}")
            if line.shape == "dots" or (line.shape == "dot" and missing[index] and missing[index + 2]):
                dots.append(_dot(x, y, 3.5 if line.shape == "dots" else 2.5, line.colour))
            pen = True
        yield _path("".join(path), line.colour, line.width, line.dash)
        yield from dots

    def _bars(self, line: Line) -> Iterator[str]:
        points = [(place, value) for place, value in self._points(line) if value]
        wide = max(
            1.0, (self.right - self.left) / max(1, min(MOST_POINTS, self.chart.seconds))
        )  # from its second on
        path = "".join(
            f"M{self.x(place) + wide / 2:.1f} {self.floor:.1f}V{self.y(value):.1f}" for place, value in points
        )
        yield _path(path, line.colour, wide)

    def _lane(self, lane: Lane, top: float) -> Iterator[str]:
        yield _text(
            self.left - 6,
            top + 16,
            _short(lane.name, self.left - 10, SMALL),
            colour="quiet",
            size=SMALL,
            anchor="end",
        )
        for state in lane.states:
            begin, end = self.x(state.begin), self.x(state.end)
            yield _rect(begin, top + 2, max(1.0, end - begin - 1), 22, state.colour)
            for words in (state.name, state.short):
                if words and _wide(words, SMALL) + 8 < end - begin:
                    yield _text(begin + 4, top + 14, words, size=SMALL)
                    break
        low = 0
        for second, share in enumerate(lane.shares):
            if second + 1 < len(lane.shares) and lane.shares[second + 1] == share:
                continue
            if share is not None and share < 1:
                deep = max(9 * (1 - share), 2)
                yield _rect(
                    self.x(low), top + 24 - deep, max(1.0, self.x(second + 1) - self.x(low)), deep, "bad"
                )
            low = second + 1

    def _names(self, marks: Sequence[Mark]) -> Iterator[str]:
        filled = [0.0] * ROWS
        for mark in marks:
            wide = _wide(mark.name, SMALL)
            at = max(self.left + 4, min(self.x(mark.begin) + 4, self.right - wide - 4))
            row = next((row for row in range(ROWS) if filled[row] <= at), None)
            if mark.name and row is not None:
                filled[row] = at + wide + 8
                yield _text(
                    at,
                    self.plot + 13 + 14 * row,
                    _short(mark.name, self.right - at, SMALL),
                    size=SMALL,
                    halo=True,
                )


def intervals_svg(of: Mapping[str, Any], title: str) -> str:
    """Intervals one below the other against a margin: what a table of the page has."""
    rows, left, top = of["rows"], 470.0, 70.0
    end = top + 40 * len(rows)

    def x(percent: float) -> float:
        return left + percent / 100 * (WIDTH - RIGHT - left)

    parts = [
        _text(8, 22, _short(title, WIDTH - 16, 14), size=14),
        _text(8, 48, f"{of['figure']}: the ratio against the margin ({of['margin']})"),
    ]
    if of["band"]:
        parts.append(_rect(x(of["left"]), top, x(of["wide"]) - left, end - top, "up"))
    parts.append(_stroke(x(of["one"]), top, x(of["one"]), end, "quiet", dash=(4, 3)))
    for index, row in enumerate(rows):
        y = top + 40 * index + 20
        colour = {"none": "quiet"}.get(row["style"], row["style"])
        parts += [
            _text(8, y - 3, _short(row["name"], 230)),
            _text(
                8, y + 13, _short(f"{row['cell']}, n = {row['n']}", 230, SMALL), colour="quiet", size=SMALL
            ),
            _text(left - 12, y + 4, f"{row['text']} {row['decision']}", colour=colour, anchor="end"),
        ]
        if row["low"] is not None:
            parts.append(_stroke(x(row["low"]), y, x(row["high"]), y, colour, width=2))
            parts += [
                _stroke(x(row[name]), y - 6, x(row[name]), y + 6, colour, width=2) for name in ("low", "high")
            ]
        parts.append(_dot(x(row["mean"]), y, 5, colour))
    parts += [
        _text(x(tick["x"]), end + 16, tick["text"], colour="quiet", size=SMALL, anchor="middle")
        for tick in of["axis"]
    ]
    return _whole(title, end + 28, parts)
