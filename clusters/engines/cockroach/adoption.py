"""Taking over a CockroachDB cluster that is there already, and leaving it as it was."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from clusters.engines.cockroach.access import Access
from clusters.engines.cockroach.installed import Installed
from clusters.engines.cockroach.introspection import parse_build
from clusters.errors import BadInput, TimedOut
from clusters.model import Health, Placement
from clusters.sql import SqlError, pgwire
from clusters.waiting import wait_until

_LOOK_S = 15.0
_GONE_S = 30.0
"""How long a node that was taken out just before may seem to live."""


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
    advertised: dict[int, str] = {}

    async def only_these() -> Health:
        # Nodes that were taken out are told of for long, and for seconds as if they lived.
        live = [row for row in await access.query(build.dialect.nodes) if row["is_live"]]
        advertised.update((int(row["node_id"]), row["address"]) for row in live)
        strangers = sorted({int(row["node_id"]) for row in live} - ids.keys())
        silent = sorted(name for id_, name in ids.items() if id_ not in advertised)
        why = [f"those with the ids {', '.join(map(str, strangers))} are not"] if strangers else []
        why += [f"{', '.join(silent)} does not count as alive yet"] if silent else []
        return Health(ok=not why, why="; ".join(why))

    try:
        await wait_until("all nodes of the cluster to be pods that were found", only_these, timeout=_GONE_S)
    except TimedOut as error:
        raise BadInput(f"{error}; adopt one whose nodes are all of one StatefulSet") from error
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


async def take_in(access: Access, placement: Placement) -> None:
    """Take in a node that is to be added to it. Raises ``BadInput`` where the nodes' certificate is not one of its.

    Others know it by the same kind of name by which they know the first one.
    """
    first = next(iter(access.placements.values()))
    (pod, _, _), (other, _, _) = (at.client_address.partition(".") for at in (placement, first))
    # All nodes show the same certificate, as their pods are of one template.
    shown = pgwire.tls_context(access.credentials)
    assert shown is not None
    shown.set_alpn_protocols(["h2"])
    try:
        async with asyncio.timeout(_LOOK_S):
            _, writer = await asyncio.open_connection(
                first.client_address, access.rpc_port, ssl=shown, server_hostname=placement.client_address
            )
    except (OSError, TimeoutError) as error:
        raise BadInput(
            f"{placement.client_address} cannot be added: {first.client_address} shows no certificate of that name "
            f"({error or 'no answer'}); give the nodes one that has it (*.SERVICE.NAMESPACE.svc.cluster.local)"
        ) from error
    writer.close()
    access.add(replace(placement, address=first.address.replace(other, pod, 1)))


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
