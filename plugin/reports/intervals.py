"""Ratios of two sides as intervals on a line, against the margin that was declared: what tables and pictures draw.

Ratios are plain numbers, shares percent.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, isfinite
from typing import Any

from plugin.judge.comparison import Margin, Ratio
from plugin.reports.charts import ticks

NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
ROOM = 0.06
"""Of a line's length kept free at either end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Compare:
    """A mean ratio ``second`` / ``first`` in a level, from ``n`` pairs; of one pair without an interval.

    ``visible``: the smallest true difference in percent that it would have told from none. ``decision`` by this
    interval alone. ``noise``: of the same side run twice.
    """

    first: str
    second: str
    level: str
    n: int
    mean: float
    low: float | None
    high: float | None
    visible: float | None
    decision: str
    noise: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """All ratios by one metric against its margin; ``lower`` and ``upper`` are ``None`` where there is no such bound.

    ``needed``: in words, what would settle what is undecided. ``look``: in words, at how many pairs a decision was
    sought.
    """

    metric: str
    figure: str
    percent: float | None
    lower: float | None
    upper: float | None
    ratios: tuple[Compare, ...]
    visible: float | None
    needed: str
    look: str


def compare_of(
    found: Ratio, *, first: str, second: str, level: str, margin: Margin | None, noise: bool = False
) -> Compare:
    """A ratio as it is shown; its decision is by its own interval alone."""
    low, high = map(exp, found.interval) if found.interval else (None, None)
    visible = found.visible()
    return Compare(
        first=first,
        second=second,
        level=level,
        n=found.n,
        mean=exp(found.mean),
        low=low,
        high=high,
        visible=None if visible is None else 100 * (exp(visible) - 1),
        decision=str(found.decision(margin)) if margin else "",
        noise=noise,
    )


def bounds(margin: Margin | None) -> dict[str, float | None]:
    """``percent``, ``lower`` and ``upper`` of a ``Comparison``."""
    if margin is None:
        return {"percent": None, "lower": None, "upper": None}
    lower, upper = (exp(end) if isfinite(end) else None for end in (margin.lower, margin.upper))
    return {"percent": margin.percent, "lower": lower, "upper": upper}


def scale(values: Sequence[float]) -> tuple[float, float]:
    """From where to where a line goes that shows these, with some room at its ends."""
    low, high = min(values), max(values)
    room = ROOM * (high - low) or 0.01 * abs(high) or 1.0
    return low - room, high + room


def axis(low: float, high: float, digits: int) -> list[dict[str, Any]]:
    """The marks of such a line, in percent of its length."""
    span = high - low
    return [{"x": round(100 * (at - low) / span, 2), "text": f"{at:.{digits}f}"} for at in ticks(low, high)]


def forest(of: Comparison) -> dict[str, Any]:
    """Every ratio as an interval on one line, with the margin's band, in percent of the line's length."""
    ends = [1.0]
    for bound in (of.lower, of.upper):
        ends += [bound] if bound is not None else []
    for one in of.ratios:
        ends += [one.mean, *(end for end in (one.low, one.high) if end is not None)]
    # A single wild interval would squeeze all others into a point; the margin is seen whole.
    least, most = min(0.5, (of.lower or 1.0) / 1.2), max(2.0, 1.2 * (of.upper or 1.0))
    low, high = scale([min(max(end, least), most) for end in ends])

    def at(value: float) -> float:
        return round(min(max(100 * (value - low) / (high - low), 0.0), 100.0), 2)

    left, right = (at(of.lower) if of.lower is not None else 0.0, at(of.upper) if of.upper is not None else 100.0)
    rows = []
    for one in of.ratios:
        interval = f"{one.low:.3f} to {one.high:.3f}" if one.low is not None and one.high is not None else "no interval"
        first, second = side_in_words(one.first), side_in_words(one.second)
        rows.append(
            {
                "name": f"{first}, run twice (A/A)" if one.noise else f"{second} / {first}",
                "level": one.level,
                "noise": one.noise,
                "decision": one.decision if not one.noise else "noise",
                "style": "none" if one.noise else {"holds": "good", "refuted": "bad"}.get(one.decision, "unsure"),
                "text": f"{one.mean:.3f} ({interval})",
                "n": one.n,
                "visible": "–" if one.visible is None else f"{one.visible:.1f} %",
                "mean": at(one.mean),
                "low": at(one.low) if one.low is not None else None,
                "high": at(one.high) if one.high is not None else None,
            }
        )
    margin = "no margin is declared here"
    if of.percent is not None:
        margin = margin_in_words(of)
    return {
        "figure": of.figure,
        "margin": margin,
        "band": of.percent is not None,
        "left": left,
        "wide": round(right - left, 2),
        "one": at(1.0),
        "rows": rows,
        "axis": axis(low, high, 2 if high - low > 0.06 else 3),
        "look": of.look,
    }


def side_in_words(name: str) -> str:
    """``6 nodes`` as people write it: six nodes."""
    match = re.fullmatch(r"(\d+) (nodes?)(.*)", name)
    if not match or int(match[1]) >= len(NUMBERS):
        return name
    return f"{NUMBERS[int(match[1])]} {match[2]}{match[3]}"


def margin_in_words(of: Comparison) -> str:
    """What a comparison with a margin allows: a difference to both sides, a loss, or growth of less than so much."""
    if of.lower is None:
        return f"growth of less than {of.percent:g} %"
    return f"±{of.percent:g} %" if of.upper is not None else f"a loss of less than {of.percent:g} %"
