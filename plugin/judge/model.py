"""What the judge is given and what it answers: checks, measurements, results, verdicts. Pure values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Outcome(StrEnum):
    """How a check or a claim came out. Only ``PASS`` lets a version through."""

    PASS = "pass"  # noqa: S105 - a verdict, not a secret
    REFUTED = "refuted"
    """Measured, and not as promised."""
    INCONCLUSIVE = "inconclusive"
    """The evidence is not good enough to say."""
    NOT_EVALUATED = "not evaluated"
    """This hardware, engine or version cannot speak to it."""
    REPORTED = "reported"
    """Of a check without a limit: shown, never judged."""


class Kind(StrEnum):
    """Of what sort a limit is."""

    ABSOLUTE = "absolute"
    """Holds on any hardware."""
    PROFILE = "profile"
    """Holds only on hardware that matches the source's; elsewhere not evaluated."""
    RELATIVE = "relative"
    """Compares two trials or two phases of the same run."""
    REPORT = "report"
    """No limit: the measurement is reported."""


class Comparison(StrEnum):
    """How a measurement must stand to its limit."""

    EQ = "=="
    LE = "<="
    LT = "<"
    GE = ">="
    GT = ">"


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One line of a claim.

    ``limit`` is already resolved for the profile: ``None`` means "no limit here" (reported, or a profile limit on other
    hardware). ``mark`` is S (printed in the source), D (derived) or R (our own choice). ``needs`` names the evidence
    conditions (``plugin.judge.conditions``) without which the measurement says nothing.
    """

    metric: str
    comparison: Comparison | None
    limit: float | None
    kind: Kind
    mark: str
    source: str
    unit: str = ""
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Measurement:
    """A measured value. ``value`` is ``None`` when it could not be measured, and ``note`` then says why.

    ``examples`` are a few findings in words, for people ("key 812: acknowledged at 14.2 s, absent at the end").
    """

    metric: str
    value: float | None
    unit: str = ""
    note: str = ""
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Condition:
    """One condition and whether the evidence meets it; ``why`` in words, with figures."""

    name: str
    met: bool
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckResult:
    """A check, its measurement and its outcome; ``why`` says in words what decided."""

    check: Check
    measurement: Measurement
    outcome: Outcome
    why: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """What of the judge itself failed: a defect of ours, or evidence that no check of its form refused.

    ``what``: the metric or the condition; ``traceback``: for who mends it.
    """

    what: str
    error: str
    traceback: str = ""

    def __str__(self) -> str:
        return f"the judge failed at {self.what} ({self.error})"


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What the evidence says about one trial of one claim."""

    claim: str
    outcome: Outcome
    results: tuple[CheckResult, ...]
    conditions: tuple[Condition, ...]
    why: str
    """One sentence: what decided, and for an inconclusive verdict what to change."""
    tuned: tuple[str, ...] = ()
    context: Mapping[str, str] = field(default_factory=dict)
    """What was judged: engine, version, substrate, profile, parameters."""
    failures: tuple[Failure, ...] = ()
    """Where the judge itself failed: with one, the claim is refuted by what else was found, or not decided."""

    def __bool__(self) -> bool:
        """True for a pass and for nothing else."""
        return self.outcome is Outcome.PASS
