"""Whether a session has anything of Roachproof's. Until it has, hooks do nothing, and nothing else is imported.

It has when an option of ours was given, when a test of ours was collected, or when other processes collect.
"""

import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from fixtures.workloads.known import FIXTURES
from plugin import options
from plugin.option_names import OURS, sentence, taken
from plugin.ours import BENCHMARK, MARKERS, is_ours, register, same_name, without_collector

BEGUN: pytest.StashKey[bool] = pytest.StashKey()
"""Whether it has."""
MEASURES: pytest.StashKey[bool] = pytest.StashKey()
"""Whether it has micro benchmarks, or may have some in other processes."""


class Idle:
    """What the hooks do in a session that has nothing of ours: nothing.

    Each is called as in ``plugin.session``, or as in ``plugin.micro.benchmarks``.
    """

    def _nothing(self, *_: Any) -> None:
        pass

    def header(self, *_: Any) -> list[str]:
        """No line."""
        return []

    def _passed_on(self, *_: Any) -> Generator[None, Any, Any]:
        return (yield)

    announce = unconfigure = parametrize = named_without_secrets = mark = select = prepare = loop = _nothing
    classify = status_of = configure = print_plan = _nothing
    expected = header
    judging_early_end = summarise = closing = _passed_on


IDLE = Idle()


def answer(config: pytest.Config) -> int | None:
    """See ``commands.answer``."""
    if not options.any_given(config):
        return None
    from plugin import commands

    return commands.answer(config)


def configure(config: pytest.Config) -> None:
    """Declare markers and fixtures; begin at once where tests may be ours that this process does not collect first."""
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    register(config, "fixtures.registered", *FIXTURES)
    option: Any = config.option
    config.stash[MEASURES] = elsewhere = hasattr(config, "workerinput") or getattr(option, "dist", "no") != "no"
    # allure-pytest is told where its results go before it is configured; what -m may not choose is refused before then.
    early = getattr(option, "allure_report_dir", None) or "hardware" in (getattr(option, "markexpr", None) or "")
    if elsewhere or early or options.any_given(config):
        begin(config)


def begin(config: pytest.Config) -> None:
    """Begin, unless that was done."""
    if not config.stash.get(BEGUN, False):
        config.stash[BEGUN] = True
        with without_collector():
            from plugin import session

            session.configure(config)


def seen(item: pytest.Item) -> None:
    """Begin where this test is one of ours."""
    if BENCHMARK in getattr(item, "fixturenames", ()):
        item.config.stash[MEASURES] = True
    if not item.config.stash.get(BEGUN, False) and is_ours(item):
        begin(item.config)
        from plugin import session

        session.announce(item.config)


def session_of(config: pytest.Config) -> Any:
    """What the hooks do: ``plugin.session``, or nothing."""
    if not config.stash.get(BEGUN, False):
        return IDLE
    from plugin import session

    return session


def benchmarks_of(config: pytest.Config) -> Any:
    """What the hooks of micro benchmarks do: ``plugin.micro.benchmarks``, or nothing."""
    if not config.stash.get(MEASURES, False):
        return IDLE
    from plugin.micro import benchmarks

    return benchmarks


def explain(report: pytest.CollectReport) -> None:
    """Say what name of ours was taken, or what package is not here, instead of a traceback.

    Taken by a directory of a user's own that is called as a package of the suite's, or by an option of a conftest.py
    below the arguments, which only collecting loads.
    """
    said = str(report.longrepr or "")
    if report.failed and not OURS.isdisjoint(names := taken(said)):
        who = re.search(r"^(\S*conftest\.py):\d+: in pytest_addoption", said, re.MULTILINE)
        report.longrepr = sentence(who[1] if who else f"a conftest.py of {report.nodeid}", names)
        return
    missing = re.search(r"^E? *ModuleNotFoundError: No module named '(\w+)", said, re.MULTILINE)
    if missing and report.failed and report.nodeid.startswith("tests/") and missing[1] in _tested_with():
        report.longrepr = (
            f"{report.nodeid}: needs the package {missing[1]}, which this environment does not have. The suite's own "
            f"tests run in another: {options.TOX} -e test -- {report.nodeid}. Here, name your claims' tests instead."
        )
        return
    if report.failed and (called_alike := same_name(report.nodeid, said)):
        report.longrepr = called_alike


def _tested_with() -> set[str]:
    """Modules of the packages that the group ``test`` of pyproject.toml asks for."""
    import tomllib

    groups = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["dependency-groups"]
    waiting, found = ["test"], set[str]()
    while waiting:
        for each in groups[waiting.pop()]:
            if isinstance(each, str):
                found.add(re.split(r"[^\w-]", each)[0].replace("-", "_"))
            else:
                waiting.append(each["include-group"])
    return found
