"""Topologies of many small nodes over zones and regions, on machines of as many zones: each node is where it says.

They take a lab of their own: ``tox -e k8s-full`` makes one.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from clusters import topology
from clusters.cluster import Cluster
from clusters.engines import ENGINES, Wanted
from clusters.model import NodeResources
from tests.kubernetes.at_hand import AT_HAND, kubectl, opened, pod_of
from tests.kubernetes.release import image_of
from tests.slow import slow

IMAGE, PROGRAM = image_of()
REGION, ZONE = (f"topology.kubernetes.io/{label}" for label in ("region", "zone"))
pytestmark = [AT_HAND, pytest.mark.skipif(not IMAGE, reason="no build of CockroachDB is in the cache")]


def machines() -> dict[str, tuple[str, str]]:
    """Region and zone of each."""
    told = json.loads(kubectl("get", "nodes", "-o", "json"))["items"]
    labels: Mapping[str, Mapping[str, str]] = {one["metadata"]["name"]: one["metadata"]["labels"] for one in told}
    return {name: (has.get(REGION, ""), has.get(ZONE, "")) for name, has in labels.items()}


@slow
@pytest.mark.parametrize("name", ["nine-in-three-zones", "fifteen-in-three-regions"])
async def test_each_node_is_in_its_region_and_zone(name: str, tmp_path: Path) -> None:
    shape, there = topology.load(name), machines()
    wanted = {(node.region, node.zone) for node in shape.nodes}
    zones = {region: sum(one[0] == region for one in set(there.values())) for region, _ in there.values()}
    regions = {region for region, _ in wanted}
    if len(zones) < len(regions) or max(zones.values()) * len(regions) < len(wanted):
        pytest.fail(
            f"the lab's machines have zones {zones}, and {name} is of {sorted(wanted)}; give it more --machines"
        )
    small = NodeResources(cache_mib=32, sql_memory_mib=32)
    substrate = await opened(tmp_path, nodes=shape.nodes, resources=small)
    try:
        engine = ENGINES["cockroach"].find(Wanted(path=PROGRAM))
        cluster = await Cluster.provision(
            engine=engine, substrate=substrate, topology=shape, resources=small, tuned=False
        )
        async with await cluster.deployment.connect() as connection:
            rows = await connection.query("SELECT locality FROM crdb_internal.gossip_nodes", timeout=60.0)
        by_database = sorted(str(row["locality"]) for row in rows)
        assert by_database == sorted(f"region={node.region},zone={node.zone}" for node in shape.nodes)
        pods = {node.name: pod_of(substrate._nodes[node.name].placement) for node in shape.nodes}
        _, namespace = pods["n1"]
        told = json.loads(kubectl("-n", namespace, "get", "pods", "-o", "json"))["items"]
        on = {pod["metadata"]["name"]: there[pod["spec"]["nodeName"]] for pod in told}
        of = {(node.region, node.zone, *on[pods[node.name][0]]) for node in shape.nodes}
        assert len(of) == len(wanted) == len({place[2:] for place in of}), f"each zone is one of the machines': {of}"
        assert len({place[0::2] for place in of}) == len(regions), f"each region is one of the machines': {of}"
    finally:
        await substrate.close()
