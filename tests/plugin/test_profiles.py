"""Profiles: the shipped ones and what a bad file says."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from clusters.errors import BadInput
from fixtures.workloads.ledger.workload import KIND
from fixtures.workloads.tenants.load_workload import KIND as LOADS
from fixtures.workloads.tenants.workload import KIND as TENANTS
from fixtures.workloads.tpcc.workload import KIND as TPCC
from plugin.profiles import SHIPPED, HostNeeds, Pace, Probe, load, node_of_size, profile_named, shipped
from plugin.suites import Suite

NAMES = ["laptop", "small", "medium", "large", "tenancy-9", "adversity-9", "adversity-15"]


def test_shipped_profiles() -> None:
    assert list(shipped()) == NAMES
    for name, profile in shipped().items():
        assert profile.name == name
        assert profile.sentence.endswith(".")
        assert profile.source
        assert profile.node.cache_mib >= 384, "128 MiB livelocked a real version"
        ledger = profile.size(KIND)
        assert ledger.outage_s > 9, "liveness expires at 9 s: a shorter outage shows nothing"
        assert ledger.recovery_limit_s > ledger.outage_s
        assert profile.pace is (Pace.FAST if name == "laptop" else Pace.DEFAULT)


@pytest.mark.parametrize(
    ("name", "cpus", "memory_mib"),
    [
        ("small", 4, 16384),
        ("medium", 8, 32768),
        ("large", 12, 49152),
        ("tenancy-9", 8, 32768),
        ("adversity-9", 16, 65536),
    ],
)
def test_sizes_are_the_sources(name: str, cpus: float, memory_mib: int) -> None:
    node = profile_named(name).node
    assert (node.cpus, node.memory_mib) == (cpus, memory_mib)
    assert node.cache_mib + node.sql_memory_mib < memory_mib


def test_a_profile_without_a_bound_asks_every_route_at_its_interval() -> None:
    assert profile_named("medium").probe.between_ms(9 * 27) == 100
    assert profile_named("medium").probe.between_ms(9 * 27, beside=True) == 100
    assert Probe(interval_ms=200, most_per_s=75).between_ms(27, beside=True) == 360, "its one bound holds there, too"


def test_laptop_is_what_was_agreed() -> None:
    laptop = profile_named("laptop")
    assert (laptop.node.cache_mib, laptop.node.sql_memory_mib, laptop.node.cpus) == (384, 256, None)
    assert [laptop.probe.between_ms(n * 3 * n) for n in (1, 3, 5, 9)] == [200, 360, 1000, 3240]
    assert [laptop.probe.between_ms(n * 3 * n, beside=True) for n in (1, 3, 5, 9)] == [200, 900, 2500, 8100]
    ledger = laptop.size(KIND)
    assert (ledger.rate_per_s, ledger.baseline_s, ledger.outage_s, ledger.past_recovery_s) == (
        150,
        10,
        12,
        12,
    )


def test_a_suite_has_sizes_of_its_own_where_it_declares_them() -> None:
    laptop = profile_named("laptop")
    gate, nightly = laptop.size(TENANTS, Suite.GATE), laptop.size(TENANTS, Suite.NIGHTLY)
    assert sum(nightly.mix.values()) > 1.5 * sum(gate.mix.values())
    assert nightly == replace(gate, mix=nightly.mix, why=nightly.why, loaded=nightly.loaded), "all else is alike"
    assert nightly.all_loaded == {**nightly.mix, "tpcc": 4}
    assert gate.all_loaded == gate.mix
    (loads, more) = (laptop.size(LOADS, suite) for suite in (Suite.GATE, Suite.NIGHTLY))
    assert {*loads.levels} < {*more.levels}
    assert more == replace(loads, levels=more.levels)
    assert gate == laptop.size(TENANTS) == laptop.size(TENANTS, Suite.PAPER)
    small = profile_named("small")
    assert small.size(KIND, Suite.NIGHTLY) == small.size(KIND)


def test_what_is_spread_over_processes_has_one_for_each_load_generator() -> None:
    laptop = profile_named("laptop")
    orders, ledger = laptop.size(TPCC), laptop.size(KIND)
    many = orders.processes + 2
    assert TPCC.spread(orders, many) == replace(orders, processes=many)
    assert TPCC.spread(orders, 0) == orders
    assert KIND.spread(ledger, many) == ledger, "one process writes it, wherever that is"


def test_needs_grow_with_the_nodes() -> None:
    laptop = profile_named("laptop")
    assert laptop.needs(1) == laptop.host
    assert laptop.needs(20) == HostNeeds(cores=4.0, memory_gib=15.0, disk_gib=14.0)


def test_unknown_profile_says_what_was_meant() -> None:
    with pytest.raises(BadInput, match=r"profile 'lap top' is unknown; did you mean 'laptop'\?"):
        profile_named("lap top")
    with pytest.raises(BadInput, match="there are adversity-15, adversity-9, laptop"):
        profile_named("zzz")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("rate_per_s = 150", "rate_per_s = 0", r"profiles\.laptop\.ledger\.rate_per_s: 0 must be greater than 0"),
        ("rate_per_s = 150\n", "", r"profiles\.laptop\.ledger\.rate_per_s: is missing; add it"),
        ("writers = 6", "writers = 1.5", r"ledger\.writers: 1\.5 must be a whole number"),
        ("writers = 6", "writer = 6", r"ledger\.writer: unknown key; did you mean 'writers'"),
        ("interval_ms = 200", "interval_ms = nan", r"probe\.interval_ms: nan must be a whole number"),
        ('pace = "fast"', 'pace = "quick"', r"pace: 'quick' must be a pace; there are default, fast"),
        ("cache_mib = 384", "cache_mib = -384", r"node\.cache_mib: -384 must be a whole number from 1"),
        ("[profiles.laptop]", "[profile.laptop]", "profile: unknown key; profiles stand in"),
        ("[profiles.laptop]", "[profiles.Laptop]", r"profiles\.Laptop: 'Laptop' must be a name in kebab-case"),
        ("host = {", "hosts = {", r"profiles\.laptop\.hosts: unknown key; did you mean 'host'"),
        ("host_a_node = { cores = 0.2, ", "host_a_node = { ", r"host_a_node\.cores: is missing"),
        ("tenants.nightly]\n", "tenants.nightly]\nlane = 9\n", r"laptop\.tenants\.nightly\.lane: unknown key; did you"),
        ("tenants.nightly]\n", "tenants.nights]\n", r"laptop\.tenants\.nights: unknown key"),
        ("[profiles.laptop]", "[profiles.laptop", "is not valid TOML.*line"),
    ],
)  # fmt: skip
def test_bad_files(old: str, new: str, said: str, tmp_path: Path) -> None:
    text = SHIPPED.read_text()
    assert old in text
    path = tmp_path / "profiles.toml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(BadInput) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert re.search(said, str(caught.value)), str(caught.value)


def test_file_without_profiles(tmp_path: Path) -> None:
    (path := tmp_path / "empty.toml").write_text("")
    with pytest.raises(BadInput, match="profiles: is missing; declare at least one"):
        load(path)


def test_sizes_of_a_node() -> None:
    default = profile_named("laptop").node
    assert node_of_size("medium", default) == profile_named("medium").node
    cpus = node_of_size("0.45", default)
    assert (cpus.cpus, cpus.memory_mib, cpus.cache_mib) == (0.45, None, default.cache_mib)
    both = node_of_size("0.5/1024", default)
    assert (both.cpus, both.memory_mib, both.cache_mib, both.sql_memory_mib) == (0.5, 1024, 256, 256)


@pytest.mark.parametrize("size", ["0", "-1", "0.5/", "0.5/x", "0.5/100", "1/2/3", "half", "", "nan/1024"])
def test_sizes_that_are_none(size: str) -> None:
    with pytest.raises(BadInput, match=r"size '.*': give|profile '.*' is unknown"):
        node_of_size(size, profile_named("laptop").node)
