"""What several directories of tests ask for.

``gate``: pytest with the plugin, run as a user runs it, where no CockroachDB is at hand. ``chromium``: a browser; tests
that ask for it are skipped where there is none.
"""

import json
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.plugin import forked
from tests.plugin.reports.browser import NoBrowserError, headless

CHECKOUT = Path(__file__).parents[2]

CATALOGUE = """
[claims.answer]
sentence = "The answer is what it was said to be."
nodes = 1
disturbs = "Nothing is disturbed."
steps = ["think", "say the answer"]
estimate = { seconds = 1, disk_mib = 1 }
checks = [{ metric = "answer", comparison = "==", limit = 42, recorded = true }]

[claims.question]
sentence = "The question is known."
nodes = 1
checks = [{ metric = "questions", comparison = ">=", limit = 1, recorded = true }]
"""

TESTS = '''
import json
import os

import pytest

from clusters.errors import BadInput, HarnessError, NodeDied, TimedOut
from clusters.events import NodeDeath
from clusters.generators import GeneratorLost
from plugin.evidence.events import ProvisionBegin
from plugin.evidence.load import HOST


@pytest.mark.claim("answer")
async def test_passes(judge):
    """The answer is what it was said to be."""
    judge.measure("answer", 42)
    assert judge.decide()


@pytest.mark.claim("answer")
async def test_refuted(judge):
    judge.measure("answer", 41, note="a slip")
    assert judge.decide()


@pytest.mark.claim("question")
async def test_inconclusive(judge):
    assert judge.decide()


@pytest.mark.claim("question")
async def test_harness(judge):
    raise HarnessError("the machine that thinks is out of order")


def busy(trial, others, cpu=96.0):
    """For a minute so much of the machine's CPU is in use, this part of it by other work."""
    seconds = [{"t": 1_000_000 * (s + 1), "cpu_percent": cpu, "others_percent": others} for s in range(60)]
    (trial.store.directory / HOST).write_text("".join(json.dumps(second) + chr(10) for second in seconds))


@pytest.mark.claim("question")
async def test_too_late(trial, judge):
    busy(trial, 60.0)
    raise TimedOut("the ranges of thought cannot be listed")


@pytest.mark.claim("question")
async def test_too_late_by_its_own_doing(trial, judge):
    busy(trial, 1.0, cpu=99.0)
    raise TimedOut("the ranges of thought cannot be listed")


@pytest.mark.claim("question")
async def test_too_late_with_room(trial, judge):
    busy(trial, 1.0)
    raise TimedOut("the ranges of thought cannot be listed")


@pytest.mark.claim("question")
async def test_too_late_after_a_death(trial, judge):
    busy(trial, 60.0)
    trial.store.event(NodeDeath(node="n1", code=2))
    raise TimedOut("the ranges of thought cannot be listed")


@pytest.mark.claim("question")
async def test_generator_lost(trial, judge):
    judge.measure("questions", 1)
    raise GeneratorLost("generator 1: its connection ended (pod roachproof-generators-1-x: gone)")


@pytest.mark.claim("question")
async def test_generator_lost_after_a_death(trial, judge):
    trial.store.event(NodeDeath(node="n1", code=2))
    raise ExceptionGroup("several", [GeneratorLost("generator 1: its connection ended")])


@pytest.mark.claim("question")
async def test_generator_lost_and_more(trial, judge):
    raise ExceptionGroup("several", [GeneratorLost("generator 1: gone"), HarnessError("and the disk is full")])


@pytest.mark.claim("question")
async def test_harness_in_setup(broken, judge):
    assert judge.decide()


@pytest.fixture
def broken(trial):
    assert not "the harness is broken"


@pytest.fixture
def broken_first():
    assert not "the harness is broken before there is a trial"


@pytest.mark.claim("question")
async def test_harness_before_its_trial(broken_first, judge):
    assert judge.decide()


@pytest.mark.claim("question")
async def test_late_harness(breaks_late, judge):
    judge.measure("questions", 1)
    assert judge.decide()


@pytest.mark.claim("answer")
async def test_refuted_then_late_harness(breaks_late, judge):
    judge.measure("answer", 41)
    assert judge.decide()


@pytest.mark.claim("answer")
async def test_refuted_then_broken(judge):
    judge.measure("answer", 41)
    try:
        judge.decide()
    finally:
        raise OSError("cannot clear away")


@pytest.fixture
def breaks_late(trial):
    yield
    raise OSError("cannot clear away")


@pytest.mark.claim("question")
async def test_node_died_in_a_group(trial, judge):
    trial.store.event(NodeDeath(node="n1", code=-6))
    raise ExceptionGroup("several", [HarnessError("a client lost its node"), NodeDied("n1 ended by itself")])


@pytest.mark.claim("question")
async def test_node_of_the_old_version_died(trial, judge):
    trial.store.event(ProvisionBegin(nodes=["n1"], old=True))
    trial.store.event(NodeDeath(node="n1", code=-6))
    raise NodeDied("n1 ended by itself")


@pytest.mark.claim("question")
async def test_node_died_in_setup(dying, judge):
    assert judge.decide()


@pytest.fixture
def dying(trial):
    trial.store.event(NodeDeath(node="n2", code=2))
    raise NodeDied("n2 ended by itself")


@pytest.mark.claim("question")
async def test_asserts(judge):
    judge.measure("questions", 1)
    assert "what the test thinks" == "a check of the catalogue"


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.claim("question")
async def test_skipped_in_part(judge, number):
    if number == 2:
        pytest.skip("not this one")
    judge.measure("questions", number)
    assert judge.decide()


@pytest.mark.claim("answer")
async def test_trials(judge, guess):
    judge.measure("answer", 42)
    assert judge.decide()


@pytest.mark.claim("question")
async def test_unjudged(judge):
    judge.measure("questions", 1)


@pytest.mark.skip(reason="not today")
@pytest.mark.claim("question")
async def test_skipped(judge):
    assert judge.decide()


@pytest.mark.claim("question")
async def test_skipped_late(judge):
    judge.measure("questions", 1)
    pytest.skip("seen enough")


@pytest.mark.claim("question")
async def test_bad_input(judge):
    raise BadInput("--flavour 'sour': must be sweet; give --flavour sweet")


@pytest.mark.claim("question")
async def test_crash(judge):
    os._exit(3)


@pytest.fixture
def dies_first():
    os._exit(3)


@pytest.mark.claim("question")
async def test_early_crash(dies_first, judge):
    assert judge.decide()


@pytest.mark.claim("answer")
async def test_swallowed(judge):
    judge.measure("answer", 41)
    try:
        judge.decide()
    except AssertionError:
        pass


@pytest.mark.sabotage("answer")
async def test_sabotage(judge):
    judge.measure("answer", 41)
    assert judge.refuted("answer")


@pytest.mark.sabotage("answer")
async def test_blunt_sabotage(judge):
    judge.measure("answer", 42)
    assert judge.refuted("answer")


@pytest.mark.sabotage("answer")
async def test_unproven_sabotage(judge):
    judge.measure("answer", 42)


def test_ordinary():
    assert True


def test_ordinary_failure():
    assert 1 == 2
'''


def options(path: Path) -> list[str]:
    """How pytest is told that it runs with the plugin, in ``path``; what lies above that, it need not look through."""
    place = ["--rootdir", str(path), "--confcutdir", str(path)]
    return ["-c", str(CHECKOUT / "pyproject.toml"), *place, "-p", "no:cacheprovider"]


@dataclass(frozen=True, kw_only=True)
class Ran:
    """How a run ended: its exit status, and what it printed."""

    status: int
    text: str

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    def verdicts(self) -> list[str]:
        """What each claim and each sabotage came to by the summary, whatever their order was."""
        claims = re.findall(r"^([A-Z][A-Z ]*?) +\d+ s  (answer|question)  ", self.text, re.MULTILINE)
        below = self.text.partition("= sabotages")[2]
        sabotages = re.findall(r"^(?:answer|question)  [A-Z ]+$", below, re.MULTILINE)
        return sorted([*(f"{claim}  {verdict}" for verdict, claim in claims), *sabotages])


@dataclass(frozen=True, kw_only=True)
class Gate:
    """Runs pytest in ``path``, which holds ``claims.toml`` and ``test_claims.py``."""

    path: Path
    run_dir: Path

    @property
    def trials(self) -> list[Path]:
        """The trials in the run directory ``out``."""
        return sorted(file.parent for file in self.run_dir.glob("claims/*/*/trial.json"))

    def arguments(self, *args: str, catalogue: bool = True) -> list[str]:
        return [*options(self.path), *(["--catalogue", "claims.toml"] if catalogue else []), *args]

    def command(self, *args: str, catalogue: bool = True) -> list[str]:
        """The same as a process of its own."""
        return [sys.executable, "-m", "pytest", *self.arguments(*args, catalogue=catalogue)]

    def __call__(self, *args: str, catalogue: bool = True, timeout: float = 300) -> Ran:
        output = self.path / "output.txt"
        output.unlink(missing_ok=True)
        status = forked.run(self.arguments(*args, catalogue=catalogue), self.path, output, timeout)
        return Ran(status=status, text=output.read_text())

    def both(self, *args: str) -> tuple[Ran, Ran]:
        """The same run without and with workers."""
        return self(*args), self(*args, "-n", "2")

    def tests(self, *names: str) -> Sequence[str]:
        """Arguments that run these tests of ``test_claims.py``."""
        return [f"test_claims.py::test_{name}" for name in names]

    def edit(self, file: str, old: str, new: str) -> None:
        path = self.path / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def fake_cockroach(self, version: str) -> Path:
        """A program in the cache that says it is a ``cockroach`` of this version, and could start if it did."""
        program = self.path / "cache" / "cockroach" / version / "cockroach"
        program.parent.mkdir(parents=True)
        program.write_text(
            f'#!/bin/sh\ncase "$*" in version) echo "Build Tag: {version}" ;; '
            '"start --help") echo --join ;; *) exit 1; esac\n'
        )
        program.chmod(0o755)
        return program


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gate:
    """A directory of one's own with two claims and their tests, and no CockroachDB to be had."""
    from plugin.release import release  # here: what forks sessions has no plugin yet, as pytest itself loads it

    forked.server()
    release()  # remembered: where no program is to be had, git is not either
    for name in (
        "COCKROACH_BINARY",
        "PYTEST_ADDOPTS",
        "PYTEST_XDIST_WORKER",
        "PYTHONPATH",
        "PYTHONDONTWRITEBYTECODE",
    ):
        monkeypatch.delenv(name, raising=False)
    for name in ("cache", "home", "nothing"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ROACHPROOF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ROACHPROOF_DOWNLOADS", "http://127.0.0.1:1")
    (tmp_path / "claims.toml").write_text(CATALOGUE)
    (tmp_path / "test_claims.py").write_text(TESTS)
    return Gate(path=tmp_path, run_dir=tmp_path / "out")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A headless Chromium."""
    with ExitStack() as stack:
        try:
            browser = stack.enter_context(headless())
        except NoBrowserError as missing:
            pytest.skip(f"looks at a page in a browser: {missing}")
        yield browser


def edited(path: Path, **changes: object) -> None:
    """Change keys of a JSON file by hand."""
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
