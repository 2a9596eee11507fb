"""What is asked of somebody's cluster before anything is made in it: on answers made by hand."""

from pathlib import Path
from typing import Any

import pytest

from clusters.engines.cockroach.access import Access
from clusters.engines.cockroach.adoption import take_over
from clusters.engines.cockroach.deployment import CockroachDeployment
from clusters.engines.cockroach.installed import Installed
from clusters.errors import BadInput, HarnessError
from clusters.model import NodeResources, NodeSpec
from clusters.sql import Failure, SqlError
from tests.clusters.fake import placement_of

OURS = Installed(binary=Path("cockroach"), tag="v26.1.0-alpha.1")
PLACEMENTS = [placement_of(NodeSpec(name=name)) for name in ("n1", "n2", "n3")]


class Theirs(Access):
    """Three nodes with the ids 1 to 3, a fourth where they know one, and the databases that are there."""

    def __init__(self, **tags: str) -> None:
        super().__init__(session=lambda _: {})
        self.tags = {"n1": OURS.tag, "n2": OURS.tag, "n3": OURS.tag} | tags
        self.databases = ["defaultdb"]
        self.sent: list[str] = []
        self.dead = list[int]()
        """Nodes that do not count as alive, once for each look."""

    async def query(self, sql: str, *, node: str | None = None, **_: object) -> list[Any]:
        if sql == OURS.dialect.build_tag:
            if not self.tags[node or "n1"]:
                raise SqlError("certificate signed by unknown authority", failure=Failure.LOST, code="")
            return [(f"CockroachDB CCL {self.tags[node or 'n1']} (x86_64)",)]
        ids = {placement.node.name: number for number, placement in enumerate(PLACEMENTS, 1)}
        dead = self.dead.pop() if self.dead and sql == OURS.dialect.nodes else 0
        answers: dict[str, list[Any]] = {
            "SELECT crdb_internal.node_id() AS node_id": [{"node_id": ids[node or "n1"]}],
            OURS.dialect.nodes: [
                {"node_id": number, "address": f"{placement.node.name}.theirs:26357", "is_live": number != dead}
                for number, placement in enumerate(PLACEMENTS, 1)
            ],
            "SHOW DATABASES": [{"database_name": name} for name in self.databases],
            OURS.dialect.kept_version: [("",)],
            OURS.dialect.active_version: [("26.1",)],
            OURS.dialect.able_version: [("26.1",)],
        }
        return answers[sql]

    async def execute(self, sql: str, **_: object) -> None:
        self.sent.append(sql)


async def test_nodes_of_this_build_are_taken_over_under_the_names_by_which_they_know_each_other() -> None:
    theirs = Theirs()
    await take_over(theirs, OURS, PLACEMENTS, "roachproof")
    assert {name: at.address for name, at in theirs.placements.items()} == {
        n: f"{n}.theirs" for n in ("n1", "n2", "n3")
    }
    assert theirs.rpc_port == 26357
    assert theirs.sent == ["CREATE DATABASE roachproof"]


async def test_a_node_that_does_not_count_as_alive_yet_is_waited_for() -> None:
    """One that was just started again answers before the others know that it lives."""
    theirs = Theirs()
    theirs.dead = [2, 2]
    await take_over(theirs, OURS, PLACEMENTS, "roachproof")
    assert theirs.dead == []
    assert theirs.placements["n2"].address == "n2.theirs"


@pytest.mark.parametrize(
    ("theirs", "told"),
    [
        pytest.param(
            {"n2": "v25.4.2"},
            r"n2 \(.*\) runs v25\.4\.2, and the binary at hand is v26\.1\.0-alpha\.1; "
            r"give --cockroach-version v25\.4\.2$",
            id="one node is of another build",
        ),
        pytest.param(
            {"n3": ""},
            r"n3 \(.*\) takes no connection of the client root \(certificate signed by unknown authority\); run the "
            "harness where pods' names are known and reached",
            id="one node lets nobody in",
        ),
    ],
)
async def test_what_cannot_be_had_is_bad_input_and_nothing_is_made(theirs: dict[str, str], told: str) -> None:
    cluster = Theirs(**theirs)
    with pytest.raises(BadInput, match=told):
        await take_over(cluster, OURS, PLACEMENTS, "roachproof")
    assert cluster.sent == []


async def test_a_database_that_is_there_already_is_left_alone() -> None:
    cluster = Theirs()
    cluster.databases.append("roachproof")
    with pytest.raises(BadInput, match=r"database roachproof is there already, .*DROP DATABASE roachproof CASCADE"):
        await take_over(cluster, OURS, PLACEMENTS, "roachproof")
    assert cluster.sent == []


@pytest.mark.parametrize(
    ("theirs", "told"),
    [
        ({}, ""),
        (
            {"n2": "v26.1.0-alpha.2"},
            "left set, as not every node is .*-alpha.1 again: n2 is v26.1.0-alpha.2; give",
        ),
        ({"n3": ""}, r"again: n3 does not say its build \(certificate signed by unknown authority\); give"),
    ],
    ids=["all are what they were", "one is another", "one is silent"],
)
async def test_a_version_that_was_kept_is_let_go_once_every_node_is_what_it_was(
    theirs: dict[str, str], told: str
) -> None:
    """Else it would make itself final, and the former version could not read what it had written."""
    cluster: Any = Theirs()
    await take_over(cluster, OURS, PLACEMENTS, "roachproof")
    cluster.tags |= theirs
    deployment: Any = CockroachDeployment(
        build=OURS, resources=NodeResources(cache_mib=1, sql_memory_mib=1), tuned=False
    )
    deployment._access, deployment._adopted = cluster, True
    for placement in PLACEMENTS:
        deployment._builds.add(placement.node.name)
    await deployment.keep_version()
    cluster.sent.clear()
    if told:
        with pytest.raises(HarnessError, match=told):
            await deployment._left()
    else:
        await deployment._left()
    freed = [] if told else ["RESET CLUSTER SETTING cluster.preserve_downgrade_option"]
    assert cluster.sent == ["DROP DATABASE roachproof CASCADE", *freed]
