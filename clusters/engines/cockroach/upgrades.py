"""Which version of CockroachDB a cluster may go on to from another, and whether it may go back.

Rules of public documentation (cockroachlabs.com/docs: upgrade-cockroach-version, release-support-policy), read up to
v26.2; *documented, not run* but for the builds of ``builds.RUN``:

- Versions of one series (patches) may be changed in both directions.
- Up to 24.1 each series goes on to the next one and to no other.
- From 24.1 on there are regular series and innovation series (24.2; from 2025 on the first and third of a year). A
  regular one goes on to the next series, or past an innovation series to the regular one after it; an innovation one
  only to the next.
- Back to a former series only until the new version is made final.
"""

from clusters.engines.cockroach.version import Series, Version

FIRST_OF_FOUR: int = 25
"""From this year on there are four series a year, before that two, in 2024 three."""


def innovation(series: Series) -> bool:
    """Whether a series is an innovation release."""
    year, number = series
    return series == (24, 2) or (year >= FIRST_OF_FOUR and number % 2 == 1)


def following(series: Series) -> Series:
    """The series after this one."""
    year, number = series
    last = 4 if year >= FIRST_OF_FOUR else 3 if year == 24 else 2
    return (year, number + 1) if number < last else (year + 1, 1)


def targets(series: Series) -> tuple[Series, ...]:
    """The series that a cluster of this one may go on to."""
    after = following(series)
    if innovation(after) and not innovation(series):
        return after, following(after)
    return (after,)


def why_not_from(old: str, new: str) -> str:
    """Why a cluster of the old version may not be given the new one; empty where it may.

    Both as servers print them. Raises ``BadInput`` for what is no version.
    """
    before, after = Version.parse(old), Version.parse(new)
    if before.series == after.series:
        return ""
    if after < before:
        return (
            f"{after} is older than {before}: a cluster goes back only before the newer version is final; "
            "give the old version first"
        )
    allowed = targets(before.series)
    if after.series in allowed:
        return ""
    names = " or ".join(f"v{year}.{number}" for year, number in allowed)
    return f"a cluster of {before} goes on to {names} only, not to v{after.major}.{after.minor}; upgrade step by step"


def old_joins_final(old: str, new: str) -> bool | None:
    """Whether a new node of the old version may join a cluster once the new one is final there.

    Patches of one series have the same version of data and protocol, another series has a later one. ``None`` where one
    of them is a testing build: those of a series may differ, and only servers say in what. Raises ``BadInput`` for what
    is no version.
    """
    before, after = Version.parse(old), Version.parse(new)
    if before == after:
        return True
    if before.series != after.series:
        return before > after
    return None if before.pre or after.pre else True
