"""Where the replicas of a trial lay, second by second, as its reports draw it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from plugin.judge.growth import Phase, phases
from plugin.judge.trial import TrialEvidence
from plugin.reports.bands import SECOND, Band

MOST_HELD = 3
"""A sample is drawn until the next one, for this many usual intervals at most: anything longer is a hole."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LayoutSeries:
    """Replicas by node, ``None`` where nobody knows or the node was not there.

    ``joined``: with which change of size a node came, 0 for those that were there before. ``changes``: from the first
    action of a change until the replicas lay evenly, or until the next one where they never did; ``mean``: what each
    node that is to stay would have, were all alike.
    """

    replicas: Mapping[str, Sequence[int | None]]
    joined: Mapping[str, int]
    changes: tuple[Band, ...]
    mean: Sequence[float | None]


def layout_series(evidence: TrialEvidence, seconds: int) -> LayoutSeries | None:
    """The replicas of a trial in which they were sampled; nothing for any other."""
    known = [sample for sample in evidence.layout if not sample.lost]
    if not known or seconds <= 0:
        return None
    changes = phases(evidence)
    names = dict.fromkeys(node for sample in known for node in sample.replicas)
    replicas: dict[str, list[int | None]] = {node: [None] * seconds for node in names}
    mean: list[float | None] = [None] * seconds
    gaps = sorted(after.t - before.t for before, after in pairwise(known))
    held = MOST_HELD * (gaps[len(gaps) // 2] if gaps else SECOND)
    for number, sample in enumerate(known):
        aim = next((p for p in changes if p.begin <= sample.t / 1e6 < p.end), None)
        nodes = len(aim.nodes) if aim else len(sample.replicas)
        until = known[number + 1].t if number + 1 < len(known) else sample.t + SECOND
        for second in range(sample.t // SECOND, min(seconds, -(-min(until, sample.t + held) // SECOND))):
            for node, count in sample.replicas.items():
                replicas[node][second] = count
            mean[second] = round(sum(sample.replicas.values()) / nodes, 1)
    return LayoutSeries(
        replicas=replicas,
        joined={node: _joined(node, changes) for node in names},
        changes=tuple(
            Band(begin=phase.begin, end=phase.found.balanced or phase.end, name=phase.name) for phase in changes
        ),
        mean=mean,
    )


def _joined(node: str, changes: Sequence[Phase]) -> int:
    """The number of the first change that brings the node; 0 where one takes it out, or it was there."""
    for number, phase in enumerate(changes, 1):
        if phase.kind == "out" and node in phase.nodes[phase.before :]:
            return number
    return 0
