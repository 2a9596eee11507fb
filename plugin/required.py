"""What the run of a suite requires, and which of it was not decided."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from msgspec import Struct, ValidationError, convert

NOT_DECIDED = "REQUIRED AND NOT DECIDED"
"""What reports call it."""
NOTHING_DECIDED = "nothing was decided"
"""What stands among their tests for a run in which nothing could be evaluated, and lets nothing through."""
NO_CLAIM = "no claim could be evaluated: nothing is let through"
"""What they say of it."""


class Required(Struct, frozen=True, kw_only=True):
    """One trial that must be decided: of this claim, on this target (empty: the only one), with these parameters."""

    claim: str
    target: str = ""
    parameters: Mapping[str, Any] = {}

    def __str__(self) -> str:
        told = [*(f"{name} {value}" for name, value in self.parameters.items()), *filter(None, [self.target])]
        return f"{self.claim} ({', '.join(told)})" if told else self.claim

    def is_of(self, trial: Mapping[str, Any]) -> bool:
        """Whether a trial, as it is described, is this one; a test without an argument stands for all its values."""
        parameters = trial.get("parameters") or {}
        return (trial.get("claim"), trial.get("target", "")) == (self.claim, self.target) and all(
            parameters.get(name, value) == value for name, value in self.parameters.items()
        )


def required_of(described: Mapping[str, Any]) -> Sequence[Required]:
    """What a stored run required (``run.json``); nothing of one without a suite."""
    try:
        return convert(described.get("required", ()), tuple[Required, ...])
    except ValidationError:
        return ()


def undecided(
    required: Sequence[Required], decided: Iterable[Mapping[str, Any]], *, skipped: AbstractSet[str] = frozenset()
) -> list[str]:
    """What is required and nobody decided, in words; by the claim alone where nothing of it was.

    ``decided``: the trials that were, as they are described. A claim of which a test was ``skipped`` never is.
    """
    told = [*decided]
    missing = [one for one in required if one.claim in skipped or not any(map(one.is_of, told))]
    none = {one.claim for one in required} - {one.claim for one in required if one not in missing}
    return [*dict.fromkeys(one.claim if one.claim in none else str(one) for one in missing)]
