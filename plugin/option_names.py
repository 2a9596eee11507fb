"""An option name that two have declared: a sentence that says who and what to do, where pytest shows a traceback.

Plugins come in any order: from ``-p`` and ``addopts``, as installed distributions, from ``$PYTEST_PLUGINS``, as
conftest.py. Whoever declares a name second is refused, so both are told here: ours that came too late, and others.
"""

import re
from argparse import ArgumentError
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pluggy
import pytest
from _pytest.config import ConftestImportFailure

from plugin.ours import same_name

OURS: set[str] = set()
"""The names that we have declared."""


def declare(group: pytest.OptionGroup, name: str, **how: Any) -> None:
    """Declare an option of ours. What holds its value has a name that nobody else gives by chance."""
    group.addoption(name, dest=f"roachproof_{name.lstrip('-').replace('-', '_')}", **how)
    OURS.add(name)


def taken(error: BaseException | str | None) -> list[str]:
    """The option names that this error, or the text of one, says two have declared."""
    said = re.search(
        r"option names \{(?P<names>.*)\} already added|argument (?P<name>\S+): conflicting option", str(error)
    )
    return re.findall(r"--[\w-]+", said["names"] or said["name"]) if said else []


@contextmanager
def told(pluginmanager: pytest.PytestPluginManager, module: str) -> Iterator[None]:
    """Declare options in it: ``UsageError`` where a name of ours is taken, and from now on where somebody takes one.

    ``module``: the file whose options they are.
    """
    try:
        yield
    except (ValueError, ArgumentError) as error:
        if not (names := taken(error)):
            raise
        known = [(name, getattr(plugin, "__file__", None)) for name, plugin in pluginmanager.list_name_plugin()]
        if len(ourselves := [name for name, file in known if file == module]) > 1:
            raise pytest.UsageError(
                f"{module} is loaded more than once, as the plugins {' and '.join(ourselves)}; leave all but one of "
                "them out"
            ) from error
        raise pytest.UsageError(
            f"Roachproof's option {names[0]}: a plugin or conftest.py that was loaded before has an option of this "
            "name; give that another name, or leave that plugin out (-p no:NAME)"
        ) from error
    if not pluginmanager.hasplugin(WATCH):
        pluginmanager.register(Watch(pluginmanager), WATCH)


def sentence(who: str, names: list[str]) -> str:
    """What is said to whoever takes a name of ours."""
    way_out = "" if who.endswith("conftest.py") else f", or leave that plugin out (-p no:{who})"
    return (
        f"{who} declares an option whose name is taken by Roachproof: {', '.join(names)}; give it another name"
        f"{way_out} (--help has all of Roachproof's)"
    )


WATCH = "roachproof-option-names"
"""The name of a ``Watch`` as a plugin."""


class Watch:
    """Looks at what others declare, from when ours is declared until all conftest.py of the arguments are loaded."""

    def __init__(self, pluginmanager: pytest.PytestPluginManager) -> None:
        self._pluginmanager = pluginmanager
        self._undo = pluginmanager.add_hookcall_monitoring(lambda *_: None, self._called)

    def _called(
        self, outcome: pluggy.Result[Any], hook: str, who: Sequence[pluggy.HookImpl], _: Mapping[str, object]
    ) -> None:
        """A hook was called. The options of a plugin are declared by a call of its own, when it is loaded."""
        names = taken(outcome.exception) if hook == "pytest_addoption" else []
        if not OURS.isdisjoint(names):
            outcome.force_exception(pytest.UsageError(sentence(who[0].plugin_name, names)))

    def _end(self) -> None:
        self._undo()
        self._pluginmanager.unregister(self)

    @pytest.hookimpl(wrapper=True)
    def pytest_load_initial_conftests(self) -> Generator[None, Any, Any]:
        """The last that may declare options: watch no longer. One whose directory is called as ours is told, too."""
        try:
            return (yield)
        except ConftestImportFailure as error:
            if told := same_name(str(error.path), str(error.cause)):
                raise pytest.UsageError(told) from error
            raise
        finally:
            self._end()

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """The same where a conftest.py loaded ours."""
        if not config.getoption("debug", None):  # its trace of hooks began after this, and would end with it
            self._end()
