"""What cannot be asked of a change of version is bad input before any cluster starts; equal versions are told."""

import re

import pytest

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
'''
OLD, NEW, LATER = "v24.1.3", "v24.2.0", "v25.2.0"


@pytest.fixture
def changing(gate: Gate) -> Gate:
    gate.edit("claims.toml", 'sentence = "The answer', 'changes_versions = true\nsentence = "The answer')
    gate.edit("claims.toml", "nodes = 1\ndisturbs", "nodes = 3\ndisturbs")
    tests = gate.path / "test_claims.py"
    tests.write_text(tests.read_text() + TEST)
    for version in (OLD, NEW, LATER):
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
    ],
)
def test_an_order_or_a_jump_that_is_not_allowed_is_bad_input(
    versions: tuple[str, ...], says: str, changing: Gate
) -> None:
    ran = changing(*changing.tests("changed"), "--suite=gate", "--run-dir=out", *asked(*versions))
    assert ran.status == 4, ran.text
    assert re.search(says, " ".join(ran.text.split())), ran.text
    (trial,) = changing.trials
    assert "provision.begin" not in (trial / "events.jsonl").read_text()
    shown = changing(*changing.tests("planned"), "--suite=gate", "--dry-run", *asked(*versions))
    assert re.search(says, " ".join(shown.text.split())), shown.text
    assert "swap n1 to" not in shown.text


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
