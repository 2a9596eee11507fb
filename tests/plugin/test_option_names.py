"""An option name that two declare: a sentence and status 4, whoever comes first and however it is loaded."""

import pytest

from tests.plugin import forked
from tests.plugin.conftest import Gate, Ran

ROOT = forked.CHECKOUT
DECLARES = "def pytest_addoption(parser): parser.addoption({!r}, dest='own')"
TOLD = "declares an option whose name is taken by Roachproof"
CAME_LATE = "a plugin or conftest.py that was loaded before has an option of this name"


def bare(gate: Gate, *arguments: str) -> Ran:
    """Run pytest in the directory without the checkout's settings, which load our plugin before any other."""
    (gate.path / "own.toml").write_text('[tool.pytest]\naddopts = ["--import-mode=importlib"]\n')
    (gate.path / "test_own.py").write_text("def test_own(): pass")
    output = gate.path / "output.txt"
    output.unlink(missing_ok=True)
    own = ["-c", str(gate.path / "own.toml"), "-p", "no:cacheprovider"]
    status = forked.run([*own, *arguments, "test_own.py"], gate.path, output, 60)
    return Ran(status=status, text=output.read_text())


def installed(gate: Gate, name: str, source: str) -> None:
    """Install a distribution of one module, which pytest loads by itself."""
    (gate.path / f"{name}.py").write_text(source)
    (about := gate.path / f"{name}-1.0.dist-info").mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[pytest11]\n{name} = {name}\n")


def refused(ran: Ran, *said: str) -> bool:
    """Whether it ended as bad input does, with these texts and no traceback."""
    assert ran.status == 4, ran.text
    assert "Traceback" not in ran.text
    assert [text for text in said if text not in ran.text] == [], ran.text
    return True


@pytest.mark.parametrize("name", ["--keep", "--claim", "--micro-turns"])
@pytest.mark.parametrize("where", [".", "tests"])
def test_of_a_conftest(gate: Gate, name: str, where: str) -> None:
    (gate.path / where).mkdir(exist_ok=True)
    conftest = gate.path / where / "conftest.py"
    conftest.write_text(DECLARES.format(name))
    assert refused(gate(where), f"{conftest} {TOLD}: {name}; give it another name (")


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_of_a_conftest_that_only_collecting_loads(gate: Gate, workers: tuple[str, ...]) -> None:
    (deep := gate.path / "tests" / "of" / "mine").mkdir(parents=True)
    (deep / "conftest.py").write_text(DECLARES.format("--keep"))
    (deep / "test_own.py").write_text("def test_own(): pass")
    ran = gate("tests", *workers)
    assert ran.status != 0
    assert f"tests/of/mine/conftest.py {TOLD}: --keep; give it another name (" in ran.text
    assert "argparse.py" not in ran.text


def test_of_an_installed_plugin(gate: Gate) -> None:
    """As pytest-profiling's ``--profile``."""
    installed(gate, "profiling", "def pytest_addoption(parser): parser.getgroup('own').addoption('--profile')")
    said = f"profiling {TOLD}: --profile; give it another name, or leave that plugin out (-p no:profiling)"
    assert refused(gate(*gate.tests("passes")), said)
    assert gate(*gate.tests("passes"), "-p", "no:profiling").status == 0


def test_of_a_plugin_that_is_loaded_before_or_after(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    (gate.path / "other.py").write_text(DECLARES.format("--keep"))
    grouped = "def pytest_addoption(parser): parser.getgroup('roachproof').addoption('--keep')"
    (gate.path / "grouped.py").write_text(grouped)
    for other in ("other", "grouped"):
        assert refused(bare(gate, "-p", "plugin", "-p", other), f"{other} {TOLD}: --keep;", f"(-p no:{other})")
        assert refused(bare(gate, "-p", other, "-p", "plugin"), "Roachproof's option --keep: ", CAME_LATE)
    monkeypatch.setenv("PYTEST_PLUGINS", "plugin")
    assert refused(bare(gate, "-p", "other"), CAME_LATE)
    monkeypatch.setenv("PYTEST_PLUGINS", "other")
    assert refused(bare(gate, "-p", "plugin"), f"other {TOLD}: --keep;")


def test_of_a_conftest_that_loads_ours(gate: Gate) -> None:
    loads = "pytest_plugins = ['plugin']\n"
    (gate.path / "conftest.py").write_text(loads + DECLARES.format("--keep"))
    assert refused(bare(gate), CAME_LATE)
    (gate.path / "conftest.py").write_text(loads)
    assert bare(gate).status == 0
    (gate.path / "tests").mkdir()
    (gate.path / "tests" / "conftest.py").write_text(DECLARES.format("--keep"))
    assert refused(bare(gate, "tests"), TOLD)


@pytest.mark.parametrize("module", ["plugin", "plugin.micro"])
def test_our_plugin_twice(gate: Gate, module: str) -> None:
    """The same name twice is no matter; another name of the same file is."""
    assert bare(gate, "-p", module, "-p", module).status == 0
    file = ROOT.joinpath(*module.split("."), "__init__.py")
    said = f"{file} is loaded more than once, as the plugins {module} and {module}.__init__; leave all but one"
    assert refused(bare(gate, "-p", module, "-p", f"{module}.__init__"), said)


def test_others_may_share_what_is_no_name_of_ours(gate: Gate) -> None:
    """What holds a value is called as nothing of others is, and the trace of hooks goes on after we ended ours."""
    (gate.path / "conftest.py").write_text("def pytest_addoption(parser): parser.addoption('--mine', dest='keep')")
    assert gate(*gate.tests("passes"), "--mine", "x", "--debug=trace.log").status == 0
    assert "pytest_unconfigure" in (gate.path / "trace.log").read_text()
    (gate.path / "conftest.py").write_text("pytest_plugins = ['plugin']\n")
    assert bare(gate, "--debug=trace.log").status == 0
    assert "pytest_unconfigure" in (gate.path / "trace.log").read_text()


def test_what_others_take_from_each_other_is_not_ours_to_tell(gate: Gate) -> None:
    twice = "def pytest_addoption(parser):\n    for _ in range(2): parser.addoption('--own')"
    (gate.path / "conftest.py").write_text(twice)
    ran = gate(*gate.tests("passes"))
    assert ran.status == 1
    assert "option names {'--own'} already added" in ran.text
    assert "Roachproof" not in ran.text
