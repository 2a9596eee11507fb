"""What the driver's errors mean: a wrong "certainly not done" would hide a lost row or invent a phantom."""

import errno
import inspect
import ssl
from unittest.mock import AsyncMock

import asyncpg
import pytest
from asyncpg import exceptions
from asyncpg.exceptions import TargetServerAttributeNotMatched

from clusters.errors import HarnessError
from clusters.model import Credentials, Host
from clusters.sql import Failure, SqlError, pgwire


def state(code: str) -> asyncpg.PostgresError:
    return asyncpg.PostgresError.new({"C": code, "M": "made up", "S": "ERROR"})


STATES = {
    Failure.RETRYABLE: ["40001", "40P01", "53300", "57P03"],
    Failure.REFUSED: [
        "22001",
        "23505",
        "23502",
        "25006",
        "25P02",
        "28000",
        "42P01",
        "42601",
        "0A000",
        "3D000",
    ],
    Failure.LOST: ["08003", "08006", "08P01", "57P01", "57P02"],
    Failure.AMBIGUOUS: (
        [
            "40003",
            "57014",
            "XX000",
            "XXUUU",
            "XXA00",
            "58030",
            "53100",
            "53200",
            "40002",
            "55P03",
            "P0001",
            "01000",
            "99999",
        ]
    ),
}

OTHERS = [
    (TimeoutError(), Failure.AMBIGUOUS, "timeout"),
    (ConnectionResetError(errno.ECONNRESET, "reset"), Failure.LOST, "connection lost"),
    (BrokenPipeError(), Failure.LOST, "connection lost"),
    (ConnectionRefusedError(errno.ECONNREFUSED, "refused"), Failure.LOST, "refused"),
    (ConnectionError("unexpected connection_lost() call"), Failure.LOST, "connection lost"),
    (ConnectionError("PostgreSQL server at 'x' rejected SSL upgrade"), Failure.LOST, "tls"),
    (ssl.SSLCertVerificationError("wrong name"), Failure.LOST, "tls"),
    (OSError(errno.EHOSTUNREACH, "no route"), Failure.LOST, "unreachable"),
    (OSError(errno.EIO, "something else"), Failure.LOST, "connection lost"),
    (asyncpg.InterfaceError("connection is closed"), Failure.LOST, "connection lost"),
    (asyncpg.InterfaceError("another operation is in progress"), Failure.AMBIGUOUS, "interface"),
    (TargetServerAttributeNotMatched("none matched"), Failure.LOST, "not primary"),
    (asyncpg.ConnectionDoesNotExistError("closed in the middle of operation"), Failure.LOST, "08003"),
    (asyncpg.StatementCompletionUnknownError("result is ambiguous"), Failure.AMBIGUOUS, "40003"),
    (asyncpg.InternalClientError("unknown protocol state 3"), Failure.AMBIGUOUS, "interface"),
    (RuntimeError("a surprise"), Failure.AMBIGUOUS, "RuntimeError"),
    (ValueError("25"), Failure.AMBIGUOUS, "ValueError"),
    (SqlError("n1: made up", failure=Failure.REFUSED, code="42P01"), Failure.REFUSED, "42P01"),
]


@pytest.mark.parametrize(("failure", "code"), [(failure, code) for failure, codes in STATES.items() for code in codes])
def test_a_server_s_own_answer_is_of_one_class(failure: Failure, code: str) -> None:
    assert pgwire.classified(state(code)) == (failure, code)


@pytest.mark.parametrize(("error", "failure", "word"), OTHERS, ids=[f"{type(e).__name__}-{w}" for e, _, w in OTHERS])
def test_what_was_not_answered_has_a_class_and_a_word(error: Exception, failure: Failure, word: str) -> None:
    assert pgwire.classified(error) == (failure, word)


def test_of_all_sqlstates_few_are_certainly_not_done() -> None:
    """Whatever else a server says, a write that was sent may have been done."""
    known = {getattr(kind, "sqlstate", None) for kind in vars(exceptions).values() if isinstance(kind, type)}
    codes = {code for code in known if isinstance(code, str) and len(code) == 5}
    assert len(codes) > 200
    not_done = {code for code in codes if pgwire.classified(state(code))[0].certainly_not_done}
    assert {code[:2] for code in not_done} == {"0A", "22", "23", "25", "28", "3D", "40", "42", "53", "57"}
    single = {code for code in not_done if code[:2] in ("40", "53", "57")}
    assert single == {"40001", "40P01", "53300", "57P03"}


def test_only_what_the_server_refused_is_certainly_not_done() -> None:
    assert {f for f in Failure if f.certainly_not_done} == {Failure.RETRYABLE, Failure.REFUSED}


async def test_where_nobody_listens_there_is_no_connection() -> None:
    host = Host(node="n7", address="127.83.7.9", port=9)
    with pytest.raises(SqlError, match="n7: no SQL connection") as told:
        await pgwire.connect(host, Credentials(user="nobody", database="none"), timeout=2)
    assert (told.value.failure, told.value.code) == (Failure.LOST, "refused")
    assert isinstance(told.value, HarnessError), "nothing was learnt about the database"


async def test_a_session_keeps_what_it_prepared_for_as_long_as_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    """asyncpg forgets a statement after five minutes: phases of a change of version lie further apart."""
    asked = AsyncMock()
    monkeypatch.setattr(asyncpg, "connect", asked)
    await pgwire.connect(Host(node="n1", address="n1", port=1), Credentials(user="u", database="d"), timeout=1)
    ((_, given),) = asked.await_args_list
    bound = inspect.signature(asyncpg.connection.connect).bind(**given)
    assert bound.arguments["max_cached_statement_lifetime"] == 0, "0: for ever"


def test_an_error_keeps_its_class_when_it_is_told_what_was_being_done() -> None:
    told = SqlError("n1: made up", failure=Failure.RETRYABLE, code="40001").while_doing("cannot spread t")
    assert (str(told), told.failure, told.code) == (
        "cannot spread t: n1: made up",
        Failure.RETRYABLE,
        "40001",
    )
