"""Whether two sides are equivalent, or one no worse than the other, from paired runs.

The figure's log ratios, one a pair, are taken as normal. Equivalent: two one-sided tests (Schuirmann 1987), that is the
interval of the mean log ratio lies inside the margin. No worse: only its lower end must. Wholly outside the margin:
refuted. Anything else is undecided, never a pass. More pairs are run only at looks that were declared before, at a
level that keeps the whole at 5 %: 0.022 at each of up to three looks (looking at 5, 8 and 12 pairs at 0.05 each would
let 10 % through). Where several ratios are judged at once, a pass of all needs no correction; "any is refuted" does
(Holm); several figures of the same runs share the level (Bonferroni).

The noise of a single run is estimated from all runs: where the first side is run twice in each block (A/A), the two
differ by noise alone. With n blocks that gives n degrees of freedom beside the n - 1 of the log ratios, so that three
blocks have five, and the other sides are held against the mean of both runs, whose noise is less. A noisy side so
widens the interval; it stops nothing by itself.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import exp, inf, isfinite, isinf, log, sqrt

from plugin.counts import number_of
from plugin.judge.student import chances, student_quantile, student_tail

LEVEL = 0.05
"""The share of false passes, and of false refutations, that a comparison as a whole lets through."""

LEVEL_A_LOOK = 0.022
"""What keeps ``LEVEL`` over two or three looks."""

POWER = 0.90
"""How likely a comparison should come to a decision."""

MOST_PAIRS = 200
"""More pairs than this nobody runs: what needs them is called a difference that lies at the margin itself (our own
choice)."""


MOST_GROWTH = 10_000.0
"""Percent: a growth that only shows beyond it is called none that shows (our own choice)."""


MOST_NOISE = 1000.0
"""Percent: as much noise of a run as a plan looks for (our own choice)."""


class Decision(StrEnum):
    """What paired runs say."""

    HOLDS = "holds"
    """Equivalent, or no worse."""
    REFUTED = "refuted"
    """Different by more than the margin, or worse by more than it."""
    UNDECIDED = "undecided"


@dataclass(frozen=True, kw_only=True, slots=True)
class Margin:
    """What a log ratio may be: from ``lower`` to ``upper``."""

    percent: float
    lower: float
    upper: float


def equivalence(percent: float) -> Margin:
    """Within ± ``percent``, whichever of the sides is divided by the other: ±2 % is a ratio of 1/1.02 to 1.02."""
    _positive(percent)
    return Margin(percent=percent, lower=-log(1 + percent / 100), upper=log(1 + percent / 100))


def non_inferiority(percent: float) -> Margin:
    """A loss of less than ``percent``: 2 % is a ratio of 0.98 or more."""
    _positive(percent)
    if percent >= 100:
        raise ValueError(f"a margin of {percent:g} %: a loss of everything would hold; give less than 100")
    return Margin(percent=percent, lower=log(1 - percent / 100), upper=inf)


def no_increase(percent: float) -> Margin:
    """An increase of less than ``percent``: 50 % is a ratio of 1.5 or less."""
    _positive(percent)
    return Margin(percent=percent, lower=-inf, upper=log(1 + percent / 100))


def _positive(percent: float) -> None:
    if not (percent > 0 and isfinite(percent)):
        raise ValueError(f"a margin of {percent:g} %: nothing measured can lie in it; give more than 0")


@dataclass(frozen=True, kw_only=True, slots=True)
class Looks:
    """At how many pairs a decision is sought, and the one-sided level of each look; declared before the first run."""

    at: tuple[int, ...]
    alpha: float

    @property
    def interval(self) -> str:
        """What the interval of a look is called: with this level at each end it holds the rest, as of 0.05 90 %."""
        return f"{100 * (1 - 2 * self.alpha):g} %"

    def __post_init__(self) -> None:
        if not self.at or self.at[0] < 2 or any(b <= a for a, b in zip(self.at, self.at[1:], strict=False)):
            raise ValueError(f"looks at {self.at} pairs: give increasing numbers of at least 2")
        if not 0 < self.alpha < 0.5:
            raise ValueError(f"a level of {self.alpha}: give one between 0 and 0.5, such as {LEVEL}")


def looks(*at: int) -> Looks:
    """Looks at these numbers of pairs, at the level that suits their number: one look 0.05, up to three 0.022 each."""
    count = len(at)
    return Looks(at=at, alpha=LEVEL if count <= 1 else LEVEL_A_LOOK if count <= 3 else LEVEL / count)


PAIR, AGAINST_MEAN = 2.0, 1.5
"""The variance of a log ratio in variances of one run: of two runs; of one against the mean of two."""


class Logs(list[float]):
    """Log ratios in the order they were run.

    ``least_sd``: the least they scatter by, for what they are made of are whole numbers. ``again``: the log ratios of
    the first side to itself (A/A), block by block; ``runs``: the variance of each, ``PAIR`` or ``AGAINST_MEAN``.
    """

    def __init__(
        self, values: Iterable[float], least_sd: float = 0.0, again: Sequence[float] = (), runs: float = PAIR
    ) -> None:
        super().__init__(values)
        self.least_sd, self.again, self.runs = least_sd, tuple(again), runs

    def first(self, n: int) -> "Logs":
        """Those of the first so many blocks."""
        return Logs(self[:n], self.least_sd, self.again[:n], self.runs)


def _first(logs: Sequence[float], n: int | None) -> Logs:
    known = logs if isinstance(logs, Logs) else Logs(logs)
    return known.first(len(known) if n is None else n)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ratio:
    """A mean ratio, from ``n`` paired runs, with its interval; all as natural logarithms.

    ``sd``, of a single log ratio, has ``df`` degrees of freedom. It and the interval (one-sided level ``alpha`` at each
    end) are ``None`` of a single pair without A/A.
    """

    name: str
    n: int
    mean: float
    alpha: float
    df: int = 0
    sd: float | None = None
    interval: tuple[float, float] | None = None

    def decision(self, margin: Margin) -> Decision:
        """By this interval alone."""
        if self.interval is None:
            return Decision.UNDECIDED
        low, high = self.interval
        if margin.lower <= low and high <= margin.upper:
            return Decision.HOLDS
        return Decision.REFUTED if high < margin.lower or low > margin.upper else Decision.UNDECIDED

    def p_outside(self, margin: Margin) -> float:
        """How likely a mean this far outside the margin would be, if the true one just lay in it."""
        distance = max(self.mean - margin.upper, margin.lower - self.mean)
        if self.sd is None:
            return 1.0
        if self.sd == 0:
            return 0.0 if distance > 0 else 1.0
        return student_tail(distance * sqrt(self.n) / self.sd, self.df)

    def visible(self) -> float | None:
        """The smallest true log ratio that ``n`` pairs of this spread tell from 0 with 90 % probability."""
        if self.sd is None:
            return None
        quantiles = (student_quantile(p, self.df) for p in (1 - self.alpha, POWER))
        return sum(quantiles) * self.sd / sqrt(self.n)

    def __str__(self) -> str:
        if self.interval is None:
            return f"{self.name}: {exp(self.mean):.3f} (n = {self.n}, no interval)"
        low, high = self.interval
        return f"{self.name}: {exp(self.mean):.3f} ({exp(low):.3f} to {exp(high):.3f}, n = {self.n})"


def ratio(name: str, logs: Sequence[float], alpha: float = LEVEL, *, at: int | None = None) -> Ratio:
    """The mean of the first ``at`` log ratios (all by default) and its interval.

    Raises ``ValueError`` for none at all.
    """
    known = _first(logs, at)
    if not known:
        raise ValueError(f"{name}: no pair of runs to compare")
    n, again = len(known), known.again
    mean, df = sum(known) / n, n - 1 + len(again)
    if not df:
        return Ratio(name=name, n=n, mean=mean, alpha=alpha)
    own = sum((value - mean) ** 2 for value in known) / known.runs
    of_one_run = (own + sum(value**2 for value in again) / PAIR) / df
    sd = max(known.least_sd, sqrt(known.runs * of_one_run))
    half = student_quantile(1 - alpha, df) * sd / sqrt(n)
    return Ratio(name=name, n=n, mean=mean, alpha=alpha, df=df, sd=sd, interval=(mean - half, mean + half))


def log_ratio(first: float, second: float) -> float:
    """ln(second / first). Raises ``ValueError`` for figures that are not above 0."""
    if not (first > 0 and second > 0 and isfinite(first) and isfinite(second)):
        raise ValueError(f"{second:g} / {first:g}: a ratio needs two figures above 0")
    return log(second / first)


@dataclass(frozen=True, kw_only=True, slots=True)
class Compared:
    """What all ratios together say at the last look that was reached, or the first that decided.

    ``refuted`` names the ratios outside the margin, after Holm's correction. ``visible``: the smallest true difference
    that would have been told from none (log ratio), the worst of all ratios.
    """

    decision: Decision
    ratios: tuple[Ratio, ...]
    margin: Margin
    looks: Looks
    look: int
    """How many looks were taken."""
    n: int
    refuted: tuple[str, ...] = ()
    visible: float | None = None
    aa: tuple[Ratio, ...] = ()

    def __str__(self) -> str:
        """The decision in words, with interval, margin, n, what could have been seen, and what would settle it."""
        words = [f"{self.decision} at a margin of {self.margin.percent:g} %"]
        words += [str(each) for each in self.ratios]
        words.append(f"look {self.look} of {len(self.looks.at)} with {self.looks.interval} intervals")
        if self.visible is not None:
            words.append(f"smallest difference it could have seen {percent(self.visible):.1f} %")
        if self.refuted and len(self.ratios) > 1:
            words.append(f"outside the margin: {', '.join(self.refuted)}")
        if self.decision is Decision.UNDECIDED:
            words.append(self.open)
        words += [f"noise: {each}" for each in self.aa]
        return "; ".join(words)

    @property
    def outside(self) -> tuple[Ratio, ...]:
        """The ratios that are refuted."""
        return tuple(each for each in self.ratios if each.name in self.refuted)

    @property
    def needed(self) -> int | None:
        """Pairs that would settle what is undecided with 90 % probability, if mean and spread stay as they were seen.

        ``None`` where nothing is open, where a single pair shows no spread, and where more than ``MOST_PAIRS`` would be
        needed.
        """
        if self.decision is not Decision.UNDECIDED:
            return None
        most = self.n + 1
        for each in self.ratios:
            if each.sd is None:
                return None
            twice = each.df >= each.n
            needed = pairs_needed(sd=each.sd, shift=each.mean, margin=self.margin, alpha=self.looks.alpha, twice=twice)
            if needed is None:
                return None
            most = max(most, needed)
        return most

    @property
    def open(self) -> str:
        """What an undecided comparison lacks."""
        first = f"the first look asks for {number_of(self.looks.at[0], 'pairs')}" if not self.look else ""
        if self.n < 2:
            return f"n = {self.n} shows no spread: {first}"
        needed = self.needed
        settle = (
            f"about {number_of(needed, 'pairs')} would settle it"
            if needed is not None
            else f"more than {MOST_PAIRS} pairs would be needed to settle it: the difference lies at the margin itself"
        )
        return f"{first}; {settle}" if first else settle


def percent(log_value: float) -> float:
    """How far a log ratio is from 1, in percent, whichever of the sides is divided by the other."""
    return 100 * (exp(abs(log_value)) - 1)


def compare(
    pairs: Mapping[str, Sequence[float]],
    margin: Margin,
    declared: Looks,
    *,
    aa: Mapping[str, Sequence[float]] | None = None,
    figures: int = 1,
) -> Compared:
    """Compare the sides of one or several pairs, by the log ratios of each (``log_ratio``), in the order they were run.

    ``aa`` are those of the same side run twice, to be told beside the others. Later pairs than those of the first look
    that decided do not count: who goes on after a decision chooses his result. ``figures``: how many figures of the
    same runs are compared, any of which may refute: the level is shared out among them. Raises ``ValueError`` where
    there is nothing to compare.
    """
    if not pairs:
        raise ValueError("no sides to compare")
    counts = [len(logs) for logs in pairs.values()]
    reached = [at for at in declared.at if at <= min(counts)]
    for look, at in enumerate(reached, 1):
        found = _look(pairs, at, look, margin, declared, aa or {}, figures)
        if found.decision is not Decision.UNDECIDED:
            return found
    return found if reached else _look(pairs, min(counts), 0, margin, declared, aa or {}, figures)


def _look(
    pairs: Mapping[str, Sequence[float]],
    at: int,
    look: int,
    margin: Margin,
    declared: Looks,
    aa: Mapping[str, Sequence[float]],
    figures: int,
) -> Compared:
    ratios = tuple(ratio(name, logs, declared.alpha, at=at) for name, logs in pairs.items())
    noise = tuple(ratio(name, logs, declared.alpha, at=at) for name, logs in aa.items() if logs)
    refuted = holm({each.name: each.p_outside(margin) for each in ratios}, declared.alpha / figures)
    decision = Decision.UNDECIDED
    if look:
        if refuted:
            decision = Decision.REFUTED
        elif all(each.decision(margin) is Decision.HOLDS for each in ratios):
            decision = Decision.HOLDS
    visible = [value for each in ratios if (value := each.visible()) is not None]
    return Compared(
        decision=decision,
        ratios=ratios,
        margin=margin,
        looks=declared,
        look=look,
        n=at,
        refuted=refuted if decision is Decision.REFUTED else (),
        visible=max(visible, default=None),
        aa=noise,
    )


def holm(p_values: Mapping[str, float], alpha: float) -> tuple[str, ...]:
    """The hypotheses that are rejected so that the chance of rejecting any true one is ``alpha`` (Holm 1979)."""
    rejected = []
    ordered = sorted(p_values.items(), key=lambda item: item[1])
    for index, (name, p) in enumerate(ordered):
        if p > alpha / (len(ordered) - index):
            break
        rejected.append(name)
    return tuple(rejected)


def pairs_needed(*, sd: float, shift: float, margin: Margin, alpha: float = LEVEL, twice: bool = False) -> int | None:
    """The fewest pairs that settle it with 90 % probability, when log ratios have this mean and standard deviation.

    ``twice``: whether the first side is run twice in each block. ``None`` where even ``MOST_PAIRS`` do not.
    """
    if sd <= 0:
        return 2
    for n in range(2, MOST_PAIRS + 1):
        df = 2 * n - 1 if twice else n - 1
        holds, refuted = chances(n, df=df, sd=sd, shift=shift, lower=margin.lower, upper=margin.upper, alpha=alpha)
        if holds + refuted >= POWER:
            return n
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What so many blocks can show at a margin, the first side run twice in each.

    ``noise``: of one run, in percent. ``found``: the loss in percent that is refuted with 90 % probability, or the
    growth where ``growth`` is held; infinite where none is. ``passes``: how likely two sides that do not differ pass.
    """

    blocks: int
    noise: float
    found: float
    passes: float
    growth: bool = False

    def __str__(self) -> str:
        least = f" of {self.found:.1f} %" if isfinite(self.found) else ""
        what = f"{'a' if least else 'no'} {'growth' if self.growth else 'loss'}{least}"
        return (
            f"after {number_of(self.blocks, 'blocks')} {what} is refuted with {100 * POWER:.0f} % probability, "
            f"and sides that do not differ pass with {100 * self.passes:.1f} %"
        )


def plan(margin: Margin, declared: Looks, *, noise: float | None, figures: int = 1) -> tuple[Plan, ...]:
    """What each of the declared looks can show by itself, for a noise of one run in percent.

    Where that is not known (``None``): for the most with which sides that do not differ pass with 90 % probability.
    """
    return tuple(_plan(at, margin, declared.alpha, noise, figures) for at in declared.at)


def _plan(n: int, margin: Margin, alpha: float, given: float | None, figures: int) -> Plan:
    growth = isinf(margin.lower)

    def chance(noise: float, percent: float, level: float) -> tuple[float, float]:
        bounds = {"lower": margin.lower, "upper": margin.upper}
        sd, shift = log(1 + noise / 100), log(1 + percent / 100) if growth else log(1 - percent / 100)
        return chances(n, df=2 * n - 1, sd=sqrt(AGAINST_MEAN) * sd, shift=shift, alpha=level, **bounds)

    noise = given or _from(MOST_NOISE, lambda noise: chance(noise, 0, alpha)[0] < POWER)
    most = MOST_GROWTH if growth else 99.9
    found = _from(most, lambda percent: chance(noise, percent, alpha / figures)[1] >= POWER)
    reached = chance(noise, most, alpha / figures)[1] >= POWER
    return Plan(
        blocks=n, noise=noise, found=found if reached else inf, passes=chance(noise, 0, alpha)[0], growth=growth
    )


def _from(most: float, holds: Callable[[float], bool]) -> float:
    """From where on up to ``most`` it holds, where it does."""
    low, high = 0.0, most
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
