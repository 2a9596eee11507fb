"""Cells, comparable or saturated, and the pairs of arms in them."""

from dataclasses import replace

import pytest

from fixtures.workloads.tpcc.judge.capacity import Step
from fixtures.workloads.tpcc.judge.parity import Sample, cells, efc_at_most, knees, parity, tpmc_noise
from plugin.judge.comparison import Decision, equivalence, looks


def sample(
    arm: str, block: int = 0, efc: float = 97.0, *, size: int = 100, seconds: int = 600, waits: bool = True
) -> Sample:
    step = Step(warehouses=size, tpmc=efc / 100 * 12.86 * size)
    return Sample(cell=f"{size} warehouses", arm=arm, block=block, step=step, seconds=seconds, waits=waits)


def test_pairs_of_all_arms_but_the_repeated_one() -> None:
    found = parity(sample(arm, block) for block in range(3) for arm in ("3", "6", "3 (A/A)", "9"))
    assert [*found.pairs] == ["6 / 3, 100 warehouses", "9 / 3, 100 warehouses", "9 / 6, 100 warehouses"]
    assert found.aa == {"3 (A/A), 100 warehouses": [0.0, 0.0, 0.0]}
    assert all(logs == [0.0] * 3 for logs in found.pairs.values())
    compared = found.compared(equivalence(10), looks(3))
    assert compared is not None
    assert compared.decision is Decision.HOLDS


def test_blocks_are_paired_by_their_number_and_what_misses_one_is_told() -> None:
    found = parity([sample("a", 0, 96), sample("b", 1, 97), sample("a", 1, 96), sample("b", 2, 97)])
    (only,) = found.pairs["b / a, 100 warehouses"]
    assert only == pytest.approx(0.01036, abs=1e-5)
    assert found.gaps == ("100 warehouses, block 0: no run of b", "100 warehouses, block 2: no run of a")


def test_an_arm_without_a_single_new_order_makes_no_pair() -> None:
    found = parity([sample("a", waits=False), sample("b", efc=0, waits=False)])
    assert found.pairs == {"b / a, 100 warehouses": []}
    assert found.compared(equivalence(10), looks(3)) is None
    assert found.nothing == "100 warehouses, block 0: an arm finished no new-order"


def test_a_cell_with_a_saturated_arm_is_left_out_and_named() -> None:
    good = [sample(arm, block) for arm in "ab" for block in range(2)]
    bad = [sample(arm, block, efc, size=300) for arm, efc in (("a", 97), ("b", 80)) for block in range(2)]
    found = parity([*good, *bad])
    assert found.comparable == ("100 warehouses",)
    assert found.saturated == ("b at 300 warehouses: efc 80.0 %, −17.5 % against a",)
    assert [*found.pairs] == ["b / a, 100 warehouses"]
    assert parity(bad).nothing.startswith("every cell is saturated: b at 300")


def test_the_rule_allows_for_the_noise_of_short_runs_only() -> None:
    """92 % of ten warehouses in a minute may be 94 by chance; of ten in ten hours, or of one whose length is unknown, it may not."""
    assert tpmc_noise([600]) == pytest.approx(0.0572, rel=0.01)
    assert tpmc_noise([]) == tpmc_noise([600, 0]) == 0
    for seconds, comparable in ((60, True), (36_000, False), (0, False)):
        found = parity(sample(arm, efc=92, size=10, seconds=seconds) for arm in "ab")
        assert bool(found.comparable) is comparable


def test_without_think_times_there_is_no_bound_to_reach() -> None:
    assert parity(sample(arm, efc=30, waits=False) for arm in "ab").comparable
    assert parity([sample("a", efc=30), sample("b", efc=30, waits=False)]).comparable == ()


def test_against_an_older_version_a_loss_does_not_excuse_itself() -> None:
    runs = [
        sample(arm, block, efc)
        for arm, efc in (("new", 70), ("old", 97), ("old (A/A)", 97))
        for block in range(3)
    ]
    assert parity(runs).comparable == ()
    found = parity(runs, versions=("old", "new"))
    assert [*found.pairs] == ["new / old, 100 warehouses"]
    assert found.pairs["new / old, 100 warehouses"][0] < 0
    assert [*found.aa] == ["old (A/A), 100 warehouses"]
    saturated = [replace(s, step=replace(s.step, tpmc=s.step.tpmc / 2)) for s in runs]
    assert parity(saturated, versions=("old", "new")).comparable == ()


def test_a_version_that_never_ran() -> None:
    found = parity([sample("old")], versions=("old", "new"))
    assert found.nothing == "100 warehouses: no run of new"
    assert found.pairs == {}
    missing = parity([sample("new")], versions=("old", "new"))
    assert missing.nothing == "100 warehouses: no run of old"


def test_cells_are_ordered_by_their_load_and_knees_are_of_means() -> None:
    runs = [sample("a", b, efc, size=size) for size, efc in ((900, 40), (90, 97)) for b in range(2)]
    found = cells(runs)
    assert [cell.name for cell in found] == ["90 warehouses", "900 warehouses"]
    (knee,) = knees(found).values()
    assert knee.capacity is not None
    assert knee.failed is not None
    assert (knee.capacity.warehouses, knee.failed.warehouses) == (90, 900)
    assert found[0].tpmc("a") == pytest.approx(0.97 * 12.86 * 90)


def test_a_knee_takes_all_runs_of_a_size_together_and_none_without_think_times() -> None:
    again = replace(sample("a", 0, 60, size=900), cell="900 warehouses again")
    free = replace(sample("a", 0, 300, size=90, waits=False), cell="90 warehouses, no think times")
    (knee,) = knees(cells([sample("a", 0, 98, size=900), again, free])).values()
    assert [step.warehouses for step in knee.steps] == [900]
    assert knee.steps[0].efc == pytest.approx(79)
    assert knees(cells([free])) == {}


def test_nothing_at_all() -> None:
    assert parity([]).nothing == "no run was recorded"
    assert parity([sample("a")]).nothing == "no cell has two arms"
    assert parity([sample("a (A/A)", efc=50)]).nothing == "no cell has two arms"


def test_a_cell_in_which_nothing_was_done_is_saturated() -> None:
    assert parity([sample("a", efc=0), sample("b", efc=0)]).nothing.startswith(
        "every cell is saturated: a at 100"
    )


def test_one_order_at_the_edge_of_a_run_is_chance_two_are_not() -> None:
    """What is due in a run's last instant ends after it, however fast the server."""
    whole = sample("a", size=2)
    for served, most, short in ((12, 13 / 12, False), (11, 1.0, False), (10, 11 / 12, True)):
        run = replace(whole, step=replace(whole.step, served=served, due=12))
        assert efc_at_most([run], 1.645) == pytest.approx(98.017 * most, rel=1e-3)
        (cell,) = cells([run])
        assert cell.short("a") is short
    both = [
        replace(whole, block=b, step=replace(whole.step, served=served, due=12))
        for b, served in enumerate((12, 10))
    ]
    assert efc_at_most(both, 1.645) == pytest.approx(98.017, rel=1e-3), "an order for each run"
    assert efc_at_most([], 1.645) == 0
