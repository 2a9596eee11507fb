"""The subject: CockroachDB."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from clusters.engines import EngineKind, Wanted
from clusters.engines.cockroach.binary import NO_VENDOR, Binary, resolve
from clusters.engines.cockroach.builds import not_run, run_before
from clusters.engines.cockroach.cache import cache_dir
from clusters.engines.cockroach.deployment import CockroachDeployment
from clusters.engines.cockroach.versions import Dialect, dialect_for
from clusters.model import Capability, Fingerprint, Generator, NodeResources, NodeSpec, SqlTraits

__all__ = ["KIND", "Cockroach"]

_LATER = frozenset({Capability.SWAP_VERSION, Capability.STALL_DISK, Capability.YCSB})
"""What it could do, and nothing here yet makes it do."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cockroach:
    """One CockroachDB binary and what is particular to its version.

    ``detection_s``: a node that says nothing is taken for dead when its liveness record expires, after 9 s
    (documentation, ``server.time_until_store_dead`` is another, longer time: until its replicas are made anew).
    """

    binary: Binary
    dialect: Dialect
    detection_s: float = 9.0

    @property
    def kind(self) -> EngineKind:
        """See ``KIND``."""
        return KIND

    @property
    def version(self) -> str:
        """As the binary says."""
        return self.binary.build.tag

    @property
    def generator(self) -> Generator:
        """``cockroach workload``."""
        return Generator(
            program=self.binary.path, flags=self.dialect.workload_shared, run_flags=self.dialect.workload_run
        )

    @property
    def fingerprint(self) -> Fingerprint:
        """Version, date, commit, digest and origin of the binary; what is to be said where it was never run, and of its version."""
        return {
            "engine": KIND.name,
            "version": self.version,
            "binary": str(self.binary.path),
            "sha256": self.binary.sha256,
            "origin": self.binary.origin,
            "date": self.binary.build.date,
            "commit": self.binary.build.commit,
            "run_before": run_before(self.binary.build),
            "not_run": not_run(self.binary.build),
            "notes": list(self.dialect.notes),
        }

    def deploy(
        self, nodes: Sequence[NodeSpec], *, resources: NodeResources, tuned: bool
    ) -> CockroachDeployment:
        """CockroachDB on these nodes; ``tuned`` makes servers look through their replicas faster."""
        return CockroachDeployment(
            binary=self.binary.path,
            build_tag=self.version,
            dialect=self.dialect,
            nodes=nodes,
            resources=resources,
            tuned=tuned,
        )


def find(wanted: Wanted = Wanted()) -> Cockroach:  # noqa: B008 - frozen
    """The binary asked for, or the first to be had in the order of ``binary.resolve``. Raises ``BadInput``."""

    def progress(done: int, total: int) -> None:
        wanted.say(f"downloading cockroach: {done >> 20} of {total >> 20} MiB")

    binary = resolve(
        path=wanted.path,
        version=wanted.version,
        environ=os.environ,
        cache=cache_dir(os.environ),
        vendor=None if wanted.download else NO_VENDOR,
        progress=progress,
    )
    return Cockroach(binary=binary, dialect=dialect_for(binary.version))


KIND = EngineKind(
    name="cockroach",
    title="CockroachDB",
    capabilities=frozenset(Capability) - _LATER,
    find=find,
    # It takes parameters below a WITH or in VALUES for text, whatever they are cast to, and has a notation of its own for their type.
    # A foreign key that is added looks for rows that refer to nothing by one lookup a row. The vectorised engine of
    # v21.1.0-alpha.20210228 loses rows in joins.
    sql=SqlTraits(
        annotation=":::",
        descending_keys=True,
        covering="STORING",
        checks_added_keys=False,
        reads_as_of=True,
        bulk_joins="vectorize = off",
        other_joins="vectorize = on",
    ),
    chosen=True,
)
