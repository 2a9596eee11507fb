"""TPC-C runs made by hand, and arms of them."""

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fixtures.workloads.tpcc.evidence import (
    TYPES,
    TpccAudit,
    TpccHeader,
    TpccRun,
    TpccSecond,
    TypeSecond,
    encode,
    new_histogram,
)
from plugin.evidence.records import Event
from plugin.judge.arm import ArmEvidence
from tests.plugin.judge.histories import SECOND, arm, event

PACK = {"new_order": 10, "payment": 10, "order_status": 1, "delivery": 1, "stock_level": 1}
FULL_EFC = 97.0


@functools.cache
def histogram(count: int, latency_us: int) -> str:
    found = new_histogram()
    if count:
        found.record_value(latency_us, count)
    return encode(found)


def spread(count: int, seconds: int) -> list[int]:
    """So many events, evenly over the seconds."""
    return [count * (i + 1) // seconds - count * i // seconds for i in range(seconds)]


def audit_of(counts: Mapping[str, int], warehouses: int) -> TpccAudit:
    """An audit as it should be, of so many transactions."""
    orders, payments, statuses = counts["new_order"], counts["payment"], counts["order_status"]
    far = warehouses > 1
    return TpccAudit(
        new_orders=orders,
        rolled_back=round(0.01 * orders),
        order_lines=10 * orders,
        remote_lines=round(0.1 * orders) if far else 0,
        payments=payments,
        remote_payments=round(0.15 * payments) if far else 0,
        payments_by_name=round(0.6 * payments),
        order_statuses=statuses,
        order_statuses_by_name=round(0.6 * statuses),
        deliveries=counts["delivery"],
        stock_levels=counts["stock_level"],
    )


def load(
    name: str = "r01",
    *,
    warehouses: int = 10,
    efc: float = FULL_EFC,
    seconds: int = 60,
    ramp: int = 2,
    begin: int = 10,
    mix: Mapping[str, float] = PACK,
    latency_ms: float | Mapping[str, float] = 30.0,
    cpu: float = 0.1,
    lag_ms: float = 2.0,
    audit: Mapping[str, int] | None = None,
    second: Mapping[str, Any] | None = None,
    **changes: Any,
) -> TpccRun:
    """A run that began at ``begin`` s: a ramp, then measured seconds with so many new-orders and the others by ``mix``; the latencies of all stand in the first of them.

    ``audit`` and ``second`` replace fields of the audit and of every second; ``changes`` fields of the header or the run.
    """
    orders = round(efc / 100 * 12.86 * warehouses * seconds / 60)
    counts = {kind: round(orders * mix[kind] / mix["new_order"]) for kind in TYPES}
    each = {kind: spread(counts[kind], seconds) for kind in TYPES}
    latency = latency_ms if isinstance(latency_ms, Mapping) else dict.fromkeys(TYPES, latency_ms)

    def one(index: int) -> TpccSecond:
        measured = index >= 0
        types = {
            kind: TypeSecond(
                ok=each[kind][index],
                histogram="" if index else histogram(counts[kind], int(1000 * latency[kind])),
            )
            if measured
            else TypeSecond()
            for kind in TYPES
        }
        t = (begin + ramp + index + 1) * SECOND
        made = TpccSecond(t=t, types=types, lag_ms=lag_ms, cpu_s=cpu * (ramp + index + 1), measured=measured)
        return replace(made, **(second or {}))

    fields = {
        "run": name,
        "driver": "native",
        "warehouses": warehouses,
        "terminals": 10 * warehouses,
        "connections": 2 * warehouses,
        "waits": True,
        "seed": 1,
        "ramp_s": float(ramp),
        "duration_s": float(seconds),
    }
    header = TpccHeader(**{**fields, **{k: v for k, v in changes.items() if k in {*fields, "processes"}}})
    run = TpccRun(
        header=header,
        seconds=tuple(one(index) for index in range(-ramp, seconds)),
        audit=replace(audit_of(counts, warehouses), **(audit or {})),
        end="duration",
    )
    return replace(run, **{k: v for k, v in changes.items() if k in {"seconds", "audit_", "end", "problems"}})


def evidence(
    runs: Iterable[tuple[Event, TpccRun]], *, declared: Mapping[str, Any] | None = None, **fields: Any
) -> ArmEvidence:
    """An arm of these runs, each with its ``run.begin``; ``declared``: the data of ``comparison.declared``."""
    told = [event(1, "comparison.declared", **declared)] if declared is not None else []
    made = {}
    for begin, run in runs:
        made[run.header.run] = run
        told += [
            begin,
            event((run.seconds[-1].t if run.seconds else begin.t) / SECOND, "run.end", run=run.header.run),
        ]
    return arm(**{"events": told, "workloads": {"tpcc": made}, **fields})


def begin(run: TpccRun, cell: str, of: str, block: int) -> tuple[Event, TpccRun]:
    at = run.seconds[0].t / SECOND - 1 if run.seconds else 0
    return event(at, "run.begin", run=run.header.run, cell=cell, arm=of, block=block), run


WIGGLE = (0.3, -0.3, 0.1, -0.1, 0.0, 0.2, -0.2, 0.3, -0.3, 0.1, -0.1, 0.0)
"""Percent by which the efficiency of the blocks differs."""


def pairs(
    arms: Mapping[str, float],
    *,
    blocks: int = 5,
    warehouses: int = 100,
    declared: Mapping[str, Any] | None = None,
    wiggle: float = 1.0,
    limits: Mapping[str, float] | None = None,
    change: Mapping[str, Mapping[str, Any]] | None = None,
    **options: Any,
) -> ArmEvidence:
    """Blocks of arms with these efficiencies; they vary by ``wiggle`` times ``WIGGLE`` from block to block, each arm out of step with the others.

    ``change``: options of ``load`` for single arms.
    """
    told = []
    for block in range(blocks):
        for index, (name, efc) in enumerate(arms.items()):
            run = load(
                f"b{block}a{index}",
                warehouses=warehouses,
                efc=efc * (1 + wiggle * WIGGLE[(block + 2 * index) % 12] / 100),
                begin=10 + 100 * (block * len(arms) + index),
                **{"seed": block, **options, **((change or {}).get(name, {}))},
            )
            told.append(begin(run, f"{warehouses} warehouses", name, block))
    return evidence(
        told, declared={"looks": [5, 8, 12]} if declared is None else declared, limits=limits or {}
    )


def ramp(
    steps: Sequence[tuple[int, float]], *, limits: Mapping[str, float] | None = None, **options: Any
) -> ArmEvidence:
    """One arm under loads of so many warehouses, with these efficiencies."""
    return evidence(
        [
            begin(
                load(
                    f"w{size}", warehouses=size, efc=efc, begin=10 + 100 * index, **{"seed": index, **options}
                ),
                f"{size} warehouses",
                "3 nodes",
                0,
            )
            for index, (size, efc) in enumerate(steps)
        ],
        limits=limits or {},
    )
