"""What the judge measures of nodes that get another version one after another.

A test records ``plan.drawn`` and of each step ``step.begin`` and ``step.end``; nodes are changed by the fault ``swap``,
which tells ``node.swapped`` or ``swap.failed``. Their processes are watched beside it (``processes.seen``).
"""

from collections.abc import Mapping, Sequence
from signal import SIGTERM

from msgspec import UNSET, UnsetType

from clusters.events import (
    DrainFailed,
    FaultBegin,
    FaultUndo,
    NodeDrained,
    NodeStopped,
    NodeSwapped,
    Provisioned,
    SwapFailed,
    UndoSlow,
    VersionFinal,
    VersionKept,
)
from plugin.counts import number_of
from plugin.evidence.events import (
    JoinFailed,
    JoinRefused,
    JoinUnclear,
    NodeJoined,
    NotFinal,
    PlanDrawn,
    ProcessesSeen,
    StepBegin,
    StepEnd,
    VersionsSeen,
    seen,
)
from plugin.judge.analysis import Analysis
from plugin.judge.definitions import Measured, Metrics, counted, nothing, recorded, some
from plugin.judge.trial import Fault, Window

SWAP, FAIL, FINALISE, JOIN = "swap", "fail", "finalise", "join"
"""The fault, and kinds of steps."""
GUIDE_NODES = 9
"""The smaller of the two clusters of which a source says how long a change of version took."""

STOPPED = frozenset({0, -SIGTERM})
"""Exit codes of what stopped when it was told to."""

SWAPPING_METRICS = Metrics()
"""Every metric of a change of version by name."""
measures = SWAPPING_METRICS.declare


def _begun(a: Analysis, kind: str) -> list[StepBegin]:
    return [begin for _, begin in seen(a.evidence.events, StepBegin) if begin.kind == kind]


def swap_faults(a: Analysis) -> tuple[Fault, ...]:
    """The faults that gave nodes another version, and recorded that there is one; raises as ``recorded`` does."""
    found = tuple(fault for fault in a.timeline.faults if fault.kind == SWAP)
    return recorded(found or None, "no node was given another version")


@measures("processes_down_at_once", "nodes", ("integrity", "processes_watched"), safety=True)
def _processes_down(a: Analysis) -> Measured:
    """Nodes of which no process ran at the same time; the most at any moment, by an independent look at processes."""
    looks = seen(a.evidence.events, ProcessesSeen)
    if not looks:
        return nothing("nobody looked at the nodes' processes")
    t, worst = max(looks, key=lambda look: len(look[1].others))
    told = ", ".join(f"{node} {state}" for node, state in sorted(worst.others.items()))
    return len(worst.others), f"{told or 'all ran'} at {a.moment(t)}, of {number_of(len(looks), 'records')}", ()


@measures("nodes_on_other_build", "nodes", ("integrity", "fault_bit"), safety=True)
def _other_build(a: Analysis) -> Measured:
    """Nodes that ran another build than the one they were given last, by their own word, or ended when they got it.

    Each is asked when it was swapped, a new one when it joined, and all whenever the plan looked. Of one that said
    nothing when it was asked last nobody knows.
    """
    last: dict[str, str] = {}
    wrong: dict[str, str] = {}
    given: dict[str, str] = {}
    silent: dict[str, str] = {}
    first = ""
    swap_faults(a)
    for event in a.evidence.events:
        match event.what:
            case PlanDrawn(builds=by_version):
                first = next(iter(by_version.values()), "")
            case Provisioned(nodes=nodes) if first:
                given |= dict.fromkeys(nodes, first)
            case NodeSwapped(node=node, wanted=wanted, build=build):
                last[node] = given[node] = build
                silent.pop(node, None)
                if build != wanted:
                    wrong[node] = f"{node} was given {wanted} and calls itself {build or 'nothing'}"
            case NodeJoined(node=node, wanted=str(wanted), build=str(build)):
                last[node] = given[node] = build
                if build != wanted:
                    wrong[node] = f"{node}, which is new, was given {wanted} and calls itself {build or 'nothing'}"
            case VersionsSeen(builds=said, silent=unasked) if said is not UNSET:
                silent |= {node: f"{node} at {a.moment(event.t)}: {why}" for node, why in unasked.items()}
                for node, build in said.items():
                    silent.pop(node, None)
                    if build != given.get(node, build):
                        wrong[node] = f"{node} called itself {given[node]}, and {build} at {a.moment(event.t)}"
            case SwapFailed(node=node, wanted=wanted, why=why, late=late, meant=UnsetType()) if late is not True:
                wrong[node] = f"{node} did not come up with {wanted}: {why}"
    if silent and not wrong:
        return nothing(f"not told which build runs: {some(silent.values())}")
    told = ", ".join(f"{node} {build}" for node, build in sorted(last.items()))
    return counted(wrong.values(), f"all as asked for; at last {told}")


def _late_nodes(a: Analysis) -> Sequence[tuple[Window, str]]:
    """How long each node that was late was waited for, and what it was waited for."""
    late, asked, step = list[tuple[Window, str]](), dict[str, int](), 0
    for event in a.evidence.events:
        match event.what:
            case StepBegin():
                step = event.t
            case FaultBegin(nodes=nodes) | FaultUndo(nodes=nodes):
                asked |= dict.fromkeys(nodes, event.t)
            case NodeDrained(node=node):
                asked[node] = event.t
            case DrainFailed(node=node, why=why, late=True):
                late.append(((asked.get(node, step), event.t), f"{node}, which was drained: {why}"))
            case NodeStopped(node=node, late=True):
                told = f"{node} had not stopped when it was killed at {a.moment(event.t)}"
                late.append(((asked.get(node, step), event.t), told))
            case SwapFailed(node=node, wanted=wanted, why=why, late=True, meant=meant) if meant is UNSET:
                late.append(((asked.get(node, step), event.t), f"{node} with {wanted}: {why}"))
            case UndoSlow(node=node, why=why):
                late.append(((asked.get(node, step), event.t), f"{node} with its former version: {why}"))
            case JoinFailed(node=node, why=why, late=True):
                late.append(((step, event.t), f"{node}, which is new: {why}"))
    return late


def _waited_for(a: Analysis) -> Sequence[Window]:
    return [window for window, _ in _late_nodes(a)]


@measures("nodes_late", "nodes", ("integrity", "fault_bit"), safety=True, timed=True, stretches=_waited_for)
def _late(a: Analysis) -> Measured:
    """Nodes that were not done when the profile's limit was over.

    They had not handed over their work, ran on when told to stop, or took no clients with another version, with their
    former one, or as new ones.
    """
    late = [told for _, told in _late_nodes(a)]
    if not late:
        swap_faults(a)
    return counted(late, "all were done in time")


def _not_asked(a: Analysis) -> Sequence[str]:
    """The nodes that were stopped without being asked to hand over their work."""
    failed, done = seen(a.evidence.events, DrainFailed), seen(a.evidence.events, NodeDrained)
    told = [*((one.node, t) for t, one in failed), *((one.node, t) for t, one in done)]
    return [
        f"{node} at {a.moment(bit)}: it was not asked to"
        for fault in swap_faults(a)
        for node, bit in fault.bit.items()
        if not any(of == node and fault.begin <= t <= bit for of, t in told)
    ]


def _refused(a: Analysis) -> Sequence[tuple[Window, str]]:
    """How long each node that did not hand over its work, the late ones aside, was asked to, and why it did not."""
    told = list[tuple[Window, str]]()
    for t, one in seen(a.evidence.events, DrainFailed):
        if one.late is not True:
            begun = max((f.begin for f in a.timeline.faults if one.node in f.nodes and f.begin <= t), default=t)
            told.append(((begun, t), f"{one.node} at {a.moment(t)}: {one.why}"))
    return told


def _while_refused(a: Analysis) -> Sequence[Window]:
    """Nothing where a node was not even asked: that is no matter of the machine."""
    return [] if _not_asked(a) else [window for window, _ in _refused(a)]


@measures("undrained", "nodes", ("integrity", "fault_bit"), safety=True, timed=True, stretches=_while_refused)
def _undrained(a: Analysis) -> Measured:
    """Nodes that stopped before they had handed over their work: servers refused that, failed in it, or were not asked.

    Those that only did not do it in time are late. Where other work has the machine they may refuse for that alone.
    """
    return counted([*(told for _, told in _refused(a)), *_not_asked(a)], "all handed their work over")


def _codes_unknown(a: Analysis) -> str:
    """Evidence of older releases tells them in words only."""
    stopped = a.timeline.reached.get(NodeStopped)
    return "nobody recorded the exit codes of nodes that were stopped" if stopped is None else ""


@measures("crashed_on_stop", "nodes", ("integrity", "fault_bit"), safety=True, elsewhere=_codes_unknown)
def _crashed_on_stop(a: Analysis) -> Measured:
    """Nodes that were told to stop, to be given another version, and ended in another way."""
    stops = seen(a.evidence.events, NodeStopped)
    crashed = [
        f"{one.node} at {a.moment(t)}, exit code {one.code}"
        for t, one in stops
        if one.late is not True and one.code not in STOPPED
    ]
    unknown = sum(len(fault.bit) for fault in swap_faults(a)) - len(stops)
    if unknown > 0 and not crashed:
        return nothing(_codes_unknown(a) or f"the exit codes of {unknown} stopped nodes were not recorded")
    return counted(crashed, "all stopped as they were told to")


@measures("nodes_not_back", "nodes", ("integrity", "fault_bit", "update_failed"), safety=True)
def _not_back(a: Analysis) -> Measured:
    """Nodes whose update failed and that do not run their former build again, by their own word."""
    away: dict[str, str] = {}
    former: dict[str, str | UnsetType] = {}
    slow = set[str]()
    for event in a.evidence.events:
        match event.what:
            case SwapFailed(node=node, why=why, former=before):
                away[node], former[node] = f"{node} did not come up: {why}", before
            case UndoSlow(node=node):
                slow.add(node)
            case NodeSwapped(node=node, wanted=wanted, build=build) if node in away:
                before = former[node]
                if build == (wanted if before is UNSET else before):
                    del away[node]
                else:
                    away[node] = f"{node} calls itself {build or 'nothing'}, and ran {before} before"
            case VersionsSeen(builds=said) if said is not UNSET:
                for node in slow & away.keys() & said.keys():  # of one that was too late nobody asked before
                    if (before := former[node]) is UNSET:
                        continue
                    slow.discard(node)
                    if said[node] == before:
                        del away[node]
                    else:
                        away[node] = f"{node} calls itself {said[node] or 'nothing'}, and ran {before} before"
    swap_faults(a)
    if away and slow.issuperset(away):
        return nothing(f"{', '.join(sorted(away))} took long to come back, and said nothing of its build")
    return counted(away.values(), "all run their former build")


@measures("changed_after_failure", "nodes", ("integrity", "fault_bit", "update_failed"), safety=True)
def _changed_after_failure(a: Analysis) -> Measured:
    """Nodes taken down for another version once an update had failed: the roll did not stop there.

    Not those that had come up with that version before: they go back.
    """
    had, wrong, failed = set[str](), list[str](), ""
    for event in a.evidence.events:
        match event.what:
            case SwapFailed(node=node):
                failed = failed or f"that of {node} failed at {a.moment(event.t)}"
            case NodeSwapped(node=node) if not failed:
                had.add(node)
            case StepBegin(kind=kind) if kind == FINALISE:
                had.clear()  # of a chain the next version comes
            case FaultBegin(fault=kind, nodes=nodes) if failed and kind == SWAP:
                wrong += [f"{node} at {a.moment(event.t)}" for node in nodes if node not in had]
    recorded(failed or None, "no update failed")
    return len(wrong), f"{failed}; {some(wrong) or 'no other node was touched'}", tuple(wrong[:5])


@measures("restarts_before_whole", "restarts", ("integrity", "fault_bit"), safety=True)
def _before_whole(a: Analysis) -> Measured:
    """Nodes that were taken down before the cluster was whole again after the one before, or after one that joined."""
    swaps, joins = swap_faults(a), seen(a.evidence.events, NodeJoined)
    wrong = []
    for number, swap in enumerate(swaps):
        earlier = [(one.done, one.nodes) for one in swaps[:number]]
        earlier += [(t, (joined.node,)) for t, joined in joins if t <= swap.begin]
        done, before = max(earlier, default=(0, ()))
        if before and not any(done <= t <= swap.begin for t in a.timeline.recoveries):
            wrong.append(f"{', '.join(swap.nodes)} at {a.moment(swap.begin)}, after {', '.join(before)}")
    return counted(wrong, "the cluster was whole before each")


def _one_version(a: Analysis) -> str:
    """Of a patch release: all its builds run at the version of data and protocol that was in force before."""
    kept = {kept.active for _, kept in seen(a.evidence.events, VersionKept)}
    runs = [one for _, one in seen(a.evidence.events, NodeSwapped)]
    told = {active for _, looked in seen(a.evidence.events, VersionsSeen) for active in looked.active.values()}
    only = kept | told | {version for one in runs for version in (one.able, one.active)}
    if not kept or not runs or len(only) > 1:
        return ""
    return f"all builds run at {only.pop()}: there is nothing that could be made final"


def _none_kept(a: Analysis) -> str:
    told = [kept.active for _, kept in seen(a.evidence.events, VersionKept)]
    return "this database has no version that could be kept" if told and not any(told) else _one_version(a)


@measures("final_early", "nodes", ("integrity", "fault_bit"), safety=True, elsewhere=_none_kept)
def _final_early(a: Analysis) -> Measured:
    """Nodes that said that another version was in force while the cluster was to keep the former one.

    Each is asked when it was swapped, and all whenever the plan looked and before a version is made final. Of one that
    was silent a later answer tells, too, as long as the same version is to be kept: none in force goes back.
    """
    if none := _none_kept(a):
        return nothing(none)
    wrong: dict[str, str] = {}
    silent: dict[str, str] = {}
    never: dict[str, str] = {}
    kept, looked = "", 0

    def held(t: int, told: Mapping[str, str]) -> int:
        for node, active in told.items():
            silent.pop(node, None)
            if active != kept:
                wrong[node] = f"{node} at {a.moment(t)}: {active} in force, {kept} was to be kept"
        return len(told)

    for event in a.evidence.events:
        match event.what:
            case VersionKept(active=active):
                kept = active
            case StepBegin(kind=kind) if kind == FINALISE:
                kept, never, silent = "", never | silent, {}
            case NodeSwapped(node=node, active=active) if kept:
                looked += held(event.t, {node: active})
            case VersionsSeen(active=told, silent=unasked) if kept:
                looked += held(event.t, told)
                silent |= {node: f"{node} at {a.moment(event.t)}: {why}" for node, why in unasked.items()}
    if (silent := never | silent) and not wrong:
        return nothing(f"not told which version is in force: {some(silent.values())}")
    if not looked:
        return nothing("no version was to be kept, or no node was swapped meanwhile")
    return counted(wrong.values(), f"kept, {number_of(looked, 'times')} asked")


def _none_final(a: Analysis) -> str:
    if not _begun(a, FINALISE):
        return "the plan makes no version final"
    return "" if seen(a.evidence.events, NotFinal) else _none_kept(a)


def _until_not_final(a: Analysis) -> Sequence[Window]:
    asked = [t for t, begin in seen(a.evidence.events, StepBegin) if begin.kind == FINALISE]
    return [(max((at for at in asked if at <= t), default=t), t) for t, _ in seen(a.evidence.events, NotFinal)]


@measures(
    "not_final", "", ("integrity", "fault_bit"), safety=True, timed=True, stretches=_until_not_final,
    elsewhere=_none_final,
)  # fmt: skip
def _not_final(a: Analysis) -> Measured:
    """1 when a version that was made final was not in force everywhere within the profile's limit.

    The plan ends there, so that it is not followed to its end: that excuses nothing.
    """
    if none := _none_final(a):
        return nothing(none)
    asked = _begun(a, FINALISE)
    late = [f"not within {one.limit_s:g} s: {one.why}" for _, one in seen(a.evidence.events, NotFinal)]
    final = [one for _, one in seen(a.evidence.events, VersionFinal)]
    told = "; ".join(f"{' '.join(sorted(set(one.active.values())))} after {one.seconds:.1f} s" for one in final)
    if not late and len(final) < len(asked):
        return nothing("it was begun and its end never recorded")
    return int(bool(late)), some(late) or told, ()


def _none_joins(a: Analysis) -> str:
    return "" if _begun(a, JOIN) else "in this plan no new node asks to be taken in"


@measures("joined_wrongly", "nodes", ("integrity", "plan_followed"), safety=True, elsewhere=_none_joins)
def _joined_wrongly(a: Analysis) -> Measured:
    """New nodes that were taken in though their version must not, and such as were not though it may.

    A node that did not come in time, or nobody knows whether for its version, shows nothing here.
    """
    if not _begun(a, JOIN):
        return nothing(_none_joins(a))
    wrong, told, unclear, refused = list[str](), list[str](), list[str](), False
    for event in a.evidence.events:
        match event.what:
            case StepBegin(kind=kind, refused=must):
                refused = kind == JOIN and must is True
            case NodeJoined(node=node):
                (wrong if refused else told).append(f"{node} was taken in")
            case JoinFailed(node=node, why=why, late=True):
                unclear.append(f"{node} did not come in time: {why}")
            case JoinFailed(node=node, why=why):
                wrong.append(f"{node} was not taken in: {why}")
            case JoinRefused(node=node, how=how):
                told.append(f"{node} was kept out: {how}")
            case JoinUnclear(node=node, how=how):
                unclear.append(f"{node} did not come, and not for its version as far as anybody said: {how}")
    if unclear and not wrong:
        return nothing(some(unclear))
    return counted(wrong, some(told))


def _fewer_than_the_source(a: Analysis) -> str:
    """The adversity guide's figures are of nine and of fifteen nodes."""
    there = [len(one.nodes) for _, one in seen(a.evidence.events, Provisioned)]
    if there and there[0] < GUIDE_NODES:
        return f"its source changed {GUIDE_NODES} nodes and more, and this cluster had {there[0]}"
    return ""


@measures(
    "minutes_a_node", "min", ("integrity", "fault_bit", "recovered"), timed=True, elsewhere=_fewer_than_the_source
)
def _minutes(a: Analysis) -> Measured:
    """From a node's drain until the cluster was whole again, on average over all that were given another version."""
    lasted = []
    for fault in swap_faults(a):
        whole = recorded(a.timeline.whole_after(fault), "recovery was never declared")
        lasted.append((whole - fault.begin) / 60e6)
    return (
        sum(lasted) / len(lasted),
        f"of {number_of(len(lasted), 'nodes')}, {min(lasted):.2f} to {max(lasted):.2f}",
        (),
    )


@measures("total_s", "s", ("integrity", "fault_bit", "recovered"), timed=True)
def _total(a: Analysis) -> Measured:
    """From the first node's drain to the end of the plan."""
    begin = swap_faults(a)[0].begin
    end = max((t for t, _ in seen(a.evidence.events, StepEnd)), default=None)
    end = recorded(end, "no step of the plan was done")
    return (end - begin) / 1e6, "from the first drain to the end of the last step", ()
