"""A stored run as its reports see it: what each arm is, its evidence second by second, and its verdict if it reached one."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from clusters.errors import BadInput
from plugin.catalogue import Catalogue
from plugin.claims import Claim
from plugin.evidence.load import describe_arm, load_arm
from plugin.evidence.records import Event
from plugin.evidence.store import ARM_FILE, stored_verdict
from plugin.judge.model import Verdict
from plugin.reports.series import Series, series
from plugin.run import RUN_FILE

ENDED_EARLY = "ended early"
"""The outcome shown of an arm without a verdict: everything up to there is evidence, and nothing was decided."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredArm:
    """One arm. ``described`` is its ``arm.json``; ``verdict`` as it is stored, ``None`` where none was reached.

    ``problem`` says why its evidence cannot be read at all (another schema, no description); then there is nothing else.
    """

    directory: Path
    described: Mapping[str, Any]
    claim: Claim | None
    verdict: Mapping[str, Any] | None
    series: Series | None
    events: Sequence[Event]
    problem: str = ""

    @property
    def outcome(self) -> str:
        """The verdict's outcome; of a test that ended without one, that it did."""
        return str(self.verdict["outcome"]) if self.verdict else ENDED_EARLY

    @property
    def sabotage(self) -> bool:
        """Whether it is expected to be refuted."""
        return bool(self.described.get("sabotage"))

    @property
    def why(self) -> str:
        """One sentence: what decided, or why nothing was."""
        if self.problem or self.verdict is None:
            errors = [str(event.data.get("what")) for event in self.events if event.name == "error"]
            last = f" after {self.events[-1].name}" if self.events else ""
            return self.problem or "; ".join(errors) or f"the run ended early{last}: there is no verdict"
        return str(self.verdict["why"])


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
            events=(), problem=str(error),
        )  # fmt: skip
    seen = series(evidence)
    return StoredArm(
        directory=directory,
        described=described,
        claim=catalogue.claims.get(evidence.claim),
        verdict=json.loads(json.dumps(asdict(verdict), default=str))
        if verdict
        else stored_verdict(directory),
        series=seen if seen.seconds else None,
        events=evidence.events,
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


def _raw(path: Path) -> Mapping[str, Any]:
    """A JSON object that may be missing or cut off."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
