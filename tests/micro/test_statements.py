"""Micro benchmarks: single statements as an application sends them, one client, one connection, prepared.

Each is timed once a version and turn, and asserts what it read or wrote. They decide nothing: see the table's last
line.
"""

from functools import partial
from random import Random

from fixtures.micro import A_CODE, ACCOUNTS, Micro
from plugin.micro.benchmarks import ROWS

FILLER = "x" * 100
MANY = 10
"""Rows of a multi-row write."""
SUM = ACCOUNTS * 1_000_000


def test_point_read(micro: Micro) -> None:
    """A row by its primary key."""
    read = partial(micro.connection.query, "SELECT amount, filler FROM items WHERE id = $1")

    async def point_read() -> None:
        id_ = micro.random.randrange(ROWS)
        (row,) = await read(id_)
        assert row["amount"] == 7 * id_
        assert row["filler"] == FILLER

    micro.measure("point read", point_read)


def test_index_lookup(micro: Micro) -> None:
    """The rows of a code, found by a secondary index, and columns that only the primary one has."""
    read = partial(micro.connection.query, "SELECT id, amount FROM items WHERE code = $1")

    async def index_lookup() -> None:
        code = micro.random.randrange(ROWS // A_CODE)
        found = await read(code)
        assert sorted(row["id"] for row in found) == list(range(code * A_CODE, (code + 1) * A_CODE))
        assert all(row["amount"] == 7 * row["id"] for row in found)

    micro.measure("index lookup", index_lookup)


def test_single_row_write(micro: Micro) -> None:
    """One new row, by a statement of its own."""
    write = partial(micro.connection.execute, "INSERT INTO written VALUES ($1, $2, $3)")
    before, done = micro.ask("SELECT count(*) FROM written"), 0

    async def single_row_write() -> None:
        nonlocal done
        assert await write(micro.new_key(), 1, FILLER) == 1
        done += 1

    micro.measure("single-row write", single_row_write)
    assert micro.ask("SELECT count(*) FROM written") == before + done


def test_multi_row_write(micro: Micro) -> None:
    """Ten new rows by one statement."""
    values = ", ".join(f"(${n}, ${n + 1}, ${n + 2})" for n in range(1, 3 * MANY, 3))
    write = partial(micro.connection.execute, f"INSERT INTO written VALUES {values}")
    before, done = micro.ask("SELECT count(*) FROM written"), 0

    async def multi_row_write() -> None:
        nonlocal done
        values = (value for _ in range(MANY) for value in (micro.new_key(), 1, FILLER))
        assert await write(*values) == MANY
        done += MANY

    micro.measure("multi-row write", multi_row_write)
    assert micro.ask("SELECT count(*) FROM written") == before + done


def test_small_transaction(micro: Micro) -> None:
    """BEGIN; an account is read, and money moved from it to another; COMMIT."""
    read = partial(micro.connection.query, "SELECT id, amount FROM accounts WHERE id = $1")
    write = partial(micro.connection.execute, "UPDATE accounts SET amount = amount + $2 WHERE id = $1")
    connection, random = micro.connection, micro.random

    async def small_transaction() -> None:
        giver, taker = _two(random)
        async with connection.transaction():
            (row,) = await read(giver)
            assert row["id"] == giver
            for account, change in ((giver, -1), (taker, 1)):
                assert await write(account, change) == 1

    micro.measure("small transaction", small_transaction)
    assert micro.ask("SELECT sum(amount) FROM accounts") == SUM
    assert micro.ask("SELECT count(*) FROM accounts WHERE amount <> 1000000") > 0


def _two(random: Random) -> tuple[int, int]:
    giver, other = random.randrange(ACCOUNTS), random.randrange(ACCOUNTS - 1)
    return giver, other + (other >= giver)
