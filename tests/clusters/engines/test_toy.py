"""An engine takes the files that its page of documentation lists, and no other; whatever its driver is."""

import re
from pathlib import Path

import pytest

from clusters.cluster import Cluster
from clusters.engines import ENGINES, Deployment, Engine, Wanted
from clusters.sql import Failure, SqlError
from clusters.topology import of
from tests.clusters.engines import toy
from tests.clusters.engines.test_contract import speaks_the_protocol
from tests.clusters.fake import RESOURCES, FakeSubstrate

PAGE = Path(__file__).parents[3] / "docs" / "extending" / "engine.md"


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENGINES.modules, "toy", "tests.clusters.engines.toy")


def test_the_page_lists_the_files_of_the_toy() -> None:
    page = PAGE.read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `clusters/engines/NAME/(\w+\.py)`", page, re.MULTILINE))
    assert listed == {file.name for file in Path(toy.__path__[0]).glob("*.py")}
    (count,) = re.findall(r"takes \*\*(\d+) files and 1 line\*\*", page)
    assert int(count) == len(listed)


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
