"""How a run ended: one conclusion and one line a claim, told alike by the terminal, the page and two small files.

``result.json`` in the run directory is for programs, ``summary.md`` for the page that a CI shows of a job.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from plugin.evidence.redaction import redacted_json
from plugin.evidence.store import write_json
from plugin.outcomes import TestOutcome
from plugin.reports.text import word
from plugin.status import MEANING

RESULT_FILE, SUMMARY_FILE = "result.json", "summary.md"


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """What one test of a claim came to: its id, its test, the outcome, the one reason, and how long it took."""

    claim: str
    test: str
    outcome: str
    why: str
    seconds: float
    evidence: str = ""

    @property
    def reason(self) -> str:
        """Its first sentence or line; none of a pass."""
        return "" if self.outcome == "pass" else self.why.strip().partition("\n")[0]


def test_named(nodeid: str) -> str:
    """The test's name with its parameters, which may have colons."""
    found = re.search(r"::(\w+(\[.*\])?)$", nodeid, re.DOTALL)
    return found[1] if found else nodeid


def ended_of(outcomes: Iterable[TestOutcome], directory: Path) -> list[Ended]:
    """A line for each test of a claim, sabotages aside; ``directory`` is the run's."""
    return [
        Ended(
            claim=one.claim,
            test=test_named(one.nodeid),
            outcome=one.result.outcome,
            why=one.result.why,
            seconds=round(one.seconds, 1),
            evidence=str(one.trial.relative_to(directory)) if one.trial and one.trial.is_relative_to(directory) else "",
        )
        for one in sorted(outcomes, key=lambda one: one.nodeid)
        if not one.sabotage
    ]


def conclusion(
    outcomes: Iterable[str], undecided: Sequence[str], *, gate: bool, passed: bool, control: bool = False
) -> str:
    """What the run came to, in one line. ``outcomes``: of the claims' tests; ``gate``: a suite was asked for.

    Of a ``control`` it is never said that a gate was passed.
    """
    counts, what = Counter(outcomes), "CONTROL" if control else "GATE" if gate else "RUN"
    if passed:
        count = counts["pass"]
        return f"{what} PASSED: {count} {'claim' if count == 1 else 'claims'}"
    told = [f"{count} {word(outcome).lower()}" for outcome, count in counts.items() if outcome not in _UNTOLD]
    told += [f"{len(undecided)} not decided ({', '.join(undecided)})"] if undecided else []
    return f"{what} NOT PASSED: {', '.join(told) or 'nothing was decided'}"


def concluded(
    outcomes: Iterable[TestOutcome], undecided: Sequence[str], *, gate: bool, status: int, control: bool
) -> str:
    """The same of the tests of a session that ends with this exit status."""
    claims = [one.result.outcome for one in outcomes if not one.sabotage]
    return conclusion(claims, undecided, gate=gate, passed=status == 0, control=control)


_UNTOLD = ("pass", "not evaluated")


def passes(outcomes: Sequence[str], undecided: Sequence[str]) -> bool:
    """Whether stored claims let a version through: one passed, none came to anything worse, none is missing."""
    return not undecided and "pass" in outcomes and all(outcome in _UNTOLD for outcome in outcomes)


def status_told(status: int) -> str:
    """An exit status in words."""
    return f"exit status {status}: {MEANING.get(status, 'pytest ended early')}"


def write(directory: Path, rows: Sequence[Ended], told: Mapping[str, Any]) -> None:
    """Write both files. ``told``: status, conclusion, what was tested and how, and what was not decided."""
    found = redacted_json({"schema": 1, **told, "claims": [asdict(row) for row in rows]})
    write_json(directory / RESULT_FILE, found)
    (directory / SUMMARY_FILE).write_text(_markdown(found), encoding="utf-8")


def _markdown(told: Mapping[str, Any]) -> str:
    lines = [f"## {told['conclusion']}", "", f"{told['tested']}, {status_told(told['status'])}", ""]
    lines += ["| verdict | claim | s | reason |", "|---|---|---|---|"]
    for row in told["claims"]:
        reason = Ended(**row).reason.replace("|", "\\|")
        lines.append(f"| {word(row['outcome'])} | {row['claim']} | {row['seconds']:.0f} | {reason} |")
    lines += [f"| NOT DECIDED | {missing} | | |" for missing in told["undecided"]]
    return "\n".join([*lines, ""])
