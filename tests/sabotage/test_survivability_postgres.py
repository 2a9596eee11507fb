"""Survivability on a control that was set up to lose data: every test here must find its claim refuted."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psutil
import pytest

from clusters.cluster import Cluster
from clusters.engines.postgres import Postgres
from clusters.errors import HarnessError
from fixtures.fault import Faults
from fixtures.judge import Judge
from fixtures.ledger import Ledger
from fixtures.probe import Probe

HELD_BACK_S = 0.5
"""How long the primary sends nothing to its replicas before it dies: merely asynchronous, it loses nothing 9 times of 10;
with its senders stopped for half a second it lost about 100 rows of 200/s in 10 of 10 trials."""


@pytest.fixture
def engine() -> Postgres:
    """The control with asynchronous replication: a write is acknowledged by the primary alone."""
    return Postgres.find(replication="asynchronous")


@asynccontextmanager
async def senders_stopped(cluster: Cluster, node: str) -> AsyncIterator[None]:
    """Freeze the processes by which a node sends its log to the replicas. Raises ``HarnessError`` when it has none."""
    home = cluster.deployment.process(node).cwd
    senders = []
    for process in psutil.process_iter(["cmdline", "cwd"]):
        if "walsender" in " ".join(process.info["cmdline"] or []) and str(process.info["cwd"]).startswith(
            str(home)
        ):
            process.send_signal(signal.SIGSTOP)
            senders.append(process)
    if not senders:
        raise HarnessError(f"{node} has no process that sends its log: it is not the primary")
    try:
        await asyncio.sleep(HELD_BACK_S)
        yield
    finally:
        for process in senders:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGCONT)


@pytest.mark.sabotage("survivability-disk-lost", engine="postgres")
@pytest.mark.topology(nodes=3)
async def test_asynchronous_replication_loses_what_was_acknowledged(
    cluster: Cluster, ledger: Ledger, probe: Probe, fault: Faults, judge: Judge, inserts: int
) -> None:
    """A primary that acknowledges alone and is lost with its disk takes acknowledged rows with it."""
    async with ledger.writing(at_least=inserts), probe.watching(ledger):
        await ledger.baseline()
        await ledger.some_moment()
        victim = await ledger.serving_node()
        async with senders_stopped(cluster, victim), fault.lose_disk(victim):
            await ledger.outage()
        await ledger.recovery()
        await ledger.written_past_recovery()
    await ledger.audit()
    assert judge.refuted("lost")
