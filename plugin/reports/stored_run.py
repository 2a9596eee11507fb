"""A stored run as its reports see it: what each trial is, its evidence second by second, and its verdict."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from msgspec import ValidationError, convert
from msgspec.structs import fields

from clusters.engines import SUBJECT
from clusters.errors import BadInput
from plugin.catalogue import Catalogue
from plugin.claims import Claim
from plugin.evidence import events
from plugin.evidence.events import Event
from plugin.evidence.load import Described, describe_trial, load_trial
from plugin.evidence.redaction import redacted, redacted_json
from plugin.evidence.run_seal import RUN_FILE, broken_run_seal, home_of, not_tested_of, undecided_of
from plugin.evidence.signature import broken_signature, not_signed
from plugin.evidence.store import TRIAL_FILE, as_stored, stored_object, stored_verdict, trials_in
from plugin.judge.model import Outcome, Verdict
from plugin.judge.moments import zero_of
from plugin.judge.notes import notes
from plugin.judge.trial import TrialEvidence
from plugin.options import AUTO
from plugin.reports.builds import builds_of
from plugin.reports.section import Section
from plugin.reports.series import Series, series
from plugin.required import required_of, undecided
from plugin.result import DECIDED, SKIPPED, Result
from plugin.trial_result import must_be, result_of, stored_result
from plugin.workloads import WORKLOADS

NOT_AS_LEFT = "NOT AS THE RUN LEFT IT"
"""What reports call a run whose files do not agree with its seal or its signature."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredTrial:
    """One trial, without what looks like a secret.

    ``described`` is its ``trial.json``; ``verdict`` as it is stored, ``None`` where none was reached; ``result`` what
    it came to. ``notes``: what a reader must know whatever that is. ``problem`` says why its evidence cannot be read at
    all (another schema, no description) or drawn.
    """

    directory: Path
    described: Mapping[str, Any]
    claim: Claim | None
    verdict: Mapping[str, Any] | None
    series: Series | None
    events: Sequence[Event]
    result: Result
    notes: Sequence[str] = ()
    problem: str = ""
    sections: Mapping[str, Section] = field(default_factory=dict)
    """What workloads show of it, by their names; before them, what is shown of versions that were changed."""

    @property
    def claim_id(self) -> str:
        """The claim that it is about; of evidence that does not say it, by its place."""
        return str(self.described.get("claim", self.directory.parent.name))

    @property
    def context(self) -> Mapping[str, Any]:
        """What was tested where; nothing of a trial that ended before it had a database."""
        context: Mapping[str, Any] = self.described.get("context") or {}
        return context

    @property
    def end(self) -> int:
        """When the last thing happened, in microseconds on its timeline."""
        return max((event.t for event in self.events), default=0)

    @property
    def zero(self) -> int:
        """From which second of its timeline on it is told."""
        return zero_of(self.events)

    @property
    def builds(self) -> Mapping[str, str]:
        """Which builds were tested."""
        return builds_of(self.described)

    @property
    def sabotage(self) -> bool:
        """Whether it is expected to be refuted, or not to be believed."""
        return bool(self.described.get("sabotage"))

    @property
    def about(self) -> str:
        """Of a sabotage: what was done wrongly on purpose."""
        return str(self.described.get("about") or "")

    @property
    def must_be(self) -> str:
        """Of a sabotage: what it is expected to be; both endings where it ended before it said which."""
        return self.result.expected or must_be(self.events)


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredRun:
    """One run directory: its name, ``run.json``, and its trials.

    ``undecided``: what was required and nobody decided, or was skipped. ``not_tested``: the claims of its suite that
    were neither tested nor required. ``problems``: why the directory is not as the run left it, or not as it was
    signed; with one, no run passes.
    """

    directory: Path
    described: Mapping[str, Any]
    trials: Sequence[StoredTrial]
    undecided: Sequence[str] = ()
    not_tested: Sequence[str] = ()
    problems: Sequence[str] = ()


def stored_trial(
    directory: Path, catalogue: Catalogue, verdict: Verdict | None = None, unjudged: str = ""
) -> StoredTrial:
    """A trial with this verdict, or else with the verdict and result that are stored; ``unjudged``: why it has none.

    The result is worked out only for another verdict than the stored one, and where none is stored with that. Never
    raises for what a killed run left.
    """
    try:
        described = describe_trial(directory)
        evidence = load_trial(directory, described)
    except BadInput as error:
        described, why = _readable(_raw(directory / TRIAL_FILE)), redacted(str(error))
        result = result_of(sabotage=bool(described.get("sabotage")), verdict=None, events=(), problem=why)
        return StoredTrial(
            directory=directory, described=described, claim=None, verdict=None, series=None,
            events=(), result=result, problem=why,
        )  # fmt: skip
    stored = None if unjudged else _whole(stored_verdict(directory))
    told = redacted_json(as_stored(verdict) if verdict is not None else stored)
    kept = stored_result(directory) if told and verdict is None else None
    evidence = without_secrets(evidence)
    seen, sections, problem, noted = None, dict[str, Section](), unjudged, tuple[str, ...]()
    try:
        sections = sections_of(evidence, limits_of(described, told))
        noted = () if _told_of_other_work(told) else notes(evidence)
        seen = series(evidence)
        sections = {**swapped(seen), **sections}
    except Exception as error:  # whatever somebody wrote into the files: verdict and events are shown all the same
        problem = problem or f"the evidence cannot be drawn ({type(error).__name__}: {error})"
    return StoredTrial(
        directory=directory,
        described=redacted_json(described),
        claim=catalogue.claims.get(evidence.claim),
        verdict=told,
        series=seen if seen and seen.seconds else None,
        events=evidence.events,
        result=kept
        or result_of(
            sabotage=bool(described.get("sabotage")), verdict=told, events=evidence.events, problem=redacted(problem)
        ),
        notes=noted,
        problem=redacted(problem),
        sections=sections,
    )


def _told_of_other_work(verdict: Mapping[str, Any] | None) -> bool:
    """Whether the verdict's reason is that other work had the machine: that is not said twice."""
    unmet = (one for one in (verdict or {}).get("conditions", ()) if one["name"] == "machine_free" and not one["met"])
    return verdict is not None and any(str(one["why"]) in verdict["why"] for one in unmet)


def without_secrets(evidence: TrialEvidence) -> TrialEvidence:
    """The evidence with events that can be shown: trials and routes are named by them, and reports name those."""
    told = [events.without_secrets(event) for event in evidence.events]
    return replace(evidence, events=told)


def sections_of(evidence: TrialEvidence, limits: Mapping[str, float]) -> dict[str, Section]:
    """What workloads show of a trial, by their names."""
    shown = ((name, each.section(evidence, limits)) for name, each in WORKLOADS.items() if each.section)
    return {name: found for name, found in shown if found is not None}


def swapped(seen: Series) -> dict[str, Section]:
    """What is shown of versions that were changed, whatever the load."""
    if seen.swapping is None or not seen.seconds:
        return {}
    from plugin.reports.swapping_section import swapping_section

    return {"versions": swapping_section(seen.swapping)}


def limits_of(described: Mapping[str, Any], verdict: Mapping[str, Any] | None) -> dict[str, float]:
    """The limits by metric that a trial was judged by, or else those that were declared."""
    checks = [result["check"] for result in verdict["results"]] if verdict else described.get("checks", ())
    return {
        str(check["metric"]): float(check["limit"])
        for check in checks
        if isinstance(check, Mapping) and isinstance(check.get("limit"), int | float)
    }


def stored_run(
    directory: Path,
    catalogue: Catalogue,
    verdicts: Mapping[Path, Verdict] = MappingProxyType({}),
    unjudged: Mapping[Path, str] = MappingProxyType({}),
    signed_by: Path | None = None,
) -> StoredRun:
    """Everything below a run directory, or the one trial that it is; ``unjudged``: why trials have no verdict.

    ``signed_by``: the public key of who must have signed it. Raises ``BadInput`` for what is no such key.
    """
    trials = [stored_trial(p, catalogue, verdicts.get(p), unjudged.get(p, "")) for p in trials_in(directory)]
    decided = [trial.described for trial in trials if not trial.sabotage and trial.result.outcome in DECIDED]
    home = home_of(directory) or directory
    forged = not_signed(home, signed_by) if signed_by else broken_signature(home)
    missing = undecided(required_of(_raw(directory / RUN_FILE)), decided)
    skipped = [trial.claim_id for trial in trials if not trial.sabotage and trial.result.outcome == SKIPPED]
    return StoredRun(
        directory=directory,
        described=run_of(directory),
        trials=trials,
        undecided=[*dict.fromkeys([*undecided_of(directory), *missing, *skipped])],
        not_tested=redacted_json(not_tested_of(directory)),
        problems=[*broken_run_seal(directory), *filter(None, [forged])],
    )


def run_of(directory: Path) -> Mapping[str, Any]:
    """The ``run.json`` that a run or a trial of it has; nothing where there is none.

    Its ``settings`` and its ``host`` are objects, or not there.
    """
    home = next((d for d in (directory, *directory.parents) if (d / RUN_FILE).exists()), directory)
    found = _raw(home / RUN_FILE)
    return {n: value for n, value in found.items() if n not in ("settings", "host") or isinstance(value, Mapping)}


def engine_of(trial: StoredTrial, run: Mapping[str, Any]) -> str:
    """The engine, also of a test that had no database, or ended before its context was known. ``run``: ``run.json``."""
    asked = (run.get("settings") or {}).get("engine")
    return str(trial.context.get("engine") or (asked if asked and asked != AUTO else SUBJECT))


def names_of(runs: Sequence[StoredRun]) -> list[str]:
    """What each run is called: its directory's name, its whole path where two have the same."""
    short = [run.directory.name for run in runs]
    return [name if short.count(name) == 1 else str(run.directory) for run, name in zip(runs, short, strict=True)]


def told_of(runs: Sequence[StoredRun], what: Literal["undecided", "not_tested", "problems"]) -> list[str]:
    """What these runs say beside their trials; where there are several, after each one's name."""
    named = zip(runs, names_of(runs), strict=True)
    return [f"{name}: {told}" if len(runs) > 1 else told for run, name in named for told in getattr(run, what)]


def nothing_decided(runs: Sequence[StoredRun]) -> bool:
    """Whether these runs let nothing through, and nothing in them or beside them says so."""
    claims = [trial for run in runs for trial in run.trials if not trial.sabotage]
    said = told_of(runs, "undecided") or told_of(runs, "problems")
    return not said and all(trial.result.outcome == Outcome.NOT_EVALUATED for trial in claims)


def _whole(verdict: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """A stored verdict, unless somebody left something else in its place."""
    parts = {"outcome": str, "why": str, "results": list, "conditions": list, "tuned": list, "context": dict}
    if verdict is None or not all(isinstance(verdict.get(name), kind) for name, kind in parts.items()):
        return None
    for name, keys in (("results", {"check", "measurement", "outcome", "why"}), ("conditions", {"name", "met", "why"})):
        if not all(isinstance(entry, dict) and keys <= entry.keys() for entry in verdict[name]):
            return None
    return verdict


def _readable(described: Mapping[str, Any]) -> Mapping[str, Any]:
    """What of a trial's description is of the type that reports expect, where not all of it is."""
    kinds = {each.name: each.type for each in fields(Described)}
    found = {}
    for name, value in described.items():
        with suppress(ValidationError):
            found[name] = convert(value, kinds.get(name, str | int))
    return found


def _raw(path: Path) -> Mapping[str, Any]:
    """A JSON object that may be missing or cut off."""
    found: Mapping[str, Any] = redacted_json(stored_object(path) or {})
    return found
