"""Reads ``/_status/vars``, the metrics of one node in the Prometheus text format."""

import math
import re

_LINE = re.compile(
    r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)"
    r"(?:\{(?P<labels>(?:[^\"}]|\"(?:[^\"\\]|\\.)*\")*)\})?"
    r"[ \t]+(?P<value>\S+)(?:[ \t]+-?\d+)?[ \t]*",
    re.ASCII,
)


def parse_vars(text: str) -> dict[str, float]:
    """Each metric's sum over its labels (stores, tenants), by its exact name.

    What is not a number (NaN) is left out; a metric that has nothing else is absent, so that "unknown" never reads as
    zero. Lines that are no metric are passed over.
    """
    sums: dict[str, float] = {}
    for line in text.splitlines():
        if line.startswith("#") or (found := _LINE.fullmatch(line)) is None:
            continue
        try:
            value = float(found["value"])
        except ValueError:
            continue
        if not math.isnan(value):
            sums[found["name"]] = sums.get(found["name"], 0.0) + value
    return sums
