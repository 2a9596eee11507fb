"""Profiles: classes of hardware and the size of work that suits each, read from ``profiles.toml``."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any

from clusters.declared import (
    Rule,
    form,
    integer,
    keyed,
    member,
    number,
    read,
    record,
    several,
    suggestion,
    text,
)
from clusters.errors import BadInput
from clusters.model import NodeResources

SHIPPED = Path(__file__).with_name("profiles.toml")


class Pace(StrEnum):
    """How fast the database repairs and rebalances in the background."""

    DEFAULT = "default"
    """As it comes."""
    FAST = "fast"
    """Settings changed for the test's sake; the verdict prints them as *tuned*."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HostNeeds:
    """What local processes need of their host: cores, GiB of memory that is available, GiB of free disk."""

    cores: float
    memory_gib: float
    disk_gib: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Ledger:
    """The size of the ledger's work. Times in seconds, ``rate_per_s`` in operations a second over all writers."""

    rate_per_s: float
    writers: int
    readers: int
    baseline_s: float
    """How long it writes undisturbed first: what throughput and latency are compared with."""
    outage_s: float
    """How long a victim stays away before it may come back."""
    past_recovery_s: float
    """How long writers go on after the cluster is whole again."""
    recovery_limit_s: float
    """How long a cluster may take to be whole again, and rows to become readable, before that counts against it."""
    operation_timeout_s: float
    """After this a client gives an operation up as indeterminate."""
    ranges_per_node: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Probe:
    """How often the probe asks each of its cells, in milliseconds."""

    interval_ms: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Tpcc:
    """The size of TPC-C's work. Times in seconds."""

    ramp_s: float
    """How long terminals are at work before anything is measured."""
    measured_s: float
    pairs: tuple[int, ...]
    """At how many pairs of runs a comparison looks: declared before the first."""
    processes: int
    """Over so many processes the terminals are spread."""
    workers: int
    """So many workers that do not wait saturate the smallest cluster."""
    saturated_s: float
    """How long they are measured."""


LEAST_MEMORY_MIB = 512
"""With less a CockroachDB node does not live long: 128 MiB of cache livelocked one (our own choice)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rebalance:
    """The size of what is spread over added nodes, and how that is watched. Times in seconds."""

    ranges: int
    range_kib: int
    """Data in each range."""
    sample_s: float
    """How often it is asked where the replicas are."""
    hold_s: float
    """Replicas count as even for the test to go on when they have been for so long. An excursion off the mean may last as long."""
    quiet_s: float
    """A cluster has settled when no replica was added or removed for so long."""
    stall_s: float
    """Nothing is waited for any longer when no replica moved for so long."""
    limit_s: float
    """How long is waited at the most, for even replicas and then for quiet."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """A class of hardware and the size of work that suits it."""

    name: str
    sentence: str
    source: str
    host: HostNeeds
    """At least this, however few nodes run on it."""
    host_a_node: HostNeeds
    """At least this for each node that runs on it."""
    node: NodeResources
    pace: Pace
    ledger: Ledger
    probe: Probe
    tpcc: Tpcc
    rebalance: Rebalance

    def needs(self, nodes: int) -> HostNeeds:
        """What one host must have to carry ``nodes`` nodes of this profile as local processes."""
        return HostNeeds(
            cores=max(self.host.cores, nodes * self.host_a_node.cores),
            memory_gib=max(self.host.memory_gib, nodes * self.host_a_node.memory_gib),
            disk_gib=max(self.host.disk_gib, nodes * self.host_a_node.disk_gib),
        )


_NEEDS = record(HostNeeds, cores=number(above=0), memory_gib=number(above=0), disk_gib=number(above=0))
_PROFILE_RULES: Mapping[str, Rule[Any]] = {
    "sentence": text(),
    "source": text(),
    "host": _NEEDS,
    "host_a_node": _NEEDS,
    "node": record(
        NodeResources,
        cache_mib=integer(minimum=1),
        sql_memory_mib=integer(minimum=1),
        cpus=number(above=0),
        memory_mib=integer(minimum=1),
    ),
    "pace": member(Pace, "a pace"),
    "ledger": record(
        Ledger,
        rate_per_s=number(above=0),
        writers=integer(minimum=1, maximum=10_000),
        readers=integer(maximum=10_000),
        baseline_s=number(above=0),
        outage_s=number(above=0),
        past_recovery_s=number(above=0),
        recovery_limit_s=number(above=0),
        operation_timeout_s=number(above=0),
        ranges_per_node=integer(minimum=1, maximum=100),
    ),
    "tpcc": record(
        Tpcc,
        ramp_s=number(),
        measured_s=number(above=0),
        pairs=several(integer(minimum=2, maximum=100), at_least=1),
        processes=integer(minimum=1, maximum=1000),
        workers=integer(minimum=1, maximum=100_000),
        saturated_s=number(above=0),
    ),
    "rebalance": record(
        Rebalance,
        ranges=integer(minimum=1, maximum=100_000),
        range_kib=integer(minimum=1, maximum=512 << 10),
        sample_s=number(above=0),
        hold_s=number(),
        quiet_s=number(above=0),
        stall_s=number(above=0),
        limit_s=number(above=0),
    ),
    "probe": record(Probe, interval_ms=integer(minimum=1, maximum=60_000)),
}
_PROFILE = form(Profile, **_PROFILE_RULES)
_PROFILES = keyed(text(pattern=r"[a-z0-9]+(-[a-z0-9]+)*", what="a name in kebab-case"), _PROFILE)


def load(path: Path = SHIPPED) -> Mapping[str, Profile]:
    """All profiles of a file by name, in its order. Raises ``BadInput`` naming file and key."""
    document, top = read(path)
    for key in document:
        if key != "profiles":
            raise (top / key).wrong("unknown key; profiles stand in [profiles.<name>] tables")
    if not document.get("profiles"):
        raise (top / "profiles").wrong("is missing; declare at least one [profiles.<name>]")
    declared = _PROFILES(document["profiles"], top / "profiles")
    return {name: Profile(name=name, **values) for name, values in declared.items()}


@lru_cache(maxsize=1)
def shipped() -> Mapping[str, Profile]:
    """The suite's own profiles, read once."""
    return load()


def node_of_size(size: str, default: NodeResources) -> NodeResources:
    """A node of this size: ``medium`` is that profile's, ``0.5`` has so many CPUs, ``0.5/1024`` also so many MiB of memory.

    Of its memory a node takes a quarter as cache and a quarter for SQL, as CockroachDB advises for production; without a size of memory
    both are as in ``default``. Raises ``BadInput``.
    """
    if size.isalpha():
        return profile_named(size).node
    cpus, with_memory, memory = size.partition("/")
    try:
        mib = int(memory) if with_memory else None
        if not float(cpus) > 0 or (mib is not None and mib < LEAST_MEMORY_MIB):
            raise ValueError
        return NodeResources(
            cpus=float(cpus),
            memory_mib=mib,
            cache_mib=default.cache_mib if mib is None else mib // 4,
            sql_memory_mib=default.sql_memory_mib if mib is None else mib // 4,
        )
    except ValueError as error:
        raise BadInput(
            f"size {size!r}: give the name of a profile, or CPUs above 0, or '0.5/1024' with at least {LEAST_MEMORY_MIB} MiB of memory"
        ) from error


def profile_named(name: str) -> Profile:
    """The shipped profile of that name. Raises ``BadInput`` with what may have been meant."""
    known = shipped()
    if name not in known:
        raise BadInput(f"profile {name!r} is unknown; {suggestion(name, known)}")
    return known[name]
