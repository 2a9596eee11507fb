"""How a run ended: one conclusion and one line a claim, told alike by the terminal, the page and two small files."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from plugin.counts import number_of
from plugin.judge.model import Outcome
from plugin.outcomes import TestOutcome
from plugin.reports.text import word
from plugin.result import SKIPPED
from plugin.status import Conclusion

if TYPE_CHECKING:
    from plugin.reports.stored_run import StoredRun, StoredTrial


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
        """See ``reason``."""
        return reason(self.outcome, self.why)


def reason(outcome: str, why: str) -> str:
    """The first sentence or line of why something came out so; none of a pass, unless checks were not evaluated."""
    first = why.strip().partition("\n")[0]
    return first if outcome != Outcome.PASS or Outcome.NOT_EVALUATED in first else ""


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


_BETTER = ("skipped", "not evaluated", "pass")
_UNTOLD = ("pass", "not evaluated")


def _severity(outcome: str) -> int:
    """The worse, the more; a claim is what the worst of its tests came to."""
    return 4 if outcome == "refuted" else 2 if outcome == "inconclusive" else -1 if outcome in _BETTER else 3


def conclusion(
    outcomes: Iterable[tuple[str, str]], undecided: Sequence[str], *, gate: bool, passed: bool, control: bool = False
) -> Conclusion:
    """What the run came to. ``outcomes``: claim and outcome of each test; ``gate``: all of a suite was asked for.

    Of a ``control``, and of chosen claims alone, it is never said that a gate was passed.
    """
    what, worst = "CONTROL" if control else "GATE" if gate else "RUN", dict[str, str]()
    for claim, outcome in outcomes:
        found = (outcome, worst.get(claim, outcome))
        worst[claim] = max(found, key=lambda one: (_severity(one), _BETTER.index(one) if one in _BETTER else 0))
    count = sum(outcome == "pass" for outcome in worst.values())
    if passed:
        return Conclusion(f"{what} PASSED: {number_of(count, 'claims')}", passed)
    told = []  # what was skipped is among what is not decided
    for outcome in sorted({*worst.values()} - {*_UNTOLD, SKIPPED}, key=lambda one: (-_severity(one), one)):
        claims = [claim for claim, came in worst.items() if came == outcome]
        told.append(f"{len(claims)} {word(outcome).lower()} ({', '.join(claims)})")
    told += [f"{len(undecided)} not decided ({', '.join(_shortened(undecided))})"] if undecided else []
    otherwise = "what was decided passed, and something else is wrong" if count else "nothing was decided"
    return Conclusion(f"{what} NOT PASSED: {', '.join(told) or otherwise}", passed)


def _shortened(undecided: Sequence[str]) -> list[str]:
    """What was not decided, each with its parameters; where that is much of one claim its name, and how much."""
    of = Counter(one.partition(" (")[0] for one in undecided)
    found = (one if of[name] == 1 else f"{of[name]} × {name}" for one in undecided for name in [one.partition(" (")[0]])
    return [*dict.fromkeys(found)]


def concluded(runs: "Sequence[StoredRun]", *, control: bool) -> Conclusion | None:
    """The same of stored runs, by what is stored: one claim passed, nothing came to anything worse, none is missing.

    ``None`` where nothing of a claim is stored.
    """
    from plugin.reports.stored_run import told_of

    trials = [trial for run in runs for trial in run.trials]
    outcomes = [(trial.claim_id, trial.result.outcome) for trial in trials if not trial.sabotage]
    undecided = told_of(runs, "undecided")
    if not outcomes and not undecided:
        return None
    failed = any(trial.sabotage and trial.result.outcome != "pass" for trial in trials)
    worse = undecided or told_of(runs, "problems") or failed
    came = {outcome for _, outcome in outcomes}
    passed = not worse and "pass" in came and came <= {*_UNTOLD}
    gate = all(map(_is_gate, runs))
    return conclusion(outcomes, undecided, gate=gate, passed=passed, control=control)


def not_tested(claims: Sequence[str], suite: object) -> str:
    """That these claims of the suite were not tested, in a sentence without a full stop; nothing of none."""
    more = number_of(len(claims), "more claims")
    return f"not tested: {more} of the suite {suite}: {', '.join(claims)}" if claims else ""


def left_out(runs: "Sequence[StoredRun]") -> list[str]:
    """The same of stored runs; where there are several, after each one's name."""
    from plugin.reports.stored_run import names_of

    told = [not_tested(run.not_tested, (run.described.get("settings") or {}).get("suite")) for run in runs]
    named = zip(names_of(runs), told, strict=True)
    return [f"{name}: {said}" if len(runs) > 1 else said for name, said in named if said]


def noted(trials: "Sequence[StoredTrial]") -> str:
    """What is noted of these trials but their sabotages, in one sentence; nothing where nothing is."""
    claims = [trial for trial in trials if not trial.sabotage]
    whose = [f"{trial.claim_id}: " if len(claims) > 1 else "" for trial in claims]
    told = [f"{name}{note}" for trial, name in zip(claims, whose, strict=True) for note in trial.notes]
    more = f"; summary.md has {number_of(len(told) - 1, 'more notes')}" if len(told) > 1 else ""
    return f"note: {told[0]}{more}" if told else ""


def _is_gate(run: "StoredRun") -> bool:
    """Whether it is a whole run that asked for all that a suite requires."""
    from plugin.evidence.run_seal import RUN_FILE

    settings = run.described.get("settings") or {}
    return (run.directory / RUN_FILE).exists() and bool(settings.get("strict_suite")) and not settings.get("claims")
