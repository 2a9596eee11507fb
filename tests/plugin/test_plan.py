"""``--plan``: a plan that is given is followed instead of one that is drawn; a path that is named is drawn."""

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fixtures.swapping.plan import Plan, draw, stored
from plugin.evidence.events import PlanDrawn, seen
from plugin.evidence.load import events_of
from plugin.evidence.run_seal import RUN_SEAL
from tests.plugin.conftest import Gate

OLD, NEW, PATCH = "v24.1.3", "v24.2.0", "v24.2.1"
CATALOGUE = """
[claims.change]
sentence = "The version changes."
nodes = 3
changes_versions = true
disturbs = "Nothing is disturbed."
estimate = { seconds = 1, disk_mib = 1 }
parameters = { path = ["final", "back-from-all"], nodes = [3] }
checks = [{ metric = "answer", comparison = "==", limit = 42, recorded = true }]

[claims.fail]
sentence = "An update fails."
nodes = 3
changes_versions = true
least_versions = 1
disturbs = "Nothing is disturbed."
estimate = { seconds = 1, disk_mib = 1 }
parameters = { failure = ["does-not-start", "dies"] }
checks = [{ metric = "answer", comparison = "==", limit = 42, recorded = true }]
"""
TESTS = """

from fixtures.swapping.planned import drawn, fitting


@pytest.mark.claim("change")
@pytest.mark.topology(nodes="nodes")
@pytest.mark.plans(lines=drawn, fits=fitting)
async def test_change(plan, engine, judge, path, nodes):
    judge.measure("answer", 42, note=" / ".join(plan.lines()))
    assert judge.decide()


@pytest.mark.claim("fail")
@pytest.mark.topology(nodes=3)
@pytest.mark.plans(lines=drawn, fits=fitting)
async def test_fails(plan, versions, judge, failure):
    judge.measure("answer", 42, note=" ".join(version.version for version in versions))
    assert judge.decide()


@pytest.mark.sabotage("change")
@pytest.mark.topology(nodes=3)
async def test_draws_its_own(plan, judge):
    judge.measure("answer", len(plan.versions))
    assert judge.refuted("answer")
"""
BOTH = ("--cockroach-version", OLD, "--cockroach-version", NEW)


@pytest.fixture
def changes(gate: Gate) -> Gate:
    for file, more in (("claims.toml", CATALOGUE), ("test_claims.py", TESTS)):
        (gate.path / file).write_text((gate.path / file).read_text() + more)
    for version in (OLD, NEW):
        gate.fake_cockroach(version)
    (gate.path / "mine.json").write_text(stored(draw("drawn", (OLD, NEW), ("n1", "n2", "n3"), 7)))
    return gate


def told(trial: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((trial / "trial.json").read_text())
    return found


def test_a_given_plan_is_followed_recorded_and_required(changes: Gate) -> None:
    """Judging it again needs nothing of the file."""
    given = (changes.path / "mine.json").read_text()
    ran = changes(*changes.tests("change"), *BOTH, "--plan", "mine.json", "--run-dir", "out", "--suite", "gate")
    (trial,) = changes.trials
    assert told(trial)["parameters"] == {"path": "given", "nodes": 3}
    assert (trial / "plan.json").read_text() == given
    (event,) = [plan for _, plan in seen(events_of(trial), PlanDrawn)]
    assert (event.path, event.given, event.seed) == ("given", hashlib.sha256(given.encode()).hexdigest(), 7)
    assert "REQUIRED AND NOT DECIDED: change" not in ran.text, ran.text
    (changes.path / "mine.json").unlink()
    again = changes("--judge", "out")
    assert "claim change: PASS" in again.text, again.text


def test_what_one_trial_did_another_does_again(changes: Gate) -> None:
    first = changes(*changes.tests("change"), *BOTH, "--run-dir", "out")
    assert first.status == 0, first.text
    assert "1 claim to be tested, about 2 s in all" in first.text
    assert [told(trial)["parameters"]["path"] for trial in changes.trials] == ["back-from-all", "final"]
    (event,) = [plan for _, plan in seen(events_of(changes.trials[0]), PlanDrawn)]
    assert event.path == "back-from-all"
    plan = changes.trials[0] / "plan.json"
    lines = msgspec.json.decode(plan.read_bytes(), type=Plan).lines()
    assert "\n".join(f"  {line}" for line in lines[1:]) in first.text, "every step is printed before it is done"
    second = changes(*changes.tests("change"), *BOTH, "--plan", str(plan), "--run-dir", "again", "-n", "2")
    assert second.status == 0, second.text
    (trial,) = changes.path.glob("again/claims/*/*")
    assert (trial / "plan.json").read_text() == plan.read_text()


def test_a_path_that_is_named_is_drawn_instead_of_the_suite_s(changes: Gate) -> None:
    for seed in ("1", "2"):
        ran = changes(*changes.tests("change"), *BOTH, "--plan", "drawn", "--seed", seed, "--run-dir", seed)
        assert ran.status == 0, ran.text
        assert "1 claim to be tested, about 1 s in all" in ran.text, "it is not told of the suite's own paths"
    plans = [json.loads(file.read_text()) for file in sorted(changes.path.glob("[12]/claims/*/*/plan.json"))]
    assert [plan["path"] for plan in plans] == ["drawn", "drawn"]
    assert plans[0]["steps"] != plans[1]["steps"]
    again = changes(*changes.tests("change"), *BOTH, "--plan", "drawn", "--seed", "1", "--dry-run")
    assert "would take: about 1 s, 1 MiB of disk" in again.text, "it is one trial of the claim's"
    changes.fake_cockroach(PATCH)
    chain = changes(*changes.tests("change"), *BOTH, "--cockroach-version", PATCH, "--plan", "drawn", "--dry-run")
    assert "would take: about 2 s, 1 MiB of disk" in chain.text, "it makes two changes"
    (stored_plan,) = changes.path.glob("1/claims/*/*/plan.json")
    lines = msgspec.json.decode(stored_plan.read_bytes(), type=Plan).lines()
    assert "\n".join(f"    {line}" for line in lines) in again.text, "the same seed draws it again, step by step"


def test_a_sabotage_draws_its_own(changes: Gate) -> None:
    ran = changes(*changes.tests("change", "draws_its_own"), *BOTH, "--plan", "mine.json", "--run-dir", "out")
    assert ran.status == 0, ran.text
    paths = sorted(json.loads((trial / "plan.json").read_text())["path"] for trial in changes.trials)
    assert paths == ["back-from-half", "drawn"]


def test_a_plan_whose_update_is_well_is_not_for_one_that_fails(changes: Gate) -> None:
    ran = changes(*changes.tests("change", "fails"), *BOTH, "--plan", "mine.json", "--run-dir", "out")
    assert ran.status == 0, ran.text
    plans = [json.loads((trial / "plan.json").read_text()) for trial in changes.trials]
    assert sorted(plan["path"] for plan in plans) == ["drawn", "failed-update", "failed-update"]
    assert {tuple(plan["versions"]) for plan in plans} == {(OLD, NEW)}


@pytest.mark.parametrize("versions", [BOTH, ("--cockroach-version", NEW)], ids=["two versions", "one, given twice"])
def test_a_given_plan_whose_update_fails_is_followed_where_one_is_to(changes: Gate, versions: tuple[str, ...]) -> None:
    """As a trial stored it; what the suite requires of that claim is this plan alone."""
    first = changes(*changes.tests("change", "fails"), *versions, "--run-dir", "out", "--suite", "gate")
    (plan,) = [trial / "plan.json" for trial in changes.trials if "dies" in trial.name]
    given = tuple(changes.tests("change", "fails"))
    again = changes(*given, *versions, "--plan", str(plan), "--seed", "9", "--run-dir", "again", "--suite", "gate")
    trials = {trial.name: told(trial)["parameters"] for trial in changes.path.glob("again/claims/*/*")}
    failed = [found for found in trials.values() if "failure" in found]
    assert failed == [{"failure": "dies"}], first.text
    assert len(trials) == (3 if versions is BOTH else 1), "the other claim's plans are drawn all the same"
    (trial,) = changes.path.glob("again/claims/*/*dies*")
    assert (trial / "plan.json").read_text() == plan.read_text()
    (event,) = [drawn for _, drawn in seen(events_of(trial), PlanDrawn)]
    assert event.given == hashlib.sha256(plan.read_bytes()).hexdigest()
    missing = json.loads((changes.path / "again" / RUN_SEAL).read_text())["undecided"]
    assert "question" in missing
    assert not [told for told in missing if told.startswith("fail")], again.text
    shown = changes(*changes.tests("fails"), *versions, "--plan", str(plan), "--dry-run")
    assert f"given by {plan}, SHA-256 {event.given[:12]}, as its seed draws it" in shown.text
    assert shown.text.count("would start") == 1


def test_a_single_version_is_given_twice_where_that_will_do(changes: Gate) -> None:
    one = ("--cockroach-version", NEW)
    shown = changes(*changes.tests("change", "fails"), *one, "--dry-run")
    assert f"failed-update, {NEW}#1 → {NEW}#2 on 3 nodes" in shown.text, shown.text
    assert "nodes are only restarted one after another (a rolling restart)" in shown.text
    assert shown.text.count("would start") == 2, "the other claim's changes from one version to another"
    ran = changes(*changes.tests("change", "fails"), *one, "--run-dir", "out", "--suite", "gate")
    missing = json.loads((changes.run_dir / RUN_SEAL).read_text())["undecided"]
    assert "question" in missing
    assert not [told for told in missing if told.startswith("fail")], "what was decided is what was required"
    trial, _ = changes.trials
    (event,) = [plan for _, plan in seen(events_of(trial), PlanDrawn)]
    assert (event.equal, event.builds) == (True, {f"{NEW}#1": NEW, f"{NEW}#2": NEW}), ran.text


def test_a_dry_run_prints_it(changes: Gate) -> None:
    digest = hashlib.sha256((changes.path / "mine.json").read_bytes()).hexdigest()
    ran = changes(*changes.tests("change"), *BOTH, "--plan", "mine.json", "--dry-run")
    assert ran.status == 0, ran.text
    head = f"to be done:\n    given by {changes.path}/mine.json, SHA-256 {digest[:12]}, as its seed draws it\n"
    assert f"{head}    drawn (final), {OLD} → {NEW} on 3 nodes, the plan's seed 7\n      1. look at" in ran.text
    assert ran.text.count("would start") == 1
    drawn = changes(*changes.tests("change"), *BOTH, "--dry-run").text
    assert drawn.count("drawn by the seed:\n") == 2


UNDER_LOAD = """

@pytest.fixture
def swapping(plan):
    return None


@pytest.fixture
def objects():
    return None


ledger = probe = objects


@pytest.mark.claim("change")
@pytest.mark.topology(nodes="nodes")
@pytest.mark.plans(lines=drawn, fits=fitting)
async def test_loaded(swapping, ledger, probe, objects, judge, path, nodes):
    judge.measure("answer", 42)
    assert judge.decide()
"""


@pytest.mark.parametrize("more", [("--dry-run",), ("--run-dir", "out")], ids=["before", "when it begins"])
def test_it_says_what_comes_before_the_steps_and_what_goes_on_meanwhile(changes: Gate, more: tuple[str, ...]) -> None:
    file = changes.path / "test_claims.py"
    file.write_text(file.read_text() + UNDER_LOAD)
    ran = changes(*changes.tests("loaded"), *BOTH, "--plan", "mine.json", *more)
    assert ran.status == 0, ran.text
    told = [line.rpartition("     ")[2].removesuffix(" (test_loaded[given-3])") for line in ran.text.splitlines()]
    begin = next(number for number, line in enumerate(told) if line.startswith("preflight"))
    assert told[begin : begin + 6] == [
        "preflight, before any cluster: whether each version may follow the one before it",
        "preflight, before any load: builds, version in force, replicas, 1024 MiB of free disk a node, licence",
        "preflight, under load: a backup of what was written, where the database makes any",
        "meanwhile: the ledger, the probe",
        "where the plan looks: objects of every kind are changed, and looked at",
        "before step 5: 10 s in which the load has the mixed cluster for itself",
    ]
    assert "1. look at objects" in told[begin + 6]


def test_a_plan_that_never_leaves_the_mixed_cluster_to_its_load_says_so_before_it_runs(changes: Gate) -> None:
    file = changes.path / "test_claims.py"
    file.write_text(file.read_text() + UNDER_LOAD)
    plan = json.loads((changes.path / "mine.json").read_text())
    looks = [{"type": "look", "state": "mixed"}, {"type": "stay"}]
    kept = [{**step, "pause_s": 1.0} if "pause_s" in step else step for step in plan["steps"] if step not in looks]
    (changes.path / "mine.json").write_text(json.dumps({**plan, "steps": kept}))
    ran = changes(*changes.tests("loaded"), *BOTH, "--plan", "mine.json", "--dry-run")
    assert ran.status == 0, ran.text
    assert "no step leaves the mixed cluster to its load, so that latency then will be undecided" in ran.text


@pytest.mark.parametrize(
    ("arguments", "edit", "said"),
    [
        ((*BOTH, "--plan", "none.json"), None, ["--plan none.json: is neither a file nor a path", "drawn, final"]),
        ((*BOTH, "--plan", "mine.json"), ('"keep"', '"kepp"'), ["mine.json: steps[1].type: 'kepp' must be", "'keep'?"]),
        ((*BOTH, "--plan", "mine.json"), ('"n3"', '"n4"'), ["nodes: n1, n2, n4 must be those", "n1, n2, n3"]),
        (
            ("--cockroach-version", NEW, "--cockroach-version", OLD, "--plan", "mine.json"),
            None,
            [f"mine.json: versions: {OLD} → {NEW} must be", f"it is {NEW} → {OLD}; give this run those of the plan"],
        ),
        (("--plan", "mine.json"), None, ["must be the versions of this run", "changes no version"]),
    ],
)
def test_one_that_cannot_be_followed_starts_nothing(
    changes: Gate, arguments: tuple[str, ...], edit: tuple[str, str] | None, said: list[str]
) -> None:
    if edit:
        text = (changes.path / "mine.json").read_text()
        assert edit[0] in text
        (changes.path / "mine.json").write_text(text.replace(*edit))
    ran = changes(*changes.tests("change"), *arguments)
    assert ran.status == 4, ran.text
    for words in said:
        assert words in ran.text
    assert not (changes.path / ".roachproof" / "claims").exists()


def test_a_plan_that_no_test_takes_is_not_passed_over(changes: Gate) -> None:
    ran = changes(*changes.tests("passes"), *BOTH, "--plan", "mine.json")
    assert ran.status == 4, ran.text
    assert "--plan mine.json: none of these tests follows a plan like that; leave it out" in ran.text
    ran = changes(*changes.tests("fails"), *BOTH, "--plan", "mine.json")
    assert ran.status == 4, ran.text
    assert "choose one that does: --claim hot-swap, or hot-swap-failed-node where an update fails" in ran.text


def test_a_number_of_nodes_that_the_test_does_not_take(changes: Gate) -> None:
    changes.edit("test_claims.py", "judge, path, nodes)", "judge, path)")
    ran = changes(*changes.tests("change"), *BOTH)
    assert ran.status == 4, ran.text
    assert "@pytest.mark.topology: the test has no argument 'nodes'; let the test take it" in ran.text
