"""How the suite's own tests are spread over workers: one has all that start whole clusters, which take turns anyway."""

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


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest begins first."""
    items.sort(key=lambda item: not item.nodeid.startswith(CLUSTERS))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With ``--dist loadfile`` the tests that start clusters count as one file."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

    class ClustersTogether(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return CLUSTERS[0] if nodeid.startswith(CLUSTERS) else super()._split_scope(nodeid)

    config.option.loadscopereorder = False
    return ClustersTogether(config, log)
