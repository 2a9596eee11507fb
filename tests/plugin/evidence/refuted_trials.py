"""Trials on disk as runs leave them, each refuted by one thing alone: without it, it passes."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from msgspec.structs import replace as changed

from fixtures.workloads.ledger.records import (
    FINAL,
    FINAL_HEADER,
    HISTORY,
    HISTORY_HEADER,
    READS_BACK,
    Connection,
    FinalLine,
    HistoryLine,
    Invoke,
    Ok,
    Op,
    Unknown,
    final_line,
    history_line,
    numbers,
)
from fixtures.workloads.tenants import introspection, provisioning, schema_change
from fixtures.workloads.tpcc.evidence import INCONSISTENT, TpccEnd, TpccRun, TypeSecond, tpcc_line
from plugin.catalogue import load as load_catalogue
from plugin.evidence.events import Event
from plugin.evidence.layout import LAYOUT, layout_line
from plugin.evidence.load import HOST, PROBE
from plugin.evidence.records import SCHEMA, event_line, probe_header, probe_line
from plugin.evidence.store import EVENTS, TRIAL_FILE, trial_end
from plugin.evidence.trailer import add_trailer
from plugin.judge.trial import HostSecond, TrialEvidence
from plugin.replay import conclude
from tests.fixtures.workloads.tenants.simulated_tenants import Size, asked, written
from tests.fixtures.workloads.tenants.simulated_tenants import changed as schema_changed
from tests.fixtures.workloads.tenants.simulated_tenants import made as tenants_made
from tests.fixtures.workloads.tenants.simulation import Played, simulate
from tests.fixtures.workloads.tpcc.judge.runs import HOLDS, checked, histogram, load, pairs, ramp
from tests.fixtures.workloads.tpcc.judge.runs import begin as begin_run
from tests.plugin.judge.histories import SECOND, SEED, event, events, probe
from tests.plugin.judge.test_growth import phase
from tests.plugin.judge.test_resizing import ASKED
from tests.plugin.judge.test_resizing import step as resized
from tests.plugin.judge.test_swapping import swapped
from tests.plugin.judge.whole_trial import history, last_read, seen
from tests.plugin.recorded import recorded

CATALOGUE = load_catalogue()
LOST = 17
"""The acknowledged row that the final read lacks."""
LAST = 20_000
"""A row that is written beside the others."""
EQUAL = {"3 nodes": 97.0, "6 nodes": 97.0, "3 nodes (A/A)": 97.0}
"""The efficiency of sides that are equally fast."""


def _write(
    directory: Path,
    claim_id: str,
    profile: str,
    files: Mapping[str, Iterable[str]],
    told: Sequence[Event],
    **described: object,
) -> None:
    """Store a trial of these files, sealed and judged, each with its trailer; that of the events is the trial's end."""
    claim = CATALOGUE.claims[claim_id]
    about = {
        "schema": SCHEMA, "claim": claim_id, "parameters": {}, "profile": profile, "seed": SEED, "sabotage": False,
        "context": {"engine": "cockroach", "nodes": "3"}, "checks": [], "needs": [*claim.needs], "tuned": [],
        "origin_ns": 1, "began_ms": 1, "test": f"tests/claims/test_{claim_id}.py::test_it", **described,
    }  # fmt: skip
    (directory / TRIAL_FILE).write_text(json.dumps(about, indent=1))
    for name, text in files.items():
        (directory / name).write_text("".join(text))
        add_trailer(directory / name)
    before = [event_line(event) for event in told[:-1]]
    end_of_trial = Event(told[-1].t, trial_end(directory, (line.encode() for line in before)))
    (directory / EVENTS).write_text("".join([*before, event_line(end_of_trial)]))
    conclude(directory, CATALOGUE)


def _ledger(
    lines: Sequence[HistoryLine],
    final: Iterable[FinalLine],
    *,
    watched: Callable[[str, int], bool] | None = seen,
    until: int = 31,
    cpu: float = 92.0,
) -> dict[str, Iterable[str]]:
    """The files of a trial in which a ledger was written; ``watched`` is what the probe saw, ``until`` that second."""
    files: dict[str, Iterable[str]] = {
        HISTORY: [HISTORY_HEADER + "\n", *map(history_line, lines)],
        FINAL: [FINAL_HEADER + "\n", *map(final_line, final)],
        HOST: _host(HostSecond(t=second * SECOND, cpu=cpu, others=1.0) for second in range(1, until)),
    }
    if watched:
        header, seconds = probe(watched, until=until)
        files[PROBE] = [probe_header(header["interval_us"], header["routes"]), *map(probe_line, seconds)]
    return files


def _host(seconds: Iterable[HostSecond]) -> list[str]:
    return [
        json.dumps({"t": s.t, "cpu_percent": s.cpu, "others_percent": s.others, "load_1m": 1.0}) + "\n" for s in seconds
    ]


def lost_row(directory: Path, *, refuted: bool = True) -> None:
    """An acknowledged row is missing at the end."""
    lines = history()
    files = _ledger(lines, last_read(lines, without=(LOST,) if refuted else ()))
    _write(directory, "survivability", "laptop", files, events(), parameters={"inserts": "2000"}, buckets=3)


def open_gap(directory: Path, *, refuted: bool = True) -> None:
    """A range has no success any more from some time after recovery on, until the probe ends."""
    lines = history()
    files = _ledger(
        lines, last_read(lines), watched=lambda r, t: seen(r, t) and (r != "n2/1" or t <= 203 or not refuted)
    )
    _write(directory, "survivability", "laptop", files, events(), parameters={"inserts": "2000"}, buckets=3)


def no_quorum(directory: Path, *, refuted: bool = True) -> None:
    """One write is acknowledged while no majority lives."""
    *written, end = history(quiet=range(12, 16))
    sent = Invoke(13 * SECOND, 10**9, "w2", "n2", Op.INSERT, numbers([LAST]), 1)
    answer = Ok(14 * SECOND, 10**9, numbers()) if refuted else Unknown(14 * SECOND, 10**9, "timeout")
    lines = [*sorted([*written, sent, answer], key=lambda line: line.t), end]
    told = events(fault_begin={"blocks": True})
    files = _ledger(lines, last_read(lines), watched=lambda r, t: t < 120 or t >= 160)
    _write(directory, "survivability-quorum", "laptop", files, told, parameters={"inserts": "2000"}, buckets=3)


def unavailable_ranges(directory: Path, *, refuted: bool = True) -> None:
    """When the servers last told of it, ranges were unavailable."""
    lines, six = history(until=60), [f"n{number}" for number in range(1, 7)]
    told = [
        event(0, "trial.begin", probe=True), event(0.1, "provisioned", nodes=six[:3]), event(0.2, "replicated"),
        event(1, "baseline.begin"), event(9, "baseline.end"),
        event(10, "scale.begin", kind="out", nodes=six, quiet_s=20, stall_s=24, hold_s=4), event(40, "scale.end"),
        event(60.1, "writing.end"), event(60.5, "quiet.begin"), event(100, "quiet.end"),
        event(101, "interventions", steps={}), event(102, "moves", reasons={"rebalance": 90}), event(103, "trial.end"),
    ]  # fmt: skip
    samples = phase(10, six[:3], six, took=20, rest=71)
    last = max(number for number, sample in enumerate(samples) if sample.unavailable is not None)
    samples[last] = changed(samples[last], unavailable=7 if refuted else 0)
    files = {**_ledger(lines, last_read(lines), until=62), LAYOUT: map(layout_line, samples)}
    _write(directory, "rebalance", "laptop", files, told, buckets=3)


def _tpcc(directory: Path, claim: str, profile: str, of: TrialEvidence, *, broken: str = "") -> None:
    runs: Mapping[str, TpccRun] = of.workloads["tpcc"]
    told = sorted([*of.events, *checked([*runs], broken), event(9999, "trial.end")], key=lambda each: each.t)
    machine = [HostSecond(t=second.t, cpu=42.0, others=1.0) for second in of.host]
    files: dict[str, Iterable[str]] = {HOST: _host(machine)}
    for name, run in runs.items():
        end = tpcc_line(TpccEnd(why="duration", audit=run.audit))
        files[f"tpcc-{name}.jsonl"] = [tpcc_line(run.header), *map(tpcc_line, run.seconds), end]
    _write(directory, claim, profile, files, told)


def slower_version(directory: Path, *, refuted: bool = True) -> None:
    """The new version reaches 70 % of what is asked, the old one 97 %; an order costs both the same CPU."""
    reached = 70.0 if refuted else 97.0
    sides = {"old": 97.0, "new": reached, "old (A/A)": 97.0}
    declared = {"looks": [3], "sides": ["old", "new"]}
    of = pairs(sides, blocks=3, declared=declared, warehouses=1000, seconds=5, cpu={"new": 40.0 * reached / 97.0})
    _tpcc(directory, "regression", "laptop", of)


def slower_side(directory: Path, *, refuted: bool = True) -> None:
    """Six nodes reach 70 % of what is asked, three 97 %."""
    sides = {**EQUAL, "6 nodes": 70.0 if refuted else 97.0}
    of = pairs(sides, blocks=3, declared={"looks": [3]}, warehouses=1000, seconds=5)
    _tpcc(directory, "parity", "laptop", of)


def small_capacity(directory: Path, *, refuted: bool = True) -> None:
    """Fewer warehouses are carried than this hardware should carry."""
    steps = [(200, 97.0), (400, 92.0), (450, 60.0)] if refuted else [(400, 97.0), (600, 92.0), (700, 60.0)]
    _tpcc(directory, "stress", "small", ramp(steps, seconds=30))


def inconsistent_answer(directory: Path, *, refuted: bool = True) -> None:
    """The database contradicted itself once, while sides are equally fast."""
    of = pairs(EQUAL, blocks=3, declared={"looks": [3]}, seconds=30)
    runs: dict[str, TpccRun] = dict(of.workloads["tpcc"])
    if refuted:
        *before, last = runs["b1a1"].seconds
        runs["b1a1"] = replace(runs["b1a1"], seconds=(*before, replace(last, errors={INCONSISTENT: 1})))
    _tpcc(directory, "parity", "laptop", replace(of, workloads={"tpcc": runs}))


def broken_condition(directory: Path, *, refuted: bool = True) -> None:
    """One of TPC-C's consistency conditions is violated once, after runs in which sides are equally fast."""
    of = pairs(EQUAL, blocks=3, declared={"looks": [3]}, warehouses=1000, seconds=5)
    _tpcc(directory, "parity", "laptop", of, broken="3.3.2.1" if refuted else "")


def dead_node(directory: Path, *, refuted: bool = True) -> None:
    """A node ended by itself, and no other file tells of it."""
    of = pairs(EQUAL, blocks=3, declared={"looks": [3]}, warehouses=1000, seconds=5)
    died = [event(500, "node.died", node="n1", code=2)] if refuted else []
    _tpcc(directory, "parity", "laptop", replace(of, events=[*of.events, *died]))


def third_side(directory: Path, *, refuted: bool = True) -> None:
    """Nine nodes reach 60 % of what is asked, and the source does not show them saturated."""
    sides = {**EQUAL, "9 nodes": 60.0 if refuted else 97.0}
    of = pairs(sides, blocks=3, declared={"looks": [3], "saturated": []}, warehouses=1000, seconds=5)
    _tpcc(directory, "parity", "laptop", of)


NODES = ("n1", "n2", "n3")
OLD, NEW = "v1.0.0", "v1.1.0"
TURNS = (("n1", 12), ("n2", 28), ("n3", 37))
"""When which node is taken down; it is away for 5 s, and the cluster whole after 7."""
UNTIL = 58
"""For so long clients write, where nodes are taken down in turn; a third as fast as otherwise."""


def _in_turn(
    directory: Path,
    claim: str,
    told: Iterable[Event],
    *,
    more: Sequence[HistoryLine] = (),
    files: Mapping[str, Iterable[str]] | None = None,
) -> None:
    """Store a trial in which each node in turn was taken down under the ledger, a client's own node each time.

    ``more``: what its history has beside writes and reads.
    """
    common = [
        event(0, "trial.begin"), event(0.1, "provisioned", nodes=NODES), event(0.2, "replicated"),
        event(1, "baseline.begin"), event(11, "baseline.end"),
        event(UNTIL + 0.1, "writing.end"), event(UNTIL + 2, "trial.end"),
    ]  # fmt: skip
    held = {"leases": dict.fromkeys(NODES, 3), "connections": dict.fromkeys(NODES, 2)}
    hit = [
        recorded(each.t, each.name, {**each.data, **held}) if each.name == "fault.begin" else each
        for each in (*common, *told)
    ]
    *usual, end = history(until=UNTIL, rate=100)
    cut = [Connection((t + 1) * SECOND, "w3", node, False, "connection reset") for node, t in TURNS]
    back = [Connection((t + 2) * SECOND, "w3", node, True, node) for node, t in TURNS]
    lines = [*sorted([*usual, *cut, *back, *more], key=lambda line: line.t), end]
    ledger = _ledger(lines, last_read(lines), until=UNTIL + 1, cpu=42.0)
    _write(directory, claim, "laptop", {**ledger, **(files or {})}, sorted(hit, key=lambda each: each.t), buckets=3)


def old_size(directory: Path, *, refuted: bool = True) -> None:
    """One node came back with the CPU that it had before."""
    told = [event(11.5, "size.begin", size="0.5/1024", nodes=NODES, asked=ASKED)]
    for node, t in TURNS:
        shown = {**ASKED, "cpus": 0.25} if refuted and node == "n2" else ASKED
        told += resized(t, node, shown)
    _in_turn(directory, "scale-up", [*told, event(46, "size.end", size="0.5/1024")])


def other_build(directory: Path, *, refuted: bool = True) -> None:
    """One node that was given the new version calls itself another."""
    _hot_swap(directory, builds={"n2": "v1.0.9"} if refuted else {})


def object_lost(directory: Path, *, refuted: bool = True) -> None:
    """What was made before the version changed is not there, asked through a new node."""
    wrong = {"statement": "SELECT count(*) = 2 FROM v", "answer": "False", "wanted": "true"}
    _hot_swap(directory, wrong=[wrong] if refuted else [])


def _hot_swap(
    directory: Path, *, builds: Mapping[str, str] | None = None, wrong: Sequence[Mapping[str, str]] = ()
) -> None:
    """All nodes are given the new version: what they then call themselves, and what is wrong with an object."""
    done: list[tuple[float, float, str, list[Event]]] = [
        (11.1, 11.2, "keep", [event(11.1, "version.kept", active="1.0")]),
        (11.3, 11.8, "look", _looked(11.5, "before", old=NODES)),
        *((t - 0.1, t + 7.1, "swap", _swapped(t, node, (builds or {}).get(node, NEW))) for node, t in TURNS),
        (46, 47, "finalise", [event(46.5, "version.final", active=dict.fromkeys(NODES, "1.1"), seconds=0.5)]),
        (47.1, 48, "look", _looked(47.5, "final", new=NODES)),
    ]
    done.insert(3, (20, 21, "look", _looked(20.5, "mixed", old=NODES[1:], new=NODES[:1], wrong=wrong)))
    told = [event(0.05, "plan.drawn", path="final", seed=SEED, steps=len(done), builds={"old": OLD, "new": NEW})]
    for number, (begin, end, kind, meanwhile) in enumerate(done, 1):
        told += [event(begin, "step.begin", number=number, kind=kind), *meanwhile]
        told.append(event(end, "step.end", number=number))
    crossed = event(
        20.6, "object.ended", check="index", phase="mixed", begun="before", node="n1", under_way=True, seconds=9
    )
    told += [event(0.3, "tpcc.checked", after=[], violated=HOLDS), event(0.6, "objects.made", checks=["view"]), crossed]
    down = {t + 1: node for node, t in TURNS}
    for t in range(11, 47):
        others = {down[t]: "exited"} if t in down else {}
        told.append(event(t, "processes.seen", running=[node for node in NODES if node not in others], others=others))
    ran = load("r01", warehouses=10, ramp=0, begin=0, seconds=UNTIL)
    begun, _ = begin_run(ran, "10 warehouses", "the cluster", 0)
    told += [begun, event(UNTIL, "run.end", run="r01")]
    lines = [
        tpcc_line(changed(ran.header, duration_s=0.0)),
        *(tpcc_line(replace(second, types=_timed(second.types))) for second in ran.seconds),
        tpcc_line(TpccEnd(why="stopped", audit=ran.audit)),
    ]
    back = list[HistoryLine]()
    for number, at in enumerate((11.4, 20.4, 47.4)):
        sent, op, keys = int(at * SECOND), 10**9 + number, range(100)
        back += [
            Invoke(sent, op, READS_BACK, "n2", Op.READ, numbers(keys), 0),
            Ok(sent + 2000, op, numbers([1] * len(keys))),
        ]
    _in_turn(directory, "hot-swap", told, more=back, files={"tpcc-r01.jsonl": lines})


def _timed(types: Mapping[str, TypeSecond]) -> Mapping[str, TypeSecond]:
    """The same with latencies of 20 ms in each second."""
    return {kind: TypeSecond(ok=each.ok, histogram=histogram(each.ok, 20_000)) for kind, each in types.items()}


def _looked(
    t: float,
    phase: str,
    *,
    old: Sequence[str] = (),
    new: Sequence[str] = (),
    wrong: Sequence[Mapping[str, str]] = (),
) -> list[Event]:
    """What the plan looks at: an object through two nodes, one of each version, every row, TPC-C's consistency."""
    nodes = [old[0], new[0]] if old and new else (*old, *new)[:2]
    return [
        event(t - 0.1, "objects.phase", phase=phase, nodes=NODES, old=old, new=new),
        *(
            event(t, "object.looked", check="view", phase=phase, node=node, changed=node, n=n, wrong=said)
            for n, node in enumerate(nodes, 1)
            for said in (wrong if node in new else (),)
        ),
        event(t + 0.1, "rows.read_back", rows=100),
        event(t + 0.2, "tpcc.checked", after=["r01"], violated={k: v for k, v in HOLDS.items() if k != "3.3.2.11"}),
    ]


def _swapped(t: float, node: str, build: str) -> list[Event]:
    """A node was drained and stopped, and started with the new version."""
    return [*swapped(t, node, build=build), event(t + 1, "node.stopped", node=node, code=0)]


def starved_tenant(directory: Path, *, refuted: bool = True) -> None:
    """One tenant of twelve was served half of what came due at it."""
    size, rng = Size(mix={"tpcc-schema": 12}, times=1), Random(SEED)
    written(directory / provisioning.FILE, tenants_made(size, rng, SECOND))
    written(directory / introspection.FILE, (changed(one, error="") for one in asked(size, rng, 2 * SECOND)))
    written(directory / schema_change.FILE, schema_changed(size, rng, 40 * SECOND))
    simulate(
        directory, [Played(begin=5, seconds=30, served={4: 0.5} if refuted else {})], tenants=12, of=12, mix="key_value"
    )
    machine = {HOST: _host(HostSecond(t=second * SECOND, cpu=42.0, others=1.0) for second in range(1, 60))}
    _write(directory, "tenancy", "laptop", machine, [event(0, "trial.begin"), event(60, "trial.end")])


TRIALS: Mapping[str, tuple[Callable[..., None], Sequence[str]]] = {
    "lost row": (lost_row, ["lost", "rows_missing"]),
    "open gap": (open_gap, ["gap_undisturbed_s"]),
    "no quorum": (no_quorum, ["acknowledged_without_quorum"]),
    "unavailable ranges": (unavailable_ranges, ["ranges_unavailable"]),
    "slower version": (slower_version, ["tpmc_loss_interval", "fell_behind"]),
    "slower side": (slower_side, ["tpmc_ratio_interval", "fell_behind"]),
    "small capacity": (small_capacity, ["capacity_warehouses"]),
    "inconsistent answer": (inconsistent_answer, ["inconsistent_answers"]),
    "broken condition": (broken_condition, ["inconsistent"]),
    "dead node": (dead_node, ["nodes_died"]),
    "third side": (third_side, ["tpmc_ratio_interval", "fell_behind"]),
    "old size": (old_size, ["nodes_with_old_resources"]),
    "other build": (other_build, ["nodes_on_other_build"]),
    "object lost": (object_lost, ["objects_differing"]),
    "starved tenant": (starved_tenant, ["tenant_worst"]),
}
"""How each is written, and the metrics that refute it."""
