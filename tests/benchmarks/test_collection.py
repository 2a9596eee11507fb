"""What the suite adds to the time pytest takes: to collect what a gate collects, or all tests of the suite's own code,
and to run tests that are none of its own.

The comparison: on one side the suite as it stands, collected with our plugin, its catalogue, profiles and fixtures. On
the other, bare pytest without our plugin and without any module of ours, with the same third-party plugins, over as
many empty tests in as many files of the same names. Each of these files imports what the suite's file imports from
elsewhere, because pytest plugins (Hypothesis') do more once their library is loaded. Both have their bytecode cached,
which is what a second run has.
"""

import ast
import os
import sys
from collections import Counter
from pathlib import Path
from statistics import median

import pytest

from clusters.errors import HarnessError
from tests.benchmarks.measuring import ROOT, Figure, Used, in_turns, spread, used_by

MOST_ADDED_S = 0.2
"""To what a gate collects."""
MOST_ADDED_A_THOUSAND_S = 0.5
"""To all tests, of which each file imports what it tests."""
MOST_ADDED_ELSEWHERE_S = 0.05
"""To a run of tests without a claim."""
PAIRS = 7
GATE = "what a gate collects"
PARTS = {GATE: ("tests/claims",), "the whole checkout": ("tests", "--ignore=tests/micro")}
"""Without the statements that are timed: they need pytest-benchmark."""
ALONE = ("-p", "no:cacheprovider", "-p", "no:benchmark")
"""pytest-benchmark asks git for its commit, which the checkout has and the bare side has not; no environment of a gate
has it."""
OURS = ("clusters", "docs", "fixtures", "plugin", "tests")
BARE_SETTINGS = """\
[tool.pytest]
addopts = ["--import-mode=importlib"]
pythonpath = ["."]
testpaths = ["tests"]
strict = true
asyncio_mode = "auto"
asyncio_default_fixture_loop_scope = "function"
"""


def collected(out: str) -> Counter[str]:
    """How many tests of each file pytest listed. Raises ``HarnessError`` for none."""
    tests = Counter(line.split("::")[0] for line in out.splitlines() if "::" in line)
    if not tests:
        raise HarnessError(f"nothing was collected, so nothing was measured:\n{out[-2000:]}")
    return tests


def clean_environment(home: Path) -> dict[str, str]:
    """The environment of both sides: nothing that changes what pytest does, and a cache of bytecode of their own."""
    unwanted = ("PYTEST_", "COV_", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH")
    env = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    return {**env, "PYTHONPYCACHEPREFIX": str(home / "bytecode")}


def foreign_imports(path: Path) -> list[str]:
    """The import statements at the top of a file that name nothing of ours."""
    kept = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.Import(names=names):
                roots = [alias.name.split(".")[0] for alias in names]
            case ast.ImportFrom(module=str(module)):
                roots = [module.split(".")[0]]
            case _:
                continue
        if not set(roots) & set(OURS):
            kept.append(ast.unparse(node))
    return kept


def write_bare(tests: Counter[str], home: Path) -> None:
    """As many empty tests in files of the same names."""
    (home / "pyproject.toml").write_text(BARE_SETTINGS)
    for name, count in tests.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        empty = [f"\n\ndef test_{number}():\n    pass" for number in range(count)]
        path.write_text("\n".join([*foreign_imports(ROOT / name), *empty]) + "\n")


@pytest.mark.parametrize("part", PARTS)
def test_suite_adds_little_to_collection(part: str, tmp_path: Path, figures: list[Figure]) -> None:
    """No more than 0.2 s longer than bare pytest; with all tests of our own code, half a second a thousand."""
    env = clean_environment(tmp_path)

    def collect(home: Path) -> Used:
        argv = (
            sys.executable,
            "-m",
            "pytest",
            "--collect-only",
            "-q",
            *ALONE,
            *PARTS[part],
        )
        return used_by(argv, cwd=home, env=env, timeout_s=60)

    tests = collected(collect(ROOT).out)
    bare = tmp_path / "bare"
    bare.mkdir()
    write_bare(tests, bare)
    if collected(collect(bare).out) != tests:
        raise HarnessError("bare pytest does not collect as many tests as the suite has: nothing was measured")
    runs = in_turns(PAIRS, lambda: collect(ROOT), lambda: collect(bare))
    assert all(collected(ours.out) == collected(theirs.out) == tests for ours, theirs in runs)
    cpu = [ours.cpu_s - theirs.cpu_s for ours, theirs in runs]
    wall = [ours.wall_s - theirs.wall_s for ours, theirs in runs]
    most = MOST_ADDED_S if part == GATE else MOST_ADDED_A_THOUSAND_S * tests.total() / 1000
    figures.append(
        Figure(
            what=f"collecting {part} ({tests.total()} tests) against bare pytest with as many empty ones",
            promised=f"≤ {MOST_ADDED_S} s more"
            if part == GATE
            else f"≤ {MOST_ADDED_A_THOUSAND_S} s more a thousand tests",
            measured=f"{spread(cpu)} s more; {median(ours.cpu_s for ours, _ in runs):.2f} s against "
            f"{median(theirs.cpu_s for _, theirs in runs):.2f} s; by the clock {spread(wall)} s more",
            kept=median(cpu) <= most,
            raw="(CPU, wall) of suite and bare, each pair: "
            + str([tuple((round(u.cpu_s, 3), round(u.wall_s, 3)) for u in pair) for pair in runs]),
            how=f"{PAIRS} pairs, in turns; CPU time of pytest and its children; same third-party plugins and "
            "libraries, bytecode cached",
        )
    )
    assert median(cpu) <= most


def test_suite_adds_little_to_tests_of_others(tmp_path: Path, figures: list[Figure]) -> None:
    """No more than 0.05 s longer than bare pytest where no test has a claim."""
    env, home, bare = clean_environment(tmp_path), tmp_path / "tests", tmp_path / "bare"
    for place in (home, bare):
        place.mkdir()
    (bare / "pyproject.toml").write_text(BARE_SETTINGS)
    (home / "test_ordinary.py").write_text("\n\n".join(f"def test_{number}():\n    pass" for number in range(20)))

    def run(settings: Path) -> Used:
        argv = (sys.executable, "-m", "pytest", "-q", *ALONE, "-c", str(settings / "pyproject.toml"))
        # Else pytest would list each directory above the tests that is not above its settings: for the checkout's more.
        place = ("--rootdir", str(home), "--confcutdir", str(home))
        return used_by((*argv, *place, "test_ordinary.py"), cwd=home, env=env, timeout_s=60)

    if not all("20 passed" in run(settings).out for settings in (ROOT, bare)):
        raise HarnessError("the tests did not run: nothing was measured")
    runs = in_turns(PAIRS, lambda: run(ROOT), lambda: run(bare))
    cpu = [ours.cpu_s - theirs.cpu_s for ours, theirs in runs]
    figures.append(
        Figure(
            what="running 20 tests without a claim against bare pytest",
            promised=f"≤ {MOST_ADDED_ELSEWHERE_S} s more",
            measured=f"{spread(cpu)} s more; {median(ours.cpu_s for ours, _ in runs):.2f} s against "
            f"{median(theirs.cpu_s for _, theirs in runs):.2f} s",
            kept=median(cpu) <= MOST_ADDED_ELSEWHERE_S,
            raw=f"CPU of suite and bare, each pair: {[(round(a.cpu_s, 3), round(b.cpu_s, 3)) for a, b in runs]}",
            how=f"{PAIRS} pairs, in turns; CPU time of pytest; same third-party plugins, bytecode cached",
        )
    )
    assert median(cpu) <= MOST_ADDED_ELSEWHERE_S
