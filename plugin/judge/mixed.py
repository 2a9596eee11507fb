"""Latency while nodes run different builds, and when all is done, held against the baseline; what became of clients.

*Mixed* is the time in which nodes run different builds, the cluster is whole, and nobody but the load asks it anything:
not from a node's drain until recovery was declared, not while the plan looks at data, takes in a node or makes a
version final, and not when the plan is done. *After* is from the end of the plan until writing ended, whatever nodes
run. Each latency is from when a write was sent until it was acknowledged; of one that was under way when its stretch
ended, until that end: as slow it was at least, and what came then is not of the stretch.

The seconds of one run are no independent samples, so percentiles are not taken of all writes at once. Each stretch is
cut into blocks of ``BLOCK`` writes in the order in which they were answered, its first ones left out that make no whole
block; of each the logarithm of its percentile is taken (batch means). The interval is that of the difference of two
such means (Welch's), its variances widened by what neighbouring blocks have in common (their correlation r: by (1 + r)
/ (1 - r)).
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise
from math import exp, log, sqrt

from clusters.events import FaultBegin, NodeDrained, NodeSwapped, Provisioned, Recovered
from plugin.counts import number_of
from plugin.evidence.events import NodeJoined, PlanDrawn, StepBegin, StepEnd, WritingEnd, seen
from plugin.judge.activity import Activity
from plugin.judge.analysis import Analysis, analysis
from plugin.judge.definitions import Measured, Metrics, NotRecorded, nothing, recorded, some
from plugin.judge.student import student_quantile
from plugin.judge.swapping import FINALISE, JOIN, SWAP
from plugin.judge.throughput import percentile, within
from plugin.judge.trial import LOOK, Fault, TrialEvidence, Window
from plugin.workloads import activity_of, connections_of

BLOCK = 100
"""Writes in a block: the second largest is its 99th percentile (our own choice)."""
FEWEST_BLOCKS = 6
"""Of fewer blocks nobody knows how they scatter (our own choice)."""
LEVEL = 0.01
"""The one-sided level of each end of an interval: of so many healthy runs one is refuted at the margin itself."""
MOST_CORRELATED = 0.8
"""No correlation of a few blocks is believed beyond this."""
LEAST_DF = 3.0
"""Degrees of freedom of a mean, however much its blocks have in common: with one, half of what is a run of bad luck in
the estimate would make an interval of thousands (simulated: no more errors so)."""
ASKING = frozenset({LOOK, JOIN, FINALISE})
"""Steps in which others than the load ask something of the cluster."""

MIXED_METRICS = Metrics()
"""Every metric of this module by name."""
measures = MIXED_METRICS.declare


# ---- when


def mixed(evidence: TrialEvidence) -> tuple[Window, ...]:
    """The stretches in which nodes ran different builds before the plan was done, and nothing else was done to them."""
    found, builds, first, since = list[Window](), dict[str, str](), "", None
    done = _done(evidence)
    whole, asking = True, False
    for event in evidence.events:
        match event.what:
            case PlanDrawn(builds=by_name):
                first = next(iter(by_name.values()), "")
            case Provisioned(nodes=nodes):
                builds = dict.fromkeys(nodes, first)
            case NodeSwapped(node=node, build=build) | NodeJoined(node=node, build=str(build)):
                builds[node] = build
            case FaultBegin():
                whole = False
            case Recovered():
                whole = True
            case StepBegin(kind=kind):
                asking = kind in ASKING
            case StepEnd():
                asking = False
            case WritingEnd():
                whole = False
            case _:
                continue
        quiet = whole and not asking and len(set(builds.values())) > 1 and (done is None or event.t < done)
        if quiet and since is None:
            since = event.t
        elif not quiet and since is not None:
            found.append((since, event.t))
            since = None
    return tuple(found)


def _done(evidence: TrialEvidence) -> int | None:
    """When the last step that ended did so."""
    return max((t for t, _ in seen(evidence.events, StepEnd)), default=None)


def after(evidence: TrialEvidence) -> tuple[Window, ...]:
    """From the end of the plan until writing ended."""
    line = analysis(evidence).timeline
    done = _done(evidence)
    if done is None or line.recovered is None or line.writing_end is None:
        return ()
    begin = max(done, line.recovered)
    return ((begin, line.writing_end),) if begin < line.writing_end else ()


def before(evidence: TrialEvidence) -> tuple[Window, ...]:
    """The baseline."""
    line = analysis(evidence).timeline
    return (line.baseline,) if line.baseline else ()


STATES = {"before": before, "mixed": mixed, "after": after}


# ---- how long


Blocks = tuple[tuple[tuple[int, ...], ...], ...]
"""By stretch its blocks, each the sorted latencies of its writes in microseconds."""


def _blocks(windows: Sequence[Window], activity: Activity) -> Blocks:
    begins, ends = [window[0] for window in windows], [window[1] for window in windows]
    found: list[list[int]] = [[] for _ in windows]
    for sent, done in zip(activity.sent, activity.acknowledged, strict=True):
        place = bisect_right(begins, sent) - 1
        if place >= 0 and sent < ends[place]:
            found[place].append(min(done, ends[place]) - sent)
    return tuple(
        tuple(tuple(sorted(one[at : at + BLOCK])) for at in range(len(one) % BLOCK, len(one), BLOCK)) for one in found
    )


def _by_state(evidence: TrialEvidence) -> Mapping[str, Blocks]:
    activity = recorded(activity_of(analysis(evidence)), "no load told what its clients did")
    return {state: _blocks(windows(evidence), activity) for state, windows in STATES.items()}


@dataclass(frozen=True, kw_only=True, slots=True)
class Mean:
    """The mean of logarithms: its variance, of how many blocks, and of how many independent ones these are worth."""

    value: float
    variance: float
    blocks: int
    worth: float


def mean(stretches: Sequence[Sequence[float]]) -> Mean:
    """Of the blocks' logarithms, stretch by stretch; at least two blocks."""
    every = [*chain.from_iterable(stretches)]
    n, middle = len(every), sum(every) / len(every)
    spread = sum((value - middle) ** 2 for value in every)
    neighbours = [pair for one in stretches for pair in pairwise(one)]
    common = sum((one - middle) * (other - middle) for one, other in neighbours)
    # Of a few values the correlation is estimated too low by about 1/n.
    r = common / spread * (n - 1) / len(neighbours) + 1 / n if spread and neighbours else 0.0
    r = min(max(r, 0.0), MOST_CORRELATED)
    worth = max(2.0, n * (1 - r) / (1 + r))
    return Mean(value=middle, variance=spread / (n - 1) / worth, blocks=n, worth=worth)


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """A ratio of two latencies, with its interval."""

    ratio: float
    low: float
    high: float
    blocks: tuple[int, int]

    def __str__(self) -> str:
        return (
            f"{self.ratio:.2f} ({self.low:.2f} to {self.high:.2f}; "
            f"{number_of(self.blocks[1], 'blocks')} of {BLOCK} writes against "
            f"{self.blocks[0]})"
        )


def change(one: Mean, other: Mean) -> Change:
    """``other`` divided by ``one``."""
    parts = [(mean.variance, max(LEAST_DF, mean.worth - 1)) for mean in (one, other)]
    variance = sum(part for part, _ in parts)
    df = variance**2 / sum(part**2 / df for part, df in parts) if variance else min(df for _, df in parts)
    half = student_quantile(1 - LEVEL, int(df)) * sqrt(variance)
    by = other.value - one.value
    return Change(ratio=exp(by), low=exp(by - half), high=exp(by + half), blocks=(one.blocks, other.blocks))


def changed(blocks: Mapping[str, Blocks], state: str, share: float) -> Change:
    """The percentile ``share`` in this state against the baseline's. Raises ``NotRecorded`` for too few blocks."""
    means = {}
    for name in ("before", state):
        if (count := sum(map(len, blocks[name]))) < FEWEST_BLOCKS:
            way_out = ": a plan with a stay, or a look at it, would have more" if name == "mixed" else ""
            raise NotRecorded(f"{count} blocks of {BLOCK} writes {name}, at least {FEWEST_BLOCKS} asked{way_out}")
        means[name] = mean([[_log(block, share) for block in stretch] for stretch in blocks[name]])
    return change(means["before"], means[state])


def _log(block: Sequence[int], share: float) -> float:
    return log(max(1, percentile(block, share) or 1))


def _latency(share: float, metric: str, state: str, a: Analysis) -> Measured:
    found, limit = changed(a.of(_by_state), state, share), a.evidence.limits.get(metric)
    stretches = [f"{(end - begin) / 1e6:.1f} s" for begin, end in STATES[state](a.evidence)]
    told = f"{found} {state}, in {number_of(len(stretches), 'stretches')}: {some(stretches, 8)}"
    if limit is not None and found.low <= limit < found.high:
        return nothing(f"undecided at {limit:g}: {told}; more time in this state would settle it")
    return found.ratio, told, ()


def _one_build(a: Analysis) -> str:
    plans = [plan for _, plan in seen(a.evidence.events, PlanDrawn)]
    same = plans and all(plan.equal or len(set(plan.builds.values())) < 2 for plan in plans)
    return "all versions are the same build: no state is mixed" if same else ""


for _name, _share in (("p50", 0.50), ("p90", 0.90), ("p99", 0.99)):
    for _state, _when in (("mixed", "while nodes ran different builds"), ("after", "when all was done")):
        _metric = f"latency_{_name}_{_state}_ratio"
        measures(
            _metric, "", ("integrity", "fault_bit", "recovered"), timed=True,
            elsewhere=_one_build if _state == "mixed" else lambda _: "",
            description=f"{_name} latency of acknowledged writes {_when}, divided by that of the baseline",
        )(partial(_latency, _share, _metric, _state))  # fmt: skip


# ---- connections


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """What became of the loads' connections to a node that was given another version.

    ``held``: how many there were just before; ``None`` where a load did not record it. ``drained``: closed between two
    operations. ``dropped``: while one was under way, so that the client cannot know what became of it.
    ``by_draining``: how many of those were while the node still handed over its work, so that the server closed them by
    itself; ``None`` where nobody recorded how long it did. ``at``: when that began, in words.
    """

    node: str
    begin: int
    at: str
    held: int | None
    drained: int
    dropped: int
    by_draining: int | None = None

    def __str__(self) -> str:
        by = f" ({self.by_draining} of them while it drained)" if self.dropped and self.by_draining is not None else ""
        return f"{self.node} at {self.at}: {self.drained} drained, {self.dropped} dropped{by}"


def ended(a: Analysis) -> tuple[Ended, ...]:
    """For each node that was given another version, in the order of time. Raises ``NotRecorded``."""
    return tuple(_ended(a))


def _ended(a: Analysis) -> Iterator[Ended]:
    loads = recorded(connections_of(a) or None, "no load told when its connections ended")
    drains = seen(a.evidence.events, NodeDrained)
    swaps = [fault for fault in a.timeline.faults if fault.kind == SWAP]
    for fault in recorded(swaps or None, "no node was given another version"):
        for node in fault.nodes:
            window = fault.begin, _until(a, fault)
            dropped = [t for load in loads for t in within(load.ends.dropped.get(node, ()), window)]
            held = [load.held(node, fault.begin) for load in loads]
            done = next((t for t, one in drains if one.node == node and t >= fault.begin), None)
            yield Ended(
                node=node,
                begin=fault.begin,
                at=a.moment(fault.begin),
                held=None if None in held else sum(count or 0 for count in held),
                drained=sum(len(within(load.ends.drained.get(node, ()), window)) for load in loads),
                dropped=len(dropped),
                by_draining=None if done is None else sum(t <= done for t in dropped),
            )


def _until(a: Analysis, fault: Fault) -> int:
    """A client learns of its connection's end when it next needs it; until recovery at the latest."""
    whole = a.timeline.whole_after(fault)
    return a.timeline.end + 1 if whole is None else whole


def _connections(what: str, a: Analysis) -> Measured:
    found = ended(a)
    return sum(getattr(one, what) for one in found), some(map(str, found), 20), ()


measures(
    "drained_connections", "connections", ("integrity", "fault_bit"),
    description="connections of the loads' clients to nodes that were given another version, which ended between two "
    "operations",
)(partial(_connections, "drained"))  # fmt: skip
measures(
    "dropped_connections", "connections", ("integrity", "fault_bit"),
    description="connections of the loads' clients to nodes that were given another version, which ended while an "
    "operation was under way",
)(partial(_connections, "dropped"))  # fmt: skip
