"""The pytest plugin of Roachproof: hooks only; what they do is in the modules beside this one.

Most of them ask ``begin`` for it: while nothing of a session is Roachproof's they do nothing.
"""

from collections.abc import Generator
from typing import Any

import pytest

from plugin import begin, option_names, options


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the options. A name that is taken is bad input."""
    with option_names.told(pluginmanager, __file__):
        options.add(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """``--claims`` and ``--judge`` answer without a session."""
    return begin.answer(config)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Read the settings, where any were given; refuse what cannot be used before anything starts."""
    begin.configure(config)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """The first line of a control run says that it is one."""
    begin.session_of(session.config).announce(session.config)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a pytest-xdist worker the run directory and the seed."""
    from plugin import session

    session.instruct_worker(node)


def pytest_report_header(config: pytest.Config) -> Any:
    """Say what is tested, on what, with which seed."""
    return begin.session_of(config).header(config)


def pytest_report_collectionfinish(config: pytest.Config, items: list[pytest.Item]) -> Any:
    """Say how long the claims' tests will take."""
    return begin.session_of(config).expected(config, items)


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Generator[None, Any, Any]:
    """One instance of a claim's test for each version and value of its parameters; no secret in their names."""
    begin.seen(metafunc.definition)
    session = begin.session_of(metafunc.config)
    session.parametrize(metafunc)
    result = yield
    session.named_without_secrets(metafunc)
    return result


def pytest_itemcollected(item: pytest.Item) -> None:
    """A claim's test has a marker for each profile that can evaluate it."""
    begin.seen(item)
    begin.session_of(item.config).mark(item)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Check markers, keep the suite's claims, mark what cannot be evaluated here."""
    begin.session_of(config).select(config, items)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Look for the databases that the collected claims need, before a worker tells its controller what it can run."""
    begin.session_of(session.config).prepare(session)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> Any:
    """Say what was found to test; ``--dry-run`` prints the plan instead of running it."""
    return begin.session_of(session.config).loop(session)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """A node that ended by itself refutes the claim; a machine that other work had decides nothing."""
    return (yield from begin.session_of(item.config).judging_early_end(item))


pytest_runtest_setup = pytest_runtest_call


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Tell a refuted claim from an inconclusive one and from a failure of the harness."""
    report = yield
    begin.session_of(item.config).classify(item, call, report)
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Say where a user's own directory or option has a name of the suite's."""
    begin.explain(report)


def pytest_report_teststatus(report: pytest.TestReport, config: pytest.Config) -> Any:
    """An inconclusive claim has a letter and a word of its own."""
    return begin.session_of(config).status_of(report)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """A pytest-xdist worker ended: hear what input it refused."""
    from plugin import session

    session.hear_worker(node, error)


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(crashitem: str, report: pytest.TestReport, sched: Any) -> None:
    """A worker died in a test: the harness failed, nothing was refuted."""
    from plugin import conclusion

    conclusion.worker_crashed(sched.config, crashitem, report)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, Any, Any]:
    """See what nobody decided before reports are written, and set the exit status before the summary is."""
    return (yield from begin.session_of(session.config).closing(session))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> Generator[None, Any, Any]:
    """Print the tables of claims, and no second time in pytest's own sections."""
    return (yield from begin.session_of(config).summarise(terminalreporter, config))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop showing progress; the last lines say what the session came to, and of a control run that it is one."""
    begin.session_of(config).unconfigure(config)
