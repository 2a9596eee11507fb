"""Conditions: what the evidence must meet before a measurement says anything, each with its reason in figures."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile

from msgspec import UNSET

from clusters.events import FaultBegin, Provisioned, Replicated
from clusters.registry import Known
from plugin.counts import number_of
from plugin.evidence.events import Errored, Event, ScaleBegin, TrialBegin, TrialEnd, seen
from plugin.evidence.records import ProbeSecond
from plugin.judge.activity import Activity
from plugin.judge.analysis import Analysis, analysis, names_of
from plugin.judge.availability import LAG_US, endpoint, holes, late
from plugin.judge.clocks import unread
from plugin.judge.definitions import Answer, Conditions, NotRecorded, recorded, some
from plugin.judge.growth_conditions import GROWTH_CONDITIONS
from plugin.judge.machine import cpu_taken, crowded, disks_taken, joined, lasted_s, stretches
from plugin.judge.model import Condition
from plugin.judge.objects import OBJECTS_CONDITIONS
from plugin.judge.swapping_conditions import SWAPPING_CONDITIONS
from plugin.judge.throughput import within
from plugin.judge.trial import ROLLING, SECOND, Fault, HostSecond, TrialEvidence, Window, lasted
from plugin.workloads import WORKLOADS, activity_of

CROWDED_PART = 0.1
"""The share of crowded seconds up to which limits of time count (our own choice)."""

TAKEN_S = 10
"""Nor do they count where the machine was crowded for so long without a pause: as long as the shortest limit of an
outage, which that alone explains, however long the trial is (our own choice)."""


def condition(evidence: TrialEvidence, name: str) -> Condition:
    """Whether the evidence meets the condition. One that nobody knows is never met."""
    info = KNOWN_CONDITIONS.get(name)
    if info is None:
        known = ", ".join(KNOWN_CONDITIONS)
        return Condition(name=name, met=False, why=f"there is no condition of this name; known are {known}")
    try:
        met, why = info.check(analysis(evidence))
    except NotRecorded as missing:
        met, why = False, str(missing)
    return Condition(name=name, met=met, why=why)


def advice(name: str) -> str:
    """What to change when the condition is not met."""
    info = KNOWN_CONDITIONS.get(name)
    return info.advice if info else "correct its name in the catalogue"


_OWN = Conditions({**GROWTH_CONDITIONS, **SWAPPING_CONDITIONS, **OBJECTS_CONDITIONS})
requires = _OWN.declare


@requires("integrity", "run the claim again and leave its evidence as it was written")
def _integrity(a: Analysis) -> Answer:
    """The evidence is as it was recorded and free of contradictions."""
    left = [WORKLOADS[name] for name in a.evidence.workloads]
    problems = [*a.evidence.problems, *(problem for workload in left for problem in workload.contradictions(a))]
    if problems:
        return False, some(problems)
    return True, "all files are as they were sealed, no record is malformed or contradicts another"


@requires("no_errors", "see to the recorded error and run again")
def _no_errors(a: Analysis) -> Answer:
    """The harness recorded no error."""
    errors = [error.what for _, error in seen(a.evidence.events, Errored)]
    return not errors, some(errors) if errors else "the harness recorded no error"


def errors_by_the_end(events: Iterable[Event]) -> list[str]:
    """The errors that were recorded before the test had gathered all its evidence."""
    before = takewhile(lambda event: not isinstance(event.what, TrialEnd), events)
    return [error.what for _, error in seen([*before], Errored)]


@requires("clocks_read", "see why the substrate cannot read the clock of a node, and run again")
def _clocks_read(a: Analysis) -> Answer:
    """Every clock from which times of the evidence are could be read."""
    failed = [f"the clock of {source} could not be read: {why}" for source, why in unread(a.evidence.events).items()]
    return not failed, some(failed) if failed else "no clock of the evidence was left unread"


# ---- faults


def _faults(a: Analysis) -> tuple[Fault, ...]:
    return recorded(a.timeline.faults or None, "no fault was recorded")


def _activity(a: Analysis) -> Activity:
    return recorded(activity_of(a), "no load told what its clients did")


def _name(fault: Fault) -> str:
    return f"{fault.kind} of {', '.join(fault.nodes)}"


@requires("fault_bit", "use a fault that this substrate can prove")
def _fault_bit(a: Analysis) -> Answer:
    """Every fault is proven on every node it was aimed at."""
    faults = _faults(a)
    missing = [f"{f.kind} of {node}" for f in faults for node in f.nodes if node not in f.bit]
    missing += [f"{f.kind} of no node" for f in faults if not f.nodes]
    if missing:
        return False, f"not proven to have bitten: {some(missing)}"
    return True, f"proven on {', '.join(sorted(a.timeline.victims))}"


@requires("fault_hit", "aim the fault at a node that serves the load")
def _fault_hit(a: Analysis) -> Answer:
    """The victim held leases of the load's tables, and its writers lost a connection or a write there."""
    found = [(fault, *_hit(a, fault)) for fault in _faults(a)]
    # A change that goes over all nodes comes to some without clients: they left for the others. Half of those that
    # serve must be hit.
    serving = [met for fault, met, _ in found if fault.kind in ROLLING and _served(fault)]
    rolling = any(serving) and sum(serving) * 2 >= len(serving)
    for fault, met, why in found:
        if not met and not (rolling and fault.kind in ROLLING):
            return False, f"the fault did not hit what was measured: {why}"
    return True, some(why for _, met, why in found if met)


def _served(fault: Fault) -> bool:
    """Whether its nodes held leases, or clients of the load, just before."""
    return any(fault.leases.get(node, 0) + fault.connections.get(node, 0) for node in fault.nodes)


def _hit(a: Analysis, fault: Fault) -> Answer:
    held = sum(fault.leases.get(node, 0) for node in fault.nodes)
    clients = sum(fault.connections.get(node, 0) for node in fault.nodes)
    whole = a.timeline.whole_after(fault)
    until = a.timeline.end if whole is None else whole

    def between(times: Mapping[str, Iterable[int]]) -> int:
        return sum(fault.begin <= t <= until for node in fault.nodes for t in times.get(node, ()))

    cut, broken = between(_activity(a).cut), between(_activity(a).broken)
    why = (
        f"{_name(fault)}: {number_of(held, 'leases')} and {number_of(clients, 'connections')} held before; "
        f"{number_of(cut, 'connections')} of writers cut, "
        f"{number_of(broken, 'writes')} broken there"
    )
    if fault.leases and not held:
        return False, why
    return cut + broken > 0, why if fault.leases else f"{why} (leases are not reported)"


@requires("brought_back", "see in the log why a node was not started again, and run again")
def _brought_back(a: Analysis) -> Answer:
    """Every node that a fault took was brought back."""
    _faults(a)
    gone = [f"{node}, hit at {a.moment(t)}" for node, t in a.timeline.gone.items()]
    return not gone, some(gone) if gone else "every node that was hit was brought back"


@requires("writes_in_window", "hold the fault longer, or write faster")
def _writes_in_window(a: Analysis) -> Answer:
    """Writes were attempted while each fault lasted."""
    told = []
    for fault in _faults(a):
        begin, end = lasted(fault, a.timeline.end)
        sent = len(within(_activity(a).attempts, (begin + 1, end)))
        refused = len(within(_activity(a).refused, (begin + 1, end)))
        if not sent + refused:
            return False, f"{_name(fault)}: no write was attempted while it lasted"
        told.append(
            f"{_name(fault)}: {number_of(sent, 'writes')} sent while it lasted, "
            f"{number_of(refused, 'times')} no node took a writer"
        )
    return True, some(told)


@requires("recovered", "look in the log why the cluster did not get whole again, or allow it more time")
def _recovered(a: Analysis) -> Answer:
    """Recovery was declared after the last fault."""
    time = recorded(a.timeline.recovered, "no recovery was declared after the last fault")
    return True, f"all nodes live and fully replicated at {a.moment(time)}"


@requires("replicated_before", "wait for full replication before the fault")
def _replicated_before(a: Analysis) -> Answer:
    """Every range had all its replicas before the first fault."""
    time = recorded(a.timeline.reached.get(Replicated), "never seen with all replicas")
    first = a.timeline.faults[0].begin if a.timeline.faults else None
    if first is not None and time > first:
        return False, f"seen with all replicas at {a.moment(time)}, after the first fault at {a.moment(first)}"
    return True, f"every range had all its replicas at {a.moment(time)}"


# ---- the probe and the machine


def watched(a: Analysis) -> tuple[Window, Sequence[str], Sequence[ProbeSecond]]:
    """The window that the probe must watch, from the first write until writing ended; its routes, and its seconds.

    Raises ``NotRecorded`` without a probe, and where neither a fault nor a change of size was recorded.
    """
    header, lines = recorded(a.evidence.probe, "there was no probe")
    line, activity = a.timeline, activity_of(a)
    first = recorded(first_fault(a), "no fault was recorded, so there is no window to watch")
    begins = [*(fault.begin for fault in line.faults[:1]), *(line.baseline or ())[:1]]
    # A cluster may change its size before anybody writes: nobody has to watch that.
    begin = min([*begins, *(activity.attempts[:1] if activity else ())], default=first)
    end = line.writing_end if line.writing_end is not None else line.end
    return (begin, max(begin, end)), names_of(header.get("routes")), lines


def _before_probes(a: Analysis) -> bool:
    """Whether this is of a release in which no probe watched a cluster that changes its size."""
    begins = seen(a.evidence.events, TrialBegin)
    untold = bool(begins) and begins[0][1].probe is UNSET
    return untold and a.evidence.probe is None and not a.timeline.faults and ScaleBegin in a.timeline.reached


_BEFORE_PROBES = "the trial is of a release in which no probe watched a change of size"


@requires("probe_complete", "keep the probe running from before the first write until writing has ended; see its log")
def _probe_complete(a: Analysis) -> Answer:
    """The probe watched every route of every node from the first write until writing ended.

    That is, of every node there was at the beginning: those that join later are not asked.
    """
    if _before_probes(a):
        return True, _BEFORE_PROBES
    window, routes, lines = watched(a)
    fault = min((t for t in _faults_begin(a) if t >= window[0]), default=window[1])
    buckets = {route.rpartition("/")[2] for route in routes}
    reached = {name for line in lines if line.t <= fault for name, route in line.routes.items() if route.ok}
    problems = [*holes(lines, window, a.zero)]
    problems += [f"bucket {b} has no route" for b in range(a.evidence.buckets) if str(b) not in buckets]
    problems += [f"node {node} has no route" for node in _unwatched(a, routes)]
    problems += [
        f"route {route} had no success before the first fault or change of size"
        for route in routes
        if route not in reached
    ]
    if not routes:
        problems.append("the probe declares no routes")
    if problems:
        return False, some(problems)
    return (
        True,
        f"{number_of(len(routes), 'routes')} of {number_of(len(set(map(endpoint, routes))), 'endpoints')} "
        "watched without a hole",
    )


def _unwatched(a: Analysis, routes: Sequence[str]) -> list[str]:
    """The nodes that no route goes through.

    An endpoint with several nodes behind it asks one of them at a time: all that is needed where one at a time takes
    clients, and not enough where several had clients when a fault began.
    """
    nodes = [node for _, provisioned in seen(a.evidence.events, Provisioned) for node in provisioned.nodes]
    several = any(sum(map(bool, fault.connections.values())) > 1 for fault in a.timeline.faults)
    asked = {endpoint(route): [endpoint(route)] for route in routes}
    behind = a.evidence.probe[0].get("nodes") if a.evidence.probe else None
    if isinstance(behind, Mapping):
        asked = {name: [*names_of(behind.get(name))] for name in asked}
    elif not several and asked.keys().isdisjoint(nodes):  # an older probe, which does not say what its endpoints are
        return []
    found = {node for through in asked.values() for node in through if len(through) == 1 or not several}
    return [node for node in nodes if node not in found]


@requires("probe_on_time", "leave the machine less to do")
def _probe_on_time(a: Analysis) -> Answer:
    """The probe kept its own schedule all the time."""
    if _before_probes(a):
        return True, _BEFORE_PROBES
    window, _, lines = watched(a)
    count, worst = late(lines, window)
    why = f"largest lag {worst / 1e6:.2f} s, limit {LAG_US / 1e6:.1f} s"
    return not count, f"late in {number_of(count, 'seconds')}, {why}" if count else why


def first_fault(a: Analysis) -> int | None:
    """When the first fault, or change of the cluster's size, began."""
    return min(_faults_begin(a), default=None)


def host_seconds(a: Analysis) -> list[HostSecond]:
    """The seconds in which other work counts: from the first fault on, where it was recorded."""
    first = first_fault(a) or 0
    return [s for s in a.evidence.host if s.others is not None and s.t >= first]


def _faults_begin(a: Analysis) -> list[int]:
    """When each fault, and each change of the cluster's size, began."""
    return [event.t for event in a.evidence.events if isinstance(event.what, FaultBegin | ScaleBegin)]


@requires("machine_free", "run it again while nothing else uses the machine")
def _machine_free(a: Analysis) -> Answer:
    """Other work left the database the CPU and the disks it asked for."""
    return _free(a, host_seconds(a))


@requires("machine_free_before", "run it again while nothing else uses the machine")
def _machine_free_before(a: Analysis) -> Answer:
    """Other work left the database the CPU and the disks it asked for before the first fault, too."""
    first = first_fault(a)
    return _free(a, [s for s in a.evidence.host if s.others is not None and (first is None or s.t < first)])


def _free(a: Analysis, found: Sequence[HostSecond]) -> Answer:
    if a.evidence.host_problems:
        return False, f"the record of the machine cannot be relied on: {some(a.evidence.host_problems)}"
    if not found:
        return False, "nobody recorded how much CPU other work took"
    window = found[0].t - SECOND, found[-1].t
    busy, waiting, taken = ([*stretches(found, of, window)] for of in (cpu_taken, disks_taken, crowded))
    longest = max((lasted_s([one]) for one in joined(taken)), default=0.0)
    mean = f"other work took {sum(s.others or 0.0 for s in found) / len(found):.0f} % of the machine's CPU"
    cpu = f"{mean}, and in {lasted_s(busy):.0f} of {lasted_s([window]):.0f} s a tenth or more while none was left"
    disks = f"in {lasted_s(waiting):.0f} s everything waited for disks, a quarter or more of whose work was others'"
    if any(second.disk_others is None for second in filter(disks_taken, found)):
        disks += ", or nobody could see whose it was"
    return (
        lasted_s(taken) <= CROWDED_PART * lasted_s([window]) and longest < TAKEN_S,
        f"{cpu}{f'; {disks}' if waiting else ''}, for {longest:.0f} s at a stretch",
    )


KNOWN_CONDITIONS = Known(_OWN, lambda: (workload.conditions for workload in WORKLOADS.values()))
"""Every condition by name."""
