"""What a trial's reports draw: counted by hand from evidence that was written by hand, whole and broken."""

import json
import random
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from msgspec import structs

from plugin.catalogue import load
from plugin.evidence.load import describe_trial, load_trial
from plugin.evidence.store import EVENTS, RESULT, TRIAL_FILE, VERDICT, write_json
from plugin.judge.analysis import names_of
from plugin.judge.availability import availability, nearby
from plugin.replay import judge_trial
from plugin.reports.allure_results import write_run
from plugin.reports.bands import SECOND
from plugin.reports.page import write_page
from plugin.reports.series import Series, series
from plugin.reports.stored_run import stored_run, stored_trial
from plugin.result import ENDED_EARLY, HARNESS, NOT_AS_EXPECTED, UNREADABLE, Result
from tests.plugin.conftest import edited
from tests.plugin.reports.allure_reading import everything
from tests.plugin.reports.samples import BUCKETS, run_of, trial_of

FILES = (TRIAL_FILE, EVENTS, "ledger.tsv", "ledger-final.tsv", "probe.jsonl", "manifest.json", VERDICT)


def of(directory: Path) -> Series:
    return series(load_trial(directory, describe_trial(directory)))


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """n1 is killed at 20 s; nothing is written until 23 s, n1 is not reached until 31 s, all is whole again at 32 s."""
    return trial_of(tmp_path_factory.mktemp("series") / "trial")


def test_every_second_is_counted(trial: Path) -> None:
    seen = of(trial)
    assert seen.seconds == 60
    assert list(seen.throughput) == [0] * 3 + [100] * 17 + [0] * 3 + [100] * 36 + [0]
    assert seen.normal == 100
    assert seen.errors[19:24] == [0, 28, 28, 28, 9]
    assert seen.error_kinds[20] == {"load": 1, "probe: timeout": 3 * BUCKETS}
    assert list(seen.reached["n1"][18:33]) == [1.0] * 2 + [0.0] * 11 + [1.0] * 2
    assert list(seen.reached["n2"][18:25]) == [1.0] * 2 + [0.0] * 3 + [1.0] * 2
    assert [i for i, value in enumerate(seen.latency["p99"]) if value is None] == [0, 1, 2, 20, 21, 22]
    (p50, p95, p99) = (seen.latency[name][10] for name in ("p50", "p95", "p99"))
    assert None not in (p50, p95, p99)
    assert 1 < p50 < p95 < p99 < 200  # type: ignore[operator]


@pytest.mark.parametrize(("interval_us", "turn"), [(360_000, 1), (900_000, 2), (2_500_000, 3)])
def test_a_route_that_is_asked_seldom_is_reached_until_its_next_turn(trial: Path, interval_us: int, turn: int) -> None:
    evidence = load_trial(trial, describe_trial(trial))
    assert evidence.probe is not None
    header, told = evidence.probe
    seldom = [
        structs.replace(
            second,
            routes={
                name: route if (second.t // SECOND + at) % turn == 0 else structs.replace(route, ok=0)
                for at, (name, route) in enumerate(second.routes.items())
            },
        )
        for second in told
    ]
    seen = series(replace(evidence, probe=({**header, "interval_us": interval_us}, seldom)))
    assert list(seen.reached["n1"][10:20]) == [1.0] * 10
    assert list(seen.reached["n1"][20 + turn - 1 : 31]) == [0.0] * (12 - turn)


def test_of_the_second_in_which_the_probe_begins_nobody_says_what_it_did_not_reach(trial: Path) -> None:
    evidence = load_trial(trial, describe_trial(trial))
    assert evidence.probe is not None
    header, (first, *others) = evidence.probe
    late = {
        name: structs.replace(route, ok=0, first=0, last=0, gap=0) if name.startswith("n2") else route
        for name, route in first.routes.items()
    }
    seen = series(replace(evidence, probe=(header, [structs.replace(first, routes=late), *others])))
    begun = first.t // SECOND
    assert list(seen.reached["n2"][begun - 1 : begun + 2]) == [None, None, 1.0]


def test_states_phases_and_what_the_fault_cost(trial: Path) -> None:
    seen = of(trial)
    assert [(band.name, band.begin, band.end) for band in seen.nodes["n1"]] == [
        ("starting", 0.0001, 2.0),
        ("up", 2.0, 20.05),
        ("killed", 20.05, 28.0),
        ("coming back", 28.0, 32.0),
        ("up", 32.0, 59.3),
    ]
    assert [band.name for band in seen.nodes["n2"]] == ["starting", "up"]
    assert [band.name for band in seen.phases] == [
        "provision",
        "load",
        "disturb",
        "heal",
        "load, healed",
        "audit",
    ]
    (cost,) = seen.resilience
    assert (cost.fault, cost.nodes, cost.begin, cost.end) == ("kill", ("n1",), 20.0, 32.0)
    assert cost.recovery_s == pytest.approx(4.001)
    assert cost.gap_s == pytest.approx(23.05 - 19.9)
    assert cost.victim_gap_s == pytest.approx(31.05 - 19.9)
    assert cost.lost == pytest.approx(300, abs=1)
    assert cost.lost_share == pytest.approx(0.25, abs=0.01)
    assert cost.degraded_s == pytest.approx(4.0)


def test_a_fault_that_was_never_undone_lasts_to_the_end_of_the_record(tmp_path: Path) -> None:
    """Also where the events end long before ledger and probe do; what it cost by then is no cost of it."""
    directory = trial_of(tmp_path / "trial", seconds=40, judged=False)
    lines = (directory / EVENTS).read_text().splitlines(keepends=True)
    until = next(number for number, line in enumerate(lines) if "fault.bit" in line)
    (directory / EVENTS).write_text("".join(lines[: until + 1]))
    seen = of(directory)
    assert seen.seconds == 40
    (cost,) = seen.resilience
    assert (cost.begin, cost.end) == (20.0, 40.0)
    assert cost.gap_s == pytest.approx(23.05 - 19.9)
    assert (cost.recovery_s, cost.degraded_s, cost.lost, cost.lost_share) == (None,) * 4
    assert (seen.faults[0].begin, seen.faults[0].end) == (20.0, 40.0)
    assert seen.phases[-1].name == "disturb"
    assert seen.phases[-1].end == 40.0
    assert [(band.name, band.end) for band in seen.nodes["n1"]] == [
        ("starting", 2.0), ("up", 20.05), ("killed", 40.0),
    ]  # fmt: skip
    assert seen.nodes["n2"][-1].end == 40.0


def test_what_a_fault_cost_until_writing_ended_where_nothing_recovered(tmp_path: Path) -> None:
    directory = trial_of(tmp_path / "trial", seconds=40, judged=False)
    lines = (directory / EVENTS).read_text().splitlines(keepends=True)
    (directory / EVENTS).write_text("".join(line for line in lines if '"recovered"' not in line))
    seen = of(directory)
    (cost,) = seen.resilience
    assert cost.recovery_s is None
    assert cost.lost == pytest.approx(300, abs=1), "none of them in the audit, when nobody writes"
    assert [(band.name, band.end) for band in seen.phases[-2:]] == [("heal", 39.0), ("audit", 39.2)]


def test_it_says_what_the_judge_says(trial: Path) -> None:
    """Gap, degraded time and baseline of the report are those of the verdict."""
    verdict = json.loads((trial / VERDICT).read_text())
    values = {r["check"]["metric"]: r["measurement"]["value"] for r in verdict["results"]}
    (cost,) = of(trial).resilience
    assert values["gap_s"] == cost.gap_s
    assert values["degraded_s"] == cost.degraded_s
    assert values["throughput_before"] == of(trial).normal
    (note,) = [r["measurement"]["note"] for r in verdict["results"] if r["check"]["metric"] == "degraded_s"]
    assert note.endswith(" below 80 % of 200 writes a bucket"), "which are not those of a second"


def test_gaps_from_a_part_of_the_probe_are_those_of_all_of_it(tmp_path: Path) -> None:
    faults = [("kill", "n1", 20), ("pause", "n2", 70), ("kill", "n3", 110)]
    directory = trial_of(tmp_path / "trial", seconds=150, rate=5, faults=faults, judged=False)
    header, probe = load_trial(directory, describe_trial(directory)).probe or ({}, [])
    routes, drawn = names_of(header["routes"]), random.Random(5)
    for _ in range(60):
        window = (drawn.randrange(150_000_000), drawn.randrange(150_000_000))
        window = (min(window), max(window))
        part = nearby(probe, routes, window)
        ours, theirs = (availability(seen, routes, window=window, victims=["n1"]) for seen in (part, probe))
        for one, other in ((ours.worst, theirs.worst), (ours.victims, theirs.victims)):
            assert one is not None
            assert other is not None
            assert one.seconds == other.seconds
    assert len(nearby(probe, routes, (60_000_000, 61_000_000))) < 10


def test_nothing_that_a_killed_run_left_is_too_little(trial: Path, tmp_path: Path) -> None:
    """Every file cut off anywhere, or absent: what is there is shown, and nothing raises."""
    drawn = random.Random(3)
    catalogue = load()
    contents = {name: (trial / name).read_bytes() for name in FILES}
    copy = tmp_path / "claims" / "survivability" / "trial"
    copy.mkdir(parents=True)
    for number in range(25):
        for name, content in contents.items():
            (copy / name).write_bytes(content)
        for name in drawn.sample(FILES, drawn.randint(1, 3)):
            if number % 5:
                (copy / name).write_bytes(contents[name][: drawn.randrange(len(contents[name]))])
            else:
                (copy / name).unlink()
        found = stored_run(tmp_path, catalogue).trials
        assert len(found) == (copy / TRIAL_FILE).exists()
        if not found:
            continue
        stored = found[0]
        assert stored.result.outcome in ("pass", ENDED_EARLY, UNREADABLE)
        assert (stored.verdict is None) == (stored.result.outcome != "pass")
        assert stored.result.why
        assert stored.series is None or json.dumps(asdict(stored.series), allow_nan=False)


def test_one_flipped_byte_never_raises(trial: Path, tmp_path: Path) -> None:
    drawn = random.Random(4)
    catalogue = load()
    copy = tmp_path / "trial"
    copy.mkdir()
    small = {name: (trial / name).read_bytes() for name in FILES if name not in ("ledger-final.tsv", TRIAL_FILE)}
    (copy / TRIAL_FILE).write_bytes((trial / TRIAL_FILE).read_bytes())
    for _ in range(25):
        for name, content in small.items():
            mangled = bytearray(content)
            mangled[drawn.randrange(len(mangled))] = drawn.choice(b'\x00"{}[]9\t\n\xff')
            (copy / name).write_bytes(mangled)
        stored = stored_trial(copy, catalogue)
        assert stored.result.outcome
        assert stored.result.why


def test_outcomes_of_stored_trials(tmp_path: Path) -> None:
    """A failure of the harness outweighs an earlier verdict; a sabotage is refuted only by a check that it names."""
    run = run_of(
        tmp_path / "run",
        trials=[{"name": name, "sabotage": name[0] == "s"} for name in ("a", "b", "s", "t", "u")],
    )
    place = run / "claims" / "survivability"
    with (place / "b" / EVENTS).open("a") as file:
        file.write('{"t": 61000000, "event": "error", "what": "OSError: no"}\n')
    for name, metrics in (("t", ["gap_s"]), ("u", ["stale"])):
        with (place / name / EVENTS).open("a") as file:
            file.write(json.dumps({"t": 61000000, "event": "sabotage.expected", "metrics": metrics}) + "\n")
        verdict = json.loads((place / name / VERDICT).read_text())
        for result in verdict["results"]:
            if result["check"]["metric"] == "gap_s":
                result["outcome"] = "refuted"
        edited(place / name / VERDICT, outcome="refuted", results=verdict["results"])
        edited(place / name / TRIAL_FILE, sabotage=True)
    trials = {trial.directory.name: trial for trial in stored_run(run, load()).trials}
    assert trials["b"].result == Result(outcome=HARNESS, why="OSError: no")
    assert {name: (trial.result.outcome, trial.result.expected) for name, trial in trials.items()} == {
        "a": ("pass", ""),
        "b": (HARNESS, ""),
        "s": (NOT_AS_EXPECTED, ""),
        "t": ("pass", "refuted"),
        "u": (NOT_AS_EXPECTED, ""),
    }


def test_every_report_tells_the_result_that_is_stored(tmp_path: Path) -> None:
    """It is worked out of the evidence only for another verdict, and where none is stored with its own."""
    run, catalogue = run_of(tmp_path / "run", trials=[{"name": name} for name in "abcd"]), load()
    place = run / "claims" / "survivability"
    why = "as it was stored, postgresql://root:hunter2hunter2@localhost"
    write_json(place / "a" / RESULT, {"outcome": "inconclusive", "why": why, "expected": ""})
    (place / "b" / RESULT).write_text("{")
    write_json(place / "c" / RESULT, {"outcome": 7, "why": why})
    stored = stored_run(run, catalogue)
    first, *others = (trial.result for trial in stored.trials)
    assert first.outcome == "inconclusive"
    assert first.why.startswith("as it was stored, ")
    assert {result.outcome for result in others} == {"pass"}
    assert write_run(tmp_path / "allure", [stored]) == 4
    page = write_page(tmp_path / "page.html", [stored], judge="").read_text()
    for text in (page, everything(tmp_path / "allure")):
        assert "INCONCLUSIVE" in text
        assert "as it was stored" in text
        assert "hunter2hunter2" not in text
    assert stored_trial(place / "a", catalogue, judge_trial(place / "a", catalogue)).result.outcome == "pass"
    assert stored_trial(place / "a", catalogue, unjudged="the judge failed").result.outcome == UNREADABLE
