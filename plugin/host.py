"""What this machine has, and whether it can carry a profile as local processes, or drive one that runs elsewhere."""

import math
import os
import platform
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from plugin.counts import number_of
from plugin.profiles import HostNeeds, Profile

GIB = 1 << 30
COARSEST_CLOCK_US = 1000.0
"""A monotonic clock that ticks less often cannot order what a run records (our own choice)."""
CPU_GROUPS = ("", "cpu", "cpu,cpuacct", "cpuacct,cpu")
MOST_CLOCK_SLIP_MS = 5.0
"""By how much monotonic and wall clock may drift apart within a few milliseconds (our own choice)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """A machine as measured: what this process may use of it, not what is built in.

    ``cores`` respects affinity and CPU quota; ``memory_gib`` is what is available now, within the memory limit of the
    control group; ``disk_gib`` is free for an ordinary user at ``disk_path``. ``clock_step_us`` is the smallest step of
    the monotonic clock that was seen, ``clock_slip_ms`` by how much wall and monotonic clock disagreed over a few
    milliseconds.
    """

    cores: float
    memory_gib: float
    memory_total_gib: float
    disk_gib: float
    disk_path: str
    clock_step_us: float
    clock_slip_ms: float
    kernel: str


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupLimits:
    """What control groups leave this process: cores and bytes, infinite where nothing is limited."""

    cores: float = math.inf
    memory: float = math.inf
    memory_left: float = math.inf


def measure(path: Path) -> Host:
    """Measure this host; ``path`` is where stores will lie (it need not exist yet). Takes well under 50 ms."""
    import psutil

    while not path.exists() and path != path.parent:
        path = path.parent
    memory = psutil.virtual_memory()
    groups = group_limits()
    step, slip = _clock()
    return Host(
        cores=min(_affinity(), groups.cores),
        memory_gib=min(memory.available, groups.memory_left) / GIB,
        memory_total_gib=min(memory.total, groups.memory) / GIB,
        disk_gib=shutil.disk_usage(path).free / GIB,
        disk_path=str(path),
        clock_step_us=step,
        clock_slip_ms=slip,
        kernel=f"{platform.system()} {platform.release()} {platform.machine()}",
    )


def carries(profile: Profile, host: Host, nodes: int) -> str | None:
    """Why this host cannot carry this many nodes of the profile as local processes; ``None`` if it can."""
    lacks = [*_too_small(host, profile.needs(nodes)), *_clock_wrong(host)]
    if not lacks:
        return None
    return f"this host cannot carry {number_of(nodes, 'nodes')} of profile {profile.name}: {'; '.join(lacks)}"


def drives(profile: Profile, host: Host, *, generators: int) -> str | None:
    """Why this host cannot put nodes that run elsewhere through a claim of the profile; ``None`` if it can.

    Without load ``generators`` beside the nodes it makes the load that the profile has them for.
    """
    if lacks := [*_clock_wrong(host)]:
        return f"this host cannot time nodes that run elsewhere: {'; '.join(lacks)}"
    each = profile.generators
    cores, memory_gib = (each.number * (size or 0) for size in (each.cpus, (each.memory_mib or 0) / 1024))
    if generators or not (lacks := [*_too_small(host, HostNeeds(cores=cores, memory_gib=memory_gib, disk_gib=0))]):
        return None
    return (
        f"this host cannot make all load of profile {profile.name}: {'; '.join(lacks)}; give --generators, to have it "
        "made beside the nodes"
    )


def _too_small(host: Host, need: HostNeeds) -> Iterator[str]:
    for word, has, wanted, unit in (
        ("cores", host.cores, need.cores, ""),
        ("available memory", host.memory_gib, need.memory_gib, " GiB"),
        (f"free disk at {host.disk_path}", host.disk_gib, need.disk_gib, " GiB"),
    ):
        if has < wanted:
            yield f"{word} {has:.1f}{unit} of {wanted:.1f}{unit}"


def _clock_wrong(host: Host) -> Iterator[str]:
    if host.clock_step_us > COARSEST_CLOCK_US:
        yield f"the monotonic clock steps by {host.clock_step_us:.0f} µs, at most {COARSEST_CLOCK_US:.0f} will do"
    if host.clock_slip_ms > MOST_CLOCK_SLIP_MS:
        yield (
            f"wall and monotonic clock drifted {host.clock_slip_ms:.1f} ms apart within milliseconds, "
            f"at most {MOST_CLOCK_SLIP_MS:.0f} ms will do"
        )


def group_limits(proc: Path = Path("/proc/self/cgroup"), mount: Path = Path("/sys/fs/cgroup")) -> GroupLimits:
    """The tightest limits of this process' control groups and all their ancestors, versions 1 and 2; none elsewhere."""
    cores = memory = left = math.inf
    for controllers, directory in _groups(proc, mount):
        if controllers in CPU_GROUPS:
            cores = min(cores, _quota(directory))
        if controllers in ("", "memory"):
            limit, used = _memory(directory)
            memory, left = min(memory, limit), min(left, limit - used)
    return GroupLimits(cores=cores, memory=memory, memory_left=max(left, 0.0))


def quota_used(
    proc: Path = Path("/proc/self/cgroup"), mount: Path = Path("/sys/fs/cgroup")
) -> tuple[float, float] | None:
    """Of the control group with the least quota of CPU: the quota in cores, and the CPU seconds used in it so far.

    ``None`` where none has a quota, or nobody tells what is used of it.
    """
    groups = [
        (_quota(directory), directory) for controllers, directory in _groups(proc, mount) if controllers in CPU_GROUPS
    ]
    quota, directory = min(groups, default=(math.inf, mount))
    if math.isinf(quota):
        return None
    with suppress(OSError):
        found = re.search(r"^usage_usec (\d+)$", (directory / "cpu.stat").read_text(), re.MULTILINE)
        if found:
            return quota, int(found[1]) / 1e6
    (nanoseconds,) = _figures(directory / "cpuacct.usage", 1)
    return None if math.isinf(nanoseconds) else (quota, nanoseconds / 1e9)


def _groups(proc: Path, mount: Path) -> Iterator[tuple[str, Path]]:
    """The control groups of this process and all their ancestors, with the controllers of each; none elsewhere."""
    with suppress(OSError):
        for line in proc.read_text().splitlines():
            _, _, rest = line.partition(":")
            controllers, _, group = rest.partition(":")
            for directory in _group_directories(mount, controllers, group):
                yield controllers, directory


def _group_directories(mount: Path, controllers: str, group: str) -> list[Path]:
    """The group's directory and its ancestors'. Inside a container some are the host's, and missing here."""
    bases = [mount / controllers, *(mount / name for name in controllers.split(","))] if controllers else [mount]
    base = next((item for item in bases if item.is_dir()), mount)
    parts = [part for part in group.split("/") if part not in ("", "..")]
    return [base.joinpath(*parts[:depth]) for depth in range(len(parts), -1, -1)]


def _quota(directory: Path) -> float:
    quota, period = _figures(directory / "cpu.max", 2)
    if math.isinf(quota):
        quota, period = (_figures(directory / f"cpu.cfs_{name}_us", 1)[0] for name in ("quota", "period"))
    return quota / period if 0 < quota < math.inf and 0 < period < math.inf else math.inf


def _memory(directory: Path) -> tuple[float, float]:
    """Limit and use in bytes; file cache that can be dropped is not counted as used."""
    for limit_file, used_file, cache_key in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        limit, used = _figures(directory / limit_file, 1)[0], _figures(directory / used_file, 1)[0]
        if limit < 1 << 60 and used < math.inf:  # version 1 prints a huge number for "no limit"
            try:
                stat = (directory / "memory.stat").read_text()
            except OSError:
                stat = ""
            cache = re.search(rf"^{cache_key} (\d+)$", stat, re.MULTILINE)
            return limit, used - (int(cache[1]) if cache else 0)
    return math.inf, 0.0


def _figures(file: Path, count: int) -> tuple[float, ...]:
    """The numbers in a control file; infinity for "max", for what is missing and where there is no such file."""
    try:
        words = file.read_text().split()
    except OSError:
        words = []
    figures = tuple(float(word) if re.fullmatch(r"-?\d+", word) else math.inf for word in words[:count])
    return figures + (math.inf,) * (count - len(figures))


def _affinity() -> float:
    if hasattr(os, "sched_getaffinity"):
        return float(len(os.sched_getaffinity(0)))
    return float(os.cpu_count() or 1)


def _clock() -> tuple[float, float]:
    """Smallest step of the monotonic clock in µs, and its slip against the wall clock in ms: best of three tries."""
    steps, slips = [], []
    for _ in range(3):
        before_wall, before = time.time_ns(), time.monotonic_ns()
        time.sleep(0.003)
        slips.append(abs((time.time_ns() - before_wall) - (time.monotonic_ns() - before)) / 1e6)
        start = now = time.monotonic_ns()
        while now == start:
            now = time.monotonic_ns()
        steps.append((now - start) / 1000)
    return min(steps), min(slips)
