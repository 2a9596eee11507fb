"""What clients saw of their new-orders and payments: ``tpcc-<run>.tsv``, a line each, in the order in which they ended."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from plugin.evidence.records import MalformedRecord

TPCC_HISTORY_HEADER = "# roachproof tpcc history 1"

Outcome = Literal["ok", "rolled_back", "failed", "unknown"]
OUTCOMES: tuple[str, ...] = get_args(Outcome)


@dataclass(frozen=True, kw_only=True, slots=True)
class TpccSeen:
    """How a transaction ended at ``t``, µs on the arm's timeline.

    ``value``: the number of the new order (0 where the client did not get as far), or the payment in cents. ``outcome``: unknown is what may
    or may not have been committed. ``detail``: SQLSTATE or reason.
    """

    t: int
    kind: Literal["new_order", "payment"]
    outcome: Outcome
    warehouse: int
    district: int
    value: int
    detail: str = ""


def tpcc_history_line(seen: TpccSeen) -> str:
    """The record as a line, newline included."""
    detail = " ".join(seen.detail.split())[:200] or "-"
    return (
        f"{seen.t}\t{seen.kind}\t{seen.outcome}\t{seen.warehouse}\t{seen.district}\t{seen.value}\t{detail}\n"
    )


def read_tpcc_history(lines: Iterable[str]) -> Iterator[TpccSeen]:
    """The records in order. Raises ``MalformedRecord``; an unfinished last line is dropped."""
    for number, line in enumerate(lines, 1):
        if not line.endswith("\n"):
            return
        if line.startswith("#"):
            if line.rstrip("\n") != TPCC_HISTORY_HEADER:
                raise MalformedRecord(f"line {number}: {line!r} is not {TPCC_HISTORY_HEADER!r}")
            continue
        try:
            t, kind, outcome, warehouse, district, value, detail = line[:-1].split("\t")
            if kind not in ("new_order", "payment") or outcome not in OUTCOMES:
                raise ValueError(f"{kind} {outcome}")
            yield TpccSeen(
                t=int(t),
                kind=kind,  # type: ignore[arg-type]  # one of the two
                outcome=outcome,  # type: ignore[arg-type]  # one of OUTCOMES
                warehouse=int(warehouse),
                district=int(district),
                value=int(value),
                detail="" if detail == "-" else detail,
            )
        except ValueError as error:
            raise MalformedRecord(
                f"line {number}: {line!r} is not a TPC-C history record ({error})"
            ) from error
