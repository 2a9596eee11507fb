"""How the suite's own tests are spread over workers: what shares something dear is one worker's, the longest first."""

import gc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

CLUSTERS = (
    "tests/sabotage/",
    "tests/clusters/engines/test_contract.py",
    "tests/clusters/engines/cockroach/test_deployment.py",
    "tests/clusters/engines/postgres/test_deployment.py",
    "tests/clusters/engines/postgres/test_swap.py",
    "tests/clusters/test_isolation.py",
    "tests/clusters/substrates/test_runner.py",
    "tests/fixtures/test_redaction.py",
    "tests/fixtures/workloads/tpcc/test_under_kill.py",
)
"""Tests that lease all slots of a small machine for most of their time."""

TOGETHER: Mapping[str, tuple[str, ...]] = {
    "clusters": CLUSTERS,
    "loaded": tuple(
        f"tests/fixtures/workloads/tpcc/test_{name}.py" for name in ("consistency_loaded", "load", "run", "trouble")
    ),
}
"""What counts as one file: clusters take turns anyway, and a worker would load TPC-C a second time, for a minute."""

LONGEST = "tests/plugin/test_killed.py"
"""Takes minutes, in which it waits for the most part: who began it last would let the other workers wait."""

LONG = tuple(f"tests/plugin/test_{name}.py" for name in ("versions_changed", "ways_to_start", "xdist"))
"""Each takes up to a minute, and by its name would begin among the last: one worker would end long after the others."""


def pytest_configure(config: pytest.Config) -> None:
    """Each worker begins to collect in another room: what it compiles there, the others find.

    Three that went the same way would each compile all of a fresh clone, at the same time.
    """
    given, here = getattr(config, "workerinput", None), Path(__file__).parent
    if given is None or config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    if config.getini("testpaths") != [here.name]:
        return  # one room is wanted, as where claims are run
    left_out = {config.invocation_params.dir / path for path in config.getoption("ignore") or ()}
    rooms = [path for path in sorted([*here.glob("[a-z]*/"), *here.glob("test_*.py")]) if path not in left_out]
    at = len(rooms) * int(given["workerid"].removeprefix("gw")) // given["workercount"]
    config.args[:] = map(str, rooms[at:] + rooms[:at])


def turn(nodeid: str) -> int:
    """Whether a test is among the first, the many, the long ones of the plugin, or the last: all others of it."""
    if nodeid.startswith(CLUSTERS):
        return 0
    if nodeid.startswith(LONGEST) or not nodeid.startswith("tests/plugin/"):
        return 1
    return 2 if nodeid.startswith(LONG) else 3


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest begins first; wherever a worker began to collect, its order is that of the others."""
    items.sort(key=lambda item: (turn(item.nodeid), item.nodeid.split("/")[1:2]))


def pytest_collection_finish() -> None:
    """All that was imported and collected stays: the search for garbage need not look at it again and again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With ``--dist loadfile`` the tests that share something count as one file."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

    class Together(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            shared = (name for name, files in TOGETHER.items() if nodeid.startswith(files))
            return next(shared, None) or str(super()._split_scope(nodeid))

    config.option.loadscopereorder = False
    return Together(config, log)
