"""The subject: CockroachDB.

What is known of it before a binary is found; imported by every session, so it imports little.
"""

import os
from collections.abc import Awaitable, Callable, Sequence
from shlex import quote
from typing import TYPE_CHECKING

from clusters.engines import CHOICES, Change, Engine, EngineKind, Opening, Wanted
from clusters.engines.cockroach.tenancy import TENANCY
from clusters.model import PLANNED, Capability, Fingerprint, Placement, SqlTraits
from clusters.registry import later
from clusters.substrates import Nodes

if TYPE_CHECKING:
    from clusters.engines.cockroach.deployment import CockroachDeployment


def _find(wanted: Wanted) -> Engine:
    from clusters.engines.cockroach.engine import find

    return find(wanted)


def _order(version: str) -> object:
    from clusters.engines.cockroach.version import Version

    return Version.first_of(version)


def _named(version: str) -> None:
    from clusters.engines.cockroach.version import Version

    if version != "latest":
        Version.parse(version, origin="--cockroach-version")


def _offered(version: str) -> bool:
    from clusters.cache import cache_dir
    from clusters.engines.cockroach.binary import offered
    from clusters.engines.cockroach.vendor import Vendor

    return offered(version, cache=cache_dir(os.environ), vendor=Vendor.from_environ(os.environ))


def _change(old: Fingerprint, new: Fingerprint) -> Change:
    from clusters.engines.cockroach.changes import change

    return change(old, new, os.environ)


def _former(engine: Engine) -> Engine | None:
    from clusters.engines.cockroach.engine import former

    return former(engine)


def _old_joins_final(old: str, new: str) -> bool | None:
    from clusters.engines.cockroach.upgrades import old_joins_final

    return old_joins_final(old, new)


async def _adopt(
    deployment: "CockroachDeployment", placements: Sequence[Placement], nodes: Nodes
) -> Callable[[], Awaitable[None]]:
    return await deployment.adopt(placements, nodes)


KIND = EngineKind(
    name="cockroach",
    title="CockroachDB",
    capabilities=frozenset(Capability) - PLANNED,
    find=_find,
    adopt=_adopt,
    charted=later("clusters.engines.cockroach.charted:CHARTED"),
    # It takes parameters below a WITH or in VALUES for text, whatever they are cast to, and has a notation of its own
    # for their type. A foreign key that is added looks for rows that refer to nothing by one lookup a row. The
    # vectorised engine of v21.1.0-alpha.20210228 loses rows in joins. A change of schema that was given up is a job
    # that "cannot be reverted, manual cleanup may be required": failed at first, revert-failed since v21.2.
    sql=SqlTraits(
        own_place="CREATE DATABASE IF NOT EXISTS {name}",
        enter_place="SET database = {name}",
        names_indexes=True,
        indexes_in_tables=True,
        annotation=":::",
        descending_keys=True,
        covering="STORING",
        checks_added_keys=False,
        connections_left="SELECT greatest(least(value::INT8, 0), value::INT8 - (SELECT count(*) "
        "FROM [SHOW LOCAL SESSIONS])) FROM [SHOW CLUSTER SETTINGS] "
        "WHERE variable = 'server.max_connections_per_gateway'",
        reads_as_of=True,
        bulk_joins="vectorize = off",
        other_joins="vectorize = on",
        given_up="SELECT description, error FROM [SHOW JOBS] "
        "WHERE status = 'revert-failed' OR (status = 'failed' AND error LIKE '%cannot be reverted%')",
    ),
    tenancy=TENANCY,
    ports=(26257, 8080),
    choice=CHOICES["cockroach"],
    named=_named,
    offered=_offered,
    console=lambda engine: f"{quote(str(engine.program))} sql --url",
    change=_change,
    former=_former,
    old_joins_final=_old_joins_final,
    # v20.2 said the first to a cluster that was final at v21.1; programs of v26.1 have both.
    keeps_out=("binary is incompatible with the cluster", "cluster requires at least version"),
    # Pebble writes down its options, in a file of another number, at the end of each opening.
    opening=Opening(option="--store=", sign="OPTIONS-*"),
    order=_order,
)
