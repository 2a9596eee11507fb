"""The programs of the embedded control, found and ready to be deployed."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clusters.engines import EngineKind, Wanted
from clusters.engines.postgres import KIND, binaries, configuration
from clusters.engines.postgres.binaries import Binaries
from clusters.engines.postgres.configuration import Replication
from clusters.engines.postgres.deployment import PostgresDeployment
from clusters.executables import sha256
from clusters.model import Fingerprint, NodeResources, NodeSpec, SqlTraits


@dataclass(frozen=True, kw_only=True, slots=True)
class Postgres:
    """PostgreSQL under Patroni at the versions of the installed wheels.

    ``version`` names both, as each program prints its own. ``detection_s`` is Patroni's ``ttl``: a silent leader's
    lease ends then, and no sooner. ``replication`` other than quorum is a sabotage: writes are acknowledged by one
    node.
    """

    binaries: Binaries
    replication: Replication = Replication.QUORUM
    detection_s: float = float(configuration.TTL_S)
    generator: None = None
    kind: EngineKind = KIND

    @property
    def sql(self) -> SqlTraits:
        """See ``Engine.sql``."""
        return KIND.sql

    @property
    def version(self) -> str:
        """For instance ``v18.4 (Patroni 4.1.5)``."""
        return f"v{self.binaries.postgres_version} (Patroni {self.binaries.patroni_version})"

    @property
    def program(self) -> Path:
        """PostgreSQL's programs."""
        return self.binaries.bin_dir

    @property
    def fingerprint(self) -> Fingerprint:
        """Versions, programs with their digests, and the mode of replication."""
        postgres = self.binaries.bin_dir / "postgres"
        return {
            "engine": KIND.name,
            "version": self.version,
            "postgres": str(postgres),
            "postgres_sha256": sha256(postgres),
            "etcd": str(self.binaries.etcd),
            "etcd_sha256": sha256(self.binaries.etcd),
            "etcd_version": self.binaries.etcd_version,
            "patroni_version": self.binaries.patroni_version,
            "replication": str(self.replication),
        }

    def deploy(self, nodes: Sequence[NodeSpec], *, resources: NodeResources, tuned: bool) -> PostgresDeployment:
        """The control on these nodes; ``tuned`` changes nothing, as replicas are built as fast as the disk allows."""
        return PostgresDeployment(
            binaries=self.binaries, nodes=nodes, resources=resources, replication=self.replication
        )


def find(wanted: Wanted = Wanted()) -> Postgres:  # noqa: B008 - frozen
    """The control at the wanted version, of those in wheels that are installed or in the cache, or the newest.

    Raises ``BadInput``, which names a missing wheel, or the versions that are there.
    """
    return Postgres(binaries=binaries.find(wanted.version, option=KIND.choice.version))
