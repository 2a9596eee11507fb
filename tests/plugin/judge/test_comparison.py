"""The comparison of sides: by hand, and what it lets through in thousands of simulated runs."""

from math import exp, log, sqrt
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.workloads.tpcc.judge.compared import COMPARISONS
from fixtures.workloads.tpcc.judge.names import FIGURES
from fixtures.workloads.tpcc.judge.stopping import plans
from plugin.catalogue import load as load_catalogue
from plugin.judge.comparison import (
    AGAINST_MEAN,
    LEVEL,
    Decision,
    Logs,
    Looks,
    compare,
    equivalence,
    holm,
    log_ratio,
    looks,
    no_increase,
    non_inferiority,
    pairs_needed,
    percent,
    plan,
    ratio,
)
from plugin.profiles import profile_named
from plugin.workloads import WORKLOADS
from tests.plugin.judge.simulation import UNEQUAL, VERSIONS, beside_others, decisions, regression, table
from tests.slow import slow

ROOT = Path(__file__).parents[3]
TRIALS = 4000
TEN = equivalence(10)
SEQUENTIAL = looks(5, 8, 12)
UNIT = log(1.1)
"""The margin of ±10 % as a log ratio."""


def draw(random: Random, n: int, *, sd: float, shift: float = 0.0) -> list[float]:
    return [random.gauss(shift, sd) for _ in range(n)]


def test_an_interval_worked_out_by_hand() -> None:
    found = ratio("6 / 3 nodes", [0.01, 0.02, 0.03, 0.02, 0.02])
    assert found.mean == pytest.approx(0.02)
    assert found.sd == pytest.approx(sqrt(0.0002 / 4))
    assert found.interval is not None
    half = 2.1318 * sqrt(0.00005 / 5)
    assert found.interval == pytest.approx((0.02 - half, 0.02 + half), abs=1e-6)
    assert found.visible() == pytest.approx((2.1318 + 1.5332) * sqrt(0.00001), rel=1e-4)
    assert "1.020 (1.013 to 1.027, n = 5)" in str(found)


def test_one_pair_has_no_interval_and_decides_nothing() -> None:
    found = compare({"a": [0.0]}, TEN, looks(5))
    assert (found.decision, found.n, found.look, found.needed) == (Decision.UNDECIDED, 1, 0, None)
    assert "n = 1 shows no spread: the first look asks for 5 pairs" in str(found)


STEADY = [0.01, -0.01, 0.0, 0.01, -0.01, 0.0, 0.01, -0.01, 0.0, 0.01, -0.01, 0.0]


@pytest.mark.parametrize(
    ("logs", "decision"),
    [
        (STEADY[:5], Decision.HOLDS),
        ([value + 0.3 for value in STEADY[:5]], Decision.REFUTED),
        ([value - 0.3 for value in STEADY[:5]], Decision.REFUTED),
        ([value + UNIT for value in STEADY[:5]], Decision.UNDECIDED),
        ([30 * value for value in STEADY[:5]], Decision.UNDECIDED),
    ],
)
def test_inside_outside_and_across_the_margin(logs: list[float], decision: Decision) -> None:
    found = compare({"a": logs}, TEN, looks(5))
    assert found.decision is decision
    assert found.look == 1
    assert ("pairs would" in str(found)) == (decision is Decision.UNDECIDED)


def test_faster_is_fine_for_non_inferiority_only() -> None:
    faster = [value + 0.3 for value in STEADY[:5]]
    assert compare({"a": faster}, non_inferiority(10), looks(5)).decision is Decision.HOLDS
    assert compare({"a": [-v for v in faster]}, non_inferiority(10), looks(5)).decision is Decision.REFUTED
    assert compare({"a": faster}, TEN, looks(5)).decision is Decision.REFUTED


def test_a_loss_of_the_margin_is_a_ratio_of_one_less_it() -> None:
    assert exp(non_inferiority(10).lower) == pytest.approx(0.9)
    assert (exp(TEN.lower), exp(TEN.upper)) == pytest.approx((1 / 1.1, 1.1))
    assert percent(log(1.1)) == percent(-log(1.1)) == pytest.approx(10)


@pytest.mark.parametrize("wrong", [0.0, -1.0, float("inf"), float("nan")])
def test_no_margin(wrong: float) -> None:
    for kind in (equivalence, non_inferiority):
        with pytest.raises(ValueError, match="more than 0"):
            kind(wrong)
    with pytest.raises(ValueError, match="less than 100"):
        non_inferiority(100)


def test_looks_are_declared() -> None:
    assert Looks(at=(5, 8, 12), alpha=0.022) == SEQUENTIAL
    assert looks(9) == Looks(at=(9,), alpha=0.05)
    assert looks(3, 5, 7, 9).alpha == 0.0125
    for wrong in ((), (1, 5), (5, 5), (8, 5)):
        with pytest.raises(ValueError, match="increasing numbers of at least 2"):
            looks(*wrong)
    with pytest.raises(ValueError, match="a level of"):
        Looks(at=(5,), alpha=0.7)


def test_between_two_looks_nothing_new_is_looked_at() -> None:
    noisy = [8 * value for value in STEADY]
    at_five = compare({"a": noisy[:5]}, TEN, SEQUENTIAL)
    at_seven = compare({"a": noisy[:7]}, TEN, SEQUENTIAL)
    assert at_five.decision is at_seven.decision is Decision.UNDECIDED
    assert (at_seven.n, at_seven.look) == (5, 1)
    assert at_seven.ratios == at_five.ratios


def test_what_came_after_a_decision_is_not_looked_at() -> None:
    late = [*STEADY[:5], *[0.5] * 7]
    found = compare({"a": late}, TEN, SEQUENTIAL)
    assert (found.decision, found.look, found.n) == (Decision.HOLDS, 1, 5)


def test_the_shortest_of_several_pairs_counts() -> None:
    found = compare({"a": STEADY, "b": STEADY[:5]}, TEN, SEQUENTIAL)
    assert (found.n, found.decision) == (5, Decision.HOLDS)
    assert {each.n for each in found.ratios} == {5}


def test_one_pair_of_several_refutes_and_is_named() -> None:
    far = [value + 0.3 for value in STEADY[:5]]
    found = compare({"3 / 6": STEADY[:5], "3 / 9": far, "6 / 9": far}, TEN, SEQUENTIAL)
    assert found.decision is Decision.REFUTED
    assert found.refuted == ("3 / 9", "6 / 9")
    assert "outside the margin: 3 / 9, 6 / 9" in str(found)


def test_all_pairs_must_hold() -> None:
    wide = [40 * value for value in STEADY[:5]]
    assert compare({"a": STEADY[:5], "b": wide}, TEN, SEQUENTIAL).decision is Decision.UNDECIDED


def test_holm_by_hand() -> None:
    assert holm({"a": 0.01, "b": 0.04, "c": 0.02}, 0.05) == ("a", "c", "b")
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}, 0.05) == ("a",)
    assert holm({"a": 0.02, "b": 0.02, "c": 0.02}, 0.05) == ()


def test_a_side_run_twice_gives_the_noise_of_one_run_and_a_mean_to_be_held_against() -> None:
    """By hand: three blocks, A/A apart by 0.02, 0.0 and -0.02, the other side 0.01 below the mean of both."""
    again = [0.02, 0.0, -0.02]
    found = ratio("b / a", Logs([-0.01, -0.02, 0.0], again=again, runs=AGAINST_MEAN))
    of_one_run = (0.0002 / 1.5 + 0.0008 / 2) / 5
    assert (found.n, found.df) == (3, 5)
    assert found.sd == pytest.approx(sqrt(1.5 * of_one_run))
    assert found.interval is not None
    assert found.interval[1] == pytest.approx(-0.01 + 2.0150 * sqrt(0.5 * of_one_run), abs=1e-5)
    assert ratio("b / a", Logs([-0.01], again=[0.02], runs=AGAINST_MEAN)).df == 1, "one block has an interval so"


def test_a_side_that_differs_from_itself_widens_the_interval_and_stops_nothing_by_itself() -> None:
    noisy = [0.6, -0.6, 0.6, -0.6, 0.6]
    for logs, quiet in ((STEADY[:5], Decision.HOLDS), ([v + 0.3 for v in STEADY[:5]], Decision.REFUTED)):
        for again, decision in (([0.01, 0.0, -0.01, 0.0, 0.01], quiet), (noisy, Decision.UNDECIDED)):
            found = compare({"b / a": Logs(logs, again=again, runs=AGAINST_MEAN)}, TEN, SEQUENTIAL, aa={"A/A": again})
            assert found.decision is decision
            assert "noise: A/A" in str(found)
    one_outlier = Logs([v + 0.5 for v in STEADY[:5]], again=[0.0, 0.0, 0.15, 0.0, 0.0], runs=AGAINST_MEAN)
    assert compare({"b / a": one_outlier}, TEN, SEQUENTIAL).decision is Decision.REFUTED, "15 % in a block are no veto"


@pytest.mark.parametrize(("first", "second"), [(0, 1), (1, 0), (-1, 1), (1, float("inf")), (float("nan"), 1)])
def test_what_has_no_ratio(first: float, second: float) -> None:
    with pytest.raises(ValueError, match="two figures above 0"):
        log_ratio(first, second)


def test_nothing_to_compare() -> None:
    with pytest.raises(ValueError, match="no sides"):
        compare({}, TEN, SEQUENTIAL)
    with pytest.raises(ValueError, match="no pair of runs"):
        compare({"a": []}, TEN, SEQUENTIAL)


@given(st.lists(st.floats(-0.5, 0.5), min_size=5, max_size=5), st.sampled_from([2.0, 10.0, 30.0]))
def test_which_side_is_divided_by_which_does_not_matter(logs: list[float], margin: float) -> None:
    one = compare({"a": logs}, equivalence(margin), SEQUENTIAL)
    other = compare({"a": [-value for value in logs]}, equivalence(margin), SEQUENTIAL)
    assert one.decision is other.decision
    assert one.visible == pytest.approx(other.visible)


@given(st.lists(st.floats(-0.3, 0.3), min_size=5, max_size=12), st.floats(1, 40), st.floats(1, 40))
def test_a_wider_margin_never_turns_a_look_from_holds_to_refuted(logs: list[float], one: float, other: float) -> None:
    declared = looks(len(logs))
    narrow = compare({"a": logs}, equivalence(min(one, other)), declared).decision
    wide = compare({"a": logs}, equivalence(max(one, other)), declared).decision
    order = [Decision.REFUTED, Decision.UNDECIDED, Decision.HOLDS]
    assert order.index(wide) >= order.index(narrow)


# What it lets through. The standard error of a share near 5 % in 4000 trials is 0.34 points.

SLACK = 3.5 * sqrt(0.05 * 0.95 / TRIALS)


def shares(seed: int, shift: float, r: float, declared: Looks = SEQUENTIAL, sides: int = 1) -> dict[Decision, float]:
    """How often each decision comes out, with a spread of ``1 / r`` margins and a difference of ``shift`` margins."""
    random, counts = Random(seed), dict.fromkeys(Decision, 0)
    for _ in range(TRIALS):
        pairs = {str(side): draw(random, declared.at[-1], sd=UNIT / r, shift=shift * UNIT) for side in range(sides)}
        counts[compare(pairs, TEN, declared).decision] += 1
    return {decision: count / TRIALS for decision, count in counts.items()}


@pytest.mark.parametrize("r", [4, 2, 1])
@pytest.mark.parametrize("declared", [SEQUENTIAL, looks(5)], ids=["5, 8, 12", "5"])
def test_at_the_margin_at_most_one_in_twenty_passes_and_one_in_twenty_is_refuted(declared: Looks, r: float) -> None:
    found = shares(1, shift=1, r=r, declared=declared)
    assert found[Decision.HOLDS] <= 0.05 + SLACK
    assert found[Decision.REFUTED] <= 0.05 + SLACK
    assert found[Decision.UNDECIDED] > 0.85


def test_looking_three_times_at_five_per_cent_would_let_more_through() -> None:
    found = shares(2, shift=1, r=4, declared=Looks(at=(5, 8, 12), alpha=0.05))
    assert found[Decision.HOLDS] > 0.05 + SLACK


@pytest.mark.parametrize(
    ("r", "n"), [(4, 3), (3, 5), (2, 5), (1.5, 8), (1, 12), (0.75, 20)], ids=lambda value: f"{value:g}"
)
def test_the_number_of_runs_gives_ninety_per_cent_power(r: float, n: int) -> None:
    found = shares(3, shift=0, r=r, declared=looks(n))
    assert found[Decision.HOLDS] > 0.88
    assert found[Decision.REFUTED] < 0.005
    needed = pairs_needed(sd=UNIT / r, shift=0, margin=TEN)
    assert needed is not None
    assert abs(needed - n) <= 1


def test_a_shift_of_a_quarter_of_the_margin_costs_power() -> None:
    assert shares(4, shift=0.25, r=1, declared=looks(12))[Decision.HOLDS] == pytest.approx(0.77, abs=0.03)


@pytest.mark.parametrize("shift", [0, 0.5])
def test_within_the_margin_a_refutation_is_rare_and_beyond_it_a_pass(shift: float) -> None:
    assert shares(5, shift=shift, r=2)[Decision.REFUTED] < 0.005
    assert shares(6, shift=2 - shift, r=2)[Decision.HOLDS] < 0.01


def test_three_sides_pairwise_at_the_margin_are_refuted_no_more_often_than_one() -> None:
    found = shares(7, shift=1, r=2, sides=3)
    assert found[Decision.REFUTED] <= 0.05 + SLACK
    assert found[Decision.HOLDS] < 0.01


def test_two_figures_at_their_margins_refute_no_more_often_than_one() -> None:
    """Each at 5 % by itself would do so in 9.4 % of cases."""
    random, declared, refuted = Random(8), looks(5), {1: 0, 2: 0}
    for _ in range(TRIALS):
        figures = [{"a": draw(random, 5, sd=UNIT / 3, shift=UNIT)} for _ in range(2)]
        for shared in refuted:
            decisions = [compare(pairs, TEN, declared, figures=shared).decision for pairs in figures]
            refuted[shared] += Decision.REFUTED in decisions
    assert refuted[2] / TRIALS <= 0.05 + SLACK
    assert refuted[1] / TRIALS > 0.05 + SLACK


def test_a_difference_of_twice_the_margin_is_refuted() -> None:
    assert shares(8, shift=2, r=2)[Decision.REFUTED] > 0.97


def test_pairs_needed_at_the_margin_itself_are_more_than_anybody_runs() -> None:
    assert pairs_needed(sd=UNIT, shift=UNIT, margin=TEN) is None
    assert pairs_needed(sd=0, shift=0, margin=TEN) == 2
    assert "lies at the margin itself" in str(compare({"a": [v + UNIT for v in STEADY]}, TEN, SEQUENTIAL))


def test_non_inferiority_of_a_faster_side_needs_fewer_pairs() -> None:
    """With 0.9 as the only bound, and half of the margin faster, half as many pairs are enough."""
    margin = non_inferiority(10)
    even = pairs_needed(sd=-margin.lower, shift=0, margin=margin)
    faster = pairs_needed(sd=-margin.lower, shift=-margin.lower / 2, margin=margin)
    assert (even, faster) == (11, 6), "as tables of the one-sample t test have it"


# ---- the first side twice in each block: what parity and regression are decided by


@pytest.mark.parametrize("sides", [2, 3])
@pytest.mark.parametrize("noise", [0.5, 2.0])
def test_healthy_sides_pass_and_a_loss_of_15_percent_is_found(noise: float, sides: int) -> None:
    healthy, slower = (decisions(noise=noise, loss=loss, margin=TEN, sides=sides) for loss in (0.0, 15.0))
    assert healthy[Decision.HOLDS] >= 0.95
    assert healthy[Decision.REFUTED] <= 0.01
    assert slower[Decision.REFUTED] >= 0.90
    assert slower[Decision.HOLDS] <= 0.01


@pytest.mark.parametrize("sessions", [4000, pytest.param(400_000, marks=slow)])
def test_at_the_margin_the_level_is_kept(sessions: int) -> None:
    at_margin = decisions(noise=2.0, loss=100 * (1 - 1 / 1.1), margin=TEN, sessions=sessions)
    chance = 2 * sqrt(LEVEL * (1 - LEVEL) / sessions)
    assert at_margin[Decision.HOLDS] <= LEVEL + chance
    assert at_margin[Decision.REFUTED] <= LEVEL + chance


@pytest.mark.parametrize("noise", [1.0, 2.0, 4.0])
def test_the_plan_tells_what_a_simulation_finds(noise: float) -> None:
    (told,) = plan(TEN, looks(3), noise=noise)
    healthy, slower = (decisions(noise=noise, loss=loss, margin=TEN, declared=looks(3)) for loss in (0.0, told.found))
    assert healthy[Decision.HOLDS] == pytest.approx(told.passes, abs=0.02)
    assert slower[Decision.REFUTED] == pytest.approx(0.9, abs=0.02)
    assert f"{told.found:.1f} %" in str(told)


@pytest.mark.parametrize("noise", [4.0, 8.0])
def test_of_a_growth_the_plan_tells_what_a_simulation_finds(noise: float) -> None:
    margin = no_increase(30)
    (told,) = plan(margin, looks(6), noise=noise)
    healthy, slower = (
        decisions(noise=noise, loss=-grown, margin=margin, declared=looks(6)) for grown in (0, told.found)
    )
    assert healthy[Decision.HOLDS] == pytest.approx(told.passes, abs=0.02)
    assert slower[Decision.REFUTED] == pytest.approx(0.9, abs=0.02)
    assert f"a growth of {told.found:.1f} %" in str(told)


def test_a_growth_that_no_plan_finds_is_called_none() -> None:
    (told,) = plan(no_increase(9000), looks(3), noise=24)
    assert "no growth is refuted with 90 % probability" in str(told)


@pytest.mark.parametrize("percent", [10, 50])
def test_where_the_noise_is_not_known_a_plan_tells_how_much_of_it_healthy_sides_may_have(percent: float) -> None:
    margin = no_increase(percent)
    (told,) = plan(margin, looks(5), noise=None)
    assert told.passes == pytest.approx(0.9, abs=0.001)
    healthy, slower = (
        decisions(noise=told.noise, loss=-grown, margin=margin, declared=looks(5)) for grown in (0, told.found)
    )
    assert healthy[Decision.HOLDS] == pytest.approx(0.9, abs=0.02)
    assert slower[Decision.REFUTED] == pytest.approx(0.9, abs=0.02)


@pytest.mark.parametrize("profile", ["laptop", "small", "medium", "large"])
def test_a_plan_tells_of_every_figure_that_regression_holds_against_a_margin(profile: str) -> None:
    sizes = profile_named(profile).size(WORKLOADS["tpcc"])
    checks = load_catalogue().claim("regression").checks_for(profile)
    told = plans(checks, sizes.pairs, noise=sizes.noise_percent)
    assert [each.split()[0] for each in told] == [c.metric for c in checks if c.metric in COMPARISONS and c.limit]
    assert {each.called for each in COMPARISONS.values()} == {*FIGURES}


def test_all_figures_of_regression_together_keep_the_targets() -> None:
    """Healthy versions pass 95 times of 100 and are refuted at most once; 15 % fewer orders are found 90 times."""
    healthy, slower = (regression(VERSIONS[name]) for name in ("no difference", "15 % fewer orders served"))
    assert sum(n for (is_, _), n in healthy.items() if is_ is Decision.HOLDS) >= 950
    assert sum(n for (is_, _), n in healthy.items() if is_ is Decision.REFUTED) <= 10
    assert sum(n for (is_, _), n in slower.items() if is_ is Decision.REFUTED) >= 900


def test_other_work_that_goes_unnoticed_over_the_whole_trial_refutes_no_healthy_version() -> None:
    """A tenth of the time is enough to refute one in a hundred, where nobody asks in whose seconds it was."""
    healthy, slower = (beside_others(VERSIONS[name]) for name in ("no difference", "all latencies threefold"))
    assert healthy["compared", Decision.REFUTED] > 0
    assert healthy["asked", Decision.REFUTED] == 0
    assert healthy["asked", Decision.HOLDS] == healthy["compared", Decision.HOLDS], "it makes no pass"
    assert slower["asked", Decision.REFUTED] >= 900, "and lets no version off that is slow by itself"


@pytest.mark.parametrize("claim", ["parity", "parity-resources", "regression"])
@pytest.mark.parametrize("name", ["laptop", "small", "medium", "large"])
def test_the_looks_of_a_profile_follow_from_its_noise_and_the_margin(claim: str, name: str) -> None:
    """Healthy sides pass 95 times of 100; half as much again as the margin, and 5 % more, is found 90 times."""
    sizes = profile_named(name).size(WORKLOADS["tpcc"])
    checks = [c for c in load_catalogue().claim(claim).checks_for(name) if c.limit is not None]
    compared = [check for check in checks if check.metric in COMPARISONS]
    margin = next(check.limit for check in compared if check.metric.startswith("tpmc_"))
    assert margin is not None
    *_, last = plan(equivalence(margin), looks(*sizes.pairs), noise=sizes.noise_percent["tpmC"], figures=len(compared))
    assert last.passes >= 0.95
    assert last.found <= 1.5 * margin


@slow
def test_the_documentation_has_the_simulation_of_today() -> None:
    assert table() in (ROOT / "docs" / "comparisons.md").read_text()


def test_the_documentation_has_a_row_of_each_table_of_today() -> None:
    """All rows are made by the same code from the same limits; a change of either changes these, too."""
    told = (ROOT / "docs" / "comparisons.md").read_text()
    rows = table(noises=(2.0,), versions=("no difference", "15 % fewer orders served"), unequal=UNEQUAL[1:2])
    assert [line for line in rows.splitlines() if f"{line}\n" not in told] == []
