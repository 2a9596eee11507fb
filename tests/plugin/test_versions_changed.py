"""What cannot be asked of a change of version is bad input before any cluster starts; equal versions are told."""

import json
import re
from types import SimpleNamespace
from typing import Any

import pytest

from clusters.engines import Change
from clusters.engines.cockroach.licences import KEY
from plugin.changes import against
from tests.clusters.engines.cockroach.test_licences import EXPIRED
from tests.plugin.conftest import Gate

TEST = '''

@pytest.mark.claim("answer")
@pytest.mark.topology(nodes=3)
async def test_changed(swapping, judge):
    """The answer is what it was said to be."""
    judge.measure("answer", 42)
    assert judge.decide()


from fixtures.swapping.planned import drawn


@pytest.mark.claim("answer")
@pytest.mark.topology(nodes=3)
@pytest.mark.plans(lines=drawn)
async def test_planned(plan, judge):
    """The answer is what it was said to be."""
    judge.measure("answer", 42)
    assert judge.decide()


@pytest.mark.sabotage("answer", engine="cockroach")
async def test_pair(trial, engine, versions, judge):
    """The answer is wrong."""
    trial.know(found=[engine.version, *(one.version for one in versions)])
    judge.measure("answer", 41)
    assert judge.refuted("answer")
'''
EARLIER, OLD, NEW, LICENSED, LATER = "v24.1.2", "v24.1.3", "v24.2.0", "v24.3.0", "v25.2.0"
SWAP = re.compile(r"swap n\d to ")
FIRST, SECOND = "v26.1.0-alpha.1", "v26.1.0-alpha.2"


@pytest.fixture
def changing(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> Gate:
    monkeypatch.delenv(KEY, raising=False)
    gate.edit("claims.toml", 'sentence = "The answer', 'changes_versions = true\nsentence = "The answer')
    gate.edit("claims.toml", "nodes = 1\ndisturbs", "nodes = 3\ndisturbs")
    tests = gate.path / "test_claims.py"
    tests.write_text(tests.read_text() + TEST)
    for version in (EARLIER, OLD, NEW, LICENSED, LATER, FIRST, SECOND):
        gate.fake_cockroach(version)
    return gate


def asked(*versions: str) -> list[str]:
    return [word for version in versions for word in ("--cockroach-version", version)]


@pytest.mark.parametrize(
    ("versions", "says"),
    [
        ((NEW, OLD), f"{NEW} → {OLD}: {OLD} is older than {NEW}: .* give the old version first"),
        (
            (OLD, NEW, OLD),
            f"{NEW} → {OLD}: {OLD} is older than {NEW}: a cluster goes back only before .* final",
        ),
        ((OLD, LATER), f"{OLD} → {LATER}: a cluster of {OLD} goes on to v24.2 or v24.3 only, .*; upgrade step by step"),
        ((SECOND, FIRST), f"{SECOND} → {FIRST}: {FIRST} is a testing build, and older .*; give the older one first"),
        ((OLD, LICENSED), f"{OLD} → {LICENSED}: it needs a valid licence key, and {KEY} is not set: .* of one series"),
    ],
)
@pytest.mark.parametrize("more", [(), ("--suite=gate",), ("--suite=gate", "-n", "2"), ("--dry-run",)])
def test_what_is_known_to_be_impossible_is_bad_input_before_any_test_runs(
    versions: tuple[str, ...], says: str, more: tuple[str, ...], changing: Gate
) -> None:
    """The claim that could be tested comes first, and it too is not begun."""
    ran = changing(*changing.tests("inconclusive", "changed", "planned"), *more, "--run-dir=out", *asked(*versions))
    assert ran.status == 4, ran.text
    text = " ".join(ran.text.split())
    assert re.search(says, text), ran.text
    assert "-k 'not test_changed and not test_planned'" in text
    assert not changing.trials
    assert not SWAP.search(ran.text)


@pytest.mark.parametrize("more", [(), ("-n", "2")])
def test_a_new_version_that_is_no_server_is_bad_input_before_any_test_runs(
    more: tuple[str, ...], changing: Gate
) -> None:
    """It was told as a failed update: the claim was refuted."""
    client = changing.path / "cache" / "cockroach" / NEW / "cockroach"
    client.write_text(client.read_text().replace("echo --join", "echo Usage"))
    ran = changing(*changing.tests("inconclusive", "planned"), "--run-dir=out", "--suite=gate", *more, *asked(OLD, NEW))
    assert ran.status == 4, ran.text
    assert f"{client} answers `version` and is no server" in " ".join(ran.text.split())
    assert not changing.trials


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_versions_that_are_only_compared_need_not_follow_each_other(more: tuple[str, ...], changing: Gate) -> None:
    """Where what changes the version is left out, as the message says."""
    versions, others = asked(OLD, LATER), "not test_changed and not test_planned"
    ran = changing(
        *changing.tests("inconclusive", "changed", "planned"), "-k", others, "--run-dir=out", *more, *versions
    )
    assert ran.status == (0 if more else 6), ran.text
    assert len(changing.trials) == (0 if more else 2), "both versions were tested"


def test_what_a_licence_of_the_environment_allows_is_not_refused(
    changing: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, "a key")
    shown = changing(*changing.tests("planned"), "--dry-run", *asked(OLD, LICENSED))
    assert shown.status == 0, shown.text
    assert SWAP.search(shown.text)
    assert f"{OLD} → {LICENSED}: documented, not run; " in " ".join(shown.text.split())
    assert "a key" not in shown.text


def test_a_licence_that_ran_out_is_bad_input_before_any_test_runs(
    changing: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, EXPIRED)
    for more in (("--run-dir=out",), ("--dry-run",)):
        ran = changing(*changing.tests("inconclusive", "planned"), *more, *asked(OLD, LICENSED))
        assert ran.status == 4, ran.text
        text = " ".join(ran.text.split())
        assert f"{OLD} → {LICENSED}: it needs a valid licence key, and that of {KEY} ran out on 2021-01-01: set" in text
        assert EXPIRED not in ran.text
        assert not changing.trials


def test_of_patches_an_older_one_may_follow_and_it_is_said(changing: Gate) -> None:
    shown = changing(*changing.tests("planned"), "--dry-run", *asked(OLD, EARLIER))
    assert shown.status == 0, shown.text
    assert f"{OLD} → {EARLIER}: {EARLIER} is an older patch than {OLD}: a downgrade" in shown.text


def test_the_list_of_claims_says_what_was_never_run_and_what_cannot_be(changing: Gate) -> None:
    listed = " ".join(changing("--claims", "-v", *asked(OLD, NEW)).text.split())
    assert (
        f"{OLD} → {NEW}: documented, not run; changed were clusters from v20.2.0-dev.20201130 to v21.1.0-al" in listed
    )
    listed = " ".join(changing("--claims", "-v", *asked(NEW, OLD)).text.split())
    assert f"here bad input: {NEW} → {OLD}: {OLD} is older than {NEW}" in listed


@pytest.mark.parametrize(("broken", "begins"), [("v26.1.0-alpha.1.9", FIRST), (FIRST, SECOND)])
def test_a_sabotage_changes_from_an_older_patch_that_is_at_hand_and_can_be_used(
    broken: str, begins: str, changing: Gate
) -> None:
    """The newest version in the cache is the one it is about; without an older one of its series it has that twice."""
    program = changing.path / "cache" / "cockroach" / broken / "cockroach"
    program.parent.mkdir(exist_ok=True)
    program.write_text("this is no program")
    ran = changing(*changing.tests("pair"), "--run-dir=out")
    assert ran.status == 0, ran.text
    (trial,) = changing.trials
    assert json.loads((trial / "trial.json").read_text())["found"] == [begins, begins, SECOND]


def test_a_binary_that_is_no_server_is_bad_input(changing: Gate) -> None:
    (changing.path / "cache" / "cockroach" / NEW / "cockroach").write_text("this is no program")
    ran = changing(*changing.tests("changed"), "--suite=gate", "--run-dir=out", *asked(OLD, NEW))
    assert ran.status == 4, ran.text
    assert f"{NEW}/cockroach" in ran.text
    assert "it is no program" in ran.text
    assert not changing.trials


def test_two_equal_versions_are_a_rolling_restart_and_it_is_said(changing: Gate) -> None:
    shown = changing(*changing.tests("planned"), "--suite=gate", "--dry-run", *asked(OLD, OLD))
    assert "all versions are the same build: nodes are only restarted one after another" in shown.text, shown.text
    ran = changing(*changing.tests("planned"), "--suite=gate", "--run-dir=out", *asked(OLD, OLD))
    assert ran.status == 0 or "NOT DECIDED: question" in ran.text, ran.text
    assert "a rolling restart" in ran.text
    (trial,) = changing.trials
    assert '"equal": true' in (trial / "events.jsonl").read_text()


@pytest.mark.parametrize(("substrate", "forbids"), [("processes", True), ("adopted", False)])
@pytest.mark.parametrize("for_licence", [True, False])
def test_a_cluster_that_is_there_already_may_have_a_licence_of_its_own(
    substrate: str, forbids: bool, for_licence: bool
) -> None:
    """That is looked at once it is found; whatever else forbids the change does so everywhere."""
    run: Any = SimpleNamespace(settings=SimpleNamespace(substrate=substrate))
    known = Change(against="it needs a valid licence key", for_licence=for_licence)
    assert bool(against(known, run)) is (forbids or not for_licence)
    assert against(Change(), run) == ""
