"""What comparisons of sides decide in simulated blocks, by the suite's own code; ``python -m`` prints the tables.

Each run's log of a figure is normal. One side is run twice in each block; a loss is one side's alone.
"""

from collections import Counter
from collections.abc import Mapping
from math import log
from random import Random

from fixtures.workloads.tpcc.judge.runs import COMPARISONS
from plugin.catalogue import load as load_catalogue
from plugin.judge.comparison import (
    AGAINST_MEAN,
    PAIR,
    Decision,
    Logs,
    Looks,
    Margin,
    compare,
    equivalence,
    looks,
    non_inferiority,
    plan,
)

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
"""The noise of a run in percent of all that ``regression`` judges on the profile ``laptop``: by A/A runs."""

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


def of_versions() -> str:
    """The table of ``regression`` as a whole."""
    noises = ", ".join(f"{COMPARISONS[metric].called} {MEASURED[metric]:g} %" for metric in margins())
    told = [f"**regression as a whole, with a noise of {noises} a run**", ""]
    told += ["| the new version | passes | is refuted | ends after three blocks |", "|---" * 4 + "|"]
    for name, losses in VERSIONS.items():
        found = regression(losses)
        sums = [
            sum(n for (is_, _), n in found.items() if is_ is decision)
            for decision in (Decision.HOLDS, Decision.REFUTED)
        ]
        early = sum(n for (_, at), n in found.items() if at == LOOKS.at[0])
        told.append(f"| {name} | {' | '.join(f'{100 * count / WHOLE_SESSIONS:.1f}' for count in (*sums, early))} |")
    return "\n".join(told)


def table() -> str:
    """The table of the documentation: Markdown, passed / refuted in percent, the rest inconclusive."""
    head = ["noise of a run", *(f"{loss:g} % less" if loss else "no difference" for loss in LOSSES), "planned: found"]
    told = []
    for name, margin, figures in (
        ("parity, ±10 %", equivalence(10), 1),
        ("regression, 10 %, beside four other figures", non_inferiority(10), 5),
    ):
        told += [f"**{name}**", "", f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
        for noise in NOISES:
            cells = []
            for loss in LOSSES:
                found = decisions(noise=noise, loss=loss, margin=margin, figures=figures)
                cells.append(f"{100 * found[Decision.HOLDS]:.1f} / {100 * found[Decision.REFUTED]:.1f}")
            first, *_, last = plan(margin, LOOKS, noise=noise, figures=figures)
            told.append(f"| {noise:g} % | {' | '.join(cells)} | {first.found:.1f} %, then {last.found:.1f} % |")
        told.append("")
    told += [of_versions(), "", "**parity, ±10 %, sides that are not equally noisy**", ""]
    told += ["| run twice | the other | no difference | at the margin |", "|---" * 4 + "|"]
    for noise, others in UNEQUAL:
        cells = []
        for loss in (0.0, 100 * (1 - 1 / 1.1)):
            found = decisions(noise=noise, loss=loss, margin=equivalence(10), others=others)
            cells.append(f"{100 * found[Decision.HOLDS]:.1f} / {100 * found[Decision.REFUTED]:.1f}")
        told.append(f"| {noise:g} % | {others:g} % | {' | '.join(cells)} |")
    return "\n".join([*told, ""])


if __name__ == "__main__":
    print(table())
