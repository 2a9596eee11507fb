"""The toy that was found: which version, and how it is deployed."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clusters.engines import EngineKind, Wanted
from clusters.errors import BadInput
from clusters.model import Fingerprint, NodeResources, NodeSpec, SqlTraits
from tests.clusters.engines.toy import KIND
from tests.clusters.engines.toy.deployment import ToyDeployment


@dataclass(frozen=True, kw_only=True, slots=True)
class Toy:
    version: str
    detection_s: float = 0.1
    generator: None = None
    program: Path = Path("/nonexistent")

    @property
    def kind(self) -> EngineKind:
        return KIND

    @property
    def sql(self) -> SqlTraits:
        return KIND.sql

    @property
    def fingerprint(self) -> Fingerprint:
        return {"engine": KIND.name, "version": self.version}

    def deploy(self, nodes: Sequence[NodeSpec], *, resources: NodeResources, tuned: bool) -> ToyDeployment:
        return ToyDeployment(nodes)


def find(wanted: Wanted) -> Toy:
    if wanted.path:
        raise BadInput(f"--toy {wanted.path}: there is no such program; leave it out")
    return Toy(version=wanted.version or f"v{sqlite3.sqlite_version}")
