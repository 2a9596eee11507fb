"""What a licence must be for a change of version, by its state as servers say it."""

import pytest

from clusters.engines.cockroach.licences import KEY, ORGANISATION, enough, settings
from clusters.engines.cockroach.version import Version

DAY = 86400.0


@pytest.mark.parametrize(
    ("old", "new", "given", "left_s", "ok", "says"),
    [
        ("v26.1.0-alpha.1", "v26.1.0-alpha.2", False, 0.0, True, "it has none; none is needed within v26.1"),
        ("v25.2.1", "v25.2.2", True, -9 * DAY, True, "ran out 9 days ago; none is needed within v25.2"),
        ("v20.2.0", "v21.1.0", False, None, True, "it has none; none is needed before v24.3"),
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
        ("v25.4.0", "v25.2.1", False, 0.0, False, "or choose two versions of one series"),
    ],
)
def test_what_a_change_asks_of_a_licence(
    old: str, new: str, given: bool, left_s: float | None, ok: bool, says: str
) -> None:
    found = enough(Version.parse(old), Version.parse(new), given=given, left_s=left_s)
    assert found.ok is ok
    assert says in found.why


def test_a_key_of_the_environment_is_for_servers() -> None:
    assert settings({}) == ()
    assert settings({ORGANISATION: "Acme"}) == ()
    assert settings({KEY: " k'y ", ORGANISATION: "Acme"}) == (
        "SET CLUSTER SETTING cluster.organization = 'Acme'",
        "SET CLUSTER SETTING enterprise.license = 'k''y'",
    )
