"""Which version a cluster may go on to: the rules of the documentation, held against the saved list of releases."""

from itertools import pairwise

import pytest

from clusters.engines.cockroach import KIND
from clusters.engines.cockroach.builds import CHANGED, Build
from clusters.engines.cockroach.changes import change
from clusters.engines.cockroach.licences import KEY
from clusters.engines.cockroach.upgrades import following, innovation, targets, why_not_from
from clusters.engines.cockroach.version import Series, Version
from clusters.engines.cockroach.versions import NEWEST, OLDEST, dialect_for
from tests.clusters.engines.cockroach.released import RELEASED, Released

WITH_KEY = {KEY: "key"}


def test_the_saved_list_is_in_order_and_reaches_as_far_as_the_table_of_differences() -> None:
    assert (RELEASED[0].series, RELEASED[-1].series) == (OLDEST, NEWEST)
    assert [one.released for one in RELEASED] == sorted({one.released for one in RELEASED})


@pytest.mark.parametrize(("one", "after"), list(pairwise(RELEASED)))
def test_series_follow_each_other_as_they_were_released(one: Released, after: Released) -> None:
    assert following(one.series) == after.series


@pytest.mark.parametrize("one", RELEASED)
def test_innovation_releases_are_those_of_the_list(one: Released) -> None:
    assert innovation(one.series) is one.innovation


@pytest.mark.parametrize("one", RELEASED)
def test_a_version_is_kept_and_made_final_by_a_setting_that_the_series_has(one: Released) -> None:
    """Documented, not run.

    ``cluster.preserve_downgrade_option`` keeps one version and goes when the next is final, in each series of the list.
    ``cluster.auto_upgrade.enabled``, from v23.2 on, lasts; nobody touches it here, and on is its default: so what is
    reset is all that keeps a version.
    """
    dialect, (first, *lasting) = dialect_for(Version(*one.series, 0)), one.keeps_by
    assert lasting == (["cluster.auto_upgrade.enabled"] if one.series >= (23, 2) else [])
    number = "{}.{}".format(*one.series)
    assert dialect.keep_version(number) == f"SET CLUSTER SETTING {first} = '{number}'"
    assert dialect.free_version == f"RESET CLUSTER SETTING {first}"
    assert not any(setting in str(dialect) for setting in lasting)


@pytest.mark.parametrize("old", RELEASED)
@pytest.mark.parametrize("new", RELEASED)
def test_between_any_two_series_of_the_list(old: Released, new: Released) -> None:
    """On to the next one, and past one innovation release; never back, and never past a regular one."""
    names = [f"v{year}.{number}.{patch}" for (year, number), patch in ((old.series, 3), (new.series, 1))]
    at, to = RELEASED.index(old), RELEASED.index(new)
    past = RELEASED[at + 1 : to]
    allowed = to == at or (at < to and (not past or (len(past) == 1 and past[0].innovation and not old.innovation)))
    assert (change({"version": names[0]}, {"version": names[1]}, WITH_KEY).against == "") is allowed


@pytest.mark.parametrize(
    ("series", "allowed"),
    [
        ((20, 2), [(21, 1)]),
        ((22, 2), [(23, 1)]),
        ((23, 2), [(24, 1)]),
        ((24, 1), [(24, 2), (24, 3)]),
        ((24, 2), [(24, 3)]),
        ((24, 3), [(25, 1), (25, 2)]),
        ((25, 1), [(25, 2)]),
        ((25, 2), [(25, 3), (25, 4)]),
        ((25, 4), [(26, 1), (26, 2)]),
        ((26, 1), [(26, 2)]),
    ],
)
def test_a_series_goes_on_to(series: Series, allowed: list[Series]) -> None:
    assert list(targets(series)) == allowed


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("v20.2.6", "v20.2.5", ""),
        ("v20.2.5", "v20.2.6", ""),
        ("v26.1.0-alpha.1", "v26.1.0-alpha.1", ""),
        ("v20.2.0-dev.20201130", "v21.1.0-alpha.20210228", ""),
        ("v25.2.3", "v25.4.0", ""),
        ("v21.1.0", "v20.2.6", "v20.2.6 is older than v21.1.0"),
        ("v20.2.6", "v21.2.0", "goes on to v21.1 only, not to v21.2"),
        ("v24.3.1", "v25.3.0", "goes on to v25.1 or v25.2 only, not to v25.3"),
        ("v25.1.0", "v25.3.0", "goes on to v25.2 only"),
        ("v24.1.4", "v24.1.3", ""),
        ("v26.1.0-alpha.1", "v26.1.0-alpha.2", ""),
        ("v26.1.0-alpha.2", "v26.1.0-rc.1", ""),
        ("v26.1.0-rc.1", "v26.1.0", ""),
        ("v21.1.0-alpha.20210228", "v21.1.0-alpha.20210316", ""),
        ("v21.1.0-alpha.20210316", "v21.1.0-alpha.20210228", "v21.1.0-alpha.20210228 is a testing build, and older"),
        ("v26.1.0-alpha.2", "v26.1.0-alpha.1", "older than v26.1.0-alpha.2: it may be unable to read what that one"),
        ("v26.1.0", "v26.1.0-rc.1", "v26.1.0-rc.1 is a testing build, and older than v26.1.0: "),
        ("v26.1.3", "v26.1.0-rc.1", "only before the newer one is final; give the older one first"),
    ],
)
def test_what_is_not_allowed_says_why(old: str, new: str, says: str) -> None:
    found = why_not_from(Build(tag=old), Build(tag=new))
    assert says in found
    assert bool(says) == bool(found)


@pytest.mark.parametrize(
    ("old", "new", "allowed"),
    [
        (("v26.1.0-alpha.2", "2025-11-20"), ("v26.1.0-alpha.1", "2025-11-23"), True),
        (("v26.1.0-alpha.1", "2025-11-23"), ("v26.1.0-alpha.2", "2025-11-20"), False),
        (("v26.1.0-alpha.1", "2025-11-23"), ("v26.1.0-alpha.2", "2025-11-23"), True),
        (("v26.1.0-alpha.2", "2025-11-23"), ("v26.1.0-alpha.1", "2025-11-23"), False),
        (("v26.1.0-alpha.2", "2025-11-20"), ("v26.1.0-alpha.1", "now"), False),
        (("v26.1.0-alpha.2", ""), ("v26.1.0-alpha.1", "2025-11-23"), False),
        (("v26.1.0-alpha.1", "2025-11-23"), ("v26.1.0-alpha.1", "2025-11-20"), True),
        (("v26.1.0", "2025-11-20"), ("v26.1.0-rc.1", "2025-11-23"), False),
        (("v26.1.0-rc.1", "2025-11-23"), ("v26.1.0", "2025-11-20"), True),
    ],
)
def test_of_testing_builds_the_day_counts_before_the_tag(
    old: tuple[str, str], new: tuple[str, str], allowed: bool
) -> None:
    before, after = (Build(tag=tag, date=date) for tag, date in (old, new))
    assert (why_not_from(before, after) == "") is allowed


@pytest.mark.parametrize(
    ("old", "new", "environ", "against", "notes"),
    [
        ("v24.1.3", "v24.1.3", {}, "", []),
        ("v24.1.3", "v24.1.4", {}, "", ["documented, not run"]),
        ("v24.1.4", "v24.1.3", {}, "", ["v24.1.3 is an older patch than v24.1.4: a downgrade", "documented, not run"]),
        ("v24.1.4", "v24.3.0", {}, f"it needs a valid licence key, and {KEY} is not set: set {KEY} (and ", None),
        ("v24.1.4", "v24.3.0", WITH_KEY, "", ["documented, not run"]),
        ("v24.1.4", "v25.1.0", {}, "goes on to v24.2 or v24.3 only", None),
    ],
)
def test_what_is_known_of_a_change(
    old: str, new: str, environ: dict[str, str], against: str, notes: list[str] | None
) -> None:
    found = change({"version": old}, {"version": new}, environ)
    assert against in found.against
    assert bool(against) is bool(found.against)
    assert found.for_licence is ("licence" in against)
    if notes is not None:
        assert len(found.notes) == len(notes)
        assert all(note.startswith(begin) for note, begin in zip(found.notes, notes, strict=True))


@pytest.mark.parametrize(("old", "new"), CHANGED)
def test_of_a_change_that_was_run_nothing_is_said(old: Build, new: Build) -> None:
    """By the commits: a tag says nothing."""
    before, after = ({"version": one.tag, "date": one.date, "commit": one.commit} for one in (old, new))
    assert not why_not_from(old, new)
    later = {**after, "version": f"{after['version']}9"}
    assert change(before, later, WITH_KEY).notes == ()
    assert change(before, {**later, "commit": ""}, WITH_KEY).notes
    assert Version.parse(later["version"]) > Version.parse(old.tag)


REFUSED = (
    "ERROR: cockroach server exited with error: during init: "
    "binary is incompatible with the cluster attempted to join\n"
    'Failed running "start"'
)
"""The last words of v20.2.0-dev.20201130, which was to join a cluster that was final at v21.1.0-alpha.20210228."""


@pytest.mark.parametrize(
    ("words", "for_version"),
    [
        (REFUSED, True),
        ("cluster requires at least version 21.1, but peer has version 20.2", True),
        ("ERROR: cockroach server exited with error: unable to lookup hostname", False),
    ],
)
def test_what_a_server_says_that_is_kept_out_for_its_version(words: str, for_version: bool) -> None:
    assert any(sign in words.lower() for sign in KIND.keeps_out) is for_version
