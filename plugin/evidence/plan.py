"""The plan of a change of version as a trial stored it: what was to be done, step by step, for those who show it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plugin.evidence.redaction import redacted_json

PLAN = "plan.json"
FAILURE = "failure"
"""The parameter of a claim that says how an update is to fail."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedStep:
    """A step that was to be done: its kind, and what else the plan says of it."""

    kind: str
    facts: Mapping[str, str]

    def __str__(self) -> str:
        facts = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in self.facts.items())
        return f"{self.kind}: {facts}" if facts else self.kind


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredPlan:
    """The steps in their order, without what looks like a secret. ``problem``: why they cannot be read."""

    steps: tuple[PlannedStep, ...] = ()
    problem: str = ""


def read_plan(directory: Path) -> StoredPlan | None:
    """The plan of a trial; ``None`` of one without. Whether it is as the trial left it is what its seal says."""
    path = directory / PLAN
    if not path.is_file():
        return None
    try:
        plan = redacted_json(json.loads(path.read_text(encoding="utf-8")))
        return StoredPlan(steps=tuple(map(_step, plan["steps"])))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return StoredPlan(problem=f"{PLAN}: no plan ({type(error).__name__}: {error})")


def _step(step: Mapping[str, Any]) -> PlannedStep:
    facts = {str(name): str(value) for name, value in step.items() if name != "type" and value not in (None, False)}
    return PlannedStep(kind=str(step["type"]), facts=facts)
