"""What a licence must be for a change of version, by its state as servers say it."""

import pytest

from clusters.engines.cockroach.licences import (
    KEY,
    ORGANISATION,
    PATCHES,
    SINCE,
    enough,
    lacking,
    needed,
    settings,
    valid_until,
)
from clusters.engines.cockroach.version import Version
from tests.clusters.engines.cockroach.released import RELEASED, Released

DAY = 86400.0

EXPIRED = "crl-0-EIDMuf8FGAEiCU5vYm9keSBBRw"
"""Made up, and of nobody: valid until 2021 began."""
UNTIL = 1609459200


@pytest.mark.parametrize(
    ("old", "new", "given", "left_s", "ok", "says"),
    [
        ("v26.1.0-alpha.1", "v26.1.0-alpha.2", False, 0.0, True, "it has none; none is needed within v26.1"),
        ("v25.2.1", "v25.2.2", True, -9 * DAY, True, "ran out 9 days ago; none is needed within v25.2"),
        ("v20.2.0", "v21.1.0", False, None, True, "it has none; none is needed before v24.3 and the patches of"),
        ("v25.2.1", "v25.4.0", True, 30 * DAY, True, "it has one for 30 more days, which a change from v25.2.1 to"),
        ("v24.1.9", "v24.3.0", True, None, True, "it has one, and servers of this version do not say until when"),
        (
            "v24.1.9",
            "v24.3.0",
            False,
            None,
            False,
            "a change from v24.1.9 to v24.3.0 needs a valid licence",
        ),
        (
            "v25.2.1",
            "v25.4.0",
            False,
            0.0,
            False,
            "needs a valid licence key, and it has none: set ROACH",
        ),
        ("v25.2.1", "v25.4.0", True, -2 * DAY, False, "and the one that it has ran out 2 days ago: set ROACHPROOF_"),
        ("v23.1.28", "v23.2.15", False, None, True, "it has none; none is needed before v24.3 and the patches of its"),
        ("v23.1.29", "v23.2.16", False, None, False, "from v23.1.29 to v23.2.16 needs a valid licence key"),
        ("v24.1.7", "v24.2.5", True, 30 * DAY, True, "which a change from v24.1.7 to v24.2.5 needs"),
        ("v23.1.28", "v23.1.29", False, None, True, "it has none; none is needed within v23.1"),
        ("v25.4.0", "v25.2.1", False, 0.0, False, "or choose two versions of one series"),
    ],
)
def test_what_a_change_asks_of_a_licence(
    old: str, new: str, given: bool, left_s: float | None, ok: bool, says: str
) -> None:
    found = enough(Version.parse(old), Version.parse(new), given=given, left_s=left_s)
    assert found.ok is ok
    assert says in found.why


@pytest.mark.parametrize("one", RELEASED)
def test_which_versions_are_under_the_terms_is_as_the_saved_list_says(one: Released) -> None:
    """The first that is, and the one before it, changed to a later series that itself is not."""
    early = next(row for row in RELEASED if row.series != one.series and row.terms is None)
    other = Version(*early.series, 1)
    if one.terms is None:
        assert one.series not in PATCHES
        assert not needed(Version(*one.series, 99), other)
        return
    assert needed(one.terms, other)
    assert needed(other, one.terms)
    assert needed(Version(*one.series, one.terms.patch + 1), other)
    if one.terms.patch:
        assert not needed(Version(*one.series, one.terms.patch - 1), other)
    else:
        assert one.series >= SINCE


@pytest.mark.parametrize(
    ("old", "new", "environ", "says"),
    [
        ("v24.3.1", "v24.3.2", {}, ""),
        ("v24.1.1", "v24.2.1", {}, ""),
        ("v24.2.1", "v24.3.1", {KEY: "k"}, ""),
        ("v24.2.1", "v24.3.1", {}, f"{KEY} is not set: set {KEY} (and {ORGANISATION}) to one, or choose two"),
        ("v24.2.1", "v24.3.1", {KEY: "", ORGANISATION: "Acme"}, f"{KEY} is not set"),
        ("v23.1.29", "v23.2.1", {}, f"{KEY} is not set"),
    ],
)
def test_a_key_that_the_environment_lacks_is_known_before(
    old: str, new: str, environ: dict[str, str], says: str
) -> None:
    found = lacking(Version.parse(old), Version.parse(new), environ)
    assert says in found
    assert bool(says) is bool(found)


@pytest.mark.parametrize(
    ("key", "until"),
    [
        (EXPIRED, UNTIL),
        (f" {EXPIRED}\n", UNTIL),
        (EXPIRED.removeprefix("crl-0-"), UNTIL),
        ("crl-0-GAEiCU5vYm9keSBBRw", 0),
        ("crl-0-EIDMuf8FGAEiCU5v", None),
        ("crl-0-EIDMuf8", None),
        ("crl-0-DQAAAAA", None),
        ("crl-0-", None),
        ("a key", None),
        ("crl-0-Grüße", None),
    ],
)
def test_a_key_says_until_when_it_is_valid(key: str, until: int | None) -> None:
    """What cannot be read, as it is cut off or nothing of the kind, is for servers to say."""
    assert valid_until(key) == until


@pytest.mark.parametrize(
    ("key", "now", "says"),
    [
        (EXPIRED, UNTIL - 1.0, ""),
        (EXPIRED, UNTIL + 0.0, f"a valid licence key, and that of {KEY} ran out on 2021-01-01: set {KEY} (and"),
        (EXPIRED, None, "ran out on 2021-01-01"),
        ("a key", None, ""),
        ("crl-0-GAEiCU5vYm9keSBBRw", None, ""),
    ],
)
def test_a_key_that_ran_out_is_known_before(key: str, now: float | None, says: str) -> None:
    found = lacking(Version.parse("v24.2.1"), Version.parse("v24.3.1"), {KEY: key}, now)
    assert says in found
    assert bool(says) is bool(found)
    assert EXPIRED not in found
    assert lacking(Version.parse("v24.3.1"), Version.parse("v24.3.2"), {KEY: key}, now) == "", "none is needed"


def test_a_key_of_the_environment_is_for_servers() -> None:
    assert settings({}) == ()
    assert settings({ORGANISATION: "Acme"}) == ()
    assert settings({KEY: " k'y ", ORGANISATION: "Acme"}) == (
        "SET CLUSTER SETTING cluster.organization = 'Acme'",
        "SET CLUSTER SETTING enterprise.license = 'k''y'",
    )
