"""What is said of a build: whether it was run, by its commit and by nothing else."""

from pathlib import Path

import pytest

from clusters.engines.cockroach.builds import COMMIT_DIGITS, RUN, Build, not_run, run_before
from clusters.engines.cockroach.version import Version

CHECKOUT = Path(__file__).resolve().parents[4]


def test_builds_that_were_run_are_told_apart_by_commit_and_are_in_order() -> None:
    assert len({build.commit for build in RUN}) == len(RUN)
    assert all(len(build.commit) == COMMIT_DIGITS and build.date for build in RUN)
    versions = [Version.parse(build.tag) for build in RUN]
    assert versions == sorted(versions)


@pytest.mark.parametrize("build", RUN, ids=str)
def test_a_build_that_was_run(build: Build) -> None:
    assert not_run(Build(tag=build.tag, commit=f"{build.commit}{'0' * 30}")) == ""
    assert not_run(Build(tag="v99.9.9", commit=build.commit)) == "", "anybody can give a build any tag"
    assert run_before(build) == f"{build.ran}; on a build of this commit from {build.made}"


def test_the_documents_name_the_builds_that_were_run() -> None:
    text = " ".join((CHECKOUT / "docs" / "versions.md").read_text().split())
    for build in RUN:
        assert f"| {build} | {build.made} | {build.ran} |" in text


@pytest.mark.parametrize("build", RUN, ids=str)
@pytest.mark.parametrize("commit", ["", "0" * 40])
def test_another_commit_of_the_same_name(build: Build, commit: str) -> None:
    other = Build(tag=build.tag, commit=commit)
    assert not_run(other).startswith("documented, not run; ")
    assert run_before(other) == ""


def test_what_lies_between_before_and_after() -> None:
    first, second = RUN[:2]
    assert not_run(Build(tag="v21.1.0-alpha.1")) == f"documented, not run; the suite was tried on {first} and {second}"
    assert (
        not_run(Build(tag="v20.2.0-alpha.1"))
        == f"documented, not run; the oldest that the suite was tried on is {RUN[0]}"
    )
    assert not_run(Build(tag="v99.1.0")) == f"documented, not run; the newest that the suite was tried on is {RUN[-1]}"
