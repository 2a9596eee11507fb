"""The phases in which a cluster grew or shrank, and what the samples of each show.

A test records ``scale.begin {kind, nodes, quiet_s, stall_s, hold_s}`` before the first action, ``nodes`` being those
that the cluster is to have then; ``quiet.begin`` when traffic has ended and waiting for replicas to come to rest
begins.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from plugin.evidence.events import QuietBegin, QuietEnd, RemoveFailed, ScaleBegin, ScaleEnd, seen
from plugin.evidence.layout import LayoutSample
from plugin.judge.analysis import Analysis
from plugin.judge.convergence import PAPER_QUIET_S, Convergence, Spread, converge
from plugin.judge.definitions import recorded
from plugin.judge.trial import TrialEvidence, Window

NO_PHASE = "no node was added or taken out"


@dataclass(frozen=True, kw_only=True)
class Phase:
    """One change of size. Times in seconds on the trial's timeline; ``before``: how many nodes there were.

    ``watched``: until when it was waited that replicas lie evenly or rest.
    """

    kind: str
    nodes: tuple[str, ...]
    before: int
    begin: float
    end: float
    watched: float
    quiet_from: float | None
    quiet_s: float
    stall_s: float
    hold_s: float
    samples: tuple[LayoutSample, ...]

    @property
    def name(self) -> str:
        """From how many nodes to how many."""
        return f"{self.before} → {len(self.nodes)}"

    @property
    def known(self) -> tuple[LayoutSample, ...]:
        """The samples that were not lost."""
        return tuple(sample for sample in self.samples if not sample.lost)

    @property
    def last(self) -> float:
        """The time of the last sample that was not lost."""
        return self.known[-1].t / 1e6 if self.known else self.begin

    def last_told(self, pick: Callable[[LayoutSample], object]) -> LayoutSample | None:
        """The last sample in which all nodes told it; ``None`` where that was before the change had its effect.

        That is, before traffic ended where it was waited for rest, and else before the change of size began.
        """
        since = self.quiet_from if self.quiet_from is not None else self.begin
        told = [s for s in self.known if pick(s) is not None and set(s.silent).isdisjoint(self.nodes)]
        return told[-1] if told and told[-1].t / 1e6 >= since else None

    @property
    def at_rest(self) -> bool:
        """Whether nothing is left to wait for: no replica moved in the last quiet period, and no range lacks one."""
        last = self.last_told(lambda sample: sample.underreplicated)
        rests = self.found.settled is not None and self.found.rest_s >= self.quiet_s
        return rests and last is not None and last.underreplicated == 0

    @cached_property
    def found(self) -> Convergence:
        """What the samples show, in times of the trial's timeline."""
        series = [Spread(t=sample.t / 1e6, replicas=sample.replicas, moves=sample.moves) for sample in self.known]
        return converge(
            series,
            self.nodes,
            quiet_s=self.quiet_s,
            quiet_from=self.quiet_from,
            stall_s=self.stall_s,
            hold_s=self.hold_s,
        )


def phases(evidence: TrialEvidence) -> Sequence[Phase]:
    """All phases in their order."""
    begins = [(t, begin) for t, begin in seen(evidence.events, ScaleBegin) if begin.nodes]
    if not begins:
        return ()
    last = max((event.t for event in evidence.events), default=0)
    ends = [*(t for t, _ in begins[1:]), max(last, evidence.layout[-1].t if evidence.layout else 0) + 1]
    declared = evidence.context.get("nodes", "")
    before = int(declared) if declared.isdigit() else 0
    ended = [at for kind in (ScaleEnd, QuietEnd) for at, _ in seen(evidence.events, kind)]
    found = []
    for (t, begin), end in zip(begins, ends, strict=True):
        nodes = tuple(begin.nodes)
        quiet = next((at for at, _ in seen(evidence.events, QuietBegin) if t <= at < end), None)
        found.append(
            Phase(
                kind=begin.kind,
                nodes=nodes,
                before=before,
                begin=t / 1e6,
                end=end / 1e6,
                watched=max((at for at in ended if t <= at < end), default=t) / 1e6,
                quiet_from=None if quiet is None else quiet / 1e6,
                quiet_s=begin.quiet_s if begin.quiet_s > 0 else PAPER_QUIET_S,
                stall_s=begin.stall_s if begin.stall_s > 0 else PAPER_QUIET_S,
                hold_s=max(0.0, begin.hold_s),
                samples=tuple(sample for sample in evidence.layout if t <= sample.t < end),
            )
        )
        before = len(nodes)
    return found


def changes_of_size(a: Analysis) -> Sequence[Phase]:
    """All phases. Raises ``NotRecorded`` where there is none."""
    return recorded(phases(a.evidence) or None, NO_PHASE)


def without_traffic(a: Analysis) -> list[Phase]:
    """The phases in which traffic ended, and it was waited for rest. Raises ``NotRecorded`` where there is none."""
    quiet = [phase for phase in changes_of_size(a) if phase.quiet_from is not None]
    return recorded(quiet or None, "nobody looked whether the replicas come to rest without traffic")


class Traded(NamedTuple):
    """The replicas that were added or removed in so many seconds, of so many replicas."""

    moved: int
    counted_s: float
    total: int

    @property
    def pace(self) -> float:
        """In percent of all a minute."""
        return 100 * self.moved / max(1, self.total) / (self.counted_s / 60)


def traded_in(phase: Phase, begin: float, end: float) -> Traded | None:
    """What was traded without traffic from then to then; ``None`` where the moves were counted for half of it only."""
    begin = max(begin, phase.quiet_from or 0.0)
    samples = [s for s in phase.known if s.moves is not None and begin <= s.t / 1e6 <= end]
    counted_s = (samples[-1].t - samples[0].t) / 1e6 if samples else 0.0
    if counted_s < phase.quiet_s / 2:
        return None
    moved = (samples[-1].moves or 0) - (samples[0].moves or 0)
    return Traded(moved, counted_s, sum(samples[-1].replicas.values()))


def given_up(a: Analysis) -> Iterator[tuple[Phase, RemoveFailed, Window]]:
    """The nodes that could not be taken out, and in what stretch of the wait for them their replicas are looked at."""
    for phase in changes_of_size(a):
        for t, failed in seen(a.evidence.events, RemoveFailed):
            if phase.begin <= t / 1e6 < phase.end:
                yield phase, failed, (t - round(1e6 * min(phase.stall_s, (t / 1e6 - phase.begin) / 2)), t)
