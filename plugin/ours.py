"""What a test of Roachproof's is known by: its markers, its fixtures, its place."""

import gc
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

import pytest

MARKERS = (
    "claim(id): the test decides this claim of the catalogue; its docstring is the claim's sentence",
    "sabotage(id, engine=None): the test breaks what this claim promises and asserts that it is refuted",
    "topology(name=None, *, nodes=None, zones=1, regions=1): the shape of the cluster that the test is given; "
    "nodes may be the name of the test's argument that says how many",
    "hardware(profile): the test is evaluated only under this profile (or another such marker's); a claim's test "
    "without one has one for each profile that can evaluate it, for -m 'hardware(profile=\"medium\")' to choose by",
    "plans(lines=…, fits=None): what a test draws by its seed; lines(item, run) are printed by --dry-run; "
    "fits(item, run) is whether a given plan is for it, and raises where its cluster is not such",
)

FIXTURE = "target"
"""What every test that asks for a fixture of ours asks for, by way of that."""


BENCHMARK = "micro"
"""What a micro benchmark asks for."""


def is_ours(item: pytest.Item) -> bool:
    """Whether it is of a claim, or asks for something that is there for claims."""
    marked = item.get_closest_marker("claim") or item.get_closest_marker("sabotage")
    return bool(marked) or FIXTURE in getattr(item, "fixturenames", ()) or in_claims(item, item.config)


def in_claims(item: pytest.Item, config: pytest.Config) -> bool:
    """Whether it is one of the suite's own claims. (As texts: this is asked of every test that is collected.)"""
    return str(item.path).startswith(os.path.join(config.rootpath, "tests", "claims", ""))  # noqa: PTH118


@contextmanager
def without_collector() -> Iterator[None]:
    """Spare the search for garbage meanwhile: for what makes much that stays, as imports and declarations do.

    What is there by the end, pytest and all libraries, is left out of later searches, too: each would read all of it.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was:
            gc.enable()


def register(config: pytest.Config, *modules: str) -> None:
    """Register modules of fixtures.

    As ``pytest_plugins`` does it, but for what pytest does for each of those: it reads all installed distributions.
    """
    for module in modules:
        if not config.pluginmanager.hasplugin(module):
            config.pluginmanager.register(import_module(module), module)


def same_name(who: str, error: str) -> str:
    """What is said to whoever (a file) imports from a directory of their own that is called as a package of ours.

    ``error``: why that failed, in Python's words. Nothing where it is something else.
    """
    found = re.search(r"No module named '(?P<room>clusters|fixtures|plugin)\.(?P<name>[\w.]+)'", error) or re.search(
        r"cannot import name '(?P<name>\w+)' from '(?P<room>clusters|fixtures|plugin)' \(", error
    )
    if found is None:
        return ""
    return (
        f"{who}: there is no module {found['room']}.{found['name']}: {found['room']} is the name of a package of "
        "Roachproof's, beside which no other of that name can be imported. Give your directory another name."
    )
