"""What imports what: no circle between files of different rooms, and none longer than two files inside one."""

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from fixtures.workloads import known
from fixtures.workloads.tenants import load_records, provisioning
from fixtures.workloads.tpcc import evidence
from plugin.workloads import OWN_NAMES, WORKLOADS
from tests.plugin.conftest import Gate

CHECKOUT = Path(__file__).parents[2]
FILES = {
    ".".join(path.relative_to(CHECKOUT).with_suffix("").parts).removesuffix(".__init__"): path
    for room in ("plugin", "clusters", "fixtures")
    for path in (CHECKOUT / room).rglob("*.py")
}
"""All modules of the product by name."""


def imported(path: Path) -> Iterator[str]:
    """All that a file imports, also inside of functions and for the type checker."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module, f"{path}: imports are absolute"
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in FILES else node.module


def reached(module: str, graph: Mapping[str, set[str]]) -> set[str]:
    """All that a module imports, directly or not."""
    found: set[str] = set()
    left = [module]
    while left:
        new = graph[left.pop()] - found
        found |= new
        left += new
    return found


def test_no_workload_is_known_outside_of_its_package() -> None:
    """Its name, its sizes, its metrics and how its test goes are behind its registration."""
    own = re.compile("ledger|tpc-?c|warehouse|rows_|audit:", re.IGNORECASE)
    files = [path for path in (CHECKOUT / "plugin").rglob("*.*") if path.suffix in (".py", ".html", ".js")]
    found = [f"{path.name}: {word[0]}" for path in files for word in own.finditer(path.read_text("utf-8"))]
    assert len(files) > 50
    assert found == []


def test_circles_are_of_two_files_in_one_room() -> None:
    graph = {name: {one for one in imported(path) if one in FILES} - {name} for name, path in FILES.items()}
    assert sum(map(len, graph.values())) > 500, "imports were found"
    all_reached = {name: reached(name, graph) for name in graph}
    for name, found in all_reached.items():
        circle = {name} | {other for other in found if name in all_reached[other]}
        assert len(circle) <= 2, sorted(circle)
        assert len({FILES[one].parent for one in circle}) == 1, sorted(circle)


def test_modules_named_in_strings_are_there() -> None:
    """The type checker does not see these: a module that was renamed is found missing when it is first used."""
    meant = re.compile(r"((?:clusters|fixtures|plugin)(?:\.[a-z_]+)+)(?::(\w+))?")
    named = [
        (path, found[1], found[2])
        for path in FILES.values()
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and (found := meant.fullmatch(str(node.value)))
    ]
    assert len(named) > 20, "names were found"
    missing = [f"{path}: {module}" for path, module, _ in named if module not in FILES]
    assert missing == []
    for _, module, name in named:
        assert not name or hasattr(importlib.import_module(module), name), f"{module}:{name}"


FIRST_CLAIM = (
    *(
        "clusters.engines",
        "clusters.model",
        "clusters.substrates",
        "plugin.judge.",
        "plugin.catalogue",
        "plugin.replay",
    ),
    *("plugin.run", "plugin.selection", "plugin.session", "plugin.workloads", "hdrh", "jinja2", "msgspec", "rich"),
)
"""What is imported with the first claim."""
FIRST_RUN = (
    "clusters.cluster",
    "fixtures.swapping",
    "fixtures.trial",
    "plugin.judge.metrics",
    "plugin.micro.benchmarks",
)
"""What is imported once a claim runs."""


def test_a_session_without_a_claim_imports_neither_judge_nor_catalogue(tmp_path: Path) -> None:
    (tmp_path / "test_ordinary.py").write_text(
        f"import sys\n\n\ndef test_imported():\n"
        f"    assert [name for name in sys.modules if name.startswith({FIRST_CLAIM})] == []\n"
    )
    argv = [sys.executable, "-m", "pytest", "-q", "-c", str(CHECKOUT / "pyproject.toml"), "--rootdir", str(tmp_path)]
    ran = subprocess.run([*argv, "test_ordinary.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "1 passed" in ran.stdout


def test_claims_that_are_collected_import_nothing_that_runs_them() -> None:
    script = (
        "import sys, pytest\n"
        "status = pytest.main(['--collect-only', '-q', '-p', 'no:cacheprovider', 'tests/claims'])\n"
        f"assert [name for name in sys.modules if name.startswith({FIRST_RUN})] == []\n"
        "sys.exit(status)\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "tests collected" in ran.stdout


RUNS = """
import sys

import pytest


@pytest.mark.claim("answer")
@pytest.mark.topology(nodes=1)
async def test_it(cluster, judge):
    await cluster.healthy()
    judge.measure("answer", 42)
    assert judge.decide()
    assert "clusters.substrates.processes" in sys.modules
    assert "kubernetes" not in sys.modules
"""


def test_a_run_on_this_machine_imports_no_client_of_kubernetes(gate: Gate) -> None:
    """It takes a second, of which nobody has anything who runs the claims on processes."""
    (gate.path / "test_here.py").write_text(RUNS)
    line = gate.command("test_here.py", "--engine", "postgres", "--run-dir", "out")
    ran = subprocess.run(line, cwd=gate.path, capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert len(gate.trials) == 1


def test_what_every_session_has_of_the_suite_s_workloads_is_what_they_say() -> None:
    own = [WORKLOADS[name] for name in OWN_NAMES]
    assert set(known.FIXTURES) == {module for kind in own for module in kind.fixtures.values()}
    assert set(known.FILES) == {kind.option.name for kind in own if kind.option}


def test_what_workloads_name_for_later_is_there() -> None:
    def named(value: Any) -> list[Any]:
        each = value.values() if isinstance(value, dict) else [value]
        return [one._found() for one in each if type(one).__name__ == "_Later"]

    found = [one for kind in WORKLOADS.values() for field in fields(kind) for one in named(getattr(kind, field.name))]
    assert len(found) > 20
    assert all(found)


def test_what_reads_a_workload_s_evidence_looks_for_the_files_that_are_its_own() -> None:
    """A workload names them, too, so that what reads them is imported only once there are some."""
    kinds = {"tpcc": evidence.FILES, "tenant_load": load_records.FILES, "tenants": provisioning.FILE}
    assert {name: WORKLOADS[name].files for name in kinds} == kinds
