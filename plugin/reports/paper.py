"""What a claim's source printed, beside what was measured."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from plugin.claims import Claim
from plugin.reports.text import figure, number


@dataclass(frozen=True, kw_only=True, slots=True)
class Beside:
    """One table of a source, its row for an arm and below it what was measured and the ratio; ``-`` where nothing answers."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str


def beside(claim: Claim, verdict: Mapping[str, Any]) -> list[Beside]:
    """The tables of the source that have a row for the arm of this verdict."""
    values = {r["check"]["metric"]: r["measurement"]["value"] for r in verdict["results"]}
    found = []
    for table, rows in claim.paper.items():
        for row in rows if isinstance(rows, list | tuple) else ():
            if isinstance(row, Mapping) and _is_of(row, verdict["context"]):
                title = re.sub(r"(?<=\d)_(?=\d)", ".", table).replace("_", " ")
                found.append(_beside(title, row, values, claim, verdict["context"]))
    return found


def _is_of(row: Mapping[str, Any], context: Mapping[str, str]) -> bool:
    shared = row.keys() & context.keys()
    return bool(shared) and all(str(row[name]) == str(context[name]) for name in shared)


def _beside(
    title: str,
    row: Mapping[str, Any],
    values: Mapping[str, float | None],
    claim: Claim,
    context: Mapping[str, str],
) -> Beside:
    ours: list[str] = []
    ratios: list[str] = []
    for column, printed in row.items():
        metric = claim.measured.get(column, "")
        value = values.get(metric)
        ours.append(
            f"{number(value)} {metric.replace('_', ' ')}"
            if value is not None
            else str(context.get(column, "-"))
        )
        comparable = isinstance(printed, int | float) and printed
        ratios.append(f"{value / printed:.2f}" if comparable and value is not None else "-")
    head = ("", *(column.replace("_", " ") for column in row))
    work = claim.source.work if claim.source else "the source"
    lines = [(f"{work} printed", *map(figure, row.values())), ("measured here", *ours)]
    if any(ratio != "-" for ratio in ratios):
        lines.append(("ratio", *ratios))
    return Beside(title=title, head=head, rows=tuple(lines), note=claim.note)
