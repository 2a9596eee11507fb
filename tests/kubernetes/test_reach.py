"""A harness outside of the cluster's network, whose load is made inside, on a real Kubernetes."""

from pathlib import Path

import pytest

from clusters.substrates.kubernetes import forwarding
from tests.kubernetes.at_hand import ADMIN, AT_HAND, eventually, namespaces
from tests.kubernetes.from_generators import asked, ran, told_whole
from tests.kubernetes.lab import suite
from tests.kubernetes.release import image_of
from tests.kubernetes.running import Running, alive

IMAGE, PROGRAM = image_of()
pytestmark = [AT_HAND, pytest.mark.skipif(not IMAGE, reason="no build of CockroachDB is in the cache")]
ON = ("--engine", "cockroach", "--cockroach", PROGRAM, "--substrate", "kubernetes")


def outside(work: Path) -> list[str]:
    """Before a command line: there no name of a pod is known."""
    (work / "resolv.conf").write_text("")
    script = 'mount --make-rprivate / && mount --bind "$0" "$(readlink -f /etc/resolv.conf)" && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", script, str(work / "resolv.conf")]


async def test_nodes_are_reached_by_port_forwarding_and_load_is_made_inside(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    image = suite.give(Path(ADMIN).parent, tmp_path_factory.mktemp("suite"))
    status, said, trial = ran(tmp_path, asked(tmp_path, image, "test_rows_are_told", on=ON), outside(tmp_path))
    assert status == 0, said
    assert "nodes are reached by port-forwarding" in said
    told_whole(trial, 2)
    await eventually("its namespace to go", lambda: not namespaces())


async def test_no_port_is_forwarded_any_more_where_the_harness_is_killed(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    image = suite.give(Path(ADMIN).parent, tmp_path_factory.mktemp("suite"))
    run = Running(tmp_path, asked(tmp_path, image, "test_rows_are_told", on=ON), outside(tmp_path))
    try:
        run.until("the ledger is there", lambda: "ledger.created" in run.events())
        assert run.keys(), "there are some to be left"
        begun = run.begun()
        assert any(forwarding.__name__ in line for line in begun.values())
    finally:
        run.end()
    await eventually("its namespace to go", lambda: not namespaces())
    await eventually("the processes beside it to end", lambda: not alive(begun))
    assert not run.keys()


def test_load_is_not_made_from_there(tmp_path: Path) -> None:
    status, said, _ = ran(tmp_path, asked(tmp_path, "", "test_all_is_told", on=ON, generators=0), outside(tmp_path))
    assert status == 4, said
    assert "the names of its pods are not known on this machine" in said
    assert "have it come from --generators in the cluster, or run the harness in the cluster" in said
    assert not namespaces()
