"""What a run leaves beside its evidence: ``result.json`` for programs, ``summary.md`` for the page of a CI's job.

``docs/evidence.md`` has the fields of the first. Both are made from the session's outcomes and the stored run.
"""

import datetime
import textwrap
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plugin.evidence.redaction import redacted_json
from plugin.evidence.store import write as write_file
from plugin.evidence.store import write_json
from plugin.reports.builds import fingerprints_of, targets_of
from plugin.reports.ending import Ended, ended_of, not_tested, reason
from plugin.reports.text import capital, word
from plugin.result import DECIDED

if TYPE_CHECKING:
    from plugin.outcomes import Session
    from plugin.reports.stored_run import StoredRun, StoredTrial
    from plugin.run import Run

RESULT_FILE, SUMMARY_FILE = "result.json", "summary.md"
SCHEMA = 1
"""Of ``result.json``; fields may be added to it, and one that changes its meaning or goes makes another of it."""
CELL = 600
"""Characters of a reason that a table has room for; ``result.json`` has all of it."""


def leave_results(heard: "Session", stored: "StoredRun", run: "Run") -> None:
    """Write both files of a session that came to something. Raises ``OSError``."""
    if heard.conclusion is None:
        return
    settings = run.settings
    ended = ended_of(heard.outcomes, settings.run_dir)
    trials = [trial for trial in stored.trials if not trial.sabotage]
    prints = [one for trial in trials for one in fingerprints_of(trial.described)]
    told = {
        "status": heard.status,
        "status_told": heard.told,
        "conclusion": heard.conclusion.text,
        "gate": settings.strict_suite and not settings.claims,
        "started": stored.described.get("started"),
        "ended": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "tested": run.found or settings.engine,
        "targets": targets_of(prints or run.fingerprints),
        "control": bool(run.control_notice),
        **{name: str(getattr(settings, name)) for name in ("engine", "substrate", "profile", "suite")},
        "seed": settings.seed,
        "suite_revision": stored.described.get("suite_revision", ""),
        "undecided": heard.undecided,
        "not_tested": heard.not_tested,
    }
    by_place, claims = {trial.directory: trial for trial in trials}, run.catalogue.claims
    rows = [row_of(row, by_place.get(settings.run_dir / row.evidence), claims[row.claim].sentence) for row in ended]
    write(settings.run_dir, rows, told, notice=run.control_notice)


def row_of(row: Ended, trial: "StoredTrial | None", sentence: str) -> Mapping[str, Any]:
    """What ``result.json`` says of one test of a claim: what it came to, what is claimed, each judged check, notes."""
    verdict = trial.verdict if trial else None
    checks = [
        {
            "metric": result["check"]["metric"],
            "value": result["measurement"]["value"],
            **{name: result["check"][name] for name in ("unit", "comparison", "limit")},
            "outcome": result["outcome"],
        }
        for result in (verdict["results"] if verdict else ())
        if result["outcome"] in DECIDED
    ]
    return {**asdict(row), "sentence": sentence, "checks": checks, "notes": [*trial.notes] if trial else []}


def write(directory: Path, rows: Sequence[Mapping[str, Any]], told: Mapping[str, Any], *, notice: str = "") -> None:
    """Write both files. ``rows``: as ``row_of`` has them; ``told``: what is told of the run as a whole.

    ``notice``: of a control, that it says nothing about CockroachDB. Raises ``OSError``; then neither is there.
    """
    found = redacted_json({"schema": SCHEMA, **told, "claims": rows})
    try:
        write_file(directory / SUMMARY_FILE, _markdown(found, notice))
        write_json(directory / RESULT_FILE, found)
    except OSError:
        # The session does not end as the one that was written says.
        for name in (SUMMARY_FILE, RESULT_FILE):
            with suppress(OSError):
                (directory / name).unlink()
        raise


def _markdown(told: Mapping[str, Any], notice: str) -> str:
    lines = [f"## {told['conclusion']}", ""]
    for warning in filter(None, [notice, capital(not_tested(told["not_tested"], told["suite"]))]):
        lines += [f"**{warning}**", ""]
    lines += [f"{told['tested']}, {told['status_told']}", ""]
    about = f"seed {told['seed']}, profile {told['profile']}, suite {told['suite']}"
    lines += [f"{about}, Roachproof {told['suite_revision']}", ""]
    lines += ["| verdict | claim | what is claimed | checks passed | s | reason |", "|---|---|---|---|---|---|"]
    for row in told["claims"]:
        cells = [word(row["outcome"]), row["claim"], _cell(row["sentence"]), _passed(row["checks"])]
        cells += [f"{row['seconds']:.0f}", _cell(reason(row["outcome"], row["why"]), CELL)]
        lines.append(f"| {' | '.join(cells)} |")
    lines += [f"| NOT DECIDED | {missing} | | | | |" for missing in told["undecided"]]
    notes = [f"- {row['claim']}, {row['test']}: {note}." for row in told["claims"] for note in row["notes"]]
    return "\n".join([*lines, "", *notes, *([""] if notes else [])])


def _passed(checks: Sequence[Mapping[str, Any]]) -> str:
    """How many of the judged checks passed; nothing where none was judged."""
    return f"{sum(check['outcome'] == 'pass' for check in checks)} of {len(checks)}" if checks else ""


def _cell(text: str, most: int = 1000) -> str:
    """A text as a table of Markdown has room for it."""
    return textwrap.shorten(text, most, placeholder=" …").replace("|", "\\|")
