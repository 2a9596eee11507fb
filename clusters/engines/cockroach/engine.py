"""One CockroachDB binary, found and ready to be deployed."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from clusters.cache import cache_dir
from clusters.engines import Engine, EngineKind, Wanted
from clusters.engines.cockroach import KIND
from clusters.engines.cockroach.binary import NO_VENDOR, Binary, resolve
from clusters.engines.cockroach.builds import not_run, run_before
from clusters.engines.cockroach.cache import versions
from clusters.engines.cockroach.deployment import CockroachDeployment
from clusters.engines.cockroach.installed import Installed
from clusters.engines.cockroach.own_settings import checked
from clusters.engines.cockroach.version import Version
from clusters.engines.cockroach.versions import Dialect, dialect_for
from clusters.errors import BadInput
from clusters.model import Fingerprint, Generator, NodeResources, NodeSpec, SqlTraits


@dataclass(frozen=True, kw_only=True, slots=True)
class Cockroach:
    """One CockroachDB binary and what is particular to its version.

    ``detection_s``: a node that says nothing is taken for dead when its liveness record expires, after 9 s
    (documentation, ``server.time_until_store_dead`` is another, longer time: until its replicas are made anew).
    ``settings``: the user's own cluster settings, which each cluster is given.
    """

    binary: Binary
    dialect: Dialect
    settings: Mapping[str, str] = field(default_factory=dict, hash=False)
    detection_s: float = 9.0
    kind: EngineKind = KIND

    @property
    def sql(self) -> SqlTraits:
        """See ``Engine.sql``."""
        return replace(KIND.sql, **self.dialect.traits)

    @property
    def version(self) -> str:
        """As servers say: what follows a ``+`` in the binary's tag is no part of a version."""
        return str(self.binary.version)

    @property
    def program(self) -> Path:
        """The binary."""
        return self.binary.path

    @property
    def generator(self) -> Generator:
        """``cockroach workload``."""
        return Generator(
            program=self.binary.path, flags=self.dialect.workload_shared, run_flags=self.dialect.workload_run
        )

    @property
    def fingerprint(self) -> Fingerprint:
        """Version, date, commit, digest and origin of the binary; what is to be said of it and of its version."""
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

    def deploy(self, nodes: Sequence[NodeSpec], *, resources: NodeResources, tuned: bool) -> CockroachDeployment:
        """CockroachDB on these nodes; ``tuned`` makes servers look through their replicas faster."""
        return CockroachDeployment(
            build=Installed(binary=self.program, tag=self.version),
            resources=resources,
            tuned=tuned,
            settings=self.settings,
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
        download_s=wanted.download_s,
        progress=progress,
    )
    return Cockroach(binary=binary, dialect=dialect_for(binary.version), settings=checked(wanted.settings))


def former(engine: Engine) -> Cockroach | None:
    """Of the cache, the newest older version of the engine's series that may go on to it; ``None`` where there is none.

    One that lies there and cannot be used is passed over: nobody asked for it.
    """
    version = Version.parse(engine.version)
    cached = versions(cache_dir(os.environ))
    for older in reversed([one for one in cached if one.series == version.series and one < version]):
        with suppress(BadInput):
            found = find(Wanted(version=str(older), download=False))
            if not KIND.change(found.fingerprint, engine.fingerprint).against:
                return found
    return None
