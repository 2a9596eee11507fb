"""Stored runs written by hand, in the formats of a real one: nodes of a ledger are killed and come back."""

import functools
import random
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hdrh.histogram import HdrHistogram

from fixtures.workloads.ledger.records import (
    FINAL_HEADER,
    HISTORY_HEADER,
    BucketRead,
    Connection,
    GeneratorSecond,
    HistoryEnd,
    RowCount,
    SampledRow,
    final_line,
    history_line,
    payloads,
)
from plugin.catalogue import load
from plugin.evidence.events import Event
from plugin.evidence.records import SCHEMA, ProbeSecond, RouteSecond, event_line, probe_header, probe_line
from plugin.evidence.run_seal import seal_run
from plugin.evidence.store import EVENTS, TRIAL_FILE, seal, write_json
from plugin.replay import conclude
from tests.plugin.recorded import recorded

SECOND = 1_000_000
SEED = 7
BUCKETS = 9
READS = 5


def run_of(directory: Path, *, trials: Sequence[Mapping[str, Any]] = ({},), **settings: Any) -> Path:
    """A run directory with these trials (arguments of ``trial_of``)."""
    directory.mkdir(parents=True)
    host = {"cores": 2.0, "memory_total_gib": 8.0, "kernel": "Linux"}
    asked = {"suite": "gate", "profile": "laptop", "seed": SEED, **settings}
    write_json(
        directory / "run.json",
        {"schema": SCHEMA, "started": "2026-01-02T03:04:05+00:00", "settings": asked, "host": host},
    )
    for number, trial in enumerate(trials):
        trial_of(
            directory / "claims" / "survivability" / trial.get("name", f"trial-{number}"),
            **{k: v for k, v in trial.items() if k != "name"},
        )
    seal_run(directory, ())
    return directory


def trial_of(
    directory: Path,
    *,
    seconds: int = 60,
    nodes: int = 3,
    rate: int = 100,
    faults: Sequence[tuple[str, str, int]] = (("kill", "n1", 20),),
    silent: bool = False,
    judged: bool = True,
    **described: Any,
) -> Path:
    """One trial: ``faults`` are (kind, node, begin); each lasts 8 s, is undone in 4 s, and stops all writes for 3 s.

    ``silent``: nothing succeeds.
    """
    directory.mkdir(parents=True)
    claim = load().claims["survivability"]
    names = [f"n{number + 1}" for number in range(nodes)]
    context = {"engine": "cockroach", "version": "v24.1.3", "nodes": str(nodes), "profile": "laptop", "inserts": "2000"}
    write_json(
        directory / TRIAL_FILE,
        {
            "schema": SCHEMA, "origin_ns": 0, "claim": "survivability", "sentence": claim.sentence,
            "test": "tests/claims/test_survivability.py::test_a_killed_node[2000]", "sabotage": False,
            "parameters": {"inserts": 2000}, "profile": "laptop", "suite": "gate", "seed": SEED, "target": "",
            "context": context, "tuned": [], "checks": [asdict(check) for check in claim.checks_for("laptop")],
            "needs": list(claim.needs), "buckets": BUCKETS, **described,
        },
    )  # fmt: skip
    down = [(begin, begin + 3) for _, _, begin in faults]
    if silent:
        down = [(0, seconds)]
    written = _ledger(directory, seconds, rate, names, down, [(node, begin) for _, node, begin in faults])
    _final(directory, written, seconds)
    _probe(directory, seconds, names, down, faults, silent=silent)
    (directory / EVENTS).write_text("".join(map(event_line, _events(seconds, names, faults))))
    seal(directory)
    if judged:
        conclude(directory, load())
    return directory


def _events(seconds: int, names: list[str], faults: Sequence[tuple[str, str, int]]) -> Iterator[Event]:
    held = dict.fromkeys(names, 3)
    yield recorded(0, "trial.begin", {"past_recovery_s": 5.0})
    yield recorded(100, "provision.begin", {"nodes": names, "topology": str(len(names))})
    yield recorded(2 * SECOND, "provisioned", {"nodes": names})
    yield recorded(2 * SECOND + 1, "replicated", {"seconds": 0.1})
    yield recorded(
        2 * SECOND + 2,
        "ledger.created",
        {
            "buckets": BUCKETS,
            "reports_ranges": True,
            "ranges": max(BUCKETS, 3 * len(names)),
            "replicas": [3],
            "leases": held,
        },
    )
    yield recorded(4 * SECOND, "baseline.begin", {})
    yield recorded(16 * SECOND, "baseline.end", {})
    for kind, node, begin in faults:
        t = begin * SECOND
        yield recorded(
            t, "fault.begin", {"fault": kind, "nodes": [node], "leases": held, "connections": held, "blocks": False}
        )
        yield recorded(t + 50_000, "fault.bit", {"node": node, "proof": "process gone"})
        yield recorded(t + 8 * SECOND, "fault.undo", {"nodes": [node]})
        yield recorded(t + 12 * SECOND, "fault.undone", {"nodes": [node]})
        yield recorded(t + 12 * SECOND + 1000, "recovered", {"seconds": 0.001})
    for number, name in enumerate(("writing.end", "audit.begin", "audit.end", "trial.end")):
        yield recorded((seconds - 1) * SECOND + number * 100_000, name, {})


def _ledger(
    directory: Path,
    seconds: int,
    rate: int,
    names: list[str],
    down: Sequence[tuple[int, int]],
    hit: Sequence[tuple[str, int]],
) -> "array[int]":
    """Writes ``rate`` inserts and ``READS`` reads a second and returns the keys that were acknowledged.

    Whoever writes through a node that is ``hit`` loses its connection.
    """
    written, op = array("I"), 0
    answer = min(4000, SECOND // rate // 2)
    cut = {begin: node for node, begin in hit}
    with (directory / "ledger.tsv").open("w") as file:
        file.write(HISTORY_HEADER + "\n")
        for number, node in enumerate(names, 1):
            file.write(history_line(Connection(2 * SECOND + 10, f"w{number}", node, True)))
        for second in range(3, seconds - 1):
            file.write(history_line(GeneratorSecond(second * SECOND, 3000, 80_000)))
            if (node := cut.get(second, "")) in names:
                client = f"w{names.index(node) + 1}"
                file.write(history_line(Connection(second * SECOND, client, node, False, "reset")))
            lost = any(begin <= second < end for begin, end in down)
            for i in range(1 if lost else rate):
                t = second * SECOND + i * SECOND // rate
                number = op % len(names)
                file.write(f"I\t{t}\t{op}\tw{number + 1}\t{names[number]}\tinsert\t{op}\t1\n")
                file.write(f"U\t{t + answer}\t{op}\ttimeout\n" if lost else f"O\t{t + answer}\t{op}\t\n")
                if not lost:
                    written.append(op)
                    for read in range(READS if i == 0 else 0):
                        sent, seen = t + answer + 10 * read, 10**12 + READS * second + read
                        file.write(f"I\t{sent}\t{seen}\tr1\t{names[number]}\tread\t{op}\t0\n")
                        file.write(f"O\t{sent + 5}\t{seen}\t1\n")
                op += 1
        file.write(history_line(HistoryEnd((seconds - 1) * SECOND)))
    return written


def _final(directory: Path, written: "array[int]", seconds: int) -> None:
    end = (seconds - 1) * SECOND + 150_000
    text = payloads(SEED)
    with (directory / "ledger-final.tsv").open("w") as file:
        file.write(FINAL_HEADER + "\n")
        for bucket in range(BUCKETS):
            rows = 0
            for key in written:
                if key % BUCKETS == bucket:
                    file.write(f"R\t{key}\t1\t{text(key, 1)}\n")
                    rows += 1
            file.write(final_line(BucketRead(end, bucket, rows)))
        file.write(final_line(RowCount(end, len(written))))
        if written:
            file.write(final_line(SampledRow(end, written[0], 1, text(written[0], 1))))


@functools.cache
def _histograms() -> list[str]:
    """Some different seconds of an endpoint, 45 operations each."""
    drawn = random.Random(SEED)
    found = []
    for _ in range(40):
        histogram = HdrHistogram(1, 10**8, 2)
        for _ in range(45):
            histogram.record_value(int(drawn.lognormvariate(8.5, 0.8)) + 1)
        found.append(histogram.encode().decode())
    return found


def _probe(
    directory: Path,
    seconds: int,
    names: list[str],
    down: Sequence[tuple[int, int]],
    faults: Sequence[tuple[str, str, int]],
    *,
    silent: bool,
) -> None:
    encoded = _histograms()
    routes = [f"{node}/{bucket}" for node in names for bucket in range(BUCKETS)]
    with (directory / "probe.jsonl").open("w") as file:
        file.write(probe_header(200_000, routes))
        for second in range(3, seconds):
            t = second * SECOND
            away = {node for _, node, begin in faults if begin <= second < begin + 11}
            stopped = any(begin <= second < end for begin, end in down)
            fine = RouteSecond(5, t + 50_000, t + 900_000, 200_000)
            bad = RouteSecond(0, 0, 0, 0, errors={"timeout": 1})
            seen = {route: bad if stopped or route.partition("/")[0] in away else fine for route in routes}
            served = [] if stopped else [node for node in names if node not in away]
            latency = {node: encoded[(second + number) % len(encoded)] for number, node in enumerate(served)}
            file.write(probe_line(ProbeSecond(t, 1000, seen, latency)))
