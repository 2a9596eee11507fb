"""What is measured of a cluster that grows, from events and samples made by hand."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import pytest
from msgspec.structs import replace as changed

from plugin.evidence.layout import LayoutSample
from plugin.judge.conditions import condition
from plugin.judge.decide import decide
from plugin.judge.growth import phases
from plugin.judge.metrics import KNOWN_METRICS, measure
from plugin.judge.model import Check, Comparison, Kind, Outcome
from plugin.judge.trial import TrialEvidence
from tests.plugin.judge.histories import SECOND, event, events, trial
from tests.plugin.judge.whole_trial import OFTEN, history, whole

THREE, SIX, NINE = ([f"n{number}" for number in range(1, size + 1)] for size in (3, 6, 9))


def phase(
    begin: int,
    before: Sequence[str],
    after: Sequence[str],
    *,
    total: int = 180,
    took: int = 20,
    rest: int = 30,
) -> list[LayoutSample]:
    """Samples every 2 s: replicas move evenly for so long, and then rest."""
    samples = []
    for second in range(0, took + rest, 2):
        done = min(1.0, second / took)
        counts = {
            node: round(done * total / len(after) + (1 - done) * (total / len(before) if node in before else 0))
            for node in after
        }
        samples.append(
            LayoutSample(
                t=(begin + second) * SECOND,
                replicas=counts,
                ranges=total // 3,
                moves=1000 * begin + min(second, took),
                leases={node: 10 + 5 * (node == "n1") for node in after} if second % 10 == 0 else None,
                unavailable=0 if second % 10 == 0 else None,
                underreplicated=max(0, took - second) if second % 10 == 0 else None,
            )
        )
    return samples


def grown(*, layout: Sequence[LayoutSample] | None = None, quiet: int | None = 75, **resize: Any) -> TrialEvidence:
    """3 → 6 nodes at 10 s, 6 → 9 at 60 s, no traffic from 75 s on."""
    events = [
        event(10, "scale.begin", kind="out", nodes=SIX, quiet_s=20, stall_s=24, **resize),
        event(60, "scale.begin", kind="out", nodes=NINE, quiet_s=20, stall_s=24, **resize),
    ]
    events += [event(quiet, "quiet.begin")] if quiet else []
    samples = [*phase(10, THREE, SIX), *phase(60, SIX, NINE)] if layout is None else layout
    return trial(events=events, layout=samples, context={"nodes": "3"})


def value(of: TrialEvidence, metric: str) -> float | None:
    return measure(of, metric).value


def test_each_change_of_size_is_a_phase() -> None:
    first, second = phases(grown())
    assert (first.name, second.name) == ("3 → 6", "6 → 9")
    assert (first.begin, first.end, first.quiet_from) == (10, 60, None)
    assert second.quiet_from == 75
    assert len(first.samples) == len(second.samples) == 25


def test_what_is_measured_of_two_phases() -> None:
    of = grown()
    assert value(of, "balanced") == 1
    assert value(of, "settled") == 1
    balanced = measure(of, "balanced_s")
    # new nodes get 30 and 20 replicas in 20 s, and are even with 27 and 17: in the sample after 18 s
    assert balanced.value == 18
    assert balanced.note == "3 → 6: 18 s; 6 → 9: 18 s"
    assert value(of, "settled_s") == 20
    assert value(of, "balanced_3_to_6_min") == pytest.approx(0.3)
    assert value(of, "balanced_6_to_9_min") == pytest.approx(0.3)
    assert measure(of, "replicas_moved_per_s").value == pytest.approx(54 / 18)
    assert value(of, "ranges_unavailable") == 0
    assert value(of, "ranges_underreplicated_at_end") == 0
    spread = measure(of, "lease_spread")
    assert spread.value == pytest.approx(100 * (15 - 95 / 9) / (95 / 9))
    assert "n1 15, n2 10" in spread.note
    assert condition(of, "layout_sampled").met


def test_replicas_traded_at_rest() -> None:
    assert value(grown(), "replicas_traded") == 0
    # 3 of 180 replicas every 2 s in the last 20 s
    restless = [
        *phase(10, THREE, SIX),
        *(changed(s, moves=(s.moves or 0) + 3 * n) for n, s in enumerate(phase(60, SIX, NINE))),
    ]
    traded = measure(grown(layout=restless), "replicas_traded")
    assert traded.value == pytest.approx(100 * 3 * 30 / 180)
    assert traded.note == "6 → 9: 30 moves in the last 20 s, of 180 replicas"
    assert measure(grown(quiet=None), "replicas_traded").value is None
    blind = [changed(s, moves=None) for s in grown().layout]
    assert "the moves were not counted" in measure(grown(layout=blind), "replicas_traded").note
    soon = [s for s in grown().layout if s.t < 84 * SECOND]
    assert measure(grown(layout=soon), "replicas_traded").value is None, "too short a time to tell"


def test_what_was_moved_twice() -> None:
    """3 → 6: 90 gained by as many additions, each with a removal; 6 → 9: 60, and 30 to and fro."""

    def counted(samples: Sequence[LayoutSample], moves: int) -> list[LayoutSample]:
        return [changed(s, moves=moves * n // (len(samples) - 1)) for n, s in enumerate(samples)]

    direct = [*counted(phase(10, THREE, SIX), 180), *counted(phase(60, SIX, NINE), 120)]
    assert value(grown(layout=direct), "additions_for_a_gain") == 1
    restless = [*counted(phase(10, THREE, SIX), 180), *counted(phase(60, SIX, NINE), 180)]
    twice = measure(grown(layout=restless), "additions_for_a_gain")
    assert (twice.value, twice.note) == (1.5, "3 → 6: 90 added, 90 gained; 6 → 9: 90 added, 60 gained")
    assert measure(grown(layout=[]), "additions_for_a_gain").value is None


def test_replicas_that_still_move_when_our_time_is_up_refute_nothing() -> None:
    """Only where it is the source's time that is up."""
    slow = grown(layout=[*phase(10, THREE, SIX), *phase(60, SIX, NINE, took=400, rest=-360)])
    balanced = measure(slow, "balanced")
    assert balanced.value == 0
    assert "6 → 9: replicas still move at the end" in balanced.note
    found = condition(slow, "time_enough")
    assert not found.met
    assert "6 → 9: replicas still move" in found.why
    assert value(slow, "settled") is None
    assert value(slow, "balanced_s") is None
    for limit, met in ((1.0, False), (0.5, True)):
        assert condition(replace(slow, limits={"balanced_6_to_9_min": limit}), "time_enough").met is met
    stalled = grown(layout=[*phase(10, THREE, SIX), *phase(60, SIX, SIX, total=360, took=1, rest=40)])
    assert condition(stalled, "time_enough").met
    assert value(stalled, "balanced") == 0


def unsteady(*, rest: int) -> TrialEvidence:
    """3 → 6 nodes: even, then no longer, then even again in the last sample; it ``rest``s uneven for so long before."""
    way = [{**dict.fromkeys(THREE, 60 - k), **dict.fromkeys(SIX[3:], k)} for k in range(0, 28, 3)]
    out = {**dict.fromkeys(THREE, 24), **dict.fromkeys(SIX[3:], 36)}
    even = dict.fromkeys(SIX, 30)
    counts = [*way, even, even, *[out] * (1 + rest // 2), *([] if rest else [even])]
    samples = [
        LayoutSample(t=(10 + 2 * n) * SECOND, replicas=each, ranges=60, moves=None if rest else 9 * n)
        for n, each in enumerate(counts)
    ]
    grows = event(10, "scale.begin", kind="out", nodes=SIX, quiet_s=20, stall_s=24, hold_s=4)
    ended = samples[-1].t / SECOND
    return trial(
        events=[grows, event(ended, "scale.end"), event(ended + 0.1, "trial.end")],
        layout=samples,
        context={"nodes": "3"},
    )


def test_replicas_that_were_even_once_and_still_move_when_our_time_is_up_refute_nothing() -> None:
    """Where they came to rest unevenly after that they do, and where it is the source's time that is up."""
    balanced = Check(metric="balanced", comparison=Comparison.EQ, limit=1, kind=Kind.ABSOLUTE, mark="D", source="")
    moving, rested = unsteady(rest=0), unsteady(rest=40)
    for of, state in ((moving, "so again for 0 s of 4 s asked for"), (rested, "left it again")):
        found = measure(of, "balanced")
        assert found.value == 0
        assert state in found.note
    verdict = decide(moving, [balanced])
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "time_enough_to_balance is not met: 3 → 6: replicas were even 1 time and left it again" in verdict.why
    assert decide(rested, [balanced]).outcome is Outcome.REFUTED
    of_the_source = Check(
        metric="balanced_3_to_6_min", comparison=Comparison.LE, limit=0.2, kind=Kind.PROFILE, mark="S", source="",
    )  # fmt: skip
    assert decide(moving, [balanced, of_the_source]).outcome is Outcome.REFUTED
    assert "time_enough_to_balance" not in KNOWN_METRICS["replicas_traded"].needs, "who thrashes for ever is refuted"


def traded(*paces: int) -> TrialEvidence:
    """3 → 6 → 9 nodes; without traffic so many replicas of 180 are traded every 2 s, quiet period by quiet period."""
    first, last = phase(10, THREE, SIX), phase(60, SIX, NINE, rest=20 * len(paces))
    added = [0] * 10 + [pace for pace in paces for _ in range(10)]
    moved = accumulate(added[: len(last)])
    layout = [*first, *(changed(s, moves=(s.moves or 0) + more) for s, more in zip(last, moved, strict=True))]
    return grown(layout=layout, quiet=80)


@pytest.mark.parametrize(
    ("paces", "limits", "is_"),
    [
        ((3, 3), {}, Outcome.REFUTED),
        ((3, 2), {}, Outcome.REFUTED),
        ((7, 3), {}, Outcome.INCONCLUSIVE),
        ((0, 7, 3), {}, Outcome.INCONCLUSIVE),
        ((7, 7, 3), {"balanced_6_to_9_min": 0.5}, Outcome.REFUTED),
        ((3,), {}, Outcome.REFUTED),
        ((2, 6), {}, Outcome.REFUTED),
        ((9, 0), {}, Outcome.PASS),
    ],
    ids=[
        "for ever",
        "a little less",
        "less than half as often",
        "of late",
        "the source's time",
        "short",
        "more",
        "rests",
    ],
)
def test_replicas_that_come_to_rest_when_our_time_is_up_refute_nothing(
    paces: tuple[int, ...], limits: Mapping[str, float], is_: Outcome
) -> None:
    """Those that are traded as often as before do: more time would show nothing else."""
    limit = Check(metric="replicas_traded", comparison=Comparison.LE, limit=5, kind=Kind.ABSOLUTE, mark="R", source="")
    source = [
        Check(metric=name, comparison=Comparison.LE, limit=most, kind=Kind.PROFILE, mark="S", source="")
        for name, most in limits.items()
    ]
    verdict = decide(traded(*paces), [limit, *source])
    (found, *_) = verdict.results
    assert found.outcome is is_
    assert ("time_enough_to_rest is not met: 6 → 9: " in verdict.why) is (is_ is Outcome.INCONCLUSIVE)


@pytest.mark.parametrize(("limit", "met"), [(None, False), (1.0, False), (0.5, True)])
def test_ranges_that_still_get_their_replicas_when_our_time_is_up_refute_nothing(
    limit: float | None, met: bool
) -> None:
    lacking = [changed(s, underreplicated=4) if s.underreplicated == 0 else s for s in grown().layout]
    moving = [changed(s, moves=(s.moves or 0) + 2 * n) for n, s in enumerate(lacking)]
    limits = {} if limit is None else {"balanced_6_to_9_min": limit}
    found = condition(replace(grown(layout=moving), limits=limits), "time_enough_to_repair")
    assert found.met is met
    assert "6 → 9: 4 ranges lack replicas at the end, no replica moved in the last 0 s (24 s asked)" in found.why
    assert condition(grown(layout=lacking), "time_enough_to_repair").met, "nothing was done about it any more"
    for whole_again in (grown(), grown(layout=moving[:1] + [changed(s, underreplicated=0) for s in moving[1:]])):
        assert condition(whole_again, "time_enough_to_repair").met


def test_what_refutes() -> None:
    lost = [changed(s, unavailable=2) if s.t == 30 * SECOND else s for s in grown().layout]
    assert value(grown(layout=lost), "ranges_unavailable") == 2
    lacking = [changed(s, underreplicated=4) if s.underreplicated == 0 else s for s in grown().layout]
    assert value(grown(layout=lacking), "ranges_underreplicated_at_end") == 4


def test_nothing_is_left_to_wait_for_once_no_replica_moves_and_none_lacks() -> None:
    assert phases(grown())[-1].at_rest
    assert not phases(grown(quiet=None))[-1].at_rest
    again = [changed(s, moves=(s.moves or 0) + 2 * (s.t >= 105 * SECOND)) for s in grown().layout]
    moved = phases(grown(layout=again))[-1]
    assert moved.found.settled is not None
    assert not moved.at_rest, "it rested, and two replicas were moved then"
    for end in ({"underreplicated": 2}, {"silent": ("n9",)}):
        samples = [
            changed(s, **end) if s.underreplicated is not None and s.t >= 70 * SECOND else s for s in grown().layout
        ]
        assert not phases(grown(layout=samples))[-1].at_rest


def test_what_was_not_looked_at_is_no_pass() -> None:
    assert measure(grown(quiet=None), "settled").note.startswith("nobody looked whether the replicas come to rest")
    nothing = trial()
    for metric in (
        "balanced",
        "settled",
        "balanced_s",
        "settled_s",
        "ranges_unavailable",
        "lease_spread",
        "replicas_moved_per_s",
    ):
        assert value(nothing, metric) is None
    blind = grown(layout=[changed(s, leases=None, unavailable=None, underreplicated=None) for s in grown().layout])
    for metric in ("ranges_unavailable", "ranges_underreplicated_at_end", "lease_spread"):
        assert value(blind, metric) is None
    assert not condition(nothing, "layout_sampled").met
    assert value(grown(), "manual_steps") is None


def test_a_lost_sample_is_a_hole_and_many_are_no_evidence() -> None:
    def without(seconds: range) -> TrialEvidence:
        lost = [LayoutSample(t=s.t, lost="TimeoutError") if s.t // SECOND in seconds else s for s in grown().layout]
        return grown(layout=lost)

    one = without(range(30, 31))
    assert condition(one, "layout_sampled").met
    assert value(one, "balanced") == value(one, "settled") == 1
    many = condition(without(range(30, 44)), "layout_sampled")
    assert not many.met
    assert "7 lost" in many.why
    assert "TimeoutError" in many.why
    assert not condition(grown(layout=phase(10, THREE, SIX)), "layout_sampled").met, "the second phase has none"


def test_a_sampler_that_stopped_before_the_wait_was_over_is_a_hole() -> None:
    whole = grown()
    for end, met in ((108, True), (140, False)):
        waited = replace(whole, events=[*whole.events, event(end, "quiet.end")])
        assert condition(waited, "layout_sampled").met is met


def test_what_was_done_by_hand_is_counted() -> None:
    def told(**steps: int) -> Mapping[str, Any]:
        return {"events": [*grown().events, event(120, "interventions", steps=steps)]}

    assert value(replace(grown(), **told()), "manual_steps") == 0
    found = measure(replace(grown(), **told(set_zone_config=57, set_cluster_setting=1)), "manual_steps")
    assert found.value == 58
    assert found.examples == ("set_zone_config, 57 times", "set_cluster_setting, 1 time")
    unknown = [*grown().events, event(120, "interventions.unknown", why="nobody answers")]
    assert value(replace(grown(), events=unknown), "manual_steps") is None


def test_why_replicas_moved_is_told_in_the_servers_words() -> None:
    reasons = {"range under-replicated": 12, "rebalance": 351}
    told = replace(grown(), events=[*grown().events, event(120, "moves", reasons=reasons)])
    found = measure(told, "replica_changes")
    assert (found.value, found.note) == (363, "rebalance: 351; range under-replicated: 12")
    unknown = replace(grown(), events=[*grown().events, event(120, "moves.unknown", why="nobody answers")])
    assert value(unknown, "replica_changes") is None


def test_an_event_without_nodes_is_no_phase() -> None:
    assert phases(trial(events=[event(1, "scale.begin", nodes=[])])) == ()


def shrunk(*told: Any, layout: Sequence[LayoutSample] = ()) -> TrialEvidence:
    begin = [
        event(at, "scale.begin", kind="in", nodes=rest, quiet_s=20, stall_s=24)
        for at, rest in ((10, SIX[:5]), (60, SIX[:4]))
    ]
    return trial(events=sorted([*begin, *told], key=lambda e: e.t), layout=layout, context={"nodes": "6"})


def test_nodes_that_were_taken_out() -> None:
    gone = [event(20, "node.removed", node="n6", code=0), event(70, "node.removed", node="n5", code=0)]
    of = shrunk(*gone)
    assert [phase.name for phase in phases(of)] == ["6 → 5", "5 → 4"]
    assert (value(of, "decommissioned"), value(of, "drained")) == (1, 1)
    hard = shrunk(gone[0], event(70, "node.removed", node="n5", code=-9))
    assert (value(hard, "decommissioned"), measure(hard, "drained").note) == (1, "n5 ended with -9")
    assert value(hard, "drained") == 0


def test_a_node_that_cannot_be_taken_out() -> None:
    of = shrunk(event(20, "remove.failed", node="n6", why="12 replicas left after 300 s"))
    assert value(of, "decommissioned") == 0
    assert measure(of, "decommissioned").note == "n6: 12 replicas left after 300 s"
    cut = shrunk(event(20, "node.removed", node="n6", code=0))
    assert value(cut, "decommissioned") is None
    assert value(grown(), "decommissioned") is None
    assert value(grown(), "drained") is None


@pytest.mark.parametrize(
    ("left", "met"),
    [(lambda t: 60 - t, False), (lambda t: max(20, 60 - 3 * t), True), (lambda _: 20, True)],
    ids=["still leaving", "stuck", "never begun"],
)
def test_a_node_that_is_still_being_emptied_when_our_time_is_up_refutes_nothing(
    left: Callable[[int], int], met: bool
) -> None:
    """It is given up 40 s after its removal began: what it lost in the last 20 s tells."""
    samples = [
        LayoutSample(t=(10 + t) * SECOND, replicas={**dict.fromkeys(SIX[:5], 30), "n6": left(t)}, moves=t)
        for t in range(0, 44, 2)
    ]
    failed = event(50, "remove.failed", node="n6", why="20 replicas left after 40 s")
    found = condition(shrunk(failed, layout=samples), "time_enough_to_leave")
    assert found.met is met, found.why
    assert not condition(shrunk(failed, layout=samples[:5]), "time_enough_to_leave").met, "nobody looked"
    assert condition(shrunk(layout=samples), "time_enough_to_leave").met


def test_ranges_without_a_home() -> None:
    samples = [changed(sample, homeless=number % 2) for number, sample in enumerate(phase(60, SIX, SIX[:4]))]
    of = shrunk(layout=samples[:4])
    assert value(of, "ranges_lost") == 1
    assert "1 at the most" in measure(of, "ranges_lost").note
    assert value(shrunk(layout=samples[:3]), "ranges_lost") == 0
    assert value(grown(), "ranges_lost") is None, "nobody said"
    earlier = [changed(sample, homeless=0) for sample in phase(10, SIX, SIX[:5])]
    assert value(shrunk(layout=earlier), "ranges_lost") is None, "not at the end"


def test_what_some_nodes_say_refutes_and_proves_nothing() -> None:
    """A node that starts does not answer; the others know of five ranges that are away."""
    away = [
        changed(sample, unavailable=5, silent=("n4",)) if sample.t == 20 * SECOND else sample
        for sample in grown().layout
    ]
    found = measure(grown(layout=away), "ranges_unavailable")
    assert (found.value, found.note) == (5, "the most in 10 samples, 1 of them not of all nodes")
    assert condition(grown(layout=away), "gauges_sampled").met
    never = [
        changed(sample, silent=("n4",)) if sample.unavailable is not None and sample.t >= 60 * SECOND else sample
        for sample in grown().layout
    ]
    unmet = condition(grown(layout=never), "gauges_sampled")
    assert not unmet.met
    assert "6 → 9: asked 5 times" in unmet.why
    assert "without an answer of n4; never by all nodes" in unmet.why
    assert value(grown(layout=never), "ranges_underreplicated_at_end") is None


def test_metrics_that_were_not_asked_for_a_while_are_a_hole() -> None:
    assert condition(grown(), "gauges_sampled").met
    hole = [
        changed(sample, unavailable=None, underreplicated=None) if sample.t > 70 * SECOND else sample
        for sample in grown().layout
    ]
    unmet = condition(grown(layout=hole), "gauges_sampled")
    assert not unmet.met
    assert "6 → 9: asked 2 times, 38 s at most" in unmet.why
    lacking = measure(grown(layout=hole), "ranges_underreplicated_at_end")
    assert lacking.value is None
    assert "at the end" in lacking.note


def test_rest_while_writers_still_write_is_not_rest_without_traffic() -> None:
    ended = whole(events=[*events(), event(30.2, "scale.begin", nodes=SIX), event(30.5, "quiet.begin")])
    assert condition(ended, "traffic_ended").met
    writing = whole(events=[*events(), event(12, "scale.begin", nodes=SIX), event(29, "quiet.begin")])
    found = condition(writing, "traffic_ended")
    assert not found.met
    assert "99 writes sent" in found.why


def test_a_node_that_never_joined_is_the_reason() -> None:
    of = grown()
    late = [*of.events, event(58, "join.failed", node="n4", why="n4 to take clients: refused")]
    found = measure(replace(of, events=sorted(late, key=lambda each: each.t)), "balanced")
    assert found.value == 0
    assert found.note == "n4 never joined: n4 to take clients: refused"


def test_a_node_that_had_replicas_already_was_still_joining() -> None:
    """What it was given up for is our own time, as it is one of the cluster's."""
    of = grown()
    late = [*of.events, event(58, "join.failed", node="n4", why="n4 to take clients: refused")]
    found = condition(replace(of, events=sorted(late, key=lambda each: each.t)), "time_enough")
    assert not found.met
    assert found.why == "n4 had replicas already: n4 to take clients: refused"
    alone = [*of.events, event(58, "join.failed", node="n44", why="n44 to take clients: refused")]
    assert condition(replace(of, events=sorted(alone, key=lambda each: each.t)), "time_enough").met


def test_a_removal_that_must_be_refused() -> None:
    refused = shrunk(event(90, "removal.refused", node="n3", how="all 60 replicas stayed where they were"))
    assert value(refused, "removal_refused") == 1
    assert measure(refused, "removal_refused").note == "n3: all 60 replicas stayed where they were"
    begun = shrunk(event(90, "removal.begun", node="n3", how=""))
    assert (value(begun, "removal_refused"), measure(begun, "removal_refused").note) == (
        0,
        "replicas began to leave n3",
    )
    assert value(shrunk(), "removal_refused") is None


def test_throughput_meanwhile_counts_from_the_first_change_under_load() -> None:
    """The cluster of a scale-in is grown first, before anything is written."""
    # the whole trial's baseline is 2 to 12 s
    quiet = event(0.5, "scale.begin", kind="out", nodes=SIX, quiet_s=20, stall_s=24)
    loaded = event(13, "scale.begin", kind="in", nodes=SIX[:5], quiet_s=20, stall_s=24)
    both = sorted([*events(), quiet, loaded], key=lambda each: each.t)
    kept = measure(whole(history=history(rate=OFTEN), events=both), "throughput_kept_scaling")
    assert kept.note == "15 of 18 buckets of 1 s at 80 % of 300 writes a bucket or more", (
        "from 13 s to the end of writing"
    )
    only = measure(whole(events=sorted([*events(), quiet], key=lambda each: each.t)), "throughput_kept_scaling")
    assert only.value is None
