"""Trials on disk as runs leave them, each refuted by one thing alone: without it, it passes."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from msgspec.structs import replace as changed

from fixtures.workloads.ledger.records import (
    FINAL,
    FINAL_HEADER,
    HISTORY,
    HISTORY_HEADER,
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
from fixtures.workloads.tpcc.evidence import INCONSISTENT, TpccEnd, TpccRun, tpcc_line
from plugin.catalogue import load
from plugin.evidence.events import Event
from plugin.evidence.layout import LAYOUT, layout_line
from plugin.evidence.load import HOST, PROBE
from plugin.evidence.records import SCHEMA, event_line, probe_header, probe_line
from plugin.evidence.store import EVENTS, TRIAL_FILE, trial_end
from plugin.evidence.trailer import add_trailer
from plugin.judge.trial import HostSecond, TrialEvidence
from plugin.replay import conclude
from tests.fixtures.workloads.tpcc.judge.runs import pairs, ramp
from tests.plugin.judge.histories import SECOND, SEED, event, events, probe
from tests.plugin.judge.test_growth import phase
from tests.plugin.judge.whole_trial import history, host, last_read, seen

CATALOGUE = load()
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
    watched: Callable[[str, int], bool] = seen,
    until: int = 31,
) -> dict[str, Iterable[str]]:
    """The files of a trial in which a ledger was written; ``watched`` is what the probe saw, ``until`` that second."""
    files: dict[str, Iterable[str]] = {
        HISTORY: [HISTORY_HEADER + "\n", *map(history_line, lines)],
        FINAL: [FINAL_HEADER + "\n", *map(final_line, final)],
        HOST: _host(host(others=1.0)),
    }
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


def _checked(runs: Sequence[str], broken: str) -> list[Event]:
    """TPC-C's consistency conditions hold after loading, and after all runs all but this ``broken`` one."""
    violated = {f"3.3.2.{number}": 0 for number in range(1, 13)}
    after = {name: int(name == broken) for name in violated if name != "3.3.2.11"}
    return [
        event(2, "tpcc.checked", after=[], violated=violated),
        event(9000, "tpcc.checked", after=[*runs], violated=after),
    ]


def _tpcc(directory: Path, claim: str, profile: str, of: TrialEvidence, *, broken: str = "") -> None:
    runs: Mapping[str, TpccRun] = of.workloads["tpcc"]
    told = sorted([*of.events, *_checked([*runs], broken), event(9999, "trial.end")], key=lambda each: each.t)
    machine = [HostSecond(t=second.t, cpu=42.0, others=1.0) for second in of.host]
    files: dict[str, Iterable[str]] = {HOST: _host(machine)}
    for name, run in runs.items():
        end = tpcc_line(TpccEnd(why="duration", audit=run.audit))
        files[f"tpcc-{name}.jsonl"] = [tpcc_line(run.header), *map(tpcc_line, run.seconds), end]
    _write(directory, claim, profile, files, told)


def slower_version(directory: Path, *, refuted: bool = True) -> None:
    """The new version reaches 70 % of what is asked, the old one 97 %."""
    sides = {"old": 97.0, "new": 70.0 if refuted else 97.0, "old (A/A)": 97.0}
    declared = {"looks": [3], "sides": ["old", "new"]}
    _tpcc(directory, "regression", "laptop", pairs(sides, blocks=3, declared=declared, warehouses=1000, seconds=5))


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
}
"""How each is written, and the metrics that refute it."""
