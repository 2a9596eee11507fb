"""What metrics and conditions are, and how they are declared; ``metrics`` and ``conditions`` have the judge's own."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from inspect import cleandoc
from typing import TypeVar

from plugin.judge.analysis import Analysis
from plugin.judge.trial import Window

T = TypeVar("T")

Measured = tuple[float | None, str, tuple[str, ...]]
"""Value, note, examples."""

Answer = tuple[bool, str]
"""Whether a condition is met, and why."""


class NotRecorded(Exception):  # noqa: N818 - about the evidence, not an error of ours
    """Evidence that a metric or a condition asks for is not there; the message says what.

    Of a metric there is no value then, and a condition is not met.
    """


def recorded(found: T | None, missing: str) -> T:
    """What was found. Raises ``NotRecorded`` with what is ``missing`` for ``None``."""
    if found is None:
        raise NotRecorded(missing)
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricInfo:
    """A metric: its unit, what it is, and the conditions without which it says nothing.

    With ``safety`` a violation counts as soon as the records can be relied on (``integrity``), whatever else is
    missing; a pass needs all of ``needs`` all the same. With ``timed`` the limit is one of time, which a machine that
    is busy with other work exceeds by itself: a violation counts only where the machine was free (``machine_free``).
    With ``from_start`` it watches what came before the first fault, too, and so does a second condition
    (``machine_free_before``). ``stretches`` are those of which the metric has the longest, with ``summed`` all
    together: what the machine lacked just then excuses them, too; with ``others_only`` only what other work took of it:
    the run itself may use the machine for just what is counted. ``taken`` says, of a metric of what was measured at
    certain times, what other work took from it (or from the side of a comparison that does worse), where that alone may
    be why it misses its limit. ``elsewhere`` says why there is nothing to evaluate in this evidence, of a metric whose
    source leaves it out, too; it says nothing where there is.
    """

    unit: str
    description: str
    needs: tuple[str, ...]
    measure: Callable[[Analysis], Measured]
    safety: bool = False
    timed: bool = False
    from_start: bool = False
    stretches: Callable[[Analysis], Sequence[Window]] | None = None
    summed: bool = False
    others_only: bool = False
    taken: Callable[[Analysis], str] = lambda _: ""
    elsewhere: Callable[[Analysis], str] = lambda _: ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ConditionInfo:
    """What a condition asks for and what to change when it is not met."""

    description: str
    advice: str
    check: Callable[[Analysis], Answer]


class Metrics(dict[str, MetricInfo]):
    """Metrics by name, each declared where it is measured."""

    def declare(
        self, name: str, unit: str, needs: tuple[str, ...], *, safety: bool = False, timed: bool = False,
        from_start: bool = False, stretches: Callable[[Analysis], Sequence[Window]] | None = None,
        summed: bool = False, others_only: bool = False, description: str = "",
        taken: Callable[[Analysis], str] = lambda _: "", elsewhere: Callable[[Analysis], str] = lambda _: "",
    ) -> Callable[[Callable[[Analysis], Measured]], Callable[[Analysis], Measured]]:  # fmt: skip
        """Declare what the function measures. What it is, is the function's docstring, or else ``description``."""

        def declared(measure: Callable[[Analysis], Measured]) -> Callable[[Analysis], Measured]:
            self[name] = MetricInfo(
                unit=unit, needs=needs, measure=measure, safety=safety, timed=timed, from_start=from_start,
                stretches=stretches, summed=summed, others_only=others_only, taken=taken, elsewhere=elsewhere,
                description=description or _described(measure),
            )  # fmt: skip
            return measure

        return declared


class Conditions(dict[str, ConditionInfo]):
    """Conditions by name, each declared where it is checked."""

    def declare(
        self, name: str, advice: str, *, description: str = ""
    ) -> Callable[[Callable[[Analysis], Answer]], Callable[[Analysis], Answer]]:
        """Declare what the function checks. What that is, is the function's docstring, or else ``description``."""

        def declared(check: Callable[[Analysis], Answer]) -> Callable[[Analysis], Answer]:
            self[name] = ConditionInfo(description=description or _described(check), advice=advice, check=check)
            return check

        return declared


def _described(function: Callable[..., object]) -> str:
    """The first paragraph of its docstring, as a part of a sentence."""
    paragraph = " ".join(cleandoc(function.__doc__ or "").partition("\n\n")[0].split()).removesuffix(".")
    called = paragraph[1:2].isupper()  # an abbreviation
    return paragraph if called else paragraph[:1].lower() + paragraph[1:]


def nothing(why: str) -> Measured:
    """What could not be measured, and why."""
    return None, why, ()


def counted(wrong: Iterable[str], good: str) -> Measured:
    """How many things are wrong, with the first of them; ``good``: what is said where none is."""
    every = [*wrong]
    return len(every), some(every) or good, tuple(every[:5])


def some(problems: Iterable[str], most: int = 3) -> str:
    """The first few problems in words."""
    every = list(problems)
    return "; ".join(every[:most]) + (f"; and {len(every) - most} more" if len(every) > most else "")
