"""What comparisons of sides decide in simulated blocks, by the suite's own code; ``python -m`` prints the table.

Each run's log of tpmC is normal. One side is run twice in each block; a loss is one side's alone.
"""

from math import log
from random import Random

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

SESSIONS = 4000
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


def table() -> str:
    """The table of the documentation: Markdown, passed / refuted in percent, the rest inconclusive."""
    head = ["noise of a run", *(f"{loss:g} % less" if loss else "no difference" for loss in LOSSES), "planned: found"]
    told = []
    for name, margin, figures in (
        ("parity, ±10 %", equivalence(10), 1),
        ("regression, 10 %, beside three latencies", non_inferiority(10), 4),
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
    told += ["**parity, ±10 %, sides that are not equally noisy**", ""]
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
