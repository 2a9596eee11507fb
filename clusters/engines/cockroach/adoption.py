"""Taking over a CockroachDB cluster that is there already, and leaving it as it was."""

from collections.abc import Sequence
from dataclasses import replace

from clusters.engines.cockroach.access import Access
from clusters.engines.cockroach.installed import Installed
from clusters.engines.cockroach.introspection import parse_build
from clusters.errors import BadInput
from clusters.model import Placement
from clusters.sql import SqlError


async def take_over(access: Access, build: Installed, placements: Sequence[Placement], database: str) -> None:
    """See that each node is of this build, learn by which address others know it, and make our database.

    Nothing else is set or made. Raises ``BadInput`` where nodes are not to be had so, or the database is there already.
    """
    for placement in placements:
        access.add(placement)
    ids = {}
    for name in list(access.placements):
        await _same_build(access, build, name)
        (row,) = await access.query("SELECT crdb_internal.node_id() AS node_id", node=name)
        ids[int(row["node_id"])] = name
    advertised = {int(row["node_id"]): row["address"] for row in await access.query(build.dialect.nodes)}
    if strangers := sorted(advertised.keys() - ids.keys()):
        raise BadInput(
            f"the cluster has {len(advertised)} nodes, and only {len(ids)} are pods that were found (not those with "
            f"the ids {', '.join(map(str, strangers))}); adopt one whose nodes are all of one StatefulSet"
        )
    for id_, name in ids.items():
        host, _, port = advertised[id_].rpartition(":")
        access.placements[name] = replace(access.placements[name], address=host)
        access.rpc_port = int(port)
    if database in {str(row["database_name"]) for row in await access.query("SHOW DATABASES")}:
        raise BadInput(
            f"database {database} is there already, of another run or of one that was killed; wait for its end, or "
            f"drop it (DROP DATABASE {database} CASCADE) where nobody needs it"
        )
    await access.execute(f"CREATE DATABASE {database}", timeout=60.0)


async def _same_build(access: Access, build: Installed, node: str) -> None:
    address = access.placement(node).client_address
    try:
        ((told,),) = await access.query(build.dialect.build_tag, node=node, timeout=15.0)
    except SqlError as error:
        raise BadInput(
            f"{node} ({address}) takes no connection of the client root ({error}); run the harness where pods' names "
            "are known and reached, and name the secret of that client"
        ) from error
    version = parse_build(str(told))
    if version != build.version:
        raise BadInput(
            f"{node} ({address}) runs {version}, and the binary at hand is {build.version}; give "
            f"--cockroach-version {version}"
        )
