"""What is derived from a trial's evidence, each thing once."""

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any, TypeVar

from plugin.evidence.events import ProvisionBegin, seen
from plugin.judge.availability import Availability, availability, nearby, together
from plugin.judge.moments import seconds, zero_of
from plugin.judge.trial import Timeline, TrialEvidence, timeline

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
    def zero(self) -> int:
        """From which second of the timeline on the trial is told."""
        return zero_of(self.evidence.events)

    def moment(self, t: int) -> str:
        """A time of the timeline in words."""
        return seconds(t, self.zero)

    def of_old(self, t: int) -> bool:
        """Whether the cluster that ran at that time was of an old version, against which a new one is held."""
        begun = [begin for at, begin in seen(self.evidence.events, ProvisionBegin) if at <= t]
        return bool(begun) and begun[-1].old is True

    @cached_property
    def outages(self) -> tuple[Availability, ...]:
        """What the probe saw of each disturbance; none without a probe."""
        if self.evidence.probe is None:
            return ()
        header, seconds = self.evidence.probe
        routes = dict.fromkeys([*names_of(header.get("routes")), *(name for each in seconds for name in each.routes)])
        return tuple(
            availability(nearby(seconds, routes, one.window), routes, window=one.window, victims=one.victims)
            for one in self.timeline.disturbances
        )

    @cached_property
    def availability(self) -> Availability | None:
        """The longest gaps of all disturbances."""
        return together(self.outages)

    def of(self, derive: Callable[[TrialEvidence], T]) -> T:
        """What a workload derives from the evidence, once however often it is asked for."""
        if derive not in self._derived:
            self._derived[derive] = derive(self.evidence)
        found: T = self._derived[derive]
        return found


def names_of(value: object) -> tuple[str, ...]:
    """What a probe's header lists by name: its routes, the nodes behind an endpoint."""
    return tuple(map(str, value)) if isinstance(value, list | tuple) else ()


@lru_cache(maxsize=1)
def analysis(evidence: TrialEvidence) -> Analysis:
    """The analysis of this evidence; that of the last trial asked for is kept."""
    return Analysis(evidence)
