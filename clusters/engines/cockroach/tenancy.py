"""How CockroachDB keeps many databases apart. What a version does not know of it is left out, by the server's word."""

from clusters.tenancy import APPLICATION, Setting, Tenancy

_ARTICLE = "22k-databases article, Cluster Settings"
_ON_23_1 = f"{_ARTICLE}; its name on 23.1 (release notes of v23.2: SHOW RANGES)"
_SUCCESSOR = f"{_ARTICLE}; its name on newer versions"

USERS = (
    "SELECT count(*)::INT8 AS ranges, {mib} AS mib, "
    "COALESCE(sum(GREATEST({data}, 0)), 0)::FLOAT8 / 1048576 AS data_mib FROM ("
    "SELECT {size} AS size FROM (SELECT *, substring({key}, '^/Table/([0-9]+)')::INT8 AS id FROM {ranges}) AS begun "
    "WHERE id >= 50 AND NOT EXISTS (SELECT 1 FROM ({system}) AS own WHERE own.id = begun.id)) AS users"
)
"""The ranges that begin in a user's table, one that was dropped included: its number is no table's of the server's.

Up to 49 all are the server's, and more of them with each version; what an upgrade adds is numbered among users' own.
What a range has is the server's estimate, which fell below 0 as dropped tables were cleared away (v26.1).
"""

_DATA = (
    "(size->>'key_bytes')::INT8 + (size->>'val_bytes')::INT8 + COALESCE((size->>'range_key_bytes')::INT8, 0) "
    "+ COALESCE((size->>'range_val_bytes')::INT8, 0)"
)
"""All versions of a range's keys and values: what was deleted counts until it is cleared away."""

_SESSIONS = (
    f"FROM [SHOW CLUSTER SESSIONS] WHERE application_name = '{APPLICATION}' "  # noqa: S608
    "AND session_id <> (SELECT session_id FROM [SHOW session_id])"
)

_JOBS = "FROM [SHOW JOBS] WHERE job_type IN ('BACKUP', 'RESTORE') AND strpos(description, '{source}') > 0 AND status"
"""Those of backups: a database that is being restored cannot be dropped (55000), and where it can be, the job goes on
(https://github.com/cockroachdb/cockroach/issues/84137)."""

TENANCY = Tenancy(
    role_bytes=63,
    role_pattern=r"[a-z0-9_][a-z0-9_.\-]*",
    role_rule="small letters, digits, and _ . - (the server makes small letters of others)",
    session=(
        f"SET application_name = '{APPLICATION}'",
        # Since 25.1 DDL ends the transaction in which it stands, by default from 25.2.
        "SET autocommit_before_ddl = off",
        "SET allow_unsafe_internals = on",  # for what the whole cluster takes; there since 25.4
        # A table that is locked against changes of its schema is unlocked and locked again for each index and key.
        "SET create_table_with_schema_locked = off",
    ),
    # What a session's last statement makes, a statement that drops it does not see.
    sessions=f"SELECT count(*) {_SESSIONS}",
    end_sessions=f"CANCEL SESSIONS IF EXISTS (SELECT session_id {_SESSIONS})",
    jobs=f"SELECT count(*) {_JOBS} NOT IN ('succeeded', 'failed', 'canceled', 'revert-failed')",
    cancel_jobs=f"CANCEL JOBS (SELECT job_id {_JOBS} IN ('pending', 'running', 'retry-running', 'paused'))",
    ways=("batched", "restored", "loaded"),
    in_transactions=True,
    enter="SET database = {database}",
    hashed_passwords="SHOW CLUSTER SETTING server.user_login.store_client_pre_hashed_passwords.enabled",
    create_database=("CREATE DATABASE {database}", "ALTER DATABASE {database} OWNER TO {role}"),
    source="CockroachDB documentation: Authorization (public role); GRANT, REVOKE, ALTER DEFAULT PRIVILEGES",
    # The owner of a database may do everything in it, but the schema public is not the owner's.
    isolate=(
        "REVOKE ALL ON DATABASE {databases} FROM public",
        "REVOKE ALL ON SCHEMA {schemas} FROM public",
        "GRANT ALL ON SCHEMA {schemas} TO {role}",
    ),
    isolate_inside=(
        "ALTER DEFAULT PRIVILEGES FOR ROLE {role} REVOKE EXECUTE ON FUNCTIONS FROM public",
        "ALTER DEFAULT PRIVILEGES FOR ROLE {role} REVOKE USAGE ON TYPES FROM public",
    ),
    close_cluster=(
        "REVOKE CONNECT ON DATABASE defaultdb, postgres FROM public",
        "REVOKE CREATE ON DATABASE defaultdb, postgres FROM public",
        "REVOKE CREATE ON SCHEMA defaultdb.public, postgres.public FROM public",
    ),
    # What a new cluster grants: the schemas' CREATE, and nothing that makes schemas.
    reopen_cluster=(
        "GRANT CONNECT ON DATABASE defaultdb, postgres TO public",
        "GRANT CREATE ON SCHEMA defaultdb.public, postgres.public TO public",
    ),
    # An owner that was given none of a database's privileges may make no tables in it on 21.1.
    grant=("GRANT ALL ON DATABASE {database} TO {role}",),
    reassign="",  # it reads all objects of all databases
    tables='SELECT table_catalog::VARCHAR AS database, count(*)::INT8 AS tables FROM "".information_schema.tables '
    "WHERE table_type = 'BASE TABLE' GROUP BY table_catalog",
    space=(
        USERS.format(
            mib="(SELECT sum(used) FROM crdb_internal.kv_store_status)::FLOAT8 / 1048576",
            size="crdb_internal.range_stats(start_key)",
            data=_DATA,
            key="start_pretty",
            ranges="crdb_internal.ranges_no_leases",
            system='SELECT id FROM system.namespace WHERE "parentID" = 1',
        ),
        USERS.format(
            mib="0::FLOAT8",
            size="range_size",
            data="size",
            key="start_key",
            ranges="[SHOW CLUSTER RANGES WITH DETAILS]",
            system="SELECT oid::INT8 AS id FROM system.pg_catalog.pg_class WHERE relkind <> 'i'",
        ),
    ),
    uncleared='SELECT count(*)::INT8 FROM "".crdb_internal.tables WHERE drop_time IS NOT NULL',
    drop_database="DROP DATABASE IF EXISTS {database} CASCADE",
    settings=(
        Setting(name="spanconfig.host_coalesce_adjacent.enabled", value="true", why=_ARTICLE, lasting=True),
        Setting(name="spanconfig.storage_coalesce_adjacent.enabled", value="true", why=_ON_23_1, lasting=True),
        Setting(name="spanconfig.tenant_coalesce_adjacent.enabled", value="true", why=_ON_23_1, lasting=True),
        Setting(name="spanconfig.range_coalescing.system.enabled", value="true", why=_SUCCESSOR, lasting=True),
        Setting(name="spanconfig.range_coalescing.application.enabled", value="true", why=_SUCCESSOR, lasting=True),
        Setting(name="kv.range_merge.queue_interval", value="50ms", why=_ARTICLE),
        Setting(name="jobs.registry.interval.gc", value="30s", why=_ARTICLE),
        Setting(name="jobs.registry.interval.cancel", value="180s", why=_ARTICLE),
        Setting(name="jobs.retention_time", value="15s", why=_ARTICLE),
        Setting(
            name="sql.schema.approx_max_object_count",
            value="0",
            why="newer servers refuse more than 20000 objects (53400) unless it is 0 or more than there are",
        ),
        Setting(
            name="sql.stats.automatic_collection.enabled",
            value="false",
            why="each new table would be read for statistics while others are made",
        ),
    ),
    dropping=(
        Setting(
            name="gc.ttlseconds of the range default",
            value="30",
            why="what was dropped is kept so long before its space and its ranges are given back",
            read="SELECT substring(raw_config_sql, 'gc.ttlseconds = ([0-9]+)') "
            "FROM [SHOW ZONE CONFIGURATION FOR RANGE default]",
            write="ALTER RANGE default CONFIGURE ZONE USING gc.ttlseconds = {value}",
        ),
        Setting(
            name="sql.gc_job.wait_for_gc.interval",
            value="5s",
            why="how often the job that clears dropped tables away looks whether it is done; five minutes by default",
        ),
        Setting(
            name="kv.range_split.by_load_merge_delay",
            value="10s",
            why="how long a range's load is measured before it is merged away; five minutes by default, which v26.1 "
            "waits of every range",
        ),
    ),
    read_settings="SELECT * FROM [SHOW ALL CLUSTER SETTINGS]",
    set_setting="SET CLUSTER SETTING {name} = '{value}'",
    reset_setting="RESET CLUSTER SETTING {name}",
    message_bytes=16 << 20,  # sql.conn.max_read_buffer_message_size, by default
    tables_a_batch=200,
    lanes=1,
    # Measured on v21.1 to 2550 tables, three nodes together; the article's nine of 32 GB had at most 1 MiB for each.
    memory_kib_a_table=180.0,
    disk_mib_a_database=0.1,
    disk_kib_a_table=8.0,
    copies=3,
    # On v21.1, half of it to hash the role's password (docs/tenancy.md).
    ms_a_database=150.0,
    # The growth curve of v21.1, three nodes on two cores (docs/tenancy.md).
    ms_a_table=(29.0, 52.0),
    ms_a_question=(280.0, 2640.0),
    tables_timed=32_700,
)
