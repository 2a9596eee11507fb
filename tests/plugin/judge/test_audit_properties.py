"""Any lawful history is never accused; one violation in it is found, and given its right name."""

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugin.evidence.records import FinalLine, FinalRow, Op, payload
from plugin.judge.audit import Audit, audit
from tests.plugin.judge.histories import BUCKETS, SEED, final, row, wrong
from tests.plugin.judge.simulation import Simulation

RANDOM = st.integers(0, 2**32).map(Random)


def audited(simulation: Simulation, last: list[FinalLine]) -> Audit:
    return audit(simulation.story.lines, last, seed=SEED, buckets=BUCKETS)


@settings(deadline=None, max_examples=500)
@given(random=RANDOM, steps=st.integers(1, 150), clients=st.integers(1, 4))
def test_a_lawful_history_is_never_accused(random: Random, steps: int, clients: int) -> None:
    simulation = Simulation(random, steps, clients)
    found = audited(simulation, simulation.final())
    assert wrong(found) == {}, found.findings
    assert found.problems == ()
    assert found.expected[0] <= len(simulation.rows) <= found.expected[1]
    assert found.found == len(simulation.rows)


@settings(deadline=None)
@given(random=RANDOM, bucket=st.integers(0, BUCKETS - 1))
def test_a_bucket_that_was_not_read_accuses_nobody_of_anything_else(random: Random, bucket: int) -> None:
    simulation = Simulation(random)
    for options, category in (({"unread": [bucket]}, "unknown"), ({"unreadable": [bucket]}, "unreadable")):
        found = audited(simulation, final(simulation.final_rows(), **options))
        assert set(wrong(found)) <= {category}


def _without(simulation: Simulation, key: int) -> list[FinalLine]:
    return final(r for r in simulation.final_rows() if r.key != key)


def _with(simulation: Simulation, *rows: FinalRow) -> list[FinalLine]:
    taken = {r.key for r in rows}
    return final([*(r for r in simulation.final_rows() if r.key not in taken), *rows])


def _lost(simulation: Simulation, keys: dict[str, int]) -> list[FinalLine]:
    return _without(simulation, keys["kept"])


def _lost_half(simulation: Simulation, keys: dict[str, int]) -> list[FinalLine]:
    return _without(simulation, keys["other"])


def _duplicated(simulation: Simulation, keys: dict[str, int]) -> list[FinalLine]:
    return _with(simulation, row(keys["kept"]), row(keys["kept"]))


def _phantom(simulation: Simulation, keys: dict[str, int]) -> list[FinalLine]:
    return _with(simulation, row(keys["refused"]))


def _phantom_key(simulation: Simulation, keys: dict[str, int]) -> list[FinalLine]:
    return _with(simulation, row(max(keys.values()) + 5))


def _phantom_version(simulation: Simulation, keys: dict[str, int]) -> list[FinalLine]:
    return _with(simulation, row(keys["kept"], 2))


def _altered(simulation: Simulation, keys: dict[str, int]) -> list[FinalLine]:
    return _with(simulation, FinalRow(keys["kept"], 1, payload(SEED + 1, keys["kept"], 1)))


def _altered_in_a_read(simulation: Simulation, keys: dict[str, int]) -> list[FinalLine]:
    simulation.rewrite(keys["kept"], Op.READ, -1)
    return simulation.final()


def _revived(simulation: Simulation, keys: dict[str, int]) -> list[FinalLine]:
    return _with(simulation, row(keys["deleted"]))


def _revived_version(simulation: Simulation, keys: dict[str, int]) -> list[FinalLine]:
    return _with(simulation, row(keys["updated"], 1))


def _stale(simulation: Simulation, keys: dict[str, int]) -> list[FinalLine]:
    simulation.rewrite(keys["kept"], Op.READ, 0)
    return simulation.final()


def _stale_version(simulation: Simulation, keys: dict[str, int]) -> list[FinalLine]:
    simulation.rewrite(keys["updated"], Op.READ, 1)
    return simulation.final()


def _stale_delete(simulation: Simulation, keys: dict[str, int]) -> list[FinalLine]:
    simulation.rewrite(keys["deleted"], Op.READ, 1)
    return simulation.final()


def _torn(simulation: Simulation, keys: dict[str, int]) -> list[FinalLine]:
    return _without(simulation, keys["half"])


def _torn_in_a_read(simulation: Simulation, keys: dict[str, int]) -> list[FinalLine]:
    simulation.rewrite(keys["one"], Op.READ_PAIR, 1, 0)
    return simulation.final()


Inject = Callable[[Simulation, dict[str, int]], list[FinalLine]]
VIOLATIONS: dict[Inject, str] = {
    _lost: "lost", _lost_half: "lost", _duplicated: "duplicated",
    _phantom: "phantom", _phantom_key: "phantom", _phantom_version: "phantom",
    _altered: "altered", _altered_in_a_read: "altered", _revived: "revived", _revived_version: "revived",
    _stale: "stale", _stale_version: "stale", _stale_delete: "stale", _torn: "torn", _torn_in_a_read: "torn",
}  # fmt: skip


@pytest.mark.parametrize("inject", VIOLATIONS, ids=lambda inject: inject.__name__[1:])
@settings(deadline=None, max_examples=40)
@given(random=RANDOM)
def test_one_violation_is_found_and_named(inject: Inject, random: Random) -> None:
    simulation = Simulation(random)
    keys = simulation.coda()
    assert wrong(audited(simulation, simulation.final())) == {}
    last = inject(simulation, keys)
    found = audited(simulation, last)
    assert wrong(found) == {VIOLATIONS[inject]: 1}
    assert len(found.findings[VIOLATIONS[inject]].examples) == 1


@settings(deadline=None, max_examples=200)
@given(random=RANDOM)
def test_any_row_that_must_be_there_and_vanishes_is_lost(random: Random) -> None:
    """Whatever row it is, and whatever else happened to it, unless a delete may have taken it."""
    simulation = Simulation(random)
    found = audited(simulation, simulation.final())
    rows = simulation.final_rows()
    lost = []
    for gone in rows:
        after = audited(simulation, final(r for r in rows if r is not gone))
        if after.count("lost"):
            lost.append(gone.key)
            assert wrong(after) == {"lost": 1}
        else:
            assert set(wrong(after)) <= {"torn"}
    assert len(lost) == found.expected[0]
