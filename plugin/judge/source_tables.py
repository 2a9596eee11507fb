"""The judge on a source's own tables, as the catalogue prints them: what would have been said of the papers' runs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from plugin.judge.convergence import PAPER_QUIET_S, Convergence, Spread, converge


def rows(table: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The rows of a catalogue's table (``columns`` and ``rows``) by column.

    Raises ``ValueError`` where their lengths differ.
    """
    for row in table["rows"]:
        yield dict(zip(table["columns"], row, strict=True))


@dataclass(frozen=True, kw_only=True, slots=True)
class PaperGrowth:
    """What the judge finds in a source's table of replicas a node over time.

    ``before`` and ``after``: how many nodes.
    """

    before: int
    after: int
    found: Convergence

    @property
    def per_s(self) -> float | None:
        """Replicas that nodes gained, a second until even."""
        return self.found.gained / self.found.balanced if self.found.balanced else None


def paper_growth(table: Mapping[str, Any]) -> PaperGrowth:
    """A table of ``minutes`` and the replicas of each node, from the first action on, without traffic.

    Raises ``KeyError`` for any other.
    """
    series = [
        Spread(t=60.0 * row["minutes"], replicas={name: count for name, count in row.items() if name != "minutes"})
        for row in rows(table)
    ]
    nodes = [*series[0].replicas]
    return PaperGrowth(
        before=sum(count > 0 for count in series[0].replicas.values()),
        after=len(nodes),
        found=converge(series, nodes, quiet_s=PAPER_QUIET_S, quiet_from=0),
    )
