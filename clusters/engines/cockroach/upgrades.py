"""Which version of CockroachDB a cluster may go on to from another, and whether it may go back.

Rules of public documentation (cockroachlabs.com/docs: upgrade-cockroach-version, release-support-policy), read up to
v26.2; *documented, not run* but for the builds of ``builds.RUN``:

- Releases of one series (patches) may be changed in both directions.
- A testing build goes on to later ones of its series and to its release. To an older one only in going back, before the
  newer one is final: what it stored its elders may be unable to read (our own reading: testing builds are promised
  nothing).
- The documentation says that no cluster goes on from an alpha build of a former series, nor from a build of the master
  branch. That is not refused here: such builds are all that was at hand, and those of ``builds.CHANGED`` did go on.
- Before 24.1 each series goes on to the next one and to no other.
- From 24.1 on there are regular series and innovation series (24.2; from 2025 on the first and third of a year). A
  regular one goes on to the next series, or past an innovation series to the regular one after it; an innovation one
  only to the next.
- Back to a former series only until the new version is made final.
"""

import re

from clusters.engines.cockroach.builds import Build
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


_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def why_not_from(old: Build, new: Build) -> str:
    """Why a cluster of the old build may not be given the new one; empty where it may.

    Raises ``BadInput`` for what is no version.
    """
    before, after = Version.parse(old.tag), Version.parse(new.tag)
    if before.series == after.series:
        if not (after.pre and _older(new, old)):
            return ""
        return (
            f"{new} is a testing build, and older than {old}: it may be unable to read what that one stored, and a "
            "cluster goes back to it only before the newer one is final; give the older one first"
        )
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


def goes_back(old: Build, new: Build) -> bool:
    """Whether the new build is an older patch of the old one's series."""
    before, after = Version.parse(old.tag), Version.parse(new.tag)
    return before.series == after.series and after < before


def _older(build: Build, than: Build) -> bool:
    """Of two testing builds of one release the day counts, where both say theirs: anybody can give any tag."""
    one, other = Version.parse(build.tag), Version.parse(than.tag)
    if one == other:
        return False
    testing = one.pre and other.pre and (*one.series, one.patch) == (*other.series, other.patch)
    if testing and build.date != than.date and all(_DAY.fullmatch(found.date) for found in (build, than)):
        return build.date < than.date
    return one < other


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
