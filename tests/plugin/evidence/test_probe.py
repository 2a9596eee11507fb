"""The probe's seconds are kept small in memory, and say what was written."""

from hypothesis import given
from hypothesis import strategies as st

from plugin.evidence.records import ProbeSecond, RouteSecond, probe_header, probe_line, read_probe

NUMBERS = st.integers(0, 10**12)
ROUTES = st.builds(
    RouteSecond, NUMBERS, NUMBERS, NUMBERS, NUMBERS, st.dictionaries(st.sampled_from(["timeout", "40001"]), NUMBERS)
)
SECONDS = st.builds(ProbeSecond, NUMBERS, NUMBERS, st.dictionaries(st.sampled_from(["n1/0", "n1/1", "n2/0"]), ROUTES))


@given(st.lists(SECONDS, max_size=5))
def test_what_was_written_is_read(seconds: list[ProbeSecond]) -> None:
    _, found = read_probe([probe_header(200_000, ["n1/0"]), *map(probe_line, seconds)])
    assert found == seconds
    for one, other in zip(found, seconds, strict=True):
        assert [*one.routes.items()] == [*other.routes.items()]
        assert one.routes.get("n9/9") is None


def test_usual_seconds_and_one_without_a_success() -> None:
    t = 43_200_000_000
    seconds = [
        ProbeSecond(t, 0, {"n1/0": RouteSecond(5, t + 1, t + 900_000, 7), "n2/0": RouteSecond(0, 0, 0, 0, {"x": 2})}),
        ProbeSecond(t + 1_000_000, 0, {"n2/0": RouteSecond(1, t, t, 0)}),
    ]
    _, found = read_probe([probe_header(200_000, []), *map(probe_line, seconds)])
    assert found == seconds
