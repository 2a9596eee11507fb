"""The harness's side of a cluster's own network: whether there is one, who has which address, what is cut."""

import asyncio
from collections.abc import Container
from typing import Any

from clusters.errors import BadInput, HarnessError
from clusters.substrates.processes import namespaces
from clusters.substrates.processes.network import BESIDE, BESIDE_NUMBER, candidates
from clusters.substrates.processes.supervisor_client import Link


class Links:
    """The links of one cluster. Without ``make`` there are none, and its nodes are on loopback."""

    def __init__(self, cluster: str, placed: Container[str], started: Container[str]) -> None:
        """``placed``: the nodes; ``started``: all names of processes."""
        self._cluster = cluster
        self._placed = placed
        self._started = started
        self._prefix: str | None = None
        self.cannot_cut: str | None = "the cluster was opened without namespaces"
        """Why links cannot be cut; ``None`` where they can."""

    async def make(self, link: Link, loopback: str) -> None:
        """Make a network, with an address like the leased ``loopback`` prefix, or say in ``cannot_cut`` why not."""
        self.cannot_cut = namespaces.forbidden()
        if self.cannot_cut is not None:
            return
        _, second, third = map(int, loopback.split("."))
        answer = await link.order("network", packages=namespaces.packages(), prefixes=candidates(second, third))
        if "error" in answer:
            self.cannot_cut = answer["error"]
        else:
            self._prefix = answer["ok"]["prefix"]

    @property
    def beside(self) -> str:
        """The address of the services beside the nodes; empty without a network."""
        return f"{self._prefix}.{BESIDE_NUMBER}" if self._prefix else ""

    async def attach(self, link: Link, node: str, number: int) -> str | None:
        """Give a node its namespace; its address. ``None`` without a network.

        Raises ``BadInput`` when the network has no more addresses, ``HarnessError`` when the kernel refuses.
        """
        if self._prefix is None:
            return None
        if number >= BESIDE_NUMBER:
            raise BadInput(
                f"{node}: a network on this machine has addresses for {BESIDE_NUMBER - 1} nodes; declare fewer"
            )
        answer = await link.carry_out("attach", name=node, number=number)
        return str(answer["ok"]["address"])

    def namespace_of(self, name: str) -> str | None:
        """The namespace to run a process in: a node has its own, services share one."""
        return None if self._prefix is None else self._end(name)

    def _end(self, name: str) -> str:
        return name if name in self._placed else BESIDE

    async def order(self, link: Link, op: str, sender: str, receiver: str) -> dict[str, Any]:
        """Cut or heal. Raises ``HarnessError`` for what is no link, and when it cannot be done or proven."""
        if self.cannot_cut is not None:
            raise HarnessError(f"{self._cluster}: links between nodes cannot be cut: {self.cannot_cut}")
        for name in (sender, receiver):
            if name not in self._placed and name not in self._started:
                raise HarnessError(f"{self._cluster}: {name} was never placed nor started; it has no links")
        if self._end(sender) == self._end(receiver):
            raise HarnessError(f"{self._cluster}: there is no link between {sender} and {receiver}")
        # The supervisor finishes what was ordered, whoever is cancelled meanwhile.
        answer = await asyncio.shield(link.carry_out(op, sender=self._end(sender), receiver=self._end(receiver)))
        told: dict[str, Any] = answer["ok"]
        return told
