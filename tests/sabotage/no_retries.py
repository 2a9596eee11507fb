"""A ledger client that connects once: whoever loses its connection waits until the end, and tries nothing again."""

import asyncio
from dataclasses import dataclass
from typing import Any, ClassVar

from fixtures.workloads import program
from fixtures.workloads.ledger import clients
from fixtures.workloads.ledger.client import Client
from fixtures.workloads.ledger.spec import LedgerSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class OnceSpec(LedgerSpec):
    """As ``LedgerSpec``, for this program."""

    PROGRAM: ClassVar[str] = "tests.sabotage.no_retries"


class Once(Client):
    """A client of one connection."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._connected = False

    async def _connect(self) -> None:
        if self._connected:
            if self.link is not None:
                self._lost("connection lost")
            await asyncio.Event().wait()
        await super()._connect()
        self._connected = True


if __name__ == "__main__":
    clients.Client = Once  # type: ignore[attr-defined, assignment]
    program.run(OnceSpec, clients.main)
