"""The outcomes of a session's tests: each report carries its own, and the controller gathers them from its workers."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from plugin.required import NO_CLAIM, NOT_DECIDED, NOTHING_DECIDED
from plugin.result import Result
from plugin.status import Conclusion

if TYPE_CHECKING:
    from plugin.reports.progress import Ticker
    from plugin.reports.stored_run import StoredRun

PROPERTY = "roachproof"
"""Name of the user property of a report that carries our outcome, for tools that read JUnit XML or reports."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TestOutcome:
    """How one test of a claim (or a sabotage of it) came out."""

    __test__ = False

    nodeid: str
    claim: str
    sabotage: bool
    result: Result
    trial: Path | None
    seconds: float = 0.0


@dataclass(kw_only=True, eq=False)
class Session:
    """What was heard of the session's tests: registered with pytest, it hears the reports of workers too."""

    outcomes: list[TestOutcome] = field(default_factory=list)
    plain: Counter[str] = field(default_factory=Counter)
    """How tests without a claim came out: ``pass``, ``fail``, or what was told of them (``tell``)."""
    refusals: list[str] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)
    """What was required and nobody decided; without a suite, what was collected is required."""
    missing: list[str] = field(default_factory=list)
    """What of it a suite requires, or was skipped. No test that failed stands for it: reports name it themselves."""
    nothing: bool = False
    """Whether nothing was decided, and no test says so: nothing could be evaluated here."""
    not_tested: list[str] = field(default_factory=list)
    """The claims of the suite that were neither tested nor required, though they could be evaluated here."""
    headed: bool = False
    """Whether the header was printed."""
    ticker: "Ticker | None" = None
    stored: "StoredRun | None" = None
    """What it left, as reports see it."""
    page: str = ""
    """Where the page of this session is, or why there is none."""
    unwritten: list[str] = field(default_factory=list)
    """What could not be written at its end, and why: nobody finds there what it came to."""
    status: int = 0
    """The session's exit status."""
    told: str = ""
    """The same in words."""
    conclusion: Conclusion | None = None
    """What it came to; nothing where no claim was to be decided."""
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """How long each test took so far."""

    @property
    def unsaid(self) -> Mapping[str, str]:
        """What lets nothing through though no test that failed stands for it, and what reports say of each."""
        return {**dict.fromkeys(self.missing, NOT_DECIDED), **({NOTHING_DECIDED: NO_CLAIM} if self.nothing else {})}

    @property
    def nothing_decided(self) -> bool:
        """Whether there were tests without a claim, and all that they came to is that nothing could be evaluated."""
        return bool(self.plain["not evaluated"]) and not self.plain["pass"]

    @property
    def tells(self) -> bool:
        """Whether there is something of ours to be told at the end."""
        return bool(self.outcomes or self.undecided or self.refusals or self.page or self.unwritten)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember what a test came to."""
        said = said_of(report)
        if self.ticker and report.when == "teardown":
            self.ticker.over(report.nodeid)
        self.seconds[report.nodeid] += report.duration
        if said is None:
            self.plain["pass"] += report.when == "call" and report.passed
            self.plain["fail"] += report.failed
        elif not said["claim"]:
            self.plain[said["outcome"]] += 1
        elif report.when not in ("setup", "call"):  # its end is heard of, too; of a worker that died only that
            self.outcomes.append(
                TestOutcome(
                    nodeid=report.nodeid,
                    claim=said["claim"],
                    sabotage=said["sabotage"],
                    result=Result(outcome=said["outcome"], why=said["why"], expected=said["expected"]),
                    trial=trial_of(report),
                    seconds=self.seconds[report.nodeid],
                )
            )


KEY: pytest.StashKey[Session] = pytest.StashKey()


def tell(report: pytest.TestReport, claim: str, result: Result, *, sabotage: bool = False) -> None:
    """Put what a test came to among its report's properties; ``claim`` is empty for a test without one."""
    told = {"claim": claim, "sabotage": sabotage, **asdict(result)}
    report.user_properties.append((PROPERTY, told))


def trial_of(test: pytest.Item | pytest.TestReport) -> Path | None:
    """Where the evidence of a test is; ``None`` of one that recorded none."""
    found = dict(test.user_properties).get("trial")
    return Path(str(found)) if found else None


def said_of(report: pytest.TestReport) -> Any:
    """What ``tell`` said of a test: ``claim``, ``sabotage`` and its result's fields; ``None`` of an ordinary one."""
    return dict(report.user_properties).get(PROPERTY)
