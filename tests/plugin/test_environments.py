"""What tox's environments collect, whatever is given after ``--``; and that a part of a suite says what it left out."""

import configparser
import re
import shlex
from collections.abc import Mapping
from typing import Any

import pytest

from plugin import evaluable
from plugin.catalogue import load
from plugin.claims import Claim
from plugin.profiles import profile_named
from plugin.suites import Suite
from plugin.workloads import Workload
from tests.plugin import forked
from tests.plugin.conftest import CHECKOUT, Gate
from tests.plugin.test_host import PLENTY


def collected(environment: str, *after: str) -> list[str]:
    """The tests that ``tox -e ENVIRONMENT -- AFTER`` would collect."""
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(CHECKOUT / "tox.ini")
    command = tox[f"testenv:{environment}"]["commands"].replace("{tox_root}{/}", "")
    given = re.sub(r"\{posargs:?([^}]*)\}", lambda found: shlex.join(after) or found[1], command)
    program, *words = shlex.split(given)
    assert program == "pytest"
    status, text = forked.said([*words, "--collect-only", "-q"])
    assert status == 0, text
    return [line for line in text.splitlines() if "::" in line]


@pytest.mark.parametrize(
    ("environment", "after", "tests"),
    [
        ("try", [], {"test_a_killed_node"}),
        ("try", ["--cockroach", "./cockroach", "--seed=5"], {"test_a_killed_node"}),
        ("try", ["-k", "lost_quorum or drained"], {"test_a_lost_quorum"}),
        ("try", ["tests/claims/test_growth.py"], {"test_replicas_spread_over_added_nodes"}),
        ("nightly", ["-k", "growth"], {"test_replicas_spread_over_added_nodes", "test_nodes_can_be_taken_out"}),
    ],
)  # fmt: skip
def test_arguments_choose_among_the_claims(environment: str, after: list[str], tests: set[str]) -> None:
    """``-k`` alone must not reach for the suite's own tests, whose packages these environments do not have."""
    assert {re.sub(r".*::|\[.*", "", test) for test in collected(environment, *after)} == tests


def test_a_whole_suite_is_more_than_one_claim() -> None:
    assert len(collected("gate")) > len(collected("try")) == 1


WITHOUT = """
import sys

elsewhere, sys.path[:] = [*sys.path], []
for name in [*sys.modules]:
    if name.partition(".")[0] == "{0}":
        del sys.modules[name]
try:
    import {0}{1}
finally:
    sys.path[:] = elsewhere


def test_answer():
    pass
"""


@pytest.mark.parametrize(("package", "part"), [("hypothesis", ""), ("trustme", ""), ("jsonschema", ".validators")])
def test_a_package_of_the_suites_own_tests_that_is_not_here_is_said(gate: Gate, package: str, part: str) -> None:
    """As in ``tox -e try -- tests``. Of a test that is none of the suite's nobody knows where it runs."""
    suites = gate.path / "tests" / "test_of_the_suite.py"
    suites.parent.mkdir()
    suites.write_text(WITHOUT.format(package, part))
    ran = gate("tests/test_of_the_suite.py")
    assert ran.status == 2, ran.text
    assert f"test_of_the_suite.py: needs the package {package}, which this environment does not have." in ran.text
    assert "tox -e test -- tests/test_of_the_suite.py" in ran.text
    assert "Traceback" not in ran.text
    for where, text, name in (
        (suites, "import nobodys", "nobodys"),
        (gate.path / "test_mine.py", suites.read_text(), package),
    ):
        where.write_text(text)
        assert f"ModuleNotFoundError: No module named '{name}" in gate(str(where.relative_to(gate.path))).text


class Run:
    """What is asked of a run on two cores: the suite, of CockroachDB."""

    def __init__(self, suite: str) -> None:
        self.settings: Any = self
        self.engine, self.suite, self.substrate = "cockroach", suite, "processes"
        self.profile, self.host, self.catalogue = profile_named("laptop"), PLENTY, load()
        self.chosen = self.catalogue.claims.keys()
        self.targets = ("",)
        self.plan = None

    def parameters_for(self, claim: Claim) -> Mapping[str, tuple[object, ...]]:
        return claim.parameters_for(Suite(self.suite))

    def size(self, workload: Workload[Any]) -> Any:
        return self.profile.size(workload, Suite(self.suite))


def test_a_part_of_a_suite_says_what_it_left_out() -> None:
    run: Any = Run("gate")
    left = evaluable.left_out({"survivability"}, run)
    assert {"survivability-quorum", "parity", "rebalance"} <= {*left}
    assert "survivability" not in left
    assert "scale-up" not in left, "of the nightly suite"
    assert "hot-swap" not in left, "planned"
    assert set(evaluable.left_out({"survivability"}, Run("nightly"))) > {*left}  # type: ignore[arg-type]
    assert evaluable.left_out({"survivability", *left}, run) == []
    assert evaluable.left_out({"a claim of somebody's own"}, run) == []
