"""What is derived from a trial's evidence, each thing once: the audit and the timings take one pass over the history."""

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any, TypeVar

from plugin.judge import throughput
from plugin.judge.activity import Activity
from plugin.judge.audit import Audit, audit
from plugin.judge.availability import Availability, availability, together
from plugin.judge.trial import Timeline, TrialEvidence, Window, timeline

T = TypeVar("T")


class Analysis:
    """Everything that metrics and conditions ask about one trial. ``None`` stands for what was not recorded."""

    def __init__(self, evidence: TrialEvidence) -> None:
        self.evidence = evidence
        self._derived: dict[Callable[[TrialEvidence], Any], Any] = {}

    @cached_property
    def timeline(self) -> Timeline:
        """The trial's phases."""
        return timeline(self.evidence.events)

    @cached_property
    def _ledger(self) -> tuple[Audit, Activity] | None:
        if self.evidence.history is None:
            return None
        activity = Activity()
        final = self.evidence.final() if self.evidence.final else ()
        found = audit(
            activity.watch(self.evidence.history()),
            final,
            seed=self.evidence.seed,
            buckets=self.evidence.buckets,
        )
        return found, activity

    @property
    def audit(self) -> Audit | None:
        """The audit of the ledger; without a final read every bucket is unread in it."""
        return self._ledger[0] if self._ledger else None

    @property
    def activity(self) -> Activity | None:
        """The ledger's operations in time."""
        return self._ledger[1] if self._ledger else None

    @cached_property
    def outages(self) -> tuple[Availability, ...]:
        """What the probe saw of each disturbance; none without a probe."""
        if self.evidence.probe is None:
            return ()
        header, seconds = self.evidence.probe
        routes = routes_of(header.get("routes"))
        return tuple(
            availability(seconds, routes, window=one.window, victims=one.victims) for one in self.timeline.disturbances
        )

    @cached_property
    def availability(self) -> Availability | None:
        """The longest gaps of all disturbances."""
        return together(self.outages)

    @cached_property
    def baseline(self) -> throughput.Baseline | None:
        """What throughput is normal."""
        if self.activity is None or self.timeline.baseline is None:
            return None
        return throughput.baseline(self.activity.acknowledged, self.timeline.baseline)

    @cached_property
    def disturbed_buckets(self) -> tuple[throughput.Bucket, ...] | None:
        """The throughput from the first fault to recovery."""
        window = self.timeline.disturbed
        if self.activity is None or self.baseline is None or window is None:
            return None
        until = self.timeline.writing_end or self.timeline.end
        return throughput.buckets(self.activity.acknowledged, window, self.baseline, until=until)

    def of(self, derive: Callable[[TrialEvidence], T]) -> T:
        """What a workload derives from the evidence, once however often it is asked for."""
        if derive not in self._derived:
            self._derived[derive] = derive(self.evidence)
        found: T = self._derived[derive]
        return found

    def phase(self, name: str) -> Window | None:
        """The window ``before`` (the baseline), ``during`` (first fault to recovery) or ``after`` (on to the end of writing)."""
        line = self.timeline
        if name == "before":
            return line.baseline
        if line.recovered is None:
            return None
        return line.disturbed if name == "during" else (line.recovered, line.writing_end or line.end)


def routes_of(value: object) -> tuple[str, ...]:
    """The routes that a probe's header declares."""
    return tuple(map(str, value)) if isinstance(value, list | tuple) else ()


@lru_cache(maxsize=1)
def analysis(evidence: TrialEvidence) -> Analysis:
    """The analysis of this evidence; that of the last trial asked for is kept."""
    return Analysis(evidence)
