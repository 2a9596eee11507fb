"""The user's own cluster settings: what cannot be given is refused before a cluster starts, the rest by its servers."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clusters.engines.cockroach.own_settings import checked, give_own
from clusters.errors import BadInput
from clusters.sql import Failure, SqlError
from tests.clusters.real_cockroach import ask, cockroach, running, versions


class Server:
    """Takes every setting but those that it refuses, or does not answer for."""

    def __init__(self, refused: str = "", lost: str = "") -> None:
        self.refused, self.lost = refused, lost
        self.asked: list[str] = []

    async def execute(self, sql: str, *, timeout: float) -> None:
        self.asked.append(sql)
        if self.refused and self.refused in sql:
            raise SqlError("unknown cluster setting", code="22023", failure=Failure.REFUSED)
        if self.lost and self.lost in sql:
            raise SqlError("nobody answers", code="lost", failure=Failure.LOST)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("enterprise.license", "set ROACHPROOF_COCKROACH_LICENSE and ROACHPROOF_COCKROACH_ORGANIZATION in the environ"),
        ("version", "changes of version set it by themselves"),
        ("cluster.preserve_downgrade_option", "changes of version set it by themselves"),
        ("a.b = 1; DROP DATABASE c", "is no setting's name"),
        ("A.b", "is no setting's name"),
        ("server.oidc_authentication.client_secret", "may hold a secret, and verdicts tell what was set"),
    ],
)
def test_what_cannot_be_given_is_refused_before_a_cluster_starts(name: str, says: str) -> None:
    with pytest.raises(BadInput, match="--cluster-setting") as refused:
        checked({name: "of-nobodys-business"})
    assert says in str(refused.value)
    if "secret" in says or "environ" in says:
        assert "of-nobodys-business" not in str(refused.value)


async def test_each_is_given_in_its_order_and_quoted() -> None:
    server: Any = Server()
    await give_own(server, checked({"a.b": "it's", "c.d": "10s"}), lambda: 1.0)
    assert server.asked == ["SET CLUSTER SETTING a.b = 'it''s'", "SET CLUSTER SETTING c.d = '10s'"]


async def test_one_that_the_server_refuses_is_bad_input_and_one_that_it_does_not_answer_is_none() -> None:
    refusing: Any = Server(refused="a.b")
    with pytest.raises(BadInput, match=r"--cluster-setting a\.b=1: the server does not take it \(.*unknown"):
        await give_own(refusing, {"a.b": "1"}, lambda: 1.0)
    silent: Any = Server(lost="a.b")
    with pytest.raises(SqlError):
        await give_own(silent, {"a.b": "1"}, lambda: 1.0)


@pytest.mark.parametrize("version", versions())
async def test_servers_have_what_was_given_and_verdicts_tell_it(tmp_path: Path, version: str) -> None:
    engine = replace(cockroach(version), settings={"kv.range_merge.queue.enabled": "off"})
    async with running(tmp_path, engine, nodes=1) as cluster:
        (merging,) = await ask(cluster, "SHOW CLUSTER SETTING kv.range_merge.queue.enabled")
        assert merging[0] is False
        assert "kv.range_merge.queue.enabled = off" in cluster.deployment.tuned
    engine = replace(engine, settings={"no.such.setting": "1"})
    with pytest.raises(BadInput, match=r"--cluster-setting no\.such\.setting=1: the server does not take it"):
        async with running(tmp_path, engine, nodes=1):
            pytest.fail("it started")
