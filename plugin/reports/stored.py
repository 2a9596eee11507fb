"""A stored run as its reports see it: what each arm is, its evidence second by second, and its verdict if it reached one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clusters.errors import BadInput
from plugin.catalogue import Catalogue
from plugin.claims import Claim
from plugin.evidence.load import describe_arm, load_arm
from plugin.evidence.records import SKIPPED, Event
from plugin.evidence.redaction import redacted, redacted_json
from plugin.evidence.store import ARM_FILE, as_stored, stored_object, stored_verdict
from plugin.judge.model import Verdict
from plugin.reports.builds import builds_of
from plugin.reports.series import Series, series
from plugin.reports.tpcc import Tpcc, limits_of, tpcc_of, without_secrets
from plugin.run import RUN_FILE

ENDED_EARLY = "ended early"
"""The outcome shown of an arm without a verdict: everything up to there is evidence, and nothing was decided."""
HARNESS = "harness"
"""Of an arm whose test failed by itself: a verdict that came before does not stand."""
NOT_RED = "did not turn red"
"""Of a sabotage that was judged, and not refuted by a check that it names."""
UNREADABLE = "unreadable"
"""Of an arm that this release cannot read."""
EXPECTED = "sabotage.expected"
"""The event of a sabotage that names the checks (``metrics``) of which one must turn red, or the ``conditions`` that must not be met."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredArm:
    """One arm, without what looks like a secret. ``described`` is its ``arm.json``; ``verdict`` as it is stored, ``None`` where none was reached.

    ``problem`` says why its evidence cannot be read at all (another schema, no description), or cannot be drawn.
    """

    directory: Path
    described: Mapping[str, Any]
    claim: Claim | None
    verdict: Mapping[str, Any] | None
    series: Series | None
    events: Sequence[Event]
    problem: str = ""
    tpcc: Tpcc | None = None

    @property
    def outcome(self) -> str:
        """The verdict's outcome; of a test that failed or skipped itself or ended without one, that it did."""
        decided = str(self.verdict["outcome"]) if self.verdict else ""
        if self.errors and decided != "fail":
            return HARNESS
        if self._told(SKIPPED) and decided != "fail":
            return SKIPPED
        return decided or (UNREADABLE if self.problem else ENDED_EARLY)

    @property
    def errors(self) -> Sequence[str]:
        """Why the test failed by itself."""
        return self._told("error")

    def _told(self, name: str) -> list[str]:
        return [str(event.data.get("what")) for event in self.events if event.name == name]

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
    def red(self) -> bool:
        """Whether it is a sabotage that was refuted by one of the checks it names. (An older one names none: then by any.)"""
        if not self.sabotage or self.verdict is None or self.outcome != "fail":
            return False
        failed = {r["check"]["metric"] for r in self.verdict["results"] if r["outcome"] == "fail"}
        named = self._expected("metrics")
        return named is None or bool(failed & named)

    @property
    def doubted(self) -> bool:
        """Whether it is a sabotage of the measurement, and nothing was decided for want of the conditions it names."""
        if not self.sabotage or self.verdict is None or self.outcome != "inconclusive":
            return False
        unmet = {c["name"] for c in self.verdict["conditions"] if not c["met"]}
        named, may = self._expected("conditions") or set(), self._expected("may") or set()
        return bool(named) and named <= unmet <= named | may

    def _expected(self, what: str) -> set[str] | None:
        named = [set(map(str, e.data.get(what, ()))) for e in self.events if e.name == EXPECTED]
        return named[-1] if named else None

    @property
    def why(self) -> str:
        """One sentence: what decided, or why nothing was."""
        if self.verdict is None or self.outcome in (HARNESS, SKIPPED):
            last = self.events[-1].name if self.events else "nothing"
            ended = "was not judged" if last == "arm.end" else f"ended early, after {last}"
            return (
                "; ".join(self.errors or self._told(SKIPPED))
                or self.problem
                or f"the run {ended}: there is no verdict"
            )
        return str(self.verdict["why"])

    @property
    def ended(self) -> str:
        """That the test ended before its end, and after which event; empty where it did not."""
        if any(event.name == "arm.end" for event in self.events):
            return ""
        last = f" after {self.events[-1].name}" if self.events else ""
        return f"the test ended early{last}; everything up to there is shown"

    @property
    def concluded(self) -> tuple[str, str]:
        """How it came out in every report, and why: its verdict's outcome, or why there is none that counts.

        A sabotage that turned red, or was not believed where that was asked for, is a pass, and ``NOT_RED`` if it did not. A verdict on half a test is none
        (``ENDED_EARLY``), unless what was lost by then refutes the claim.
        """
        judged = self.verdict is not None and self.outcome not in (HARNESS, SKIPPED)
        if judged and self.ended and (self.sabotage or self.outcome == "inconclusive"):
            return ENDED_EARLY, f"{self.ended}. {self.why}"
        if judged and self.doubted:
            return "pass", f"inconclusive, as it must be: {self.why}"
        if judged and self.sabotage:
            return ("pass", f"refuted, as it must be: {self.why}") if self.red else (NOT_RED, self.why)
        return self.outcome, self.why


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredRun:
    """One run directory: its name, ``run.json``, and its arms."""

    directory: Path
    described: Mapping[str, Any]
    arms: Sequence[StoredArm]


def stored_arm(directory: Path, catalogue: Catalogue, verdict: Verdict | None = None) -> StoredArm:
    """An arm with this verdict, or else with the one that is stored. Never raises for what a killed run left."""
    try:
        described = describe_arm(directory)
        evidence = load_arm(directory, described)
    except BadInput as error:
        return StoredArm(
            directory=directory, described=_raw(directory / ARM_FILE), claim=None, verdict=None, series=None,
            events=(), problem=redacted(str(error)),
        )  # fmt: skip
    told = redacted_json(as_stored(verdict) if verdict is not None else _whole(stored_verdict(directory)))
    evidence = without_secrets(evidence)
    seen, tpcc, problem = None, None, ""
    try:
        tpcc = tpcc_of(evidence, limits_of(described, told))
        seen = series(evidence, tpcc)
    except (
        Exception
    ) as error:  # whatever somebody wrote into the files: the verdict and the events are shown all the same
        problem = f"the evidence cannot be drawn ({type(error).__name__}: {error})"
    return StoredArm(
        directory=directory,
        described=redacted_json(described),
        claim=catalogue.claims.get(evidence.claim),
        verdict=told,
        series=seen if seen and seen.seconds else None,
        events=evidence.events,
        problem=redacted(problem),
        tpcc=tpcc,
    )


def stored_run(
    directory: Path, catalogue: Catalogue, verdicts: Mapping[Path, Verdict] | None = None
) -> StoredRun:
    """Everything below a run directory, or the one arm that it is."""
    places = sorted(path.parent for path in directory.rglob(ARM_FILE))
    home = next((d for d in (directory, *directory.parents) if (d / RUN_FILE).exists()), directory)
    return StoredRun(
        directory=directory,
        described=_raw(home / RUN_FILE),
        arms=[stored_arm(place, catalogue, (verdicts or {}).get(place)) for place in places],
    )


def names_of(runs: Sequence[StoredRun]) -> list[str]:
    """What each run is called: its directory's name, its whole path where two have the same."""
    short = [run.directory.name for run in runs]
    return [
        name if short.count(name) == 1 else str(run.directory) for run, name in zip(runs, short, strict=True)
    ]


def _whole(verdict: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """A stored verdict, unless somebody left something else in its place."""
    parts = {"outcome": str, "why": str, "results": list, "conditions": list, "tuned": list, "context": dict}
    if verdict is None or not all(isinstance(verdict.get(name), kind) for name, kind in parts.items()):
        return None
    results = ({"check", "measurement", "outcome", "why"}, verdict["results"])
    conditions = ({"name", "met", "why"}, verdict["conditions"])
    for keys, entries in (results, conditions):
        if not all(isinstance(entry, dict) and keys <= entry.keys() for entry in entries):
            return None
    return verdict


def _raw(path: Path) -> Mapping[str, Any]:
    """A JSON object that may be missing or cut off."""
    found: Mapping[str, Any] = redacted_json(stored_object(path) or {})
    return found
