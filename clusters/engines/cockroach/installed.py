"""Which build of CockroachDB each node of a cluster has been given, and how such a cluster is spoken to."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from clusters.engines.cockroach.version import Version
from clusters.engines.cockroach.versions import Dialect, dialect_for
from clusters.errors import HarnessError


@dataclass(frozen=True, kw_only=True)
class Installed:
    """A build: its binary on the machine of the harness, and what it calls itself."""

    binary: Path
    tag: str

    @cached_property
    def version(self) -> Version:
        """By which builds are ordered."""
        return Version.parse(self.tag, origin=str(self.binary))

    @cached_property
    def dialect(self) -> Dialect:
        """How a cluster of it is spoken to."""
        return dialect_for(self.version)


class Builds:
    """The build of each node. While they differ the oldest one counts: newer ones understand what it does."""

    def __init__(self, first: Installed) -> None:
        self._first = first
        self._given: dict[str, Installed] = {}
        self._nodes: list[str] = []

    def add(self, node: str) -> None:
        """Take in a node, with the build that the first nodes had unless it was given another."""
        if node not in self._nodes:
            self._nodes.append(node)

    def remove(self, node: str) -> None:
        """Forget a node."""
        self._nodes.remove(node)
        self._given.pop(node, None)

    def give(self, node: str, build: Installed) -> None:
        """From now on this node has this build. Raises ``HarnessError`` for a node that is not there."""
        if node not in self._nodes:
            raise HarnessError(f"{node} is not a node of this cluster ({', '.join(self._nodes)})")
        self._given[node] = build

    def of(self, node: str) -> Installed:
        """What this node has."""
        return self._given.get(node, self._first)

    @property
    def oldest(self) -> Installed:
        """The oldest that any node has."""
        return min(map(self.of, self._nodes), key=lambda build: build.version, default=self._first)

    @property
    def dialect(self) -> Dialect:
        """How the cluster is spoken to as a whole."""
        return self.oldest.dialect
