"""What a result carries beside its steps: timeline, the source's table, ledger audit, plan and seed, verdict, node logs."""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from plugin.evidence.redaction import redacted, redacted_json
from plugin.judge.metrics import KNOWN_METRICS
from plugin.reports import node_logs, timeline
from plugin.reports.section import Attached, csv_file, picture_file
from plugin.reports.source_tables import beside
from plugin.reports.stored_run import StoredTrial
from plugin.reports.svg import as_svg
from plugin.reports.text import machine, number, word
from plugin.workloads import WORKLOADS


def attachments(
    trial: StoredTrial, *, title: str, run: Mapping[str, Any], began_ms: int, passed: bool
) -> Iterator[Attached]:
    """Everything attached to the result of a trial. Node logs come with anything but a pass."""
    for found in _all(trial, title=title, run=run, began_ms=began_ms, passed=passed):
        # JSON has lost its secrets value by value; as a text it would lose its form with them.
        text = found.text if found.type == "application/json" else redacted(found.text)
        yield Attached(name=redacted(found.name), type=found.type, extension=found.extension, text=text)


def _all(trial: StoredTrial, *, title: str, run: Mapping[str, Any], began_ms: int, passed: bool) -> Iterator[Attached]:
    series, sections = trial.series, trial.sections.values()
    own = any(section.timeline for section in sections)
    if series is not None and (own or series.throughput or series.latency or series.nodes):
        yield picture_file("Timeline", as_svg(timeline.timeline_of(series, sections), redacted(title)))
    for section in sections:
        yield from section.attached(redacted(title))
        if told := "".join(f"{one}.\n" for one in section.sentences):
            yield Attached(name="What was found", type="text/plain", extension="txt", text=told)
    if series is not None and not own and (series.throughput or series.latency or series.nodes):
        yield csv_file("Timeline, second by second", timeline.as_csv(series))
    if trial.verdict:
        on = machine(run.get("host") or {})
        for table in beside(trial.claim, trial.verdict, machine=on, sections=sections) if trial.claim else ():
            rows = [
                table.head,
                *table.rows,
                *(("the judge on what was printed", told) for told in table.reading),
                *table.setups,
                ("what differs", table.note),
            ]
            yield csv_file(f"Source beside measurement: {table.title}", _rows([row for row in rows if row[-1]]))
        if audit := _audit(trial.verdict):
            yield csv_file("Ledger audit", audit)
    plan = {name: value for name, value in trial.described.items() if name != "checks"}
    yield _json("Plan and seed", {"run": run, "trial": plan, "steps": list(trial.claim.steps) if trial.claim else []})
    if trial.verdict:
        yield _json("verdict.json", trial.verdict)
    if not passed:
        faults = trial.series.faults if trial.series else ()
        windows = [(began_ms / 1e3 + band.begin, began_ms / 1e3 + band.end) for band in faults]
        for node, text in node_logs.around(trial.directory, windows):
            yield Attached(name=f"Log of node {node}", type="text/plain", extension="txt", text=text)


def _json(name: str, value: object) -> Attached:
    text = json.dumps(redacted_json(value), indent=1, ensure_ascii=False, default=str)
    return Attached(name=name, type="application/json", extension="json", text=text)


def _rows(rows: Sequence[tuple[str, ...]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def _audit(verdict: Mapping[str, Any]) -> str:
    """What became of the ledger's rows: counts, limits and examples; nothing where the claim has no ledger."""
    audited = {metric for workload in WORKLOADS.values() for metric in workload.audited}
    rows: list[tuple[str, ...]] = []
    for result in verdict["results"]:
        check, measured = result["check"], result["measurement"]
        if check["metric"] not in audited:
            continue
        known = KNOWN_METRICS.get(check["metric"])
        unit = f" {check['unit'] or measured['unit']}" if measured["value"] is not None else ""
        rows.append(
            (
                check["metric"].replace("_", " "),
                (number(measured["value"]) + unit).rstrip(),
                # A cell that begins with "=" is a formula to a spreadsheet.
                f"must be {check['comparison']} {number(check['limit'])}" if check["limit"] is not None else "",
                word(result["outcome"]),
                known.description if known else "",
                " | ".join(filter(None, [measured["note"], *measured["examples"]])),
            )
        )
    head = ("what", "counted", "limit", "outcome", "meaning", "note and examples")
    return _rows([head, *rows]) if rows else ""
