"""An engine whose driver is not the one that all others have."""

import pytest

from clusters.cluster import Cluster
from clusters.engines import ENGINES, Deployment, Engine, Wanted
from clusters.sql import Failure, SqlError
from clusters.topology import of
from tests.clusters.engines.test_contract import speaks_the_protocol
from tests.clusters.fake import RESOURCES, FakeSubstrate


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENGINES.modules, "toy", "tests.clusters.engines.toy")


async def test_its_driver_fits_behind_the_protocol() -> None:
    engine: Engine = ENGINES["toy"].find(Wanted())
    cluster = await Cluster.provision(
        engine=engine, substrate=FakeSubstrate(), topology=of(nodes=3), resources=RESOURCES, tuned=False
    )
    deployment: Deployment = cluster.deployment
    await cluster.healthy(timeout=5)
    async with await deployment.connect() as connection:
        await connection.execute("CREATE TABLE ledger (k INT PRIMARY KEY, v INT)")
        await speaks_the_protocol(connection)
    with pytest.raises(SqlError) as lost:
        await connection.value("SELECT 1")
    assert lost.value.failure is Failure.LOST
