"""What the source printed of a cluster that grew, as the judge reads it, beside what was measured."""

from collections.abc import Iterator, Mapping
from typing import Any

from plugin.claims import Claim
from plugin.reports.section import Beside
from plugin.reports.text import number

HEAD = ("", "nodes", "minutes until even", "replicas moved a second", "settled")
READING = "a series from samples every 20 minutes, without traffic; {why}"


def growth_beside(
    claim: Claim, verdict: Mapping[str, Any], tables: Mapping[str, Any], setups: tuple[tuple[str, str], ...]
) -> Iterator[Beside]:
    """For each of the source's tables of replicas over time: when they were even there, and when here."""
    results = {result["check"]["metric"]: result for result in verdict["results"]}
    for title, table in tables.items():
        if not isinstance(table, Mapping) or "minutes" not in table.get("columns", ()):
            continue
        from plugin.judge.source_tables import paper_growth

        printed = paper_growth(table)
        theirs = printed.found.balanced and printed.found.balanced / 60
        ours = _value(results, f"balanced_{printed.before}_to_{printed.after}_min")
        nodes = f"{printed.before} → {printed.after}"
        shown = "not shown" if printed.found.settled is None else "yes"
        rows = [
            (f"{claim.work} printed", nodes, number(theirs), number(printed.per_s), shown),
            (
                "measured here", nodes if ours is not None else "-", number(ours),
                _rate(results, nodes), _settled(results, nodes),
            ),
        ]  # fmt: skip
        if ours and theirs:
            rows.append(("ratio", "-", number(ours / theirs), "-", "-"))
        yield Beside(
            title=title,
            work=claim.work,
            head=HEAD,
            rows=tuple(rows),
            note=claim.note,
            setups=setups,
            reading=(READING.format(why=printed.found.why_not_settled),),
        )


def _value(results: Mapping[str, Any], metric: str) -> float | None:
    value: float | None = results[metric]["measurement"]["value"] if metric in results else None
    return value


def _settled(results: Mapping[str, Any], nodes: str) -> str:
    """Whether this change of size came to rest: only that before which traffic ended was looked at."""
    settled = _value(results, "settled")
    if settled is None or f"{nodes}:" not in str(results["settled"]["measurement"]["note"]):
        return "-" if _value(results, "balanced_s") is None else "not looked at"
    return ("no", "yes")[int(settled)]


def _rate(results: Mapping[str, Any], nodes: str) -> str:
    """Of this change of size, as the note of the slowest one has them all."""
    note = str(results["replicas_moved_per_s"]["measurement"]["note"]) if "replicas_moved_per_s" in results else ""
    mine = next((part for part in note.split("; ") if part.startswith(f"{nodes}:")), "")
    return mine.rpartition(", ")[2].removesuffix("/s") or "-"
