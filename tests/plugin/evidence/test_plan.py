"""The plan of a change of version, read back from what a trial stored."""

import json
from pathlib import Path

import pytest

from plugin.evidence.plan import PLAN, read_plan


def test_each_step_is_told_with_its_facts(tmp_path: Path) -> None:
    steps = [{"type": "keep"}, {"type": "swap", "node": "n1", "to": "v2", "pause_s": 1.5, "refused": False}]
    (tmp_path / PLAN).write_text(json.dumps({"path": "final", "steps": steps}))
    plan = read_plan(tmp_path)
    assert plan is not None
    assert [*map(str, plan.steps)] == ["keep", "swap: node n1, to v2, pause s 1.5"]
    assert plan.steps[1].facts["node"] == "n1"


def test_a_trial_without_one_has_none(tmp_path: Path) -> None:
    assert read_plan(tmp_path) is None


@pytest.mark.parametrize("text", ["{", "[]", '{"steps": 3}', '{"steps": [{}]}', '{"steps": ["swap"]}', '"x"', "\x00"])
def test_what_is_no_plan_is_said_and_not_raised(tmp_path: Path, text: str) -> None:
    (tmp_path / PLAN).write_text(text)
    plan = read_plan(tmp_path)
    assert plan is not None
    assert plan.steps == ()
    assert plan.problem.startswith("plan.json: no plan")


def test_no_secret_is_shown(tmp_path: Path) -> None:
    step = {"type": "swap", "node": "postgresql://root:hunter2hunter2@h/"}
    (tmp_path / PLAN).write_text(json.dumps({"steps": [step]}))
    assert "hunter2" not in str(read_plan(tmp_path))
