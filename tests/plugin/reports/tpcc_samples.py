"""Stored runs of TPC-C written by hand, in the very formats of a real one: a parity of two arms and a ramp past saturation."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from fixtures.workloads.tpcc.evidence import (
    TYPES,
    TpccRun,
    TypeSecond,
    encode,
    new_histogram,
    tpcc_end_line,
    tpcc_header_line,
    tpcc_second_line,
)
from fixtures.workloads.tpcc.reports.found import Tpcc, tpcc_of
from fixtures.workloads.tpcc.reports.seconds import LoadSeries, load_series
from plugin.catalogue import load as catalogue
from plugin.evidence.load import describe_arm, load_arm
from plugin.evidence.records import SCHEMA, Event, event_line
from plugin.evidence.store import ARM_FILE, EVENTS, seal, write_json
from plugin.judge.arm import ArmEvidence
from plugin.replay import conclude
from plugin.reports.stored import StoredArm, limits_of, stored_run, without_secrets
from tests.plugin.judge.loads import load

SECOND = 1_000_000
SEED = 7
PAPER_RAMP: Sequence[tuple[int, float, float]] = (
    (10, 97.1, 40), (20, 96.8, 46), (40, 96.4, 61), (80, 95.9, 140), (120, 94.6, 420), (160, 90.8, 2100), (200, 62.0, 14_000),
    (240, 41.0, 38_000),
)  # fmt: skip
"""Warehouses, efc, p90 in ms."""


HOLDS = {f"3.3.2.{number}": 0 for number in range(1, 13)}


def stored(
    directory: Path,
    claim: str,
    runs: Sequence[tuple[TpccRun, str, str, int, float]],
    *,
    looks: Sequence[int] | None = None,
    versions: Sequence[str] = (),
    end: bool = True,
    judged: bool = True,
    described: Mapping[str, Any] | None = None,
) -> Path:
    """A run directory with one arm of these runs (run, cell, arm, block, CPU in percent); returns the run directory."""
    arm = directory / "claims" / claim / "arm-0"
    arm.mkdir(parents=True)
    host = {"cores": 2.0, "memory_total_gib": 8.0, "kernel": "Linux"}
    settings = {"suite": "gate", "profile": "laptop", "seed": SEED}
    write_json(directory / "run.json", {"schema": SCHEMA, "started": "2026-01-02T03:04:05+00:00", "settings": settings, "host": host})  # fmt: skip
    known = catalogue().claims[claim]
    context = {"engine": "cockroach", "version": "v24.1.3", "nodes": "3/6", "substrate": "processes", "profile": "laptop"}  # fmt: skip
    write_json(
        arm / ARM_FILE,
        {
            "schema": SCHEMA, "origin_ns": 0, "claim": claim, "sentence": known.sentence,
            "test": "tests/claims/test_throughput.py::test_it[2]", "sabotage": False, "parameters": {}, "profile": "laptop",
            "suite": "gate", "seed": SEED, "target": "", "context": context, "tuned": [],
            "checks": [asdict(check) for check in known.checks_for("laptop")], "needs": list(known.needs), **(described or {}),
        },
    )  # fmt: skip
    events = [Event(0, "arm.begin", {})]
    if looks is not None:
        declared: dict[str, Any] = {"looks": list(looks)}
        events.append(Event(10, "comparison.declared", declared | ({"arms": list(versions)} if versions else {})))  # fmt: skip
    for run, cell, name, block, cpu in runs:
        first, last = run.seconds[0].t - SECOND, run.seconds[-1].t
        events += [
            Event(first - 8 * SECOND, "run.begin", {"run": run.header.run, "cell": cell, "arm": name, "block": block}),
            Event(first - 7 * SECOND, "provision.begin", {"nodes": ["n1", "n2", "n3"], "topology": "3"}),
            Event(first - 6 * SECOND, "provisioned", {"nodes": ["n1", "n2", "n3"]}),
            Event(last + SECOND, "run.end", {"run": run.header.run, "cpu_percent": cpu}),
            Event(last + 2 * SECOND, "tpcc.checked", {"after": [run.header.run], "violated": HOLDS, "unread": {}, "examples": []}),
        ]  # fmt: skip
        lines = [tpcc_header_line(run.header), *map(tpcc_second_line, run.seconds)]
        lines.append(tpcc_end_line("duration", run.audit))
        (arm / f"tpcc-{run.header.run}.jsonl").write_text("".join(lines))
    if end:
        events.append(Event(events[-1].t + SECOND, "arm.end", {}))
    (arm / EVENTS).write_text("".join(map(event_line, events)))
    seal(arm)
    if judged:
        conclude(arm, catalogue())
    return directory


def lively(run: TpccRun, latency_ms: float) -> TpccRun:
    """The same run with latencies in every second, the ramp's too, drawn around this 90th percentile."""
    drawn = random.Random(run.header.run)
    each = {kind: max(1, round(one.ok)) for kind, one in run.seconds[-1].types.items()}

    def types(measured: Mapping[str, TypeSecond]) -> dict[str, TypeSecond]:
        made = {}
        for kind in TYPES:
            ok = measured[kind].ok
            histogram = new_histogram()
            for _ in range(min(ok, 25)):
                value = 1000 * latency_ms * 0.45 * drawn.lognormvariate(0, 0.6)
                histogram.record_value(int(min(max(value, 1), 9e8)), max(1, ok // 25))
            made[kind] = TypeSecond(ok=ok, histogram=encode(histogram))
        return made

    seconds = [
        replace(second, types=types(second.types))
        if second.measured
        else replace(second, types=types({kind: TypeSecond(ok=max(0, each[kind] // 2)) for kind in TYPES}))
        for second in run.seconds
    ]
    return replace(run, seconds=tuple(seconds))


def parity(
    directory: Path,
    *,
    arms: Mapping[str, float] | None = None,
    blocks: int = 3,
    warehouses: int = 20,
    builtin: float | None = None,
    looks: Sequence[int] = (3,),
    run: Mapping[str, Any] | None = None,
    **options: Any,
) -> Path:
    """Blocks of arms with these efficiencies (two that are equal by default), the first arm twice in the first of them (A/A).

    ``run``: options of every run. ``builtin``: the efficiency that the built-in driver found beside it, once a block, on the first arm.
    """
    chosen = {"3 nodes": 96.9, "6 nodes": 96.7} if arms is None else arms
    first = next(iter(chosen))
    runs, begin, number = [], 14, 0
    wiggle = (0.3, -0.4, 0.1, 0.2, -0.2, 0.4)
    for block in range(blocks):
        planned = [(name, name, "native", efc) for name, efc in chosen.items()]
        if not block:
            planned.insert(1, (f"{first} (A/A)", first, "native", chosen[first]))
        if builtin is not None:
            planned.append((first, first, "builtin", builtin))
        for name, _, driver, efc in planned:
            number += 1
            made = load(
                f"r{number:02}", warehouses=warehouses, efc=efc + wiggle[(block + 2 * number) % 6], begin=begin, ramp=5, seconds=40,
                seed=block, driver=driver, **(run or {}),
            )  # fmt: skip
            runs.append((lively(made, 50.0), f"{warehouses} warehouses", name, block, 40.0 + number))
            begin += 58
    return stored(directory, "parity", runs, looks=looks, **options)


def stress(
    directory: Path, *, steps: Sequence[tuple[int, float, float]] = PAPER_RAMP, **options: Any
) -> Path:
    """A ramp of one arm: warehouses, efficiency, 90th percentile in ms."""
    runs = []
    for number, (warehouses, efc, p90) in enumerate(steps, 1):
        made = load(f"r{number:02}", warehouses=warehouses, efc=efc, begin=14 + 45 * (number - 1), ramp=5, seconds=30, seed=number)  # fmt: skip
        runs.append((lively(made, p90), f"{warehouses} warehouses", "3 nodes", 0, min(97.0, 8.0 + warehouses * 0.5)))  # fmt: skip
    return stored(directory, "stress", runs, **options)


def arm_of(run: Path) -> StoredArm:
    """Its only arm."""
    (arm,) = stored_run(run, catalogue()).arms
    return arm


def found_in(arm: StoredArm) -> Tpcc:
    """What was found of its runs."""
    assert "tpcc" in arm.sections
    return tpcc_of(_evidence(arm), limits_of(arm.described, arm.verdict))


def seconds_in(arm: StoredArm) -> LoadSeries:
    """Its runs second by second."""
    return load_series(_evidence(arm), found_in(arm))


def _evidence(arm: StoredArm) -> ArmEvidence:
    return without_secrets(load_arm(arm.directory, describe_arm(arm.directory)))
