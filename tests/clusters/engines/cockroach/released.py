"""The saved list of release series (``tests/clusters/recorded/series.csv``) that rules between versions are held to.

As public documentation lists them up to v26.2 (cockroachdb/docs: ``_data/versions.csv``, ``_data/releases.yml``; the
licensing FAQs; ``_includes/common/upgrade/finalize-self-hosted.md``). *Documented, not run*: no build of the vendor's
was at hand.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

from clusters.engines.cockroach.version import Series, Version

SAVED = Path(__file__).parents[2] / "recorded" / "series.csv"


@dataclass(frozen=True, kw_only=True, slots=True)
class Released:
    """One series: the day of its first production release, and its first version under the terms of v24.3, if any.

    ``keeps_by``: the settings by each of which the version in force is kept, the one that counts until it is reset
    first.
    """

    series: Series
    released: str
    innovation: bool
    terms: Version | None
    keeps_by: tuple[str, ...]


def _read() -> tuple[Released, ...]:
    with SAVED.open(encoding="utf-8", newline="") as file:
        return tuple(
            Released(
                series=Version.first_of(row["series"]).series,
                released=row["released"],
                innovation={"innovation": True, "regular": False}[row["kind"]],
                terms=Version.parse(row["under_the_terms_from"]) if row["under_the_terms_from"] else None,
                keeps_by=tuple(row["keeps_by"].split()),
            )
            for row in csv.DictReader(file)
        )


RELEASED = _read()
"""Oldest first."""
