"""What a metric and a condition are; the tables of them are in ``metrics`` and ``conditions``."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from plugin.judge.analysis import Analysis

T = TypeVar("T")

Measured = tuple[float | None, str, tuple[str, ...]]
"""Value, note, examples."""

Answer = tuple[bool, str]
"""Whether a condition is met, and why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricInfo:
    """A metric: its unit, what it is, and the conditions without which it says nothing.

    With ``safety`` a violation counts as soon as the records can be relied on (``integrity``), whatever else is
    missing; a pass needs all of ``needs`` all the same. With ``timed`` the limit is one of time, which a machine that
    is busy with other work exceeds by itself: a violation counts only where the machine was free (``machine_free``).
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


class Known(Mapping[str, T], Generic[T]):
    """What is known by name: the judge's ``own``, and what each workload that is declared adds."""

    def __init__(self, own: Mapping[str, T], added: Callable[[], Iterable[Mapping[str, T]]]) -> None:
        self.own = own
        self._added = added

    def __getitem__(self, name: str) -> T:
        if name in self.own:
            return self.own[name]
        for added in self._added():
            if name in added:
                return added[name]
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        yield from self.own
        for added in self._added():
            yield from added

    def __len__(self) -> int:
        return sum(1 for _ in self)
