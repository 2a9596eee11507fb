"""How PostgreSQL keeps many databases apart."""

from clusters.engines.postgres.configuration import REWINDER
from clusters.tenancy import APPLICATION, Tenancy

_SESSIONS = f"FROM pg_stat_activity WHERE application_name = '{APPLICATION}' AND pid <> pg_backend_pid()"

TENANCY = Tenancy(
    database_bytes=63,  # NAMEDATALEN - 1; a longer name is cut off without an error
    role_bytes=63,
    role_pattern=r"(?!pg_).+",
    role_rule="a name that does not begin with pg_, which is the server's own",
    session=(
        f"SET application_name = '{APPLICATION}'",
        # A user that may make roles is no member of those that it makes (since 16), and could give them nothing.
        "SET createrole_self_grant = 'set, inherit'",
    ),
    # What a database that is being made will be called, a statement that drops it does not see.
    sessions=f"SELECT count(*) {_SESSIONS}",
    end_sessions=f"SELECT pg_terminate_backend(pid, 60000) {_SESSIONS}",
    # Measured on 18.4: a copy takes half as long as the statements for 9 tables, a sixth for 150. With four sessions
    # beside each other a database takes a third of the time that it takes with one (they wait for the disk).
    ways=("cloned", "one by one", "loaded"),
    clone_database="CREATE DATABASE {database} OWNER {role} TEMPLATE {template}",
    close_template=(
        "ALTER DATABASE {database} OWNER TO CURRENT_USER",
        "ALTER DATABASE {database} ALLOW_CONNECTIONS false",
    ),
    source="PostgreSQL documentation: 5.8 Privileges (what PUBLIC has by default), 5.10.6 Usage Patterns of schemas, "
    "CREATE FUNCTION (Writing SECURITY DEFINER Functions Safely)",
    # The owner of a database may do everything in it, and is the owner of its schema public.
    isolate=("REVOKE ALL ON DATABASE {databases} FROM PUBLIC",),
    isolate_inside=(
        "REVOKE ALL ON SCHEMA public FROM PUBLIC",
        "ALTER DEFAULT PRIVILEGES FOR ROLE {role} REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC",
        "ALTER DEFAULT PRIVILEGES FOR ROLE {role} REVOKE USAGE ON TYPES FROM PUBLIC",
        "REVOKE ALL ON ALL ROUTINES IN SCHEMA public FROM PUBLIC",  # of a database that was copied
    ),
    close_cluster=(
        # A former primary is brought in line over that database, by this user where Patroni made it.
        f"DO $$ BEGIN IF EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = '{REWINDER}') "
        f"THEN GRANT CONNECT ON DATABASE postgres TO {REWINDER}; END IF; END $$",
        "REVOKE ALL ON DATABASE postgres FROM PUBLIC",
        "REVOKE ALL ON DATABASE template1 FROM PUBLIC",
        "REVOKE ALL ON DATABASE {home} FROM PUBLIC",
    ),
    still_open="SELECT datname || ': PUBLIC still has ' || privilege FROM pg_catalog.pg_database, "
    "unnest(ARRAY['CONNECT', 'CREATE', 'TEMPORARY']) AS privilege "
    "WHERE datname IN ('postgres', 'template1', {home_text}) AND has_database_privilege('public', oid, privilege) "
    "ORDER BY 1",
    reopen_cluster=(
        "GRANT CONNECT, TEMPORARY ON DATABASE postgres TO PUBLIC",
        "GRANT CONNECT ON DATABASE template1 TO PUBLIC",
        "GRANT CONNECT, TEMPORARY ON DATABASE {home} TO PUBLIC",
    ),
    space=(
        "SELECT 0 AS ranges, (sum(pg_database_size(oid)) / 1048576)::FLOAT8 AS mib, NULL::FLOAT8 AS data_mib "
        "FROM pg_database",
    ),
    drop_database="DROP DATABASE IF EXISTS {database} WITH (FORCE)",
    tables_a_batch=100,
    lanes=4,
    disk_mib_a_database=7.1,  # measured on 18.4: 7.1 MiB with no table, 7.3 with 9, 12.7 with 150
    disk_kib_a_table=40.0,
    memory_kib_a_table=40.0,  # measured on 18.4 to 30 000 tables, three nodes together
    ms_a_database=60.0,
    # The growth curve of 18.4, three nodes on two cores, which fell, and not in a line (docs/tenancy.md): the last is
    # what its last ones took, the first makes all of them take what they took together.
    ms_a_table=(2.9, 1.8),
    tables_timed=156_450,
)
