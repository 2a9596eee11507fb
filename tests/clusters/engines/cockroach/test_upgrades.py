"""Which version a cluster may go on to: the rules of the documentation, held against the saved list of releases."""

import pytest

from clusters.engines.cockroach.upgrades import following, innovation, targets, why_not_from

RELEASED = [
    (20, 2), (21, 1), (21, 2), (22, 1), (22, 2), (23, 1), (23, 2), (24, 1), (24, 2), (24, 3), (25, 1), (25, 2), (25, 3),
    (25, 4), (26, 1), (26, 2),
]  # fmt: skip
"""Every series since 20.2, as cockroachlabs.com/docs/releases lists them (read up to v26.2)."""
INNOVATIONS = {(24, 2), (25, 1), (25, 3), (26, 1)}


def test_series_follow_each_other_as_they_were_released() -> None:
    assert [following(series) for series in RELEASED[:-1]] == RELEASED[1:]
    assert {series for series in RELEASED if innovation(series)} == INNOVATIONS


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
def test_a_series_goes_on_to(series: tuple[int, int], allowed: list[tuple[int, int]]) -> None:
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
    ],
)
def test_what_is_not_allowed_says_why(old: str, new: str, says: str) -> None:
    found = why_not_from(old, new)
    assert says in found
    assert bool(says) == bool(found)
