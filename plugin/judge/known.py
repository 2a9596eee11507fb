"""What a metric and a condition are; the tables of them are in ``metrics`` and ``conditions``."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from plugin.judge.analysis import Analysis

RATIO, LOSS = "tpmc_ratio_interval", "tpmc_loss_interval"
"""The metrics that compare arms by their tpmC: their limit is the margin."""

RATIOS = (RATIO, "efc_ratio_interval", "latency_p90_ratio_interval", "latency_p99_ratio_interval")
"""All metrics of arms that should be equal."""

SATURATED_RATIO, SATURATED_LOSS = "saturated_tpmc_ratio_interval", "saturated_tpmc_loss_interval"
SATURATED_P90 = "saturated_p90_ratio_interval"
"""The same of runs without think times, beside runs that have them: what the arms could do."""

CAPACITY, EFC_BELOW = "capacity_warehouses", "efc_below_knee"
"""The metrics of a ramp that conditions must know the limit of."""

Measured = tuple[float | None, str, tuple[str, ...]]
"""Value, note, examples."""

Answer = tuple[bool, str]
"""Whether a condition is met, and why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricInfo:
    """A metric: its unit, what it is, and the conditions without which it says nothing.

    With ``safety`` a violation counts as soon as the records can be relied on (``integrity``), whatever else is
    missing; a pass needs all of ``needs`` all the same. With ``timed`` the limit is one of time, which a machine that is
    busy with other work exceeds by itself: a violation counts only where the machine was free (``machine_free``).
    """

    unit: str
    description: str
    needs: tuple[str, ...]
    measure: Callable[[Analysis], Measured]
    safety: bool = False
    timed: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ConditionInfo:
    """What a condition asks for and what to change when it is not met."""

    description: str
    advice: str
    check: Callable[[Analysis], Answer]


def nothing(why: str) -> Measured:
    """What could not be measured, and why."""
    return None, why, ()


def some(problems: Iterable[str], most: int = 3) -> str:
    """The first few problems in words."""
    every = list(problems)
    return "; ".join(every[:most]) + (f"; and {len(every) - most} more" if len(every) > most else "")
