"""What a claim and its checks are once they are read from a catalogue."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import prod
from typing import Any

from clusters.model import Capability
from plugin.judge.model import Check, Comparison, Kind
from plugin.suites import EVERY, Suite


class Status(StrEnum):
    """Whether a claim has its test."""

    READY = "ready"
    PLANNED = "planned"
    """Its test comes later; it is listed as such and never required."""


UNBUILT = "planned, and has no test yet; --claims lists those that have"
"""How messages go on about a claim of that status."""


class Mark(StrEnum):
    """Where a limit comes from."""

    SOURCE = "S"
    """Printed in a source."""
    DERIVED = "D"
    """Derived from one; the check's ``source`` says how."""
    OWN = "R"
    """Our own choice."""


class Severity(StrEnum):
    """How much a refuted claim matters, in Allure's words."""

    BLOCKER = "blocker"
    CRITICAL = "critical"
    NORMAL = "normal"
    MINOR = "minor"
    TRIVIAL = "trivial"


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """What a source is: who wrote it, its title, where and when it came out, where it can be read."""

    authors: tuple[str, ...]
    title: str
    publisher: str = ""
    year: int | None = None
    link: str = ""

    def __str__(self) -> str:
        """As it is cited, without its link."""
        names = " and ".join(filter(None, [", ".join(self.authors[:-1]), *self.authors[-1:]]))
        place = ", ".join(filter(None, [self.title, self.publisher, str(self.year or "")]))
        return f"{names}: {place}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """The work a claim is taken from, the section, and the table or figure; ``about``: what that work is, if known."""

    work: str
    section: str = ""
    where: str = ""
    about: Work | None = None

    def __str__(self) -> str:
        """As it is printed: the parts that are known, with commas."""
        return ", ".join(part for part in (self.work, self.section, self.where) if part)

    @property
    def cited(self) -> str:
        """What the work is, and where it can be read; nothing where it is not known."""
        return "; ".join(filter(None, [str(self.about), self.about.link])) if self.about else ""

    @property
    def whole(self) -> str:
        """Where in the work, and in brackets what that is."""
        return f"{self} ({self.cited})" if self.cited else str(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class Labels:
    """How reports sort a claim."""

    epic: str = "Claims of one's own"
    feature: str = ""
    story: str = ""
    severity: Severity = Severity.NORMAL
    owner: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """Roughly what running a claim's test takes: seconds, and MiB of disk at the most."""

    seconds: float
    disk_mib: float = 0


OTHERS = "others"
"""In a table of limits: every profile that it does not name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckSpec:
    """One line of a claim as declared: its limit is one number, a table by profile, or ``None`` of a report.

    ``recorded`` says that the test records the metric itself; ``note`` is for people (contradictions of the sources).
    """

    metric: str
    comparison: Comparison | None = None
    limit: float | Mapping[str, float] | None = None
    kind: Kind = Kind.ABSOLUTE
    mark: Mark = Mark.OWN
    source: str = ""
    unit: str = ""
    needs: tuple[str, ...] = ()
    recorded: bool = False
    note: str = ""

    def resolve(self, profile: str) -> Check:
        """The check on this profile; a limit by profile that names neither it nor ``OTHERS`` resolves to ``None``."""
        limit = self.limit.get(profile, self.limit.get(OTHERS)) if isinstance(self.limit, Mapping) else self.limit
        return Check(
            metric=self.metric,
            comparison=self.comparison,
            limit=limit,
            kind=self.kind,
            mark=self.mark.value,
            source=self.source,
            unit=self.unit,
            needs=self.needs,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """One promise and what it takes to refute it."""

    id: str
    file: str
    """The catalogue file that declares it, as messages name it."""
    sentence: str
    source: Source | None = None
    refuted_by: str = ""
    labels: Labels = field(default_factory=Labels)
    capabilities: frozenset[Capability] = frozenset()
    suites: tuple[Suite, ...] = EVERY
    status: Status = Status.READY
    nodes: Mapping[Suite, int] = field(default_factory=lambda: dict.fromkeys(Suite, 3))
    """The most nodes that it runs at a time, by suite."""
    disturbs: str = ""
    """What will be done to the cluster, in one sentence."""
    steps: tuple[str, ...] = ()
    """What the test does, in order."""
    estimate: Mapping[Suite, Estimate] = field(default_factory=dict)
    """Of one trial, on average, on the profile the suite is meant for."""
    costs: tuple[str, ...] = ()
    """What its test takes, by the names of workloads' costs: worked out for whichever profile."""
    needs: tuple[str, ...] = ()
    """Conditions of the evidence without which none of its measurements says anything."""
    parameters: Mapping[str, Mapping[Suite, tuple[object, ...]]] = field(default_factory=dict)
    """The values that each argument of the test takes, by suite."""
    include: tuple[str, ...] = ()
    """Sets of checks (``[checks]``) that come before its own."""
    compares_versions: bool = False
    """Whether one test of it holds a new version against an old one, instead of a test for each."""
    changes_versions: bool = False
    """Whether one test of it gives a cluster one version after another, instead of a test for each."""
    least_versions: int = 2
    """How many versions must be asked for where it changes them; with 1 a single one is given twice."""
    checks: tuple[CheckSpec, ...] = ()
    """All checks, those of ``include`` first."""
    paper: Mapping[str, Any] = field(default_factory=dict)
    """Figures printed in the source, to be shown beside the measured ones; never judged."""
    measured: Mapping[str, str] = field(default_factory=dict)
    """Which of its metrics answers to which column of those figures, so that reports can set them side by side."""
    note: str = ""
    """For people: how the source contradicts itself, and which reading is used."""

    @property
    def takes_versions(self) -> bool:
        """Whether one test of it is about all versions that were asked for."""
        return self.compares_versions or self.changes_versions

    @property
    def work(self) -> str:
        """What its source is called."""
        return self.source.work if self.source else "the source"

    def checks_for(self, profile: str) -> tuple[Check, ...]:
        """The checks with their limits on the profile of this name."""
        return tuple(check.resolve(profile) for check in self.checks)

    def parameters_for(self, suite: Suite) -> Mapping[str, tuple[object, ...]]:
        """The values of each argument of the test in this suite.

        In a suite that the claim is not in they are those of the first suite it is in: a test that is deselected later,
        or a sabotage of the claim, still has its arguments.
        """
        return {name: values[self._chosen(suite)] for name, values in self.parameters.items()}

    def _chosen(self, suite: Suite) -> Suite:
        return suite if suite in self.suites or not self.suites else self.suites[0]

    def nodes_for(self, suite: Suite) -> int:
        """How many nodes the machine must carry, in the suite that ``parameters_for`` takes."""
        return self.nodes[self._chosen(suite)]

    def estimate_for(self, suite: Suite) -> Estimate | None:
        """What all trials of this suite take together one after the other; ``None`` where nothing is declared."""
        if suite not in self.suites or not self.estimate:
            return None
        one = self.estimate[suite]
        trials = prod(len(values) for values in self.parameters_for(suite).values())
        return Estimate(seconds=one.seconds * trials, disk_mib=one.disk_mib)
