"""The evidence gate: conditions that must hold before a measurement says anything, each with its reason in figures."""

from collections.abc import Iterable, Mapping

from msgspec import UNSET, UnsetType

from clusters.events import FaultBegin, Replicated
from plugin.evidence.events import Errored, LedgerCreated, ResizeBegin, TrialBegin, seen
from plugin.judge.analysis import Analysis, analysis, routes_of
from plugin.judge.availability import LAG_US, endpoint, holes, late
from plugin.judge.clocks import unread
from plugin.judge.definitions import Answer, ConditionInfo, Known, some
from plugin.judge.findings import seconds
from plugin.judge.growth_metrics import GROWTH_CONDITIONS
from plugin.judge.model import Condition
from plugin.judge.throughput import FEWEST, FLOOR, UNSTEADY, percentile
from plugin.judge.trial import ROLLING, Fault, TrialEvidence, lasted
from plugin.workloads import WORKLOADS

GENERATOR_LAG_US = 250_000
"""The baseline's p99 of the generator's lag behind its own schedule must stay below this (our own choice)."""

GENERATOR_CPU_US = 900_000
"""… and its p99 of CPU time in a second below this: it is one thread, and a whole core would be its limit (our own
choice)."""

RANGES_A_NODE = 3
"""The ledger's table has at least so many ranges a node, so that every node serves some of it."""

END_TOLERANCE_US = 1_000_000
"""The last acknowledged write may come so much before the declared time is over: writers have a schedule."""


def condition(evidence: TrialEvidence, name: str) -> Condition:
    """Whether the evidence meets the condition. One that nobody knows is never met."""
    info = KNOWN_CONDITIONS.get(name)
    if info is None:
        known = ", ".join(KNOWN_CONDITIONS)
        return Condition(name=name, met=False, why=f"there is no condition of this name; known are {known}")
    met, why = info.check(analysis(evidence))
    return Condition(name=name, met=met, why=why)


def advice(name: str) -> str:
    """What to change when the condition is not met."""
    info = KNOWN_CONDITIONS.get(name)
    return info.advice if info else "correct its name in the catalogue"


def _integrity(a: Analysis) -> Answer:
    problems = [*a.evidence.problems, *(a.audit.problems if a.audit else ())]
    if problems:
        return False, some(problems)
    return True, "all files are as they were sealed, no record is malformed or contradicts another"


def _no_errors(a: Analysis) -> Answer:
    errors = [error.what for _, error in seen(a.evidence.events, Errored)]
    return not errors, some(errors) if errors else "the harness recorded no error"


def _clocks_read(a: Analysis) -> Answer:
    failed = [f"the clock of {source} could not be read: {why}" for source, why in unread(a.evidence.events).items()]
    return not failed, some(failed) if failed else "no clock of the evidence was left unread"


def _history_complete(a: Analysis) -> Answer:
    if a.audit is None:
        return False, "the trial has no ledger history"
    if a.audit.problems:
        return False, some(a.audit.problems)
    if not a.audit.ended:
        return False, "the history has no end: its writer died or was cut off"
    count = sum(kind.attempted for kind in a.audit.operations.values())
    return count > 0, f"{count} operations, from the first to the end" if count else "the history is empty"


def _audit_complete(a: Analysis) -> Answer:
    if a.audit is None or a.evidence.final is None:
        return False, "there was no final read"
    if a.audit.unread or a.audit.count("unknown"):
        missing = ", ".join(map(str, a.audit.unread[:10]))
        return (
            False,
            f"buckets never read: {missing or 'none'}; {a.audit.count('unknown')} acknowledged rows in them",
        )
    if not a.audit.read and not a.audit.unreadable:
        return False, "no bucket was read"
    given_up = f", {len(a.audit.unreadable)} declared unreadable" if a.audit.unreadable else ""
    return True, f"{len(a.audit.read)} of {a.evidence.buckets} buckets read to their end{given_up}"


def _fault_bit(a: Analysis) -> Answer:
    faults = a.timeline.faults
    if not faults:
        return False, "no fault was recorded"
    missing = [f"{f.kind} of {node}" for f in faults for node in f.nodes if node not in f.bit]
    missing += [f"{f.kind} of no node" for f in faults if not f.nodes]
    if missing:
        return False, f"not proven to have bitten: {some(missing)}"
    return True, f"proven on {', '.join(sorted(a.timeline.victims))}"


def _fault_hit(a: Analysis) -> Answer:
    if not a.timeline.faults:
        return False, "no fault was recorded"
    if a.activity is None:
        return False, "the trial has no ledger history"
    found = [(fault, *_hit(a, fault)) for fault in a.timeline.faults]
    # A change that goes over all nodes comes to some without clients: they left for the others. Half of those that
    # serve must be hit.
    serving = [met for fault, met, _ in found if fault.kind in ROLLING and _served(fault)]
    rolling = any(serving) and sum(serving) * 2 >= len(serving)
    for fault, met, why in found:
        if not met and not (rolling and fault.kind in ROLLING):
            return False, f"the fault did not hit what was measured: {why}"
    return True, some(why for _, met, why in found if met)


def _served(fault: Fault) -> bool:
    """Whether its nodes held leases, or clients of the ledger, just before."""
    return any(fault.leases.get(node, 0) + fault.connections.get(node, 0) for node in fault.nodes)


def _hit(a: Analysis, fault: Fault) -> Answer:
    name = f"{fault.kind} of {', '.join(fault.nodes)}"
    held = sum(fault.leases.get(node, 0) for node in fault.nodes)
    assert a.activity is not None
    done = fault.undone if fault.undone is not None else fault.begin
    until = next((time for time in a.timeline.recoveries if time >= done), a.timeline.end)

    def between(times: Mapping[str, Iterable[int]]) -> int:
        return sum(fault.begin <= t <= until for node in fault.nodes for t in times.get(node, ()))

    cut, broken = between(a.activity.cut), between(a.activity.broken)
    clients = sum(fault.connections.get(node, 0) for node in fault.nodes)
    why = (
        f"{name}: {held} leases and {clients} connections held before; {cut} connections of writers cut, "
        f"{broken} writes broken there"
    )
    if fault.leases and not held:
        return False, why
    if not fault.leases:
        why += " (leases are not reported)"
    return cut + broken > 0, why


def _recovered(a: Analysis) -> Answer:
    time = a.timeline.recovered
    if time is None:
        return False, "no recovery was declared after the last fault"
    return True, f"all nodes live and fully replicated at {seconds(time)}"


def _replicated_before(a: Analysis) -> Answer:
    time = a.timeline.reached.get(Replicated)
    first = a.timeline.faults[0].begin if a.timeline.faults else None
    if time is None:
        return False, "never seen with all replicas"
    if first is not None and time > first:
        return False, f"seen with all replicas at {seconds(time)}, after the first fault at {seconds(first)}"
    return True, f"every range had all its replicas at {seconds(time)}"


def _spread_before(a: Analysis) -> Answer:
    created = [event for _, event in seen(a.evidence.events, LedgerCreated)]
    if not created:
        return False, "the ledger's ranges were not recorded"
    if not created[-1].reports_ranges:
        return True, "this engine has no ranges to report"
    leases, ranges = created[-1].leases, created[-1].ranges
    declared = a.evidence.context.get("nodes", "")
    nodes = max(len(leases), int(declared) if declared.isdigit() else 0)
    bare = [node for node, count in leases.items() if not count]
    why = f"{ranges} ranges on {nodes} nodes, leases {', '.join(f'{n}: {c}' for n, c in leases.items()) or 'none'}"
    return nodes > 0 and not bare and len(leases) == nodes and ranges >= RANGES_A_NODE * nodes, why


def _probe_complete(a: Analysis) -> Answer:
    window = a.timeline.disturbed
    if a.evidence.probe is None:
        return False, "there was no probe"
    if window is None:
        return False, "no fault was recorded, so there is no window to watch"
    header, lines = a.evidence.probe
    problems = list(holes(lines, window))
    routes = routes_of(header.get("routes"))
    buckets = {route.rpartition("/")[2] for route in routes}
    missing = [f"bucket {b} has no route" for b in range(a.evidence.buckets) if str(b) not in buckets]
    reached = {name for line in lines if line.t <= window[0] for name, route in line.routes.items() if route.ok}
    missing += [f"route {route} had no success before the first fault" for route in routes if route not in reached]
    if not routes:
        missing.append("the probe declares no routes")
    if problems or missing:
        return False, some([*problems, *missing])
    return True, f"{len(routes)} routes of {len(set(map(endpoint, routes)))} endpoints watched without a hole"


def _probe_on_time(a: Analysis) -> Answer:
    window = a.timeline.disturbed
    if a.evidence.probe is None or window is None:
        return False, "there was no probe" if a.evidence.probe is None else "no fault was recorded"
    count, worst = late(a.evidence.probe[1], window)
    why = f"largest lag {worst / 1e6:.2f} s, limit {LAG_US / 1e6:.1f} s"
    return not count, f"late in {count} seconds, {why}" if count else why


def _written_past_recovery(a: Analysis) -> Answer:
    events = a.evidence.events
    told = [created.past_recovery_s for _, created in seen(events, LedgerCreated)]
    told += [begin.past_recovery_s for _, begin in seen(events, TrialBegin)]
    declared = next((limit for limit in told if limit is not UNSET), UNSET)
    if a.activity is None:
        return False, "the trial has no ledger history"
    if a.timeline.recovered is None:
        return False, "no recovery was declared"
    if isinstance(declared, UnsetType):
        return False, "how long to write past recovery was not declared (past_recovery_s of ledger.created)"
    last = max(a.activity.acknowledged, default=0)
    past = (last - a.timeline.recovered) / 1e6
    why = f"last acknowledged write {past:.1f} s after recovery, {declared:g} s declared"
    return past > 0 and past >= declared - END_TOLERANCE_US / 1e6, why


def _writes_in_window(a: Analysis) -> Answer:
    if not a.timeline.faults:
        return False, "no fault was recorded"
    if a.activity is None:
        return False, "the trial has no ledger history"
    told = []
    for fault in a.timeline.faults:
        begin, end = lasted(fault, a.timeline.end)
        sent = sum(begin < t < end for t in a.activity.attempts)
        refused = sum(begin < t < end for t in a.activity.refused)
        name = f"{fault.kind} of {', '.join(fault.nodes)}"
        if not sent + refused:
            return False, f"{name}: no write was attempted while it lasted"
        told.append(f"{name}: {sent} writes sent while it lasted, {refused} times no node took a writer")
    return True, some(told)


def _generator_on_schedule(a: Analysis) -> Answer:
    window = a.timeline.baseline
    if a.activity is None or window is None:
        return False, "there is no ledger history" if a.activity is None else "there was no baseline"
    recorded = [second for second in a.activity.generator if window[0] <= second.t <= window[1]]
    asked = int((window[1] - window[0]) / 1e6) - 1
    p99 = percentile(sorted(second.lag_us for second in recorded), 0.99)
    busy = percentile(sorted(second.cpu_us for second in recorded), 0.99)
    if p99 is None or busy is None or len(recorded) < asked:
        return False, f"the generator recorded {len(recorded)} s of the baseline, at least {asked} asked"
    why = (
        f"p99 of {len(recorded)} s: lag {p99 / 1e3:.0f} ms (limit {GENERATOR_LAG_US / 1e3:.0f} ms), "
        f"CPU {busy / 1e4:.0f} % of a core (limit {GENERATOR_CPU_US / 1e4:.0f} %)"
    )
    return p99 < GENERATOR_LAG_US and busy < GENERATOR_CPU_US, why


def _baseline_steady(a: Analysis) -> Answer:
    normal = a.baseline
    if normal is None:
        return False, "nothing was acknowledged in a baseline"
    why = (
        f"{len(normal.counts)} buckets of {normal.width_s} s (at least {FEWEST} asked), median {normal.median:g} operations, "
        f"{normal.below:.1%} of them below {FLOOR:.0%} of it (limit {UNSTEADY:.0%})"
    )
    return normal.obeys, why


CROWDED_CPU, CROWDED_OTHERS, CROWDED_PART = 90.0, 10.0, 0.1
"""A second is crowded in which the machine's CPU was in use to so many percent, so many of them by other work; and such
a part of the seconds may be, for limits of time to count (our own choices)."""


def _machine_free(a: Analysis) -> Answer:
    first = [t for kind in (FaultBegin, ResizeBegin) if (t := a.timeline.reached.get(kind)) is not None]
    seconds = [s for s in a.evidence.host if s.others is not None and s.t >= min(first, default=0)]
    if not seconds:
        return False, "nobody recorded how much CPU other work took"
    crowded = sum(s.cpu >= CROWDED_CPU and (s.others or 0.0) >= CROWDED_OTHERS for s in seconds)
    mean = sum(s.others or 0.0 for s in seconds) / len(seconds)
    why = f"other work took {mean:.0f} % of the machine's CPU, and in {crowded} of {len(seconds)} s a tenth or more while none was left"
    return crowded <= CROWDED_PART * len(seconds), why


_LONGER = "lengthen the baseline or leave the machine less to do"

_OWN: Mapping[str, ConditionInfo] = {
    **{name: ConditionInfo(check=check, description=description, advice=advice)
    for name, check, description, advice in (
        ("integrity", _integrity, "the evidence is as it was recorded and free of contradictions",
         "run the claim again and leave its evidence as it was written"),
        ("no_errors", _no_errors, "the harness recorded no error", "see to the recorded error and run again"),
        ("clocks_read", _clocks_read, "every clock from which times of the evidence are could be read",
         "see why the substrate cannot read the clock of a node, and run again"),
        ("history_complete", _history_complete, "the history goes from the first operation to its end",
         "find out in the log why the ledger's writer ended early, and run again"),
        ("audit_complete", _audit_complete, "every bucket was read at the end or declared unreadable",
         "let the audit finish: more time for the final read"),
        ("fault_bit", _fault_bit, "every fault is proven on every node it was aimed at",
         "use a fault that this substrate can prove"),
        ("fault_hit", _fault_hit, "the victim held leases of the ledger and its writers lost a connection or a write there",
         "aim the fault at a node that serves the ledger"),
        ("recovered", _recovered, "recovery was declared after the last fault",
         "look in the log why the cluster did not get whole again, or allow it more time"),
        ("replicated_before", _replicated_before, "every range had all its replicas before the first fault",
         "wait for full replication before the fault"),
        ("spread_before", _spread_before, f"at least {RANGES_A_NODE} ranges a node and leases on every node before the fault",
         "give the ledger more buckets, or wait until its leases are spread"),
        ("probe_complete", _probe_complete, "the probe watched every route through the whole window",
         "keep the probe running from before the fault until after recovery; see its log"),
        ("probe_on_time", _probe_on_time, "the probe kept its own schedule", "leave the machine less to do"),
        ("written_past_recovery", _written_past_recovery, "writes went on past recovery for the declared time",
         "let the ledger write past recovery"),
        ("writes_in_window", _writes_in_window, "writes were attempted while each fault lasted",
         "hold the fault longer, or write faster"),
        ("generator_on_schedule", _generator_on_schedule, "the load generator kept its schedule in the baseline",
         "lower the rate, or leave the machine less to do"),
        ("machine_free", _machine_free, "other work left the database the CPU it asked for",
         "run it again while nothing else uses the machine"),
        ("baseline_steady", _baseline_steady, "the baseline obeys the throughput rule against itself", _LONGER),
    )},
    **GROWTH_CONDITIONS,
}  # fmt: skip

KNOWN_CONDITIONS = Known(_OWN, lambda: (workload.conditions for workload in WORKLOADS.values()))
"""Every condition by name."""
