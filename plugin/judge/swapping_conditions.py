"""What must be true of a run before its changes of version are judged: the plan was followed, the processes watched.

Events as in ``plugin.judge.swapping``.
"""

from collections.abc import Sequence
from itertools import pairwise

from msgspec import UNSET

from clusters.events import DrainFailed, FaultBegin, NodeSwapped, SwapFailed
from plugin.counts import number_of
from plugin.evidence.events import PlanDrawn, ProcessesSeen, StepBegin, StepEnd, seen
from plugin.evidence.plan import FAILURE
from plugin.judge.analysis import Analysis
from plugin.judge.definitions import Answer, Conditions, recorded, some
from plugin.judge.swapping import FAIL, SWAP, swap_faults

UNSEEN_US = 3_000_000
"""Processes that nobody looked at for longer were not watched (our own choice; they are looked at ten times a
second)."""

SWAPPING_CONDITIONS = Conditions()
"""Every condition of a change of version by name."""
requires = SWAPPING_CONDITIONS.declare


def _changed_nothing(a: Analysis) -> Sequence[str]:
    """The steps that were to give a node another version, and ended without any node that got one."""
    found, open_ = list[str](), 0
    for event in a.evidence.events:
        match event.what:
            case StepBegin(kind=kind, number=number):
                open_ = number if kind == SWAP else 0
            case NodeSwapped():
                open_ = 0
            case StepEnd(number=number) if number == open_:
                found.append(f"step {number}")
    return found


def _cut_short(a: Analysis) -> Sequence[str]:
    """The steps that took less time than the plan gives them."""
    begun: dict[int, tuple[int, float]] = {}
    found = list[str]()
    for event in a.evidence.events:
        match event.what:
            case StepBegin(number=number, lasts_s=float(lasts_s)):
                begun[number] = event.t, lasts_s
            case StepEnd(number=number) if number in begun:
                begin, lasts_s = begun[number]
                if event.t - begin < lasts_s * 1e6:
                    found.append(f"step {number}: {(event.t - begin) / 1e6:.1f} of {lasts_s:g} s")
    return found


@requires("plan_followed", "see in the log of events which step failed, and why")
def _plan_followed(a: Analysis) -> Answer:
    """Every step of the plan was done, in its order, and each stay for its time."""
    plans = [plan for _, plan in seen(a.evidence.events, PlanDrawn)]
    if len(plans) != 1:
        return False, f"{number_of(len(plans), 'plans were')} recorded"
    done = [end.number for _, end in seen(a.evidence.events, StepEnd)]
    if done != [*range(1, plans[0].steps + 1)]:
        return False, f"{len(done)} of {number_of(plans[0].steps, 'steps were')} done"
    if idle := _changed_nothing(a):
        return False, f"no node was given another version in {some(idle)}"
    if short := _cut_short(a):
        return False, f"the cluster did not stay as it was for as long as planned: {some(short)}"
    equal = "; all versions are the same build: a rolling restart" if plans[0].equal else ""
    origin = f"seed {plans[0].seed}" if plans[0].given is UNSET else f"SHA-256 {plans[0].given[:12]}"
    return True, f"{plans[0].path}, {origin}: {number_of(len(done), 'steps')}{equal}"


def _meant_to_fail(a: Analysis) -> set[str]:
    """The nodes whose update was to fail, by the plan; all that were given another version where no plan was drawn."""
    swaps = {node for fault in swap_faults(a) for node in fault.nodes}
    if not seen(a.evidence.events, PlanDrawn):
        return swaps
    found, failing = set[str](), False
    for event in a.evidence.events:
        match event.what:
            case StepBegin(kind=kind):
                failing = kind == FAIL
            case FaultBegin(nodes=nodes) if failing:
                found |= swaps.intersection(nodes)
    return recorded(found or None, "no update was tried that was to fail by the plan")


@requires("update_failed", "give the node a version that does not come up, and in no other way than it is meant to")
def _update_failed(a: Analysis) -> Answer:
    """Every node whose update was to fail did not come up with the other version, and failed in the way meant."""
    meant = _meant_to_fail(a)
    failed = [one for _, one in seen(a.evidence.events, SwapFailed) if one.node in meant]
    undrained = {one.node for _, one in seen(a.evidence.events, DrainFailed)}
    if undrained & meant:
        return False, f"{', '.join(sorted(undrained & meant))} was not even drained, and so not given another version"
    if came := meant - {one.node for one in failed}:
        return False, f"{', '.join(sorted(came))} came up"
    if otherwise := [
        f"{one.node}: it was to fail as {one.meant}, but {one.why}" for one in failed if one.as_meant is False
    ]:
        return False, some(otherwise)
    declared = a.evidence.parameters.get(FAILURE)
    unsaid = [one.node for one in failed if declared and one.meant != declared]
    if unsaid:
        return False, f"nobody recorded whether {', '.join(unsaid)} failed as {declared}: that was meant"
    return True, some(f"{one.node}: {one.why}" for one in failed)


@requires("processes_watched", "leave the harness CPU to look at the nodes' processes, and see what it takes for one")
def _processes_watched(a: Analysis) -> Answer:
    """The nodes' processes were looked at all the time from the first change to the last, and one was seen to be down.

    One alone: between two looks a node may stop and start again.
    """
    looks = seen(a.evidence.events, ProcessesSeen)
    window = a.timeline.disturbed
    if window is None:
        return False, "no node was taken down"
    inside = [window[0], *(t for t, _ in looks if window[0] < t < window[1]), window[1]]
    longest = max(other - one for one, other in pairwise(inside))
    told = f"{number_of(len(inside) - 2, 'records')}, {longest / 1e6:.1f} s apart at the most"
    if any(fault.bit for fault in a.timeline.faults) and not any(look.others for _, look in looks):
        return False, f"nodes were stopped, and none was seen to be down: {told}"
    return longest <= UNSEEN_US, told
