"""Whether a TPC-C run was TPC-C: its mix and its random choices within the specification's bounds, no part of it missing.

A bound is broken when what was counted would come about by chance less than once in 50 000 runs, were the true share just at
the bound (the exact binomial tail; the normal one for the mean number of order lines). So a short healthy run stays
within bounds that its few transactions cannot meet to the letter, and a wrong mix breaks them as soon as it can be told from chance.
All runs of a driver are also audited together, which catches a slight fault that no single one shows.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import erfc, exp, floor, lgamma, log, sqrt

from plugin.evidence.tpcc import TYPES, TpccAudit, TpccRun
from plugin.judge.parity import GENERATOR_NOISE
from plugin.judge.tpcc import CAPACITY_TPMC, Figures

FALSE_ALARM = 2e-5
"""How rarely chance alone breaks a bound of a healthy run; a claim of 30 runs with 20 bounds each is then hit about once in 100 times, at the worst (our own choice)."""

LINES_SD = sqrt((11**2 - 1) / 12)
"""The spread of an order's number of lines, uniform from 5 to 15."""

SPECIFICATION: Mapping[str, tuple[float, float]] = {
    "new_order": (0.42, 0.45),
    "payment": (0.43, 1.0),
    "order_status": (0.04, 1.0),
    "delivery": (0.04, 1.0),
    "stock_level": (0.04, 1.0),
}
"""The mix that the specification asks for (5.2.3). Its floor for new-order is our own: with fewer no efficiency it asks for can be reached."""

PACK: Mapping[str, tuple[float, float]] = {
    "new_order": (0.425, 0.445),
    "payment": (0.425, 0.445),
    "order_status": (0.040, 0.047),
    "delivery": (0.040, 0.047),
    "stock_level": (0.040, 0.047),
}
"""The mix of a pack of 10/10/1/1/1 cards, 43.5 and 4.35 %, and a little to either side (our own choice). Both drivers deal it."""

MIXES = {"the specification": SPECIFICATION, "the pack 10/10/1/1/1": PACK}
"""The bounds of the mix by name; a run must be within all of them."""

BUILTIN = "builtin"
"""The driver that comes with CockroachDB. It has several threads, and its output has no counts to audit but those of the mix."""

AGREEMENT, FEW = 0.02, 20
"""Audit and timeline may differ by this share of the new-orders, or this number: those that ended just at the period's edge (our own choice)."""

MOST_CPU = 0.90
"""Of a core a process, on average: above it the process is its own limit (our own choice)."""

MOST_LAG_MS = 250.0
"""How late the generator may be in all but one second of twenty (our own choice)."""

TERMINALS = 10
"""Of each warehouse (4.2.1)."""

MOST_SIGMAS = 5.0
"""Standard errors by which what came due may be off what the deck asks for on average (our own choice)."""

END_TOLERANCE_S = 1
"""So much may be missing of the declared duration: the seconds are whole ones, the duration need not begin with one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Share:
    """A share that was counted, and its bounds."""

    name: str
    count: int
    of: int
    low: float
    high: float

    @property
    def broken(self) -> bool:
        """Whether it is out of its bounds by more than chance explains."""
        return (
            binomial_tail(self.count, self.of, self.high) < FALSE_ALARM
            or binomial_tail(self.of - self.count, self.of, 1 - self.low) < FALSE_ALARM
        )

    def __str__(self) -> str:
        found = 100 * self.count / self.of if self.of else 0.0
        high = f" to {100 * self.high:g}" if self.high < 1 else " or more"
        return f"{self.name} {found:.2f} % of {self.of} (asked: {100 * self.low:g}{high} %)"


def binomial_tail(count: int, of: int, p: float) -> float:
    """The probability of ``count`` or more out of ``of``, each with probability ``p``."""
    if count <= 0 or p >= 1:
        return 1.0
    if p <= 0 or count > of:
        return 0.0
    if count <= of * p:
        return 1.0  # not above its mean: no evidence against p, and no need of its exact value
    term = exp(
        lgamma(of + 1)
        - lgamma(count + 1)
        - lgamma(of - count + 1)
        + count * log(p)
        + (of - count) * log(1 - p)
    )
    total, odds = 0.0, p / (1 - p)
    for k in range(count, of + 1):
        total += term
        term *= (of - k) / (k + 1) * odds
        if term < total * 1e-12:
            break
    return min(1.0, total)


def mix_shares(finished: Mapping[str, int]) -> Iterator[Share]:
    """The mix, with the specification's bounds and those of the pack that is dealt."""
    whole = sum(finished.values())
    for name, bounds in MIXES.items():
        for kind in TYPES:
            low, high = bounds[kind]
            yield Share(name=f"{kind} by {name}", count=finished.get(kind, 0), of=whole, low=low, high=high)


def choice_shares(audit: TpccAudit, warehouses: int) -> Iterator[Share]:
    """The random choices of the transactions (9.2.2.5). One warehouse has no others to go to."""
    a = audit
    names = ("customers of payment by last name", "customers of order-status by last name")
    yield Share(name="new-orders rolled back", count=a.rolled_back, of=a.new_orders, low=0.009, high=0.011)
    if warehouses > 1:
        yield Share(name="remote lines", count=a.remote_lines, of=a.order_lines, low=0.0095, high=0.0105)
        yield Share(name="remote payments", count=a.remote_payments, of=a.payments, low=0.14, high=0.16)
    yield Share(name=names[0], count=a.payments_by_name, of=a.payments, low=0.57, high=0.63)
    yield Share(name=names[1], count=a.order_statuses_by_name, of=a.order_statuses, low=0.57, high=0.63)


def lines_broken(audit: TpccAudit) -> str | None:
    """What is wrong with the mean number of lines of an order, asked to be 9.5 to 10.5."""
    if not audit.new_orders:
        return None
    mean = audit.order_lines / audit.new_orders
    beyond = max(9.5 - mean, mean - 10.5) * sqrt(audit.new_orders) / LINES_SD
    if erfc(beyond / sqrt(2)) / 2 >= FALSE_ALARM:
        return None
    return f"{mean:.2f} lines an order of {audit.new_orders} (asked: 9.5 to 10.5)"


def audited(run: TpccRun, found: Figures, *, saturated: bool = False) -> tuple[str, ...]:
    """What is out of bounds in one run, in words.

    A saturated run's mix is not judged: of its slower types, more have not finished.
    """
    if not sum(found.finished.values()):
        return ("no transaction finished",)
    shares = [] if saturated else [*mix_shares(found.finished)]
    problems: list[str] = []
    if run.audit is not None:
        shares += choice_shares(run.audit, run.header.warehouses)
        problems += filter(None, (lines_broken(run.audit), _contradiction(run, run.audit, found)))
    elif run.header.driver != BUILTIN:
        problems.append("there is no audit")
    problems += filter(None, (_schedule(run, found),))
    return (*(str(share) for share in shares if share.broken), *problems)


def _schedule(run: TpccRun, found: Figures) -> str | None:
    """What came due must be what ten terminals a warehouse with the specification's keying and think times ask for: else any server serves it all."""
    header = run.header
    if not header.waits:
        return None
    if header.terminals != TERMINALS * header.warehouses:
        return f"{header.terminals} terminals at {header.warehouses} warehouses (asked: {TERMINALS} each)"
    if run.due is None or not found.seconds:
        return None
    expected = CAPACITY_TPMC * header.warehouses * found.seconds / 60
    chance = MOST_SIGMAS * GENERATOR_NOISE / sqrt(header.warehouses * found.seconds) * expected
    if abs(run.due["new_order"] - expected) <= chance + 1:
        return None
    return f"{run.due['new_order']} new-orders came due (asked: {expected:.1f}, by chance ± {chance:.1f})"


def _contradiction(run: TpccRun, audit: TpccAudit, found: Figures) -> str | None:
    """The audit must have counted what the timeline shows."""
    shown = found.finished["new_order"]
    if run.header.driver == BUILTIN or abs(audit.new_orders - shown) <= max(FEW, AGREEMENT * shown):
        return None
    return f"the audit counted {audit.new_orders} new-orders, the timeline shows {shown}"


def audited_together(runs: Sequence[tuple[TpccRun, Figures]]) -> tuple[str, ...]:
    """What is out of bounds in the runs of each driver taken together.

    Runs of one seed are dealt the same cards, so only the longest of them counts: together they are no more evidence.
    """
    problems: list[str] = []
    for driver in sorted({run.header.driver for run, _ in runs}):
        dealt: dict[int, tuple[TpccRun, Figures]] = {}
        for run, found in runs:
            seed = run.header.seed
            if run.header.driver == driver and (
                seed not in dealt or sum(found.finished.values()) > sum(dealt[seed][1].finished.values())
            ):
                dealt[seed] = run, found
        shares = [*mix_shares(sum((Counter(found.finished) for _, found in dealt.values()), Counter()))]
        for alone in (True, False):
            audits = [r.audit for r, _ in dealt.values() if r.audit and (r.header.warehouses == 1) == alone]
            audit = sum(audits, TpccAudit())
            shares += choice_shares(audit, 1 if alone else 2)
            problems += filter(None, (lines_broken(audit),))
        problems += [f"{share} ({len(dealt)} runs together)" for share in shares if share.broken]
    return tuple(problems)


def incomplete(run: TpccRun, found: Figures) -> tuple[str, ...]:
    """What is missing of a run, in words: cut-off files, holes, an end before its time. One of no declared duration lasts until it is stopped."""
    problems = list(run.problems)
    if run.end is None:
        problems.append("it has no end")
    elif run.end != ("duration" if run.header.duration_s else "stopped"):
        problems.append(f"it ended by {run.end!r}, not by its time being over")
    if found.seconds + END_TOLERANCE_S < floor(run.header.duration_s):
        problems.append(f"{found.seconds} s were measured of {run.header.duration_s:g} s")
    return tuple(problems)


def starved(found: Figures) -> tuple[str, ...]:
    """Where the generator rather than the database may have set the pace, in words.

    A process of ours is one thread, and a core its limit; the built-in driver has several threads and is not held to it.
    """
    problems = []
    if found.cpu_share is None or found.lag_p95_ms is None:
        return ("no second was measured",)
    if found.header.driver != BUILTIN and found.cpu_share >= MOST_CPU:
        problems.append(f"it used {found.cpu_share:.0%} of a core a process (limit {MOST_CPU:.0%})")
    if found.lag_p95_ms >= MOST_LAG_MS:
        problems.append(
            f"it was {found.lag_p95_ms:.0f} ms late in one second of twenty (limit {MOST_LAG_MS:.0f} ms)"
        )
    return tuple(problems)
