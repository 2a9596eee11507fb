"""The toy on its placements. What has nothing to do with SQL it has from the fake."""

from collections.abc import Sequence
from typing import Any

from clusters.model import NodeSpec
from clusters.sql import Connection
from tests.clusters.engines.toy.connection import ToyConnection
from tests.clusters.fake import FakeDeployment, FakeSubstrate


class ToyDeployment(FakeDeployment):
    def __init__(self, nodes: Sequence[NodeSpec]) -> None:
        super().__init__(FakeSubstrate(), nodes)

    async def prepare(self, placements: object, nodes: Any) -> None:
        self._substrate = nodes

    async def connect(self, node: str | None = None, *, timeout: float = 5.0) -> Connection:
        return ToyConnection()
