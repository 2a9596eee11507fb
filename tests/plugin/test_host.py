"""The host is measured, and what it cannot carry is said with figures."""

import math
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from plugin.host import (
    GIB,
    GroupLimits,
    Host,
    carries,
    drives,
    group_limits,
    measure,
    quota_used,
)
from plugin.profiles import profile_named

PLENTY = Host(
    cores=1000,
    memory_gib=5000,
    memory_total_gib=6000,
    disk_gib=90000,
    disk_path="/data",
    clock_step_us=0.2,
    clock_slip_ms=0.01,
    kernel="Linux",
)


def test_measures_this_machine(tmp_path: Path) -> None:
    host = measure(tmp_path / "not" / "there" / "yet")
    assert 0 < host.cores <= (os.cpu_count() or 1)
    assert 0 < host.memory_gib <= host.memory_total_gib
    assert host.disk_path == str(tmp_path)
    assert host.disk_gib > 0
    assert 0 < host.clock_step_us < 1000
    assert host.clock_slip_ms < 5


def test_measuring_is_quick(tmp_path: Path) -> None:
    measure(tmp_path)
    took = []
    for _ in range(5):
        start = time.process_time()  # what it sleeps is three times 3 ms
        measure(tmp_path)
        took.append(time.process_time() - start)
    assert min(took) < 0.05


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this system")
def test_affinity_counts(tmp_path: Path) -> None:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        assert measure(tmp_path).cores <= 1
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.parametrize("name", ["laptop", "small", "medium", "large", "tenancy-9", "adversity-9", "adversity-15"])
def test_plenty_carries_everything(name: str) -> None:
    assert carries(profile_named(name), PLENTY, 15) is None


def test_two_cores_carry_a_laptop_but_no_more() -> None:
    modest = replace(PLENTY, cores=2, memory_gib=6, disk_gib=20)
    assert carries(profile_named("laptop"), modest, 3) is None
    why = carries(profile_named("medium"), modest, 3)
    assert why == (
        "this host cannot carry 3 nodes of profile medium: cores 2.0 of 26.0; "
        "available memory 6.0 GiB of 100.0 GiB; free disk at /data 20.0 GiB of 210.0 GiB"
    )


@pytest.mark.parametrize(
    ("host", "said"),
    [
        (replace(PLENTY, cores=1.5), "cores 1.5 of 2.0"),
        (replace(PLENTY, memory_gib=1.2), "available memory 1.2 GiB of 3.0 GiB"),
        (replace(PLENTY, disk_gib=0.4), "free disk at /data 0.4 GiB of 3.0 GiB"),
        (replace(PLENTY, clock_step_us=15600), "the monotonic clock steps by 15600 µs, at most 1000"),
        (replace(PLENTY, clock_slip_ms=80), "drifted 80.0 ms apart"),
    ],
)
def test_each_lack_is_named_alone(host: Host, said: str) -> None:
    why = carries(profile_named("laptop"), host, 3)
    assert why is not None
    assert said in why
    assert ";" not in why


@pytest.mark.parametrize("generators", [0, 3])
def test_a_clock_must_do_wherever_nodes_are(generators: int) -> None:
    coarse = replace(PLENTY, clock_step_us=15600)
    why = drives(profile_named("laptop"), coarse, generators=generators) or ""
    assert "the monotonic clock steps by 15600 µs" in why
    assert ";" not in why


def test_where_no_generator_is_beside_the_nodes_the_host_makes_the_load() -> None:
    profile, modest = profile_named("adversity-15"), replace(PLENTY, cores=2, memory_gib=6, disk_gib=1)
    assert drives(profile, modest, generators=4) is None
    assert drives(profile, modest, generators=0) == (
        "this host cannot make all load of profile adversity-15: cores 2.0 of 16.0; available memory 6.0 GiB of "
        "32.0 GiB; give --generators, to have it made beside the nodes"
    )
    assert drives(profile_named("laptop"), modest, generators=0) is None


def test_more_nodes_need_more() -> None:
    host = replace(PLENTY, memory_gib=3)
    assert carries(profile_named("laptop"), host, 3) is None
    assert "3.0 GiB of 6.8 GiB" in (carries(profile_named("laptop"), host, 9) or "")


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


def test_group_limits_version_2_takes_the_tightest_of_all_ancestors(tmp_path: Path) -> None:
    proc = tmp_path / "cgroup"
    proc.write_text("0::/outer/inner\n")
    mount = tree(
        tmp_path / "fs",
        {
            "outer/cpu.max": "150000 100000",
            "outer/memory.max": str(4 * GIB),
            "outer/memory.current": str(3 * GIB),
            "outer/memory.stat": f"anon 5\ninactive_file {GIB}",
            "outer/inner/cpu.max": "max 100000",
            "outer/inner/memory.max": "max",
            "outer/inner/memory.current": str(GIB),
        },
    )
    assert group_limits(proc, mount) == GroupLimits(cores=1.5, memory=4 * GIB, memory_left=2 * GIB)
    assert quota_used(proc, mount) is None, "nobody says what is used of it"
    tree(mount, {"outer/cpu.stat": "usage_usec 2500000\nuser_usec 1", "outer/inner/cpu.stat": "usage_usec 7"})
    assert quota_used(proc, mount) == (1.5, 2.5)


def test_group_limits_version_1(tmp_path: Path) -> None:
    proc = tmp_path / "cgroup"
    proc.write_text("4:memory:/job\n2:cpu,cpuacct:/job\n1:name=systemd:/\n0::/\n")
    mount = tree(
        tmp_path / "fs",
        {
            "cpu,cpuacct/job/cpu.cfs_quota_us": "50000",
            "cpu,cpuacct/job/cpu.cfs_period_us": "100000",
            "cpu,cpuacct/cpu.cfs_quota_us": "-1",
            "cpu,cpuacct/cpu.cfs_period_us": "100000",
            "memory/job/memory.limit_in_bytes": str(GIB),
            "memory/job/memory.usage_in_bytes": str(2 * GIB),
            "memory/memory.limit_in_bytes": "9223372036854771712",
            "memory/memory.usage_in_bytes": "5",
        },
    )
    assert group_limits(proc, mount) == GroupLimits(cores=0.5, memory=GIB, memory_left=0)
    tree(mount, {"cpu,cpuacct/job/cpuacct.usage": "2500000000"})
    assert quota_used(proc, mount) == (0.5, 2.5)
    assert quota_used(tmp_path / "no groups", mount) is None


@pytest.mark.parametrize("text", ["", "nonsense", "0::/gone/../../etc\n", "::::"])
def test_no_groups_are_no_limits(text: str, tmp_path: Path) -> None:
    proc = tmp_path / "cgroup"
    proc.write_text(text)
    assert group_limits(proc, tmp_path / "fs") == GroupLimits()
    assert group_limits(tmp_path / "none", tmp_path).cores == math.inf
