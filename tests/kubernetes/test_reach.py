"""A harness outside of the cluster's network, whose load is made inside, on a real Kubernetes."""

from pathlib import Path

import pytest

from tests.kubernetes.at_hand import ADMIN, AT_HAND, eventually, namespaces
from tests.kubernetes.from_generators import ran, told_whole
from tests.kubernetes.lab import suite
from tests.kubernetes.release import image_of

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
    status, said, trial = ran(tmp_path, image, "test_rows_are_told", on=ON, by=outside(tmp_path))
    assert status == 0, said
    assert "nodes are reached by port-forwarding" in said
    told_whole(trial, 2)
    await eventually("its namespace to go", lambda: not namespaces())


def test_load_is_not_made_from_there(tmp_path: Path) -> None:
    status, said, _ = ran(tmp_path, "", "test_all_is_told", on=ON, by=outside(tmp_path), generators=0)
    assert status == 4, said
    assert "the names of its pods are not known on this machine" in said
    assert "have it come from --generators in the cluster, or run the harness in the cluster" in said
    assert not namespaces()
