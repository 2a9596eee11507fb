"""The pytest plugin of the micro benchmarks: hooks only; what they do is in ``plugin.micro.benchmarks``."""

from collections.abc import Generator
from typing import Any

import pytest

from plugin import begin, option_names
from plugin.ours import register


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the option."""
    with option_names.told(pluginmanager, __file__):
        option_names.declare(
            parser.getgroup("roachproof"),
            "--micro-turns",
            type=int,
            default=5,
            metavar="N",
            help="in how many turns each micro benchmark is measured on each version (default: 5; one has no interval)",
        )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse an option that cannot be used. Without the plugin of the claims there are no benchmarks."""
    if not config.pluginmanager.hasplugin("plugin"):
        config.pluginmanager.unregister(name="plugin.micro")
        return
    turns = config.getoption("--micro-turns")
    if turns < 1:
        raise pytest.UsageError(f"--micro-turns {turns}: must be at least 1; leave it out to have 5")
    register(config, "fixtures.micro_registered")
    begin.benchmarks_of(config).configure(config)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One instance of a benchmark for each version and turn."""
    begin.benchmarks_of(metafunc.config).parametrize(metafunc)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the benchmarks in order, and skip them where they can measure nothing."""
    begin.benchmarks_of(config).select(config, items)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Look for the databases that the collected benchmarks need."""
    begin.benchmarks_of(session.config).prepare(session)


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, Any, Any]:
    """``--dry-run`` says what would be measured."""
    result = yield
    begin.benchmarks_of(session.config).print_plan(session)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Say in its report how a benchmark came out."""
    report = yield
    begin.benchmarks_of(item.config).classify(item, call, report)
    return report
