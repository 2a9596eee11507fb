"""Which builds of CockroachDB this suite was run against, and what may be said of any other one."""

from collections.abc import Sequence
from dataclasses import dataclass

from clusters.engines.cockroach.version import Version

COMMIT_DIGITS = 10
"""How many digits of a commit tell two builds apart."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Build:
    """One build as ``cockroach version`` describes it: ``date`` is ``2021-02-28``. What it does not say is empty.

    Of one that was run: ``made`` says from what, and ``ran`` what of the suite was run on it.
    """

    tag: str
    date: str = ""
    commit: str = ""
    made: str = ""
    ran: str = ""

    def __str__(self) -> str:
        date = f" of {self.date}" if self.date else ""
        commit = f" ({self.commit[:COMMIT_DIGITS]})" if self.commit else ""
        return f"{self.tag}{date}{commit}"


RUN: Sequence[Build] = (
    Build(
        tag="v20.2.0-dev.20201130",
        date="2020-11-30",
        commit="ef184b7dc0",
        made="public source",
        ran="the suite gate",
    ),
    Build(
        tag="v21.1.0-alpha.20210228",
        date="2021-02-28",
        commit="d1cd456a1b",
        made="public source",
        ran="the suite gate; survivability, growing and resizing of the suite nightly; their sabotages; the benchmarks",
    ),
    Build(
        tag="v21.1.0-alpha.20210316",
        date="2021-03-16",
        commit="5cacaaa12e",
        made="public source",
        ran="the suites gate and curve; tenancy of the suite nightly",
    ),
    Build(
        tag="v26.1.0-alpha.1",
        date="2025-11-23",
        commit="dd7980267a",
        made="public source less its publisher's own patch, without console and geospatial libraries; "
        "its Go counts runnable goroutines, as the vendor's does",
        ran="The suite gate. Of the suite nightly: growing, survivability, failed updates and tenants (isolation "
        "was refuted). Hot-swap on five nodes: its six paths and a chain, most with 6 % of the checks of objects. "
        "Sabotages (claims.md tells which of hot-swap were seen refuted, tenancy.md which of tenants), survivability "
        "on Kubernetes, single statements, and the benchmarks (but that of the pace)",
    ),
)
"""The builds that the suite was run on, oldest first, each with the settings of the profile ``laptop``. None was made
by the vendor.

Built with an upstream Go, v26.1 has no admission control that works: nobody tells it how many goroutines wait, and
after 100 000 answers (the first burst of tokens, never refilled) distributed queries of a node wait for ever. Its
metric ``admission_granter_total_slots_kv`` stays 0.
"""


_RAN = {build.tag: build for build in RUN}
CHANGED: Sequence[tuple[Build, Build]] = (
    (_RAN["v20.2.0-dev.20201130"], _RAN["v21.1.0-alpha.20210228"]),
    (_RAN["v21.1.0-alpha.20210228"], _RAN["v21.1.0-alpha.20210316"]),
    (_RAN["v26.1.0-alpha.1"], _RAN["v26.1.0-alpha.1"]),
)
"""From which of them to which the claim ``hot-swap`` was run; where both are the same, under two tags."""


def changed_before(old: Build, new: Build) -> bool:
    """Whether clusters were changed from the one build to the other; the commits tell, as of builds that were run."""
    return any(
        old.commit.startswith(before.commit) and new.commit.startswith(after.commit) for before, after in CHANGED
    )


def run_before(build: Build) -> str:
    """What of the suite was run on a build of this commit, and from what that was made; the empty text for nothing.

    The commit tells builds apart: anybody can give a build any tag, and a tag that was run says nothing about other
    commits.
    """
    same = [one for one in RUN if build.commit.startswith(one.commit)]
    return f"{same[0].ran}; on a build of this commit from {same[0].made}" if same else ""


def not_run(build: Build) -> str:
    """What to say of a build that nothing was run on; the empty text of one that something was."""
    if run_before(build):
        return ""
    version = Version.parse(build.tag)
    older = [one for one in RUN if Version.parse(one.tag) <= version]
    newer = [one for one in RUN if Version.parse(one.tag) > version]
    if older and newer:
        return f"documented, not run; the suite was tried on {older[-1]} and {newer[0]}"
    end, nearest = ("newest", older[-1]) if older else ("oldest", newer[0])
    return f"documented, not run; the {end} that the suite was tried on is {nearest}"
