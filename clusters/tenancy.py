"""How an engine keeps many databases apart, each with a role of its own: a trait of the engine, as SQL.

Statements are texts with ``{database}``, ``{role}``, ``{password}`` and ``{template}`` in them, or ``{databases}``,
``{schemas}`` (of each database the public one) and ``{roles}`` where one statement is about several; names are put in
as they stand in a statement, quoted. Which of them a server of some version knows is asked of the server
(``fixtures.workloads.tenants.site``), so that nothing here goes by version.
"""

from dataclasses import dataclass

APPLICATION = "roachproof tenants"
"""What sessions that make databases call themselves: those of a client that is gone are told from others by that."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """A setting of the whole cluster that is changed for the time in which databases are made or dropped.

    ``name`` and the ``value`` that it gets; ``why``, with the source. A server that does not know it is left alone.
    """

    name: str
    value: str
    why: str
    read: str = ""
    """A query for its value, and the statement that gives it one (``{value}``), where it is no cluster setting."""
    write: str = ""
    lasting: bool = False
    """Whether it stays while tenants are at work, and not only while they are made."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tenancy:
    """What there is to know of an engine for making, counting and dropping databases with a role each."""

    database_bytes: int = 0
    """The longest name of a database in bytes of UTF-8; 0 where there is no limit."""
    role_bytes: int = 63
    role_pattern: str = ""
    """What the name of a role must match as a whole; empty where any name will do."""
    role_rule: str = ""
    """The same in words."""

    session: tuple[str, ...] = ()
    """Statements that prepare a session for making databases; one that the server does not know is left out."""
    sessions: str = ""
    """A query for how many sessions there are that were prepared so, but for the one that asks.

    A server may still be at work for a client that is gone."""
    end_sessions: str = ""
    """Ends them."""
    jobs: str = ""
    """A query for how many jobs are at work on backups of what tenants are made from; empty where servers have no jobs.

    One outlives the client that asked for it, and nobody can drop what it makes. ``{source}``: how the names of
    databases begin that tenants are made from."""
    cancel_jobs: str = ""
    """Cancels those that can be."""
    in_transactions: bool = False
    """Whether databases, with all that is in them, can be made and dropped in transactions, several in each."""
    enter: str = ""
    """Brings a session to a database, where that takes no new connection."""
    hashed_passwords: str = ""
    """A query whose value is true where the server takes a password as the hash that it would keep (SCRAM-SHA-256);
    empty where every version does. A server that does not know the question takes passwords as they are."""
    create_role: str = "CREATE ROLE {role} LOGIN"
    give_password: str = " PASSWORD '{password}'"  # noqa: S105 - a form
    create_database: tuple[str, ...] = ("CREATE DATABASE {database} OWNER {role}",)
    own_database: str = "ALTER DATABASE {database} OWNER TO {role}"
    clone_database: str = ""
    """Makes a database as a copy of another, to which nobody is connected; empty where there is no such statement."""
    close_template: tuple[str, ...] = ()
    """Keeps everybody out of a database that is to be copied, and takes it from the role that owns what is in it: what
    a copy's role is given is all that this one owns, and databases are among it."""
    source: str = ""
    """Where documentation recommends what ``isolate``, ``isolate_inside`` and ``close_cluster`` do: how every tenant is
    set up."""
    isolate: tuple[str, ...] = ()
    """So that nobody but the role comes near its database; run anywhere, for several databases in one statement where
    it has ``{databases}`` or ``{schemas}``.

    What a version does not know it does not need: what it would take back was not granted there.
    """
    isolate_inside: tuple[str, ...] = ()
    """The same, run inside of the database: before anything is made there, or once it is a copy of another."""
    close_cluster: tuple[str, ...] = ()
    """So that tenants do not meet in the databases that every cluster has; run once. It may be run again.

    In these, in ``still_open`` and in ``reopen_cluster``, ``{home}`` is the database of Roachproof's own."""
    still_open: str = ""
    """A query for what of that PUBLIC has all the same, in words: a server may only warn of what it does not revoke.
    Empty where it refuses that. ``{home_text}``: ``{home}`` as a text."""
    reopen_cluster: tuple[str, ...] = ()
    """Takes that back."""
    grant: tuple[str, ...] = ()
    """What an owner needs where the server does not let it make tables in its database by itself; run anywhere."""
    ways: tuple[str, ...] = ()
    """By which ways databases may be made (``fixtures.workloads.tenants.ways``), the one that suits most first."""
    become: str = "SET ROLE {role}"
    """From here on what is made is the role's, where the server has that."""
    become_oneself: str = "RESET ROLE"
    reassign: str = "REASSIGN OWNED BY {former} TO {role}"
    """Gives the role all that ``{former}`` owns in the database; empty where it looks at all other databases, too."""
    own: str = "ALTER {kind} {name} OWNER TO {role}"
    """Gives the role one thing: how it is done where neither of the above will do."""

    databases: str = "SELECT datname::VARCHAR FROM pg_catalog.pg_database"
    roles: str = "SELECT rolname::VARCHAR FROM pg_catalog.pg_roles"
    tables: str = ""
    """Rows ``database, tables`` of all databases at once; empty where each has to be asked (``tables_inside``)."""
    tables_inside: str = (
        "SELECT count(*) FROM information_schema.tables WHERE table_type = 'BASE TABLE' "
        "AND table_schema NOT IN ('information_schema', 'pg_catalog', 'pg_extension', 'crdb_internal')"
    )
    space: tuple[str, ...] = ()
    """Queries for one row ``ranges, mib, data_mib`` of the whole cluster; the first that the server knows is asked.

    ``ranges`` are those of users' tables, dropped ones among them: the server splits and merges its own meanwhile.
    ``mib``: on disk. ``data_mib``: keys and values in those ranges, of one replica each; ``NULL`` where there are no
    ranges, and files go with the statement.
    """
    uncleared: str = ""
    """A query for how many tables are dropped and still have their rows; empty where files go with the statement."""

    drop_database: str = "DROP DATABASE IF EXISTS {database}"
    drop_roles: str = "DROP ROLE IF EXISTS {roles}"
    """Several at once: an engine may look through all of its objects for each of these statements."""
    settings: tuple[Setting, ...] = ()
    """Changed while databases are made and dropped, where that is permitted."""
    dropping: tuple[Setting, ...] = ()
    """Changed while databases are dropped, so that what they took is given back soon."""
    read_settings: str = ""
    """Rows of all settings: ``variable``, ``value`` and, on newer servers, ``origin``."""
    set_setting: str = ""
    reset_setting: str = ""

    message_bytes: int = 0
    """The longest message that servers take; 0: longer than any file of a user's may be."""
    tables_a_batch: int = 100
    """About so many tables are made between two marks in the roll (chosen by measurement)."""
    drops_a_batch: int = 20
    """So many databases are dropped between two marks in the roll (chosen by measurement)."""
    lanes: int = 1
    """How many connections make databases beside each other (chosen by measurement)."""
    memory_kib_a_table: float = 0.0
    """What all servers together need about for a table more, by measurement; 0 where it is not known."""
    disk_mib_a_database: float = 0.0
    """What an empty database takes."""
    disk_kib_a_table: float = 0.0
    """What an empty table with its indexes takes."""
    copies: int = 0
    """How many nodes have a copy of everything; 0: all."""
    ms_a_database: float = 0.0
    """How long it takes to make a database with its role, by the fastest way."""
    ms_a_question: tuple[float, float] = (300.0, 300.0)
    """How long one of tools' questions takes on average: with a few hundred tables, and with ``tables_timed``."""
    ms_a_table: tuple[float, float] = (0.0, 0.0)
    """The same of a table in it: of the first one, and of the last of ``tables_timed``."""
    tables_timed: int = 0
    """Among how many tables that was measured: what one more costs among more of them it does not tell."""

    def last_ms(self, tables: int) -> float:
        """What the last of so many takes: in a line from the first to the last that was timed, beyond it no more."""
        return self._in_line(self.ms_a_table, tables)

    def question_ms(self, tables: int) -> float:
        """What one of tools' questions takes on average with so many, likewise."""
        return self._in_line(self.ms_a_question, tables)

    def _in_line(self, ends: tuple[float, float], tables: int) -> float:
        first, last = ends
        return first + (last - first) * min(tables, self.tables_timed) / max(1, self.tables_timed)

    def tables_s(self, tables: int) -> float:
        """Seconds to make so many."""
        timed, last = min(tables, self.tables_timed), self.last_ms(tables)
        return (timed * (self.ms_a_table[0] + last) / 2 + (tables - timed) * last) / 1000
