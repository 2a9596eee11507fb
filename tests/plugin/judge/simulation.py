"""What comparisons of sides decide in simulated blocks, by the suite's own code; ``python -m`` prints the tables.

Each run's log of a figure is normal. One side is run twice in each block; a loss is one side's alone.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cache, partial
from math import log
from random import Random
from statistics import NormalDist

from fixtures.workloads.tpcc.judge.compared import COMPARISONS
from fixtures.workloads.tpcc.judge.parity import Place
from plugin.catalogue import load as load_catalogue
from plugin.judge.comparison import (
    AGAINST_MEAN,
    MOST_PAIRS,
    PAIR,
    Compared,
    Decision,
    Logs,
    Looks,
    Margin,
    Ratio,
    compare,
    equivalence,
    looks,
    no_increase,
    non_inferiority,
    plan,
)
from plugin.judge.taken import Taken, explained, taken_in

SESSIONS, WHOLE_SESSIONS = 4000, 1000
"""Of one figure, and of all that a claim judges."""
LOOKS = looks(3, 6)
"""Those of the profile of two cores."""

NOISES, LOSSES = (0.5, 1.0, 2.0, 3.0, 4.0, 8.0), (0.0, 5.0, 15.0, 20.0)
"""Percent: the standard deviation of one run, and what a side does less."""


UNEQUAL = ((2.0, 2.0), (1.0, 2.0), (1.0, 4.0), (1.0, 8.0), (4.0, 1.0))
"""Percent: the noise of the side that is run twice, and of the other."""


def blocks(
    random: Random, n: int, *, noise: float, loss: float = 0.0, sides: int = 2, others: float | None = None
) -> dict[str, Logs]:
    """So many blocks of sides, the last of which does ``loss`` percent less, each run with ``noise`` percent.

    ``others``: the noise of the sides that are run once, where it is another.
    """
    levels = [0.0] * (sides - 1) + [log(1 - loss / 100)]
    sd, sd_of_others = (log(1 + percent / 100) for percent in (noise, noise if others is None else others))
    spreads = (sd, sd, *[sd_of_others] * (sides - 1))
    runs = [[random.gauss(*run) for run in zip((0.0, *levels), spreads, strict=True)] for _ in range(n)]
    again = [run[0] - run[1] for run in runs]
    found = {
        f"{side} / 0": Logs([run[side + 1] - (run[0] + run[1]) / 2 for run in runs], 0.0, again, AGAINST_MEAN)
        for side in range(1, sides)
    }
    for first in range(1, sides):
        for second in range(first + 1, sides):
            logs = [run[second + 1] - run[first + 1] for run in runs]
            found[f"{second} / {first}"] = Logs(logs, 0.0, again, PAIR)
    return found


def decisions(
    *,
    noise: float,
    loss: float,
    margin: Margin,
    declared: Looks = LOOKS,
    sides: int = 2,
    figures: int = 1,
    sessions: int = SESSIONS,
    others: float | None = None,
) -> dict[Decision, float]:
    """How often each decision comes out."""
    random, counts = Random(f"{noise} {loss} {margin} {sides} {figures}"), dict.fromkeys(Decision, 0)
    for _ in range(sessions):
        found = blocks(random, declared.at[-1], noise=noise, loss=loss, sides=sides, others=others)
        counts[compare(found, margin, declared, figures=figures).decision] += 1
    return {decision: count / sessions for decision, count in counts.items()}


MEASURED = {
    "tpmc_loss_interval": 0.5,
    "latency_p50_growth_interval": 10.0,
    "latency_p90_growth_interval": 18.0,
    "latency_p99_growth_interval": 24.0,
    "cpu_per_order_growth_interval": 8.0,
}
"""The noise of a run in percent of all that ``regression`` judges on the profile ``laptop``: by A/A runs, of which
docs/comparisons.md tells what is known."""

VERSIONS: Mapping[str, Mapping[str, float]] = {
    "no difference": {},
    "15 % fewer orders served": {"tpmc_loss_interval": 15.0},
    "15 % less capacity: 18 % more CPU an order": {"cpu_per_order_growth_interval": 100 - 100 / 0.85},
    "30 % more CPU an order": {"cpu_per_order_growth_interval": -30.0},
    "50 % more CPU an order": {"cpu_per_order_growth_interval": -50.0},
    "70 % more CPU an order": {"cpu_per_order_growth_interval": -70.0},
    "all latencies doubled": {metric: -100.0 for metric in MEASURED if "latency" in metric},
    "all latencies threefold": {metric: -200.0 for metric in MEASURED if "latency" in metric},
}
"""What a new version does: by how many percent less of a figure, or more where negative."""


def margins() -> dict[str, Margin]:
    """All that ``regression`` judges on the profile ``laptop``, and its margin."""
    checks = load_catalogue().claim("regression").checks_for("laptop")
    return {
        check.metric: COMPARISONS[check.metric].margin(check.limit)
        for check in checks
        if check.metric in COMPARISONS and check.limit is not None
    }


def regression(losses: Mapping[str, float], *, sessions: int = WHOLE_SESSIONS) -> Counter[tuple[Decision, int]]:
    """How often the claim comes out how, and after how many blocks."""
    random, asked, found = Random(f"{losses}"), margins(), Counter[tuple[Decision, int]]()
    for _ in range(sessions):
        each = [
            compare(
                blocks(random, LOOKS.at[-1], noise=MEASURED[metric], loss=losses.get(metric, 0.0)),
                margin,
                LOOKS,
                figures=len(asked),
            )
            for metric, margin in asked.items()
        ]
        refuted = [one.n for one in each if one.decision is Decision.REFUTED]
        if refuted:
            found[Decision.REFUTED, min(refuted)] += 1
        else:
            undecided = any(one.decision is Decision.UNDECIDED for one in each)
            found[Decision.UNDECIDED if undecided else Decision.HOLDS, max(one.n for one in each)] += 1
    return found


EVERY_S, WORKS_S = 95.0, 9.0
"""How often other work has the machine, and for how long: a tenth of the time, and nowhere ten seconds after another,
so that it goes unnoticed over the whole trial."""

RUN_S, BEFORE_S, MEASURED_S = 54.0, 25.0, 18.0
"""How long a run takes with its fresh cluster, how long it is until it is measured, and for how long that is."""

SLOWER: Mapping[str, tuple[float, float]] = {"p50": (0.5, 1.5), "p90": (0.9, 4.0), "p99": (0.99, 8.0)}
"""What part of the transactions lies below, and how much later it is where more of them than are left come due while
other work has the machine."""

SPREAD = 0.6
"""The standard deviation of the logarithm of single latencies, by the percentiles of a run."""

SERVED_LESS = 0.4
"""How much of what comes due in such a second is not served in the run."""


Runs = list[list[float]]
"""The logs of a figure by block and side; the third is the first once more."""


def beside_others(losses: Mapping[str, float], *, sessions: int = WHOLE_SESSIONS) -> Counter[tuple[str, Decision]]:
    """How often ``regression`` comes out how beside such work: as "compared" alone, and once others are "asked" for."""
    random, found = Random(f"others {losses}"), Counter[tuple[str, Decision]]()
    for _ in range(sessions):
        phase, taken = random.uniform(0, EVERY_S), list[list[Taken]]()
        for block in range(LOOKS.at[-1]):
            order = random.sample(range(3), 3)
            taken.append([_taken_at(RUN_S * (3 * block + order[side]) + BEFORE_S, phase) for side in range(3)])
        compared, explains = list[Decision](), list[Decision]()
        for metric in MEASURED:
            loss, sd = log(1 - losses.get(metric, 0.0) / 100), log(1 + MEASURED[metric] / 100)
            runs: Runs = [[random.gauss(loss if side == 1 else 0.0, sd) for side in range(3)] for _ in taken]
            one, side = _eased(metric, runs, taken, None), partial(_worse, metric)
            compared.append(one.decision)
            again = partial(_eased_outside, metric, runs, taken)
            explains.append(Decision.UNDECIDED if explained(one.outside, side, again) else one.decision)
        found["compared", _all(compared)] += 1
        found["asked", _all(explains)] += 1
    return found


def _taken_at(begin: float, phase: float) -> Taken:
    window = round(1e6 * begin), round(1e6 * (begin + MEASURED_S))
    works = (phase + EVERY_S * number for number in range(-1, round((begin + MEASURED_S) / EVERY_S) + 1))
    return taken_in(window, [(round(1e6 * at), round(1e6 * (at + WORKS_S))) for at in works])


def _eased(metric: str, runs: Runs, taken: list[list[Taken]], place: Place | None) -> Compared:
    """The comparison, where that side gets back what others took from it."""
    sides = () if place is None else (1,) if place[1] == "new" else (0, 2)
    return compare(
        {"new / old": _against(metric, runs, taken, eased=sides)}, _margins()[metric], LOOKS, figures=len(MEASURED)
    )


def _eased_outside(metric: str, runs: Runs, taken: list[list[Taken]], place: Place) -> tuple[Ratio, ...]:
    return _eased(metric, runs, taken, place).outside


def _worse(metric: str, one: Ratio) -> Place:
    return "", "new" if COMPARISONS[metric].better * one.mean < 0 else "old"


_margins = cache(margins)


def _against(metric: str, runs: Runs, taken: list[list[Taken]], *, eased: Collection[int]) -> Logs:
    """The logs of the second side against the first, which was run twice; ``eased``: as sides without others' doing."""
    told = [
        [value + _moved(metric, of, eased=side in eased) for side, (value, of) in enumerate(zip(*block, strict=True))]
        for block in zip(runs, taken, strict=True)
    ]
    return Logs([b - (a + c) / 2 for a, b, c in told], 0.0, [a - c for a, _, c in told], AGAINST_MEAN)


def _moved(metric: str, taken: Taken, *, eased: bool) -> float:
    """By how much other work moves the log of a run's figure, or what it becomes without that at the kindest."""
    called = COMPARISONS[metric].called
    if called not in SLOWER:
        lost = log(1 - SERVED_LESS * taken.part) * COMPARISONS[metric].better if called == "tpmC" else 0.0
        given = -log(1 - min(0.999, taken.part)) * COMPARISONS[metric].better if eased else 0.0
        return lost + given
    share, later = SLOWER[called]
    if not eased:
        return log(later) if taken.part > 1 - share else 0.0
    left = share * max(0.001, 1 - taken.delayed_part) / max(0.001, 1 - taken.part)
    return SPREAD * (NormalDist().inv_cdf(min(share, left)) - NormalDist().inv_cdf(share))


def _all(decisions: Collection[Decision]) -> Decision:
    order = (Decision.REFUTED, Decision.UNDECIDED, Decision.HOLDS)
    return min(decisions, key=order.index)


def beside(versions: Collection[str]) -> str:
    """The table of ``regression`` beside other work."""
    told = [f"**regression beside other work that has the machine for {WORKS_S:g} of every {EVERY_S:g} s**", ""]
    told += ["| the new version | as compared | others asked for, too |", "|---" * 3 + "|"]
    for name in ("no difference", "15 % fewer orders served", "all latencies doubled", "all latencies threefold"):
        if name not in versions:
            continue
        found = beside_others(VERSIONS[name])
        cells = (
            " / ".join(f"{100 * found[how, is_] / WHOLE_SESSIONS:.1f}" for is_ in (Decision.HOLDS, Decision.REFUTED))
            for how in ("compared", "asked")
        )
        told.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(told)


LESS_CAPACITY = 100 / 0.85 - 100
"""Percent that an order costs more where 15 % less capacity is all that is different."""
NARROW = 10.0
"""Percent: a margin that would find it."""


def blocks_for(growth: float, margin: Margin, *, noise: float, figures: int) -> int | None:
    """The fewest blocks after which a growth is refuted with 90 % probability, if one looks once."""
    many = range(2, MOST_PAIRS + 1)
    return next((n for n in many if plan(margin, looks(n), noise=noise, figures=figures)[0].found <= growth), None)


def of_capacity(noises: Sequence[float]) -> str:
    """The table of what is found of 15 % less capacity, by the CPU that an order costs."""
    metric, figures = "cpu_per_order_growth_interval", len(MEASURED)
    judged, narrow = margins()[metric], no_increase(NARROW)
    told = [f"**15 % less capacity, by the CPU that an order costs ({LESS_CAPACITY:.1f} % more)**", ""]
    head = (
        "noise of a run",
        f"at the margin of {judged.percent:g} %",
        f"at one of {NARROW:g} %",
        f"no difference, at {NARROW:g} %",
        f"blocks that find it with 90 % at {NARROW:g} %",
    )
    told += [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for noise in noises:
        cells = []
        for margin, growth in ((judged, LESS_CAPACITY), (narrow, LESS_CAPACITY), (narrow, 0.0)):
            found = decisions(noise=noise, loss=-growth, margin=margin, figures=figures, sessions=WHOLE_SESSIONS)
            cells.append(f"{100 * found[Decision.HOLDS]:.1f} / {100 * found[Decision.REFUTED]:.1f}")
        needed = blocks_for(LESS_CAPACITY, narrow, noise=noise, figures=figures)
        told.append(f"| {noise:g} % | {' | '.join(cells)} | {needed} |")
    return "\n".join(told)


def of_versions(versions: Collection[str]) -> str:
    """The table of ``regression`` as a whole."""
    noises = ", ".join(f"{COMPARISONS[metric].called} {MEASURED[metric]:g} %" for metric in margins())
    told = [f"**regression as a whole, with a noise of {noises} a run**", ""]
    told += ["| the new version | passes | is refuted | ends after three blocks |", "|---" * 4 + "|"]
    for name in versions:
        found = regression(VERSIONS[name])
        sums = [
            sum(n for (is_, _), n in found.items() if is_ is decision)
            for decision in (Decision.HOLDS, Decision.REFUTED)
        ]
        early = sum(n for (_, at), n in found.items() if at == LOOKS.at[0])
        told.append(f"| {name} | {' | '.join(f'{100 * count / WHOLE_SESSIONS:.1f}' for count in (*sums, early))} |")
    return "\n".join(told)


def table(
    noises: Sequence[float] = NOISES,
    versions: Collection[str] = tuple(VERSIONS),
    unequal: Sequence[tuple[float, float]] = UNEQUAL,
) -> str:
    """The tables of the documentation, or only these rows of them.

    Markdown, passed / refuted in percent, the rest inconclusive.
    """
    head = ["noise of a run", *(f"{loss:g} % less" if loss else "no difference" for loss in LOSSES), "planned: found"]
    told = []
    for name, margin, figures in (
        ("parity, ±10 %", equivalence(10), 1),
        ("regression, 10 %, beside four other figures", non_inferiority(10), 5),
    ):
        told += [f"**{name}**", "", f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
        for noise in noises:
            cells = []
            for loss in LOSSES:
                found = decisions(noise=noise, loss=loss, margin=margin, figures=figures)
                cells.append(f"{100 * found[Decision.HOLDS]:.1f} / {100 * found[Decision.REFUTED]:.1f}")
            first, *_, last = plan(margin, LOOKS, noise=noise, figures=figures)
            told.append(f"| {noise:g} % | {' | '.join(cells)} | {first.found:.1f} %, then {last.found:.1f} % |")
        told.append("")
    told += [
        of_versions(versions),
        "",
        of_capacity([noise for noise in noises if noise in NOISES[1:]]),
        "",
        beside(versions),
        "",
        "**parity, ±10 %, sides that are not equally noisy**",
        "",
    ]
    told += ["| run twice | the other | no difference | at the margin |", "|---" * 4 + "|"]
    for noise, others in unequal:
        cells = []
        for loss in (0.0, 100 * (1 - 1 / 1.1)):
            found = decisions(noise=noise, loss=loss, margin=equivalence(10), others=others)
            cells.append(f"{100 * found[Decision.HOLDS]:.1f} / {100 * found[Decision.REFUTED]:.1f}")
        told.append(f"| {noise:g} % | {others:g} % | {' | '.join(cells)} |")
    return "\n".join([*told, ""])


if __name__ == "__main__":
    print(table())
