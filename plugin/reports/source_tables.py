"""What a claim's source printed, beside what was measured."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from clusters.substrates import SUBSTRATES
from plugin.claims import Claim
from plugin.counts import number_of
from plugin.reports.builds import named
from plugin.reports.section import Beside, Section, Setups
from plugin.reports.text import figure, number
from plugin.workloads import WORKLOADS

SETUP = "setup"  # the entry beside a source's tables that says how it came to them


def beside(
    claim: Claim, verdict: Mapping[str, Any], *, machine: str = "", sections: Iterable[Section] = ()
) -> list[Beside]:
    """The tables of the source that have a row for the trial of this verdict, and those that workloads show whole.

    ``machine``: on what it ran, in words; ``sections``: what workloads show of it.
    """
    found = [
        _beside(_title(table), row, claim, verdict, machine)
        for table, rows in claim.paper.items()
        for row in (rows if isinstance(rows, list | tuple) else ())
        if isinstance(row, Mapping) and _is_of(row, verdict["context"])
    ]
    titles = {name: _title(name) for name in claim.paper}
    setups = _setups(claim, verdict["context"], machine)
    found += _growth(claim, verdict, setups)
    for section in sections:
        found += section.beside(claim, titles, setups)
    return found


def answered(table: Beside) -> list[str]:
    """The rows of a whole table that were measured here too, in words: the main figures and their ratios."""
    found = []
    for printed, ours, shares in zip(table.rows, table.rows[1:], table.rows[2:], strict=False):
        if shares[0] != "ratio":
            continue
        columns = list(zip(table.head, printed, ours, shares, strict=True))[1:-1]
        place = ", ".join(f"{theirs} {head}" for head, theirs, _, share in columns if share == "-")
        told = "; ".join(
            f"{head} {theirs} printed, {mine} here ({share})"
            for head, theirs, mine, share in columns
            if head in table.short and share != "-"
        )
        found.append(f"{table.title}, {place}: {told}")
    return found


def _title(table: str) -> str:
    """``table_5_6`` as the source calls it."""
    return re.sub(r"(?<=\d)_(?=\d)", ".", table).replace("_", " ")


def _setups(claim: Claim, context: Mapping[str, str], machine: str) -> Setups:
    told = claim.paper.get(SETUP)
    if not told:
        return ()
    return (f"set-up of the {claim.work}", str(told)), ("set-up here", _setup(context, machine))


def _results(verdict: Mapping[str, Any]) -> Mapping[str, Any]:
    """The results of checks, by metric."""
    return {result["check"]["metric"]: result for result in verdict["results"]}


def _is_of(row: Mapping[str, Any], context: Mapping[str, str]) -> bool:
    shared = row.keys() & context.keys()
    return bool(shared) and all(str(row[name]) == str(context[name]) for name in shared)


def _beside(title: str, row: Mapping[str, Any], claim: Claim, verdict: Mapping[str, Any], machine: str) -> Beside:
    cells = [_answer(column, printed, claim, verdict) for column, printed in row.items()]
    lines = [(f"{claim.work} printed", *map(figure, row.values())), ("measured here", *(ours for ours, _ in cells))]
    if any(ratio != "-" for _, ratio in cells):
        lines.append(("ratio", *(ratio for _, ratio in cells)))
    return Beside(
        title=title,
        work=claim.work,
        head=("", *(column.replace("_", " ") for column in row)),
        rows=tuple(lines),
        note=claim.note,
        setups=_setups(claim, verdict["context"], machine),
    )


def _answer(column: str, printed: object, claim: Claim, verdict: Mapping[str, Any]) -> tuple[str, str]:
    """What was measured for a column, and its ratio to what the source printed."""
    name = claim.measured.get(column, "")
    results = _results(verdict)
    if name not in results:
        met = {condition["name"]: condition for condition in verdict["conditions"]}
        if name in met:
            return (f"yes ({met[name]['why']})" if met[name]["met"] else "not proven"), "-"
        return str(verdict["context"].get(column, "-")), "-"
    measured = results[name]["measurement"]
    value = measured["value"]
    if value is None:
        return "-", "-"
    if isinstance(printed, bool | str):  # a question, which the check answers
        answer = {"pass": "yes", "refuted": "no"}.get(results[name]["outcome"], "-")
        return (f"{answer} ({measured['note']})" if measured["note"] and answer != "-" else answer), "-"
    words = f"{number(value)} {name.replace('_', ' ')}"
    own = next((each.answers[name] for each in WORKLOADS.values() if name in each.answers), None)
    if own:
        return own(results) or (words, "-")
    comparable = isinstance(printed, int | float) and printed and not isinstance(value, str)
    return words, f"{value / printed:.2f}" if comparable else "-"


def _setup(context: Mapping[str, str], machine: str) -> str:
    nodes = number_of(context["nodes"], "nodes") if context.get("nodes") else ""
    place = f"as {context['substrate']}" if context.get("substrate") else ""
    profile = f"profile {context['profile']}" if context.get("profile") else ""
    shape = " ".join(filter(None, [nodes, place]))
    substrate = context.get("substrate", "")
    if machine and substrate in SUBSTRATES and SUBSTRATES[substrate].local:
        machine = f"all on one machine of {machine}"
    return ", ".join(filter(None, [named(context), shape, profile, machine]))


def _growth(claim: Claim, verdict: Mapping[str, Any], setups: Setups) -> Iterator[Beside]:
    """For each of the source's tables of replicas over time: when they were even there, and when here."""
    results = _results(verdict)
    for name, table in claim.paper.items():
        if not isinstance(table, Mapping) or "minutes" not in table.get("columns", ()):
            continue
        from plugin.judge.source_tables import paper_growth

        printed = paper_growth(table)
        theirs = printed.found.balanced and printed.found.balanced / 60
        ours = _value(results, f"balanced_{printed.before}_to_{printed.after}_min")
        nodes = f"{printed.before} → {printed.after}"
        shown = "not shown" if printed.found.settled is None else "yes"
        here = nodes if ours is not None else "-"
        rows = [
            (f"{claim.work} printed", nodes, number(theirs), number(printed.per_s), shown),
            ("measured here", here, number(ours), _rate(results, nodes), _settled(results, nodes)),
        ]
        if ours and theirs:
            rows.append(("ratio", "-", number(ours / theirs), "-", "-"))
        yield Beside(
            title=_title(name),
            work=claim.work,
            head=("", "nodes", "minutes until even", "replicas moved a second", "settled"),
            rows=tuple(rows),
            note=claim.note,
            setups=setups,
            reading=(f"a series from samples every 20 minutes, without traffic; {printed.found.why_not_settled}",),
        )


def _value(results: Mapping[str, Any], metric: str) -> float | None:
    value: float | None = results[metric]["measurement"]["value"] if metric in results else None
    return value


def _settled(results: Mapping[str, Any], nodes: str) -> str:
    """Whether this change of size came to rest: only the one before which traffic ended was judged."""
    if "settled" in results and f"{nodes}:" in str(results["settled"]["measurement"]["note"]):
        return "yes" if _value(results, "settled") else "not shown"
    return "-" if _value(results, "balanced_s") is None else "not judged"


def _rate(results: Mapping[str, Any], nodes: str) -> str:
    """Of this change of size, as the note of the slowest one has them all."""
    note = str(results["replicas_moved_per_s"]["measurement"]["note"]) if "replicas_moved_per_s" in results else ""
    mine = next((part for part in note.split("; ") if part.startswith(f"{nodes}:")), "")
    return mine.rpartition(", ")[2].removesuffix("/s") or "-"
