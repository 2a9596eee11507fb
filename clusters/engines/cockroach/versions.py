"""What differs between CockroachDB versions 20.2 to 26.2, in one table.

Everything that a version changes stands in ``CHANGES``, with the documentation or the pull request that says so;
``dialect_for`` applies the changes up to a server's version. Only the builds of
``clusters.engines.cockroach.builds.RUN`` were run with this table. What it says of all others is *documented, not run*,
and tested on recorded or documented answers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from clusters.engines.cockroach.version import Series, Version
from clusters.errors import BadInput
from clusters.sql import quoted

OLDEST: Series = (20, 2)
NEWEST: Series = (26, 2)
"""The newest major version whose documentation was read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Dialect:
    """How one version is spoken to.

    SQL is text to be sent as it stands; the methods take identifiers that are quoted already.

    Columns are cast to types that the driver knows by itself: on older servers it cannot look up array types.
    """

    notes: tuple[str, ...] = ()
    """What a reader of a report should know about this version, in whole sentences."""

    traits: Mapping[str, Any] = field(default_factory=dict)
    """Where it differs in SQL from ``KIND.sql``, for workloads: values of its fields."""

    session: Mapping[str, str] = field(default_factory=dict)
    """Session variables that the harness's own connections need to read what no public statement tells: ``nodes``,
    ``stores``, ``arguments``, the logs of ``by_hand`` and ``moves``."""
    setup: tuple[str, ...] = ()
    """Statements to run once on a new cluster, before anything below is asked."""

    table_ranges_form: str = (
        "SELECT range_id, COALESCE(start_key, '') AS start_key, COALESCE(lease_holder, 0) AS lease_holder, "
        "array_to_string(replicas, ',') AS replicas FROM [SHOW RANGES FROM TABLE {table}]"
    )
    all_ranges: str = "SELECT range_id, array_to_string(replicas, ',') AS replicas FROM crdb_internal.ranges_no_leases"
    """Each range of the cluster and its replicas' nodes, ``1,2,3``. Asks no range for its lease, so it answers while
    some are lost."""
    wanted: str = (
        "WITH zones AS (SELECT range_name, database_name, table_name, "
        "substring(full_config_sql, 'num_replicas = ([0-9]+)')::INT8 AS replicas "
        "FROM crdb_internal.zones WHERE index_name IS NULL AND partition_name IS NULL), "
        "ranges AS (SELECT range_id, table_name, "
        "CASE WHEN database_name = '' AND start_pretty ~ '^/(Namespace)?Table/[1-4]?[0-9](/|$)' THEN 'system' "
        "ELSE database_name END AS database_name, "
        "CASE WHEN start_pretty ~ '^/(Min$|Meta)' THEN 'meta' "
        "WHEN start_pretty = '/System/NodeLiveness' THEN 'liveness' "
        "WHEN start_pretty = '/System/NodeLivenessMax' THEN 'system' END AS range_name "
        "FROM crdb_internal.ranges_no_leases) "
        "SELECT range_id, COALESCE(own.replicas, whole.replicas, named.replicas) AS replicas FROM ranges "
        "LEFT JOIN zones AS own ON (own.database_name, own.table_name) = (ranges.database_name, ranges.table_name) "
        "LEFT JOIN zones AS whole ON whole.database_name = ranges.database_name AND whole.table_name IS NULL "
        "LEFT JOIN zones AS named ON named.range_name = ranges.range_name "
        "WHERE COALESCE(own.replicas, whole.replicas, named.replicas) > 3"
    )
    """Ranges that are to have more than three replicas, and how many, by their zones: those of the system, mostly."""
    nodes: str = "SELECT node_id, address, is_live FROM crdb_internal.gossip_nodes"
    stores: str = "SELECT node_id, store_id FROM crdb_internal.kv_store_status"
    node_status: tuple[str, ...] = ("node", "status", "--decommission", "--format=csv")
    """The command that lists nodes in every version without internal tables; read by
    ``introspection.parse_memberships``."""
    build_tag: str = "SELECT version()"
    able_version: str = "SELECT crdb_internal.node_executable_version()"
    """The newest version of data and protocol that the asked node's build knows."""
    active_version: str = "SELECT version FROM [SHOW CLUSTER SETTING version]"
    """The version in force, as the asked node knows it."""
    licence: str = (
        "SELECT \"enterprise.license\" <> '' AS given, NULL::FLOAT8 AS left_s "
        "FROM [SHOW CLUSTER SETTING enterprise.license]"
    )
    """Whether the cluster has a licence key, and for how many seconds that is valid; the key itself stays there."""
    free_version: str = "RESET CLUSTER SETTING cluster.preserve_downgrade_option"
    """Lets the cluster make the newest version that all nodes know final, which it does by itself."""
    kept_version: str = "SHOW CLUSTER SETTING cluster.preserve_downgrade_option"
    """Which version is kept back, so that there is a way back to it; empty for none."""
    arguments: str = (
        "SELECT args::STRING AS args FROM crdb_internal.kv_node_status WHERE node_id = crdb_internal.node_id()"
    )
    """The command line of the node that is asked, as JSON; written when it starts."""
    settings_set: str = "SELECT name, value FROM system.settings ORDER BY name"
    """The cluster settings that somebody set, the server itself among them; all others have their default."""
    behaviour_settings: tuple[str, ...] = ("kv.allocator.load_based_rebalancing",)
    """Settings that say how a server of this version works, whoever set them: their values are part of the evidence."""

    changed_form: str = (
        'SELECT "eventType" AS what, 1 AS times FROM system.eventlog '
        "WHERE timestamp > now()::TIMESTAMP - INTERVAL '{seconds} s' AND \"eventType\" IN "
        "('set_cluster_setting', 'reset_cluster_setting', 'set_zone_config', 'remove_zone_config') "
        "AND COALESCE(info::JSONB->>'User', '') <> 'node'"
    )
    """Settings and zones that were changed in the last seconds; what the server changes by itself it does as the user
    ``node``."""
    moved_form: str = (
        "SELECT key AS what, count AS times, application_name AS application "
        "FROM crdb_internal.node_statement_statistics"
    )
    """The statements that were executed. The log of ranges cannot tell who moved a replica: "admin request" stands
    there for what somebody asked for, for what the servers do to balance load (``StoreRebalancer``, since 2.1), and for
    ranges brought together before they are merged."""
    statements_of_one_node: bool = True
    """Whether a node tells only of the statements that it executed itself, since it was started."""

    drain_flags: tuple[str, ...] = ()
    """Flags that make ``node drain`` drain the node it connects to."""
    decommission_unchecked: tuple[str, ...] = ()
    """Flags by which ``node decommission`` goes ahead without asking first whether it can succeed."""

    diagnostics_off: str = "SET CLUSTER SETTING diagnostics.reporting.enabled = false"

    backup_form: str = "BACKUP DATABASE {database} TO '{place}'"
    restore_form: str = "RESTORE {database}.* FROM '{place}' WITH into_db = '{into}'"
    workload_shared: tuple[str, ...] = ("--pprofport=-1",)
    """Flags of ``workload init`` and ``workload run`` that keep them from opening ports on all interfaces: no port has
    such a number."""

    workload_run: tuple[str, ...] = ()
    """Flags of ``workload run`` by which the file of histograms grows while it runs."""

    underreplicated: str = "ranges_underreplicated"
    """Metrics of ``/_status/vars``; each node counts the ranges it leads, so sum over nodes. Refreshed about every 10
    s."""
    unavailable: str = "ranges_unavailable"
    tripped: str | None = None
    """The metric of replicas that refuse what asks for them; ``unavailable`` stays 0 on a node that lost the quorum
    with others."""

    @property
    def behaviour(self) -> str:
        """Rows ``name, value`` of ``behaviour_settings``, without those that this build does not know."""
        names = ", ".join(f"'{name}'" for name in self.behaviour_settings)
        return (
            "SELECT variable AS name, value FROM [SHOW ALL CLUSTER SETTINGS] "  # noqa: S608 - constants
            f"WHERE variable IN ({names}) ORDER BY name"
        )

    def table_ranges(self, table: str) -> str:
        """Rows ``range_id, start_key, lease_holder, replicas`` of a table; see ``introspection.parse_ranges``.

        Ids are integers, replicas text (``1,2,3``), an unknown lease holder is 0. Up to 22.2 the ranges of the primary
        index, later those of all indexes. It waits for lost ranges.
        """
        return self.table_ranges_form.format(table=table)

    def relocate_lease(self, table: str, store: int, value: object) -> str:
        """Move the lease of the range that holds primary key ``value`` to a *store* (see ``stores``)."""
        return f"ALTER TABLE {table} EXPERIMENTAL_RELOCATE LEASE VALUES ({store}, {value})"

    def by_hand(self, seconds: float) -> str:
        """Rows ``what, times``: what somebody did in the last ``seconds`` to where replicas lie.

        Settings and zones that were changed; statements that moved replicas (moving a lease moves none).
        """
        seconds = max(1, round(seconds))
        changed = self.changed_form.format(seconds=seconds)
        moved = self.moved_form.format(seconds=seconds)
        return (
            f"SELECT what, sum(times)::INT8 AS times FROM ({changed} "  # noqa: S608 - constants
            f"UNION ALL SELECT what, times FROM ({moved}) "
            "WHERE what ~ '^ALTER .*(RELOCATE|SCATTER)' AND what !~ 'RELOCATE LEASE' "
            "AND application NOT LIKE '$ internal%') GROUP BY what ORDER BY what"
        )

    def moves(self, seconds: float) -> str:
        """Rows ``why, times``: replicas added and removed in the last ``seconds``, by the reason in the log of ranges.

        One that was moved counts twice. "admin request" is also what servers do to balance load and before they merge
        ranges.
        """
        return (
            "SELECT COALESCE(info::JSONB->>'Reason', 'no reason') AS why, count(*)::INT8 AS times "  # noqa: S608 - constants
            f"FROM system.rangelog WHERE timestamp > now()::TIMESTAMP - INTERVAL '{max(1, round(seconds))} s' "
            "AND \"eventType\" NOT IN ('split', 'merge') GROUP BY why ORDER BY times DESC, why"
        )

    def keep_version(self, active: str) -> str:
        """Keep the cluster at the version in force, so that nodes may go back to it."""
        return f"SET CLUSTER SETTING cluster.preserve_downgrade_option = '{active}'"

    def split(self, table: str, values: tuple[object, ...]) -> str:
        """Split a table for good at values of its first key column."""
        return f"ALTER TABLE {table} SPLIT AT VALUES {', '.join(f'({value})' for value in values)}"

    def backup(self, database: str, place: str) -> str:
        """Back up a database (its name as the server knows it) to a place, the URL of a directory without a backup."""
        return self.backup_form.format(database=quoted(database), place=place)

    def restore(self, database: str, place: str, into: str) -> str:
        """Restore the tables of ``database`` from its backup at ``place`` into another database, which must exist."""
        return self.restore_form.format(database=quoted(database), place=place, into=into.replace("'", "''"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """One thing that became different with major version ``since``."""

    since: Series
    what: str
    source: str
    apply: Callable[[Dialect], Dialect]
    note: str = ""


def _tells(*settings: str) -> Callable[[Dialect], Dialect]:
    """The values of these settings say how servers work from this version on."""
    return lambda d: replace(d, behaviour_settings=(*d.behaviour_settings, *settings))


def _traits(**values: str) -> Callable[[Dialect], Dialect]:
    """Workloads write their SQL in another way from this version on."""
    return lambda d: replace(d, traits={**d.traits, **values})


_DOCS = "https://www.cockroachlabs.com/docs"
_PULL = "https://github.com/cockroachdb/cockroach/pull"
_SETTINGS_25_2 = "https://github.com/cockroachdb/docs: releases/v25.2/cluster-setting-changes"

CHANGES: tuple[Change, ...] = (
    Change(
        since=(21, 2),
        what="statistics of statements are kept for the whole cluster, with the time of the last execution",
        source=f"{_DOCS}/v22.1/crdb-internal",
        apply=lambda d: replace(
            d,
            statements_of_one_node=False,
            moved_form="SELECT metadata->>'query' AS what, (statistics->'statistics'->>'cnt')::INT8 AS times, "
            "app_name AS application FROM crdb_internal.statement_statistics "
            "WHERE (statistics->'statistics'->>'lastExecAt')::TIMESTAMPTZ > now() - INTERVAL '{seconds} s'",
        ),
    ),
    Change(
        since=(21, 2),
        what="`workload` has a port for metrics, too",
        source=f"{_PULL}/66224",
        apply=lambda d: replace(d, workload_shared=(*d.workload_shared, "--prometheus-port=-1")),
    ),
    Change(
        since=(21, 2),
        what="the vectorised engine joins rightly: in test releases of 21.1 a merge join could lose rows",
        source=f"{_PULL}/62876",
        apply=_traits(bulk_joins="vectorize = on", other_joins="vectorize = off"),
    ),
    Change(
        since=(22, 1),
        what="backups go INTO a collection and are restored FROM one IN it (the old form is removed in 24.3)",
        source=f"{_DOCS}/v22.1/backup; {_DOCS}/v24.3/restore; {_PULL}/78165; {_PULL}/133610",
        apply=lambda d: replace(
            d,
            backup_form="BACKUP DATABASE {database} INTO '{place}'",
            restore_form="RESTORE {database}.* FROM LATEST IN '{place}' WITH into_db = '{into}'",
        ),
    ),
    Change(
        since=(22, 1),
        what="what ranges are to be like, by their zones, is kept by their keys in a table",
        source="https://github.com/cockroachdb/cockroach/issues/79039",
        apply=lambda d: replace(
            d,
            wanted="SELECT range_id, spans.replicas FROM crdb_internal.ranges_no_leases AS ranges "
            "JOIN (SELECT start_key, end_key, "
            "(crdb_internal.pb_to_json('cockroach.roachpb.SpanConfig', config)->>'numReplicas')::INT8 AS replicas "
            "FROM system.span_configurations) AS spans "
            "ON ranges.start_key >= spans.start_key AND ranges.start_key < spans.end_key WHERE spans.replicas > 3",
        ),
    ),
    Change(
        since=(22, 1),
        what="a range that cannot replicate for a minute refuses what asks for it",
        source=f"{_DOCS}/v22.1/architecture/replication-layer (per-replica circuit breakers)",
        apply=lambda d: replace(d, tripped="kv_replica_circuit_breaker_num_tripped_replicas"),
        note="Without a quorum reads and writes block until kv.replica_circuit_breaker.slow_replication_threshold "
        '(a minute) is over, and are then refused (XXUUU "replica unavailable") or ambiguous (40003); new connections, '
        "and statements on a table that the node has not used of late, wait on.",
    ),
    Change(
        since=(22, 1),
        what="admission control is on by default: work waits when a node is short of CPU or its store is behind",
        source=f"{_DOCS}/v22.1/admission-control; {_DOCS}/v21.2/architecture/admission-control (off by default)",
        apply=_tells("admission.kv.enabled"),
    ),
    Change(
        since=(22, 1),
        what="`node drain` takes a node id or --self",
        source=f"{_PULL}/73991; {_DOCS}/v22.1/cockroach-node",
        apply=lambda d: replace(d, drain_flags=("--self",)),
    ),
    Change(
        since=(22, 2),
        what="COPY is all or nothing, unless it is told not to be",
        source=f"{_DOCS}/v23.1/session-variables (copy_from_atomic_enabled)",
        apply=_traits(bulk_copy="copy_from_atomic_enabled = off"),
    ),
    Change(
        since=(22, 2),
        what="schema changes go through the declarative schema changer, more kinds of them with each version",
        source=f"{_DOCS}/v22.2/online-schema-changes; {_DOCS}/advisories/a99796",
        apply=_tells("sql.defaults.use_declarative_schema_changer"),
    ),
    Change(
        since=(23, 1),
        what="SHOW RANGES names the lease only WITH DETAILS, and its new output must be switched on",
        source=f"{_PULL}/93644; {_PULL}/98979; {_DOCS}/v23.1/show-ranges",
        apply=lambda d: replace(
            d,
            table_ranges_form=d.table_ranges_form.replace("{table}]", "{table} WITH DETAILS]"),
            setup=("SET CLUSTER SETTING sql.show_ranges_deprecated_behavior.enabled = false",),
        ),
    ),
    Change(
        since=(23, 1),
        what="load is balanced by CPU, not by queries a second",
        source=f"{_DOCS}/v23.1/cluster-settings",
        apply=_tells("kv.allocator.load_based_rebalancing.objective"),
    ),
    Change(
        since=(23, 1),
        what="`node decommission` checks first whether it can succeed (--checks, --dry-run)",
        source=f"{_DOCS}/releases/v23.1 (v23.1.0-alpha.6)",
        apply=lambda d: replace(d, decommission_unchecked=("--checks=skip",)),
    ),
    Change(
        since=(23, 2),
        what="the new SHOW RANGES is the default; tables may share ranges",
        source=f"{_PULL}/102961; {_DOCS}/releases/v23.2 (v23.2.0-alpha.1)",
        apply=lambda d: replace(
            d,
            setup=(),
            all_ranges="SELECT range_id, array_to_string(replicas, ',') AS replicas FROM [SHOW CLUSTER RANGES]",
            behaviour_settings=(
                *d.behaviour_settings,
                "spanconfig.range_coalescing.system.enabled",
                "spanconfig.range_coalescing.application.enabled",
            ),
        ),
    ),
    Change(
        since=(24, 3),
        what="licence terms: throttled without a key, and a major upgrade needs one",
        source=f"{_DOCS}/stable/licensing-faqs; {_DOCS}/v24.3/essential-metrics-self-hosted",
        apply=lambda d: replace(
            d,
            licence="SELECT \"enterprise.license\" <> '' AS given, "
            "(SELECT max(value) FROM crdb_internal.node_metrics "
            "WHERE name = 'seconds_until_enterprise_license_expiry')::FLOAT8 AS left_s "
            "FROM [SHOW CLUSTER SETTING enterprise.license]",
        ),
        note="Seven days after its start a cluster of more than one node without a licence key is throttled to five "
        "open transactions; a major upgrade needs a key; with trial and free keys diagnostics reporting cannot be "
        "turned off.",
    ),
    Change(
        since=(25, 2),
        what="leader leases: a range's lease belongs to its Raft leader while most of its stores support that one",
        source=f"{_SETTINGS_25_2} (leader_fortification.fraction_enabled is 1)",
        apply=_tells("kv.raft.leader_fortification.fraction_enabled"),
    ),
    Change(
        since=(25, 2),
        what="a transaction's writes may be kept at its gateway until it commits",
        source=f"{_SETTINGS_25_2} (settings added); {_PULL}/162031 (26.1: a preview, off by default)",
        apply=_tells("kv.transaction.write_buffering.enabled"),
        note="Buffered writes (kv.transaction.write_buffering.enabled) are off in releases and on in development "
        "builds of 26.1: compare versions only where they agree on it.",
    ),
    Change(
        since=(25, 3),
        what="`workload run` has its histograms in a temporary file until it ends, unless it is told not to",
        source=f"{_PULL}/143490; {_PULL}/146068",
        apply=lambda d: replace(d, workload_run=("--disable-temp-hist-file",)),
    ),
    Change(
        since=(26, 1),
        what="crdb_internal and system are closed unless a session opens them; SHOW statements are not affected",
        source=f"{_DOCS}/v26.1/crdb-internal; {_PULL}/152084",
        apply=lambda d: replace(
            d,
            session={"allow_unsafe_internals": "on"},
            settings_set="SELECT variable AS name, value FROM [SHOW ALL CLUSTER SETTINGS] "
            "WHERE origin <> 'default' ORDER BY name",
        ),
    ),
)
"""In the order of versions. A change that a pre-release of its version may lack counts for the whole major version."""


def dialect_for(version: Version) -> Dialect:
    """How the server of this version is spoken to.

    A version newer than the table gets the newest entry and a note. Raises ``BadInput`` for one older than 20.2.
    """
    series = version.series
    if series < OLDEST:
        raise BadInput(
            f"CockroachDB {version} is too old: versions from v{OLDEST[0]}.{OLDEST[1]} on can be tested. "
            "Choose a newer one with --cockroach-version or --cockroach."
        )
    dialect = Dialect()
    notes = []
    if series > NEWEST:
        notes.append(
            f"{version} is newer than anything this suite knows: it is spoken to like v{NEWEST[0]}.{NEWEST[1]}."
        )
    for change in CHANGES:
        if change.since <= series:
            dialect = change.apply(dialect)
            notes += filter(None, [change.note])
    return replace(dialect, notes=tuple(notes))
