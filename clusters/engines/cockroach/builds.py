"""Which builds of CockroachDB this suite was run against, and what may be said of any other one."""

from collections.abc import Sequence
from dataclasses import dataclass

from clusters.engines.cockroach.version import Version

COMMIT_DIGITS = 10
"""How many digits of a commit tell two builds apart."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Build:
    """One build as ``cockroach version`` describes it: ``date`` is ``2021-02-28``. What it does not say is empty."""

    tag: str
    date: str = ""
    commit: str = ""

    def __str__(self) -> str:
        return " ".join(
            [
                self.tag,
                *([f"of {self.date}"] if self.date else []),
                *([f"({self.commit[:COMMIT_DIGITS]})"] if self.commit else []),
            ]
        )


RUN: Sequence[Build] = (
    Build(tag="v20.2.0-dev.20201130", date="2020-11-30", commit="e017dd1353"),
    Build(tag="v21.1.0-alpha.20210228", date="2021-02-28", commit="d1cd456a1b"),
    Build(tag="v26.1.0-alpha.1", date="2025-11-23", commit="dd7980267a"),
)
"""The builds that the claims of the suite ``gate`` and the suite's own tests were run against, oldest first.

All were built from public source: no build of the vendor's was run.
"""


def not_run(build: Build) -> str:
    """What to say of a build that the suite was not run against; the empty text of one that it was.

    The commit tells builds apart: anybody can give a build any tag, and a tag that was run says nothing about other commits.
    """
    if build.commit and any(build.commit.startswith(one.commit) for one in RUN):
        return ""
    version = Version.parse(build.tag)
    older = [one for one in RUN if Version.parse(one.tag) <= version]
    newer = [one for one in RUN if Version.parse(one.tag) > version]
    if older and newer:
        return f"documented, not run; {older[-1]} and {newer[0]} were"
    return f"documented, not run; the {'newest' if older else 'oldest'} that was is {(older or newer)[-1 if older else 0]}"
