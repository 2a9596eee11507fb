"""A tenant that really takes the machine from all others, and nothing is injected: no delay, no proxy, no policy."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from clusters.sql import Connection, Failure, SqlError
from fixtures.background import beside
from fixtures.judge import Judge
from fixtures.trial import Trial
from fixtures.workloads.tenants.fixture import Tenants
from fixtures.workloads.tenants.key_value import TABLE
from fixtures.workloads.tenants.load import Span, TenantLoad
from fixtures.workloads.tenants.load_fixture import TenantLoads
from fixtures.workloads.tenants.load_records import NOISY, SECOND
from fixtures.workloads.tenants.load_workload import KIND as LOAD
from tests.sabotage.test_tenancy_load import HALF, MIX
from tests.slow import slow

pytestmark = pytest.mark.topology(nodes=3)

CONNECTIONS, LOOPS = 96, 24
"""Nobody gave the tenant's role a limit of them: those that ask what is heavy, and those of the closed loops, as many
that they have more under way than the load has where other work slows that down, too."""

HEAVY = f"SELECT count(*) FROM {TABLE} AS a, {TABLE} AS b WHERE a.value || b.value LIKE '%nothing like it%'"
"""Each row of its table beside each other row: a second of CPU and more, and next to nothing of disk or memory."""

CANCELLED = "57014"


@pytest.fixture(autouse=True)
def few_at_once(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    """Load eight tenants at once, and not for long, as the other sabotages of loads."""
    few = replace(trial.run.size(LOAD), levels={MIX: (8,)}, window_s=8, blocks=6, noisy_connections=LOOPS)
    monkeypatch.setattr(TenantLoads, "sizes", property(lambda _: few))


async def asks(session: Connection, window: Span, trial: Trial) -> None:
    """One connection's statements in a window, one after the other; the server ends what is under way at its end."""
    await asyncio.sleep(max(0, window.begin - trial.store.now()) / SECOND)
    while (left := window.until - trial.store.now()) > 0:
        try:
            await session.execute(f"SET statement_timeout = {max(1, left * 1000 // SECOND)}")
            await session.query(HEAVY, timeout=600)
        except SqlError as error:
            if error.code != CANCELLED or error.failure is Failure.LOST:
                raise
            return


async def greedy(trial: Trial, tenants: Tenants, load: TenantLoads, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside its closed loops the noisy tenant asks over many connections what takes the servers long."""
    loud: asyncio.Queue[tuple[TenantLoad, Span]] = asyncio.Queue()
    ordered = load._ordered

    def heard(loaded: TenantLoad, span: Span) -> None:
        if loaded.spec.loops and span.side == NOISY:
            loud.put_nowait((loaded, span))
        ordered(loaded, span)

    async def asking() -> None:
        async with AsyncExitStack() as opened:
            sessions = list[Connection]()
            while True:
                loaded, window = await loud.get()
                (noisy,) = loaded.spec.tenants
                while len(sessions) < CONNECTIONS:
                    session = await tenants._as_tenant(noisy.database, noisy)
                    sessions.append(await opened.enter_async_context(session))
                async with asyncio.TaskGroup() as group:
                    for session in sessions:
                        group.create_task(asks(session, window, trial))

    monkeypatch.setattr(load, "_ordered", heard)
    async with tenants.provisioning():
        await tenants.provision(HALF)
        async with beside(asking()):
            await load.noisy(tenants.made_for(MIX, part=HALF), mix=MIX)


@slow
@pytest.mark.sabotage("tenancy-noisy-tenant", engine="cockroach")
async def test_a_tenant_takes_the_machine(
    trial: Trial, tenants: Tenants, noisy_load: TenantLoads, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each node is one process, which gives the statements turns.

    Of PostgreSQL each connection has a process of its own. They have turns before the load does, whose machine it is,
    too: that is late then, and excuses the rest.
    """
    await greedy(trial, tenants, noisy_load, monkeypatch)
    assert judge.refuted("noisy_p99_growth_interval", "noisy_efficiency_loss_interval")
