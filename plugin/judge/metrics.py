"""What the judge can measure in a trial's evidence, by name."""

from collections.abc import Mapping
from functools import partial

from clusters.events import NodeDeath
from plugin.evidence.events import NotRecovered, seen
from plugin.judge import latency, throughput
from plugin.judge.analysis import Analysis, analysis
from plugin.judge.availability import Gap
from plugin.judge.definitions import Known, Measured, MetricInfo, nothing
from plugin.judge.findings import CATEGORIES, seconds
from plugin.judge.growth_metrics import GROWTH_METRICS
from plugin.judge.model import Measurement
from plugin.judge.resizing import RESIZING_METRICS
from plugin.judge.trial import ROLLING, Fault, TrialEvidence, lasted
from plugin.workloads import WORKLOADS

SAFETY = tuple(name for name in CATEGORIES if name != "unknown")
"""The metrics whose violation refutes a claim even where the rest of the evidence is poor: a lost row is lost."""


def measure(evidence: TrialEvidence, metric: str) -> Measurement:
    """The metric's value in this evidence: measured by the judge, or else recorded under its name by the test.

    A metric that is neither has no value, and the note says so.
    """
    info = KNOWN_METRICS.get(metric)
    if info is not None:
        value, note, examples = info.measure(analysis(evidence))
        return Measurement(metric=metric, value=value, unit=info.unit, note=note, examples=examples)
    recorded = [measurement for measurement in evidence.measurements if measurement.metric == metric]
    if len(recorded) > 1:
        values = ", ".join(f"{measurement.value:g}" for measurement in recorded if measurement.value is not None)
        return Measurement(metric=metric, value=None, note=f"recorded {len(recorded)} times ({values}); record it once")
    if recorded:
        return recorded[0]
    return Measurement(metric=metric, value=None, note="the test recorded nothing under this name")


NO_LEDGER = "the trial has no ledger history"
NO_FAULT = "no fault was recorded"


def _found(category: str, a: Analysis) -> Measured:
    if a.audit is None:
        return nothing(NO_LEDGER)
    finding = a.audit.findings[category]
    if category not in ("stale", "phantom", "altered", "torn") and a.evidence.final is None:
        return nothing("there was no final read")
    return finding.count, "", finding.examples


def _rows_missing(a: Analysis) -> Measured:
    if a.audit is None or a.audit.counted is None:
        return nothing(NO_LEDGER if a.audit is None else "the rows were never counted")
    (least, most), counted = a.audit.expected, a.audit.counted
    expected = f"{least}" if least == most else f"{least} to {most}"
    return max(0, least - counted, counted - most), f"{counted} rows counted, {expected} expected", ()


def _rows_counted(a: Analysis) -> Measured:
    if a.audit is None or a.audit.counted is None:
        return nothing(NO_LEDGER if a.audit is None else "the rows were never counted")
    return a.audit.counted, "SELECT count(*) at the end", ()


def _sampled_row_mismatch(a: Analysis) -> Measured:
    if a.audit is None or not a.audit.sampled:
        return nothing(NO_LEDGER if a.audit is None else "no row was sampled")
    return a.audit.mismatched.count, f"{a.audit.sampled} sampled", a.audit.mismatched.examples


def _acknowledged(a: Analysis) -> Measured:
    return (a.audit.acknowledged, "inserted rows", ()) if a.audit else nothing(NO_LEDGER)


def _indeterminate(a: Analysis) -> Measured:
    return (a.audit.indeterminate, "writes", ()) if a.audit else nothing(NO_LEDGER)


def _inserts_shortfall(a: Analysis) -> Measured:
    declared = a.evidence.parameters.get("inserts", "")
    if a.audit is None or not declared.isdigit():
        return nothing(NO_LEDGER if a.audit is None else f"the trial declares no number of inserts ({declared!r})")
    done = a.audit.acknowledged
    return max(0, int(declared) - done), f"{done} acknowledged, {declared} declared", ()


def _gap(pick: str, a: Analysis) -> Measured:
    if a.availability is None:
        return nothing("there was no probe" if a.evidence.probe is None else NO_FAULT)
    gap: Gap | None = getattr(a.availability, pick)
    if gap is None:
        return nothing(
            "no probed endpoint is a hit node's own"
            if pick == "victims"
            else "no probed endpoint outside the hit nodes"
        )
    where = f"{gap.route}, " if gap.route else ""
    note = f"{where}{seconds(gap.begin)} to {seconds(gap.end)}"
    return (
        gap.seconds,
        note if a.timeline.recovered is not None else f"{note}; recovery was never declared",
        (),
    )


def _degraded(a: Analysis) -> Measured:
    window, found, normal = a.timeline.disturbed, a.disturbed_buckets, a.baseline
    if window is None or found is None or normal is None:
        return nothing(NO_FAULT if window is None else "there is no baseline to compare with")
    value = throughput.degraded_s(found, window)
    low = sum(bucket.degraded for bucket in found)
    return (
        value,
        f"{low} of {len(found)} buckets of {normal.width_s} s below 80 % of {normal.median:g} writes a bucket",
        (),
    )


def _kept(a: Analysis) -> Measured:
    window, found, normal = a.timeline.disturbed, a.disturbed_buckets, a.baseline
    if window is None or found is None or normal is None:
        return nothing(NO_FAULT if window is None else "there is no baseline to compare with")
    gaps = [
        (seen.worst.begin, seen.worst.end)
        for one, seen in zip(a.timeline.disturbances, a.outages, strict=False)
        if one.kind in ROLLING and seen.worst
    ]
    judged = throughput.outside(found, gaps)
    low = sum(bucket.degraded for bucket in judged)
    note = f"{len(judged) - low} of {len(judged)} buckets of {normal.width_s} s at 80 % of {normal.median:g} writes a bucket or more"
    if gaps:
        note += f"; {len(found) - len(judged)} with the longest gap of a restart do not count"
    return throughput.share_obeying(judged), note, ()


def _throughput(phase: str, a: Analysis) -> Measured:
    window = a.phase(phase)
    if a.activity is None or a.baseline is None or window is None:
        return nothing(NO_LEDGER if a.activity is None else f"the phase {phase} was not recorded")
    return (
        throughput.rate(a.activity.acknowledged, window, a.baseline.width_s),
        f"acknowledged writes {phase}",
        (),
    )


def _latency(share: float, phase: str, a: Analysis) -> Measured:
    window = a.phase(phase)
    if window is None:
        return nothing(f"the phase {phase} was not recorded")
    if a.evidence.probe is not None and (histogram := latency.merged(a.evidence.probe[1], window, a.timeline.victims)):
        value = histogram.get_value_at_percentile(100 * share)
        return value / 1e3, f"of {histogram.get_total_count()} probes {phase}, from when each was due", ()
    if a.activity is None:
        return nothing(NO_LEDGER)
    ordered = throughput.latencies(a.activity.sent, a.activity.acknowledged, window)
    value = throughput.percentile(ordered, share)
    if value is None:
        return nothing(f"no write sent {phase} was acknowledged")
    return value / 1e3, f"of {len(ordered)} acknowledged writes sent {phase}, from when each was sent", ()


def _recovery(a: Analysis) -> Measured:
    undo = [fault.undo for fault in a.timeline.faults if fault.undo is not None]
    if not undo or a.timeline.recovered is None:
        return nothing("no fault was undone" if not undo else "recovery was never declared")
    return (a.timeline.recovered - max(undo)) / 1e6, "from the begin of the last undoing to recovery", ()


def _unrecovered(a: Analysis) -> Measured:
    if not a.timeline.faults:
        return nothing(NO_FAULT)
    late = seen(a.evidence.events, NotRecovered)
    if late:
        last = late[-1][1]
        return 1, f"not whole {last.limit_s} s after the fault was undone: {last.why}", ()
    return (0, "", ()) if a.timeline.recovered is not None else nothing("nobody waited for recovery")


def _repair(a: Analysis) -> Measured:
    if not a.timeline.faults or a.timeline.recovered is None:
        return nothing(NO_FAULT if not a.timeline.faults else "recovery was never declared")
    return (a.timeline.recovered - a.timeline.faults[0].begin) / 1e6, "from the first fault to recovery", ()


def _without_quorum(a: Analysis) -> Measured:
    blocking = [fault for fault in a.timeline.faults if fault.blocks]
    if a.activity is None or not blocking:
        return nothing(NO_LEDGER if a.activity is None else "no fault took a majority")
    wrong: list[str] = []
    for fault in blocking:
        if set(fault.nodes) - set(fault.bit):
            return nothing(f"{fault.kind} is not proven on all of {', '.join(fault.nodes)}")
        wrong += _acknowledged_during(a, fault)
    return (
        len(wrong),
        "writes sent after the majority was gone and acknowledged before it came back",
        tuple(wrong[:5]),
    )


def _acknowledged_during(a: Analysis, fault: Fault) -> list[str]:
    assert a.activity is not None
    begin, end = lasted(fault, a.timeline.end)
    return [
        f"a write sent at {seconds(sent)} was acknowledged at {seconds(done)}"
        for sent, done in zip(a.activity.sent, a.activity.acknowledged, strict=True)
        if sent > begin and done < end
    ]


def _resumed(a: Analysis) -> Measured:
    undone = a.timeline.undone
    if a.activity is None or undone is None:
        return nothing(NO_LEDGER if a.activity is None else "no fault was undone")
    first = min((t for t in a.activity.acknowledged if t >= undone), default=None)
    if first is None:
        return nothing("nothing was acknowledged after the fault was undone")
    return (first - undone) / 1e6, "from the last fault undone to the first acknowledged write", ()


def _unresumed(a: Analysis) -> Measured:
    undone, stopped = a.timeline.undone, a.timeline.writing_end
    if a.activity is None or undone is None or stopped is None:
        return nothing(
            NO_LEDGER if a.activity is None else "no fault was undone" if undone is None else "writing has no end"
        )
    since = sum(time >= undone for time in a.activity.acknowledged)
    return (
        int(not since),
        f"{since} writes acknowledged in the {(stopped - undone) / 1e6:.0f} s from the last fault undone",
        (),
    )


def _nodes_died(a: Analysis) -> Measured:
    if not a.evidence.events:
        return nothing("nothing was recorded")
    died = seen(a.evidence.events, NodeDeath)
    return (
        len(died),
        "",
        tuple(f"{event.node} ended by itself at {seconds(t)}, exit code {event.code}" for t, event in died[:5]),
    )


_RECORDS = ("integrity", "history_complete")
_AUDIT = (*_RECORDS, "audit_complete")
_PROBE = ("fault_bit", "fault_hit", "recovered", "probe_complete", "probe_on_time")
_RATE = (*_RECORDS, "generator_on_schedule")
_DURING = (*_RATE, "fault_bit", "fault_hit", "recovered")
_PHASES: Mapping[str, tuple[str, ...]] = {"before": _RATE, "during": _DURING, "after": _DURING}

_OWN: Mapping[str, MetricInfo] = {
    **{
        name: MetricInfo(unit="rows", description=CATEGORIES[name], needs=_AUDIT, measure=partial(_found, name), safety=True)
        for name in SAFETY
    },
    "rows_missing": MetricInfo(
        unit="rows", needs=_AUDIT, measure=_rows_missing,
        description="how far SELECT count(*) is outside what the history allows"),
    "rows_counted": MetricInfo(
        unit="rows", needs=_AUDIT, measure=_rows_counted, description="what SELECT count(*) said at the end"),
    "sampled_row_mismatch": MetricInfo(
        unit="rows", needs=_AUDIT, measure=_sampled_row_mismatch,
        description="rows looked up at random by their key that are not as written"),
    "acknowledged": MetricInfo(
        unit="rows", needs=_RECORDS, measure=_acknowledged, description="acknowledged inserted rows"),
    "inserts_shortfall": MetricInfo(
        unit="rows", needs=_RECORDS, measure=_inserts_shortfall,
        description="declared inserts that were not acknowledged"),
    "indeterminate": MetricInfo(
        unit="writes", needs=_RECORDS, measure=_indeterminate,
        description="writes of which nobody knows whether they happened"),
    "gap_s": MetricInfo(
        unit="s", needs=_PROBE, measure=partial(_gap, "worst"),
        description="longest stretch without a success of any range at any gateway that was not hit itself"),
    "gap_overall_s": MetricInfo(
        unit="s", needs=_PROBE, measure=partial(_gap, "overall"),
        description="longest stretch without any success anywhere"),
    "victim_gap_s": MetricInfo(
        unit="s", needs=_PROBE, measure=partial(_gap, "victims"),
        description="longest stretch without a success of the hit nodes' own clients"),
    "throughput_buckets_kept": MetricInfo(
        unit="", timed=True, needs=(*_DURING, "baseline_steady"), measure=_kept,
        description="share of buckets at 80 % of the baseline's throughput or more, from the first fault to recovery"),
    "degraded_s": MetricInfo(
        unit="s", timed=True, needs=(*_DURING, "baseline_steady"), measure=_degraded,
        description="time below 80 % of the baseline's throughput, from the first fault to recovery"),
    **{
        f"throughput_{phase}": MetricInfo(
            unit="ops/s", needs=needs, measure=partial(_throughput, phase),
            description=f"acknowledged writes a second, median of the buckets {phase} the disturbance")
        for phase, needs in _PHASES.items()
    },
    **{
        f"latency_{name}_{phase}_ms": MetricInfo(
            unit="ms", needs=needs, measure=partial(_latency, share, phase),
            description=f"{name} latency {phase} the disturbance at endpoints that were not hit, counted from when an operation was due")
        for name, share in (("p50", 0.50), ("p99", 0.99))
        for phase, needs in _PHASES.items()
    },
    "unrecovered": MetricInfo(
        unit="", timed=True, needs=("integrity", "fault_bit"), measure=_unrecovered,
        description="1 when the cluster was not whole again within the profile's recovery limit", safety=True),
    "recovery_s": MetricInfo(
        unit="s", needs=("integrity", "fault_bit", "recovered"), measure=_recovery,
        description="from the begin of the last undoing to declared recovery"),
    "repair_s": MetricInfo(
        unit="s", needs=("integrity", "fault_bit", "recovered"), measure=_repair,
        description="from the first fault action to declared recovery"),
    "acknowledged_without_quorum": MetricInfo(
        unit="writes", needs=(*_RECORDS, "fault_bit", "writes_in_window"), measure=_without_quorum,
        description="writes sent after a majority was gone and acknowledged before it came back", safety=True),
    "unresumed": MetricInfo(
        unit="", needs=(*_RECORDS, "fault_bit"), measure=_unresumed, safety=True,
        description="1 when nothing at all was acknowledged any more after the last fault was undone"),
    "nodes_died": MetricInfo(
        unit="nodes", needs=("integrity",), measure=_nodes_died, safety=True,
        description="nodes that ended by themselves"),
    "resumed_s": MetricInfo(
        unit="s", needs=(*_RECORDS, "fault_bit"), measure=_resumed,
        description="from the last fault undone to the first acknowledged write"),
    **GROWTH_METRICS,
    **RESIZING_METRICS,
}  # fmt: skip

KNOWN_METRICS = Known(_OWN, lambda: (workload.metrics for workload in WORKLOADS.values()))
"""Every metric that the judge measures itself, by name. Any other name is one that a test records."""
