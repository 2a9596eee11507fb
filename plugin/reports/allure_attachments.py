"""What a result carries beside its steps: timeline, the source's tables, audit, plan, verdict, node logs."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from plugin.reports import node_logs, timeline
from plugin.reports.charts import as_told
from plugin.reports.reasons import meaning
from plugin.reports.section import Attached, csv_file, csv_text, picture_file
from plugin.reports.source_tables import beside
from plugin.reports.stored_run import StoredTrial
from plugin.reports.svg import as_svg
from plugin.reports.text import machine, number, word
from plugin.workloads import WORKLOADS


def attachments(
    trial: StoredTrial, *, title: str, run: Mapping[str, Any], began_ms: int, passed: bool
) -> Iterator[Attached]:
    """The attachments of a trial's result, with nodes' logs unless it ``passed``. ``title``: that of pictures."""
    series, sections = trial.series, trial.sections.values()
    own = any(section.timeline for section in sections) and not (series and series.swapping)
    if series is not None and (own or series.throughput or series.latency or series.nodes):
        yield picture_file("Timeline", as_svg(as_told(timeline.timeline_of(series, sections), trial.zero), title))
    for section in sections:
        yield from section.attached(title)
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
            yield csv_file(f"Source beside measurement: {table.title}", csv_text(row for row in rows if row[-1]))
        if audit := _audit(trial.verdict):
            yield csv_file("Audit of rows", csv_text(audit))
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
    text = json.dumps(value, indent=1, ensure_ascii=False, default=str)
    return Attached(name=name, type="application/json", extension="json", text=text)


def _audit(verdict: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """What became of a workload's rows: counts, limits and examples; nothing where the claim audits none."""
    audited = {metric for workload in WORKLOADS.values() for metric in workload.audited}
    rows: list[tuple[str, ...]] = []
    for result in verdict["results"]:
        check, measured = result["check"], result["measurement"]
        if check["metric"] not in audited:
            continue
        unit = f" {check['unit'] or measured['unit']}" if measured["value"] is not None else ""
        rows.append(
            (
                check["metric"].replace("_", " "),
                (number(measured["value"]) + unit).rstrip(),
                # A cell that begins with "=" is a formula to a spreadsheet.
                f"must be {check['comparison']} {number(check['limit'])}" if check["limit"] is not None else "",
                word(result["outcome"]),
                meaning(check["metric"]),
                " | ".join(filter(None, [measured["note"], *measured["examples"]])),
            )
        )
    head = ("what", "counted", "limit", "outcome", "meaning", "note and examples")
    return [head, *rows] if rows else []
