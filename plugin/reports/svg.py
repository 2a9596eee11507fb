"""Charts as static pictures (SVG) for every viewer: without scripts, style sheets or fonts of their own."""

from collections.abc import Iterator, Mapping, Sequence
from math import log10
from typing import Any

from plugin.reports import svg_elements as draw
from plugin.reports.charts import STEPS_S, Chart, Lane, Line, Mark, clock, powers, ticks
from plugin.reports.svg_elements import SMALL, WIDTH
from plugin.reports.text import number

RIGHT = 16
MOST_POINTS = 800  # of a longer line each stretch is drawn by its least and its greatest value
DOT = 3.5  # radius of one that stands at every value
ROWS = 3  # in which names of marks lie one below the other; those that find no room are left out
MOST_STATES = 10  # of more the lanes have no legend: they are named one by one


def as_svg(charts: Sequence[Chart], title: str) -> str:
    """Charts of one axis, one below the other, with their legends."""
    names = [lane.name for chart in charts for lane in chart.lanes]
    left = min(200.0, max([64.0, *(draw.room_for(name, SMALL) + 12 for name in names)]))
    parts, y = [draw.text(8, 22, draw.shortened(title, WIDTH - 16, 14), size=14)], 34.0
    for chart in charts:
        drawn = _Drawn(chart, left, y)
        parts += drawn.parts()
        y = drawn.end
    return draw.picture(title, y + 4, parts)


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
        yield draw.text(self.left, self.top + 14, chart.title)
        for row, x, (label, style) in self.legend:
            y = self.top + 31 + 16 * row
            if isinstance(style, Line):
                if style.width:
                    yield draw.stroke(x, y - 4, x + 24, y - 4, style.colour, width=2, dash=style.dash)
                if style.shape == "dots":
                    yield draw.dot(x + 12, y - 4, DOT, style.colour)
            else:
                yield draw.rect(x, y - 9, 24, 11, style.colour)
            yield draw.note(x + 30, y, label)
        for mark in chart.behind:
            wide = max(1.5, self.x(mark.end) - self.x(mark.begin))
            begin = min(self.x(mark.begin), self.right - wide)
            yield draw.rect(begin, self.plot, wide, self.floor - self.plot, mark.colour)
        yield from self._across()
        if chart.lanes:
            for row, lane in enumerate(chart.lanes):
                yield from self._lane(lane, self.plot + 26 * row)
        elif self.lines:
            yield from self._upwards()
            for line in self.lines:
                yield from self._bars(line) if line.shape == "bars" else self._line(line)
        else:
            words = chart.empty or "nothing was recorded"
            yield draw.text((self.left + self.right) / 2, (self.plot + self.floor) / 2, words, anchor="middle")
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
            label = draw.shortened(", ".join(name for name, _ in named), 0.6 * (WIDTH - self.left), SMALL)
            wide = 54 + draw.room_for(label, SMALL)
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
            x, half = self.x(place), draw.room_for(text, SMALL) / 2
            yield draw.stroke(x, self.plot, x, self.floor + 4, "line")
            if x - half > taken and x + half < WIDTH:
                yield draw.note(x, self.floor + 17, text, "middle")
                taken = x + half + 6
        yield draw.stroke(self.left, self.floor, self.right, self.floor, "quiet")
        if self.chart.across:
            yield draw.note(self.right, self.floor + 30, self.chart.across, "end")

    def _upwards(self) -> Iterator[str]:
        milliseconds = any(line.unit == "ms" for line in self.lines)
        for value in self.powers or ticks(0, self.high):
            y = self.y(value)
            text = number(value)
            if milliseconds:
                text = f"{number(value / 1000)} s" if value >= 1000 else f"{text} ms"
            yield draw.stroke(self.left, y, self.right, y, "line")
            yield draw.note(self.left - 6, y + 4, text, "end")

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
                dots.append(draw.dot(x, y, DOT if line.shape == "dots" else 2.5, line.colour))
            pen = True
        if line.width:
            yield draw.path("".join(path), line.colour, line.width, line.dash)
        yield from dots

    def _bars(self, line: Line) -> Iterator[str]:
        points = [(place, value) for place, value in self._points(line) if value]
        wide = max(1.0, (self.right - self.left) / max(1, min(MOST_POINTS, self.chart.seconds)))  # from its second on
        path = "".join(
            f"M{self.x(place) + wide / 2:.1f} {self.floor:.1f}V{self.y(value):.1f}" for place, value in points
        )
        yield draw.path(path, line.colour, wide)

    def _lane(self, lane: Lane, top: float) -> Iterator[str]:
        yield draw.note(self.left - 6, top + 16, draw.shortened(lane.name, self.left - 10, SMALL), "end")
        for state in lane.states:
            begin, end = self.x(state.begin), self.x(state.end)
            yield draw.rect(begin, top + 2, max(1.0, end - begin - 1), 22, state.colour)
            for words in (state.name, state.short):
                if words and draw.room_for(words, SMALL) + 8 < end - begin:
                    yield draw.text(begin + 4, top + 14, words, size=SMALL)
                    break
        low = 0
        for second, share in enumerate(lane.shares):
            if second + 1 < len(lane.shares) and lane.shares[second + 1] == share:
                continue
            if share is not None and share < 1:
                deep = max(9 * (1 - share), 2)
                yield draw.rect(self.x(low), top + 24 - deep, max(1.0, self.x(second + 1) - self.x(low)), deep, "bad")
            low = second + 1

    def _names(self, marks: Sequence[Mark]) -> Iterator[str]:
        filled = [0.0] * ROWS
        for mark in marks:
            wide = draw.room_for(mark.name, SMALL)
            at = max(self.left + 4, min(self.x(mark.begin) + 4, self.right - wide - 4))
            row = next((row for row in range(ROWS) if filled[row] <= at), None)
            if mark.name and row is not None:
                filled[row] = at + wide + 8
                words = draw.shortened(mark.name, self.right - at, SMALL)
                yield draw.text(at, self.plot + 13 + 14 * row, words, size=SMALL, halo=True)


def intervals_svg(of: Mapping[str, Any], title: str) -> str:
    """Intervals one below the other against a margin: what a table of the page has."""
    rows, left, top = of["rows"], 470.0, 70.0
    end = top + 40 * len(rows)

    def x(percent: float) -> float:
        return left + percent / 100 * (WIDTH - RIGHT - left)

    parts = [
        draw.text(8, 22, draw.shortened(title, WIDTH - 16, 14), size=14),
        draw.text(8, 48, f"{of['figure']}: the ratio against the margin ({of['margin']})"),
    ]
    if of["band"]:
        parts.append(draw.rect(x(of["left"]), top, x(of["wide"]) - left, end - top, "up"))
    parts.append(draw.stroke(x(of["one"]), top, x(of["one"]), end, "quiet", dash=(4, 3)))
    for index, row in enumerate(rows):
        y = top + 40 * index + 20
        colour = {"none": "quiet"}.get(row["style"], row["style"])
        parts += [
            draw.text(8, y - 3, draw.shortened(row["name"], 230)),
            draw.note(8, y + 13, draw.shortened(f"{row['level']}, n = {row['n']}", 230, SMALL)),
            draw.text(left - 12, y + 4, f"{row['text']} {row['decision']}", colour=colour, anchor="end"),
        ]
        if row["low"] is not None:
            low, high = x(row["low"]), x(row["high"])
            parts.append(draw.stroke(low, y, high, y, colour, width=2))
            parts += [draw.stroke(end_, y - 6, end_, y + 6, colour, width=2) for end_ in (low, high)]
        parts.append(draw.dot(x(row["mean"]), y, 5, colour))
    parts += [draw.note(x(tick["x"]), end + 16, tick["text"], "middle") for tick in of["axis"]]
    return draw.picture(title, end + 28, parts)
