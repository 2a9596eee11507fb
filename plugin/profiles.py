"""Profiles: classes of hardware and the size of work that suits each, read from ``profiles.toml``."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from clusters.declared import (
    Place,
    anything,
    form,
    integer,
    keyed,
    member,
    name_of,
    number,
    read,
    record,
    ruled,
    suggestion,
    text,
)
from clusters.errors import BadInput
from clusters.generators import MOST_GENERATORS
from clusters.model import NodeResources
from plugin.suites import Suite
from plugin.workloads import WORKLOADS, Workload, sizes_missing

S = TypeVar("S")

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
class Generators:
    """Load generators beside a cluster, where it can have some: how many, and the cores and MiB of memory of each."""

    number: int = 0
    cpus: float | None = None
    memory_mib: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Probe:
    """How often the probe asks each of its routes, in milliseconds, and how often all of them together, a second.

    Of *n* nodes with *n* times the ranges there are *n*² routes: on few cores a bound keeps them from being the load.
    """

    interval_ms: int
    most_per_s: float | None = None
    most_beside_per_s: float | None = None
    """As ``most_per_s``, and in its place, where another load runs beside the workload that it watches."""

    def between_ms(self, routes: int, *, beside: bool = False) -> int:
        """How long after each other a route is asked, where there are so many; ``beside``: beside another load."""
        most = (self.most_beside_per_s if beside else None) or self.most_per_s
        return self.interval_ms if most is None else max(self.interval_ms, math.ceil(1000 * routes / most))


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
    """Replicas count as even for the test to go on when they have been for so long. An excursion off the mean may last
    as long."""
    quiet_s: float
    """A cluster has settled when no replica was added or removed for so long."""
    stall_s: float
    """Waiting ends once no replica has moved for this long."""
    limit_s: float
    """How long is waited at the most, for even replicas and then for quiet."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Swapping:
    """How a change of version is gone about. Times in seconds."""

    mixed_s: float
    """How long a cluster stays in the mixed state, where that is what is tried."""
    final_limit_s: float
    """How long it may take until a version that is made final is in force everywhere."""
    drain_limit_s: float
    """How long it may take until a node has handed over its work, and then until it stops."""
    up_limit_s: float
    """How long it may take until a node that is given another version, or that is new, takes clients."""

    @property
    def alone_s(self) -> float:
        """How long the load has a mixed cluster for itself, at least, before anybody looks at it (our own choice)."""
        return self.mixed_s / 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Sized:
    """The size of a workload's work: of ``every`` suite, but for those that declare another."""

    every: Any
    by_suite: Mapping[Suite, Any]

    def of(self, suite: Suite | None = None) -> Any:
        """The suite's; without one, that of every suite that declares none."""
        return self.every if suite is None else self.by_suite.get(suite, self.every)


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
    probe: Probe
    rebalance: Rebalance
    swapping: Swapping
    generators: Generators = field(default_factory=Generators)
    place: Place
    """Where it is declared, for messages."""
    sizes: Mapping[str, Sized] = field(default_factory=dict)
    """The size of the work of each workload that has a table here, by its name; see ``size``."""

    def size(self, workload: Workload[S], suite: Suite | None = None) -> S:
        """The size of a workload's work in a suite. Raises ``BadInput`` where the profile has no table of it."""
        if workload.name not in self.sizes:
            raise sizes_missing(workload, self.place)
        found: S = self.sizes[workload.name].of(suite)
        return found

    def needs(self, nodes: int) -> HostNeeds:
        """What one host must have to carry ``nodes`` nodes of this profile as local processes."""
        return HostNeeds(
            cores=max(self.host.cores, nodes * self.host_a_node.cores),
            memory_gib=max(self.host.memory_gib, nodes * self.host_a_node.memory_gib),
            disk_gib=max(self.host.disk_gib, nodes * self.host_a_node.disk_gib),
        )


_NEEDS = record(HostNeeds, cores=number(above=0), memory_gib=number(above=0), disk_gib=number(above=0))
_PROFILE = form(
    Profile,
    sentence=text(),
    source=text(),
    host=_NEEDS,
    host_a_node=_NEEDS,
    node=record(
        NodeResources,
        cache_mib=integer(minimum=1),
        sql_memory_mib=integer(minimum=1),
        cpus=number(above=0),
        memory_mib=integer(minimum=1),
    ),
    pace=member(Pace, "a pace"),
    rebalance=record(
        Rebalance,
        ranges=integer(minimum=1, maximum=100_000),
        range_kib=integer(minimum=1, maximum=512 << 10),
        sample_s=number(above=0),
        hold_s=number(),
        quiet_s=number(above=0),
        stall_s=number(above=0),
        limit_s=number(above=0),
    ),
    swapping=record(
        Swapping,
        mixed_s=number(above=0),
        final_limit_s=number(above=0),
        drain_limit_s=number(above=0),
        up_limit_s=number(above=0),
    ),
    generators=record(
        Generators, number=integer(maximum=MOST_GENERATORS), cpus=number(above=0), memory_mib=integer(minimum=1)
    ),
    probe=record(
        Probe,
        interval_ms=integer(minimum=1, maximum=60_000),
        most_per_s=number(above=0),
        most_beside_per_s=number(above=0),
    ),
)


@ruled(_PROFILE.schema)
def _profile(value: Any, place: Place) -> dict[str, Any]:
    """A profile's own keys, and the tables of workloads, of which it may have any."""
    if not isinstance(value, dict):
        return _PROFILE(value, place)
    own = {key: item for key, item in value.items() if key not in WORKLOADS}
    tables = {key: item for key, item in value.items() if key in WORKLOADS}
    return {**_PROFILE(own, place), "place": place, "sizes": sizes_of(tables, place)}


def sizes_of(tables: Mapping[str, Any], place: Place) -> Mapping[str, Sized]:
    """The sizes of workloads, each by its own rule; a table of a suite's name has what differs there.

    Raises ``BadInput``.
    """
    known = name_of(WORKLOADS, "a workload")
    return {name: _sized(WORKLOADS[known(name, place / name)], item, place / name) for name, item in tables.items()}


def _sized(workload: Workload[Any], value: Any, place: Place) -> Sized:
    if not isinstance(value, dict):
        return Sized(every=workload.sizes(value, place), by_suite={})
    suites = {suite.value for suite in Suite}
    every = {key: item for key, item in value.items() if key not in suites}
    differs = keyed(text(), anything)
    return Sized(
        every=workload.sizes(every, place),
        by_suite={
            Suite(name): workload.sizes({**every, **differs(value[name], place / name)}, place / name)
            for name in value.keys() & suites
        },
    )


_PROFILES = keyed(text(pattern=r"[a-z0-9]+(-[a-z0-9]+)*", what="a name in kebab-case"), _profile)


def load(path: Path = SHIPPED) -> Mapping[str, Profile]:
    """All profiles of a file by name, in its order. Raises ``BadInput`` naming file and key."""
    document, top = read(path)
    for key in document:
        if key != "profiles":
            raise (top / key).wrong("unknown key; profiles stand in [profiles.<name>] tables")
    if not document.get("profiles"):
        raise (top / "profiles").wrong("is missing; declare at least one [profiles.<name>]")
    declared = _PROFILES(document["profiles"], top / "profiles")
    return {name: _with_disk(Profile(name=name, **values)) for name, values in declared.items()}


def _with_disk(profile: Profile) -> Profile:
    """A node's disk is declared once: what a host must have for each that it carries is a volume's size, too."""
    disk_mib = round(profile.host_a_node.disk_gib * 1024)
    return replace(profile, node=replace(profile.node, disk_mib=disk_mib))


@lru_cache(maxsize=1)
def shipped() -> Mapping[str, Profile]:
    """The suite's own profiles, read once."""
    return load()


def node_of_size(size: str, default: NodeResources) -> NodeResources:
    """A node of this size: ``medium`` is that profile's, ``0.5`` means half a CPU, ``0.5/1024`` also 1024 MiB.

    Of its memory a node takes a quarter as cache and a quarter for SQL, as CockroachDB advises for production; without
    a size of memory both are as in ``default``. Raises ``BadInput``.
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
            disk_mib=default.disk_mib,
            cache_mib=default.cache_mib if mib is None else mib // 4,
            sql_memory_mib=default.sql_memory_mib if mib is None else mib // 4,
        )
    except ValueError as error:
        raise BadInput(
            f"size {size!r}: give the name of a profile, or CPUs above 0, or '0.5/1024' with at least "
            f"{LEAST_MEMORY_MIB} MiB of memory"
        ) from error


def profile_named(name: str) -> Profile:
    """The shipped profile of that name. Raises ``BadInput`` with what may have been meant."""
    known = shipped()
    if name not in known:
        raise BadInput(f"profile {name!r} is unknown; {suggestion(name, known)}")
    return known[name]
