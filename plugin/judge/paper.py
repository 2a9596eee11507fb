"""The judge on a source's own tables, as the catalogue prints them: what would have been said of the papers' runs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plugin.judge.capacity import Knee, Step, knee
from plugin.judge.comparison import Compared, Decision, Looks, equivalence, looks
from plugin.judge.convergence import Convergence, Spread, converge
from plugin.judge.parity import Parity, Sample, knees, parity
from plugin.judge.tpcc import ALL

ONE_RUN = looks(5)
"""The fewest runs of a cell that are looked at; every cell of the papers is a single one."""

QUIET_S = 120.0
"""CockroachDB's own tests wait for so long without a range event."""


def rows(table: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The rows of a catalogue's table (``columns`` and ``rows``) by column. Raises ``ValueError`` where their lengths differ."""
    for row in table["rows"]:
        yield dict(zip(table["columns"], row, strict=True))


@dataclass(frozen=True, kw_only=True, slots=True)
class PaperGrowth:
    """What the judge finds in a source's table of replicas a node over time. ``before`` and ``after``: how many nodes."""

    before: int
    after: int
    found: Convergence

    @property
    def per_s(self) -> float | None:
        """Replicas that nodes gained, a second until even."""
        return self.found.gained / self.found.balanced if self.found.balanced else None


def paper_growth(table: Mapping[str, Any]) -> PaperGrowth:
    """A table of ``minutes`` and the replicas of each node, from the first action on, without traffic. Raises ``KeyError`` for any other."""
    series = [
        Spread(
            t=60.0 * row["minutes"],
            replicas={name: count for name, count in row.items() if name != "minutes"},
        )
        for row in rows(table)
    ]
    nodes = [*series[0].replicas]
    return PaperGrowth(
        before=sum(count > 0 for count in series[0].replicas.values()),
        after=len(nodes),
        found=converge(series, nodes, quiet_s=QUIET_S, quiet_from=0),
    )


def _step(row: Mapping[str, Any]) -> Step:
    p90 = {ALL: row["p90_ms"] / 1e3} if "p90_ms" in row else {}
    return Step(warehouses=int(row["warehouses"]), tpmc=float(row["tpmc"]), p90_s=p90)


def paper_knee(table: Mapping[str, Any]) -> Knee:
    """The knee of a printed ramp (table 5.3)."""
    return knee(map(_step, rows(table)))


@dataclass(frozen=True, kw_only=True, slots=True)
class PaperParity:
    """A printed comparison of arms (tables 5.4 and 5.5). ``doubts``: why nothing can be concluded from it."""

    parity: Parity
    knees: Mapping[str, Knee]
    compared: Compared | None
    doubts: tuple[str, ...]

    @property
    def decision(self) -> Decision:
        """Undecided as long as there are doubts."""
        if self.doubts or self.compared is None:
            return Decision.UNDECIDED
        return self.compared.decision

    def ratios(self) -> Mapping[str, float]:
        """Each pair of arms of each comparable cell, how much the second reached more or less than the first, in percent."""
        found: dict[str, float] = {}
        for cell in self.parity.cells:
            if cell.name in self.parity.comparable:
                arms: Sequence[str] = cell.arms
                for index, first in enumerate(arms):
                    for second in arms[index + 1 :]:
                        name = f"{second} / {first}, {cell.name}"
                        found[name] = 100 * (cell.tpmc(second) / cell.tpmc(first) - 1)
        return found


def paper_parity(
    table: Mapping[str, Any], arm: str, *, margin: float = 2.0, declared: Looks = ONE_RUN
) -> PaperParity:
    """The comparison of a table whose column ``arm`` says what the arms are; ``margin`` in percent."""
    samples = [
        Sample(
            cell=f"{row['warehouses']} warehouses",
            arm=f"{row[arm]} nodes" if isinstance(row[arm], int) else str(row[arm]),
            block=0,
            step=_step(row),
        )
        for row in rows(table)
    ]
    found = parity(samples)
    compared = found.compared(equivalence(margin), declared)
    doubts = []
    if compared is None or compared.n < 2:
        doubts.append(f"n = {compared.n if compared else 0}")
    if not any(sample.step.by_type for sample in samples):
        doubts.append("no p90 by type")
    return PaperParity(parity=found, knees=knees(found.cells), compared=compared, doubts=tuple(doubts))
