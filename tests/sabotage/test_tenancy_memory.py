"""Tenants on servers that have too little memory for what is asked of them: each must find the claim refuted."""

from dataclasses import replace
from pathlib import Path

import pytest

from clusters.cluster import Cluster
from clusters.engines.postgres import configuration
from clusters.faults.node import drained, restart_dead
from fixtures.judge import Judge
from fixtures.trial import Trial
from fixtures.workloads.tenants.fixture import Tenants
from fixtures.workloads.tenants.templates import Templates
from tests.slow import slow

pytestmark = pytest.mark.topology(nodes=3)

TABLES = 2500

LARGE = f"""
[templates.large]
what = "{TABLES} tables, which are made by one statement"
file = "large.sql"
tables = {TABLES}
tenants = 2
"""

STATEMENT = f"""
DO $$ BEGIN FOR n IN 1..{TABLES} LOOP
  EXECUTE 'CREATE TABLE t' || n || ' (id INT8 PRIMARY KEY, note TEXT)';
END LOOP; END $$
"""
"""It cannot be taken apart: tables of several statements are made one by one where there is no memory for all. Locks of
each are of the table, what is long in it, and an index of either."""

FEW_LOCKS = {"max_locks_per_transaction": 32, "max_connections": 40}
"""The one multiplied by the other is room for the locks of all transactions; a table that is made holds several. With
the control's 200 connections there is enough."""

SQL_MEMORY_MIB = 8
"""Of a node of CockroachDB; the profile gives it 256."""


@pytest.fixture(autouse=True)
def few_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start the control's servers with little memory for locks."""
    monkeypatch.setattr(configuration, "PARAMETERS", {**configuration.PARAMETERS, **FEW_LOCKS})


@slow
@pytest.mark.sabotage("tenancy", engine="postgres")
async def test_too_little_memory_for_locks(trial: Trial, cluster: Cluster, judge: Judge, tmp_path: Path) -> None:
    """A statement that makes many tables takes more locks than the server has room for."""
    (tmp_path / "large.toml").write_text(LARGE)
    (tmp_path / "large.sql").write_text(STATEMENT)
    templates = Templates([tmp_path / "large.toml"])
    tenants = Tenants(trial, cluster, templates, templates.asked())
    async with tenants.provisioning():
        await tenants.provision()
    assert judge.refuted("tables_missing", "tenants_missing")


@slow
@pytest.mark.sabotage("tenancy", engine="cockroach")
async def test_too_little_memory_for_sql(trial: Trial, cluster: Cluster, tenants: Tenants, judge: Judge) -> None:
    """Once tenants are made each node is started again with next to no --max-sql-memory: tools get no answers."""
    little = replace(trial.run.profile.node, sql_memory_mib=SQL_MEMORY_MIB)
    async with tenants.provisioning(tune=False), tenants.asking() as ask:  # what was changed could not be put back
        await tenants.provision()
        for node in cluster.nodes:
            await drained(cluster, node)
            await cluster.deployment.give(node, little)
            await restart_dead(cluster, node)
        await ask(1.0)
    assert judge.refuted("introspection_failed")
