"""What this machine has, and whether it can carry a profile as local processes, or drive one that runs elsewhere."""

import math
import os
import platform
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from plugin.counts import number_of
from plugin.profiles import HostNeeds, Profile

GIB = 1 << 30
COARSEST_CLOCK_US = 1000.0
"""A monotonic clock that ticks less often cannot order what a run records (our own choice)."""
CPU_GROUPS = ("", "cpu", "cpu,cpuacct", "cpuacct,cpu")
CPU_FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
"""What a CPU's time is made of; time of guests is in ``user`` already (proc(5))."""
KERNEL = "kthreadd"
"""The process whose children are the kernel's own on Linux: what these write is for somebody else."""
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


class CpuUse:
    """The share of the CPU in use that there is for us: ``cpu_percent`` in all, ``others_percent`` by other work.

    There are the cores that this process may run on, and where its control groups have less, their quota: whichever has
    the larger share in use. Ours are the process ``root`` and everything below it, also what ended meanwhile. What a
    hypervisor took is others'.
    """

    def __init__(self, root: int, quota: Callable[[], tuple[float, float] | None] | None = None) -> None:
        self._root, self._quota = root, quota or quota_used
        self._last = self._seconds()

    def since_last(self) -> Mapping[str, float]:
        """Both since the last call."""
        last, self._last = self._last, self._seconds()
        ours, there, used, limit, limited = (
            max(0.0, now - before) for now, before in zip(self._last, last, strict=True)
        )
        if limit > 0 and (there <= 0 or limited / limit > used / there):
            there, used = limit, limited
        if there <= 0:
            return {"cpu_percent": 0.0, "others_percent": 0.0}
        share = min(1.0, used / there)
        shares = {"cpu_percent": share, "others_percent": max(0.0, share - ours / there)}
        return {name: round(100 * share, 1) for name, share in shares.items()}

    def _seconds(self) -> tuple[float, ...]:
        """CPU seconds: ours, and of the cores and then of the quota all that there were so far, and those in use."""
        import psutil

        cores = psutil.cpu_times(percpu=True)
        usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(len(cores))
        own = [cores[at] for at in usable if at < len(cores)] or cores
        there = sum(getattr(core, name, 0.0) for core in own for name in CPU_FIELDS)
        idle = sum(core.idle + getattr(core, "iowait", 0.0) for core in own)
        ours = 0.0
        with suppress(psutil.Error):
            root = psutil.Process(self._root)
            for process in (root, *root.children(recursive=True)):
                with suppress(psutil.Error):
                    ours += sum(process.cpu_times()[:4])  # its own and that of children that ended
        quota, limited = self._quota() or (0.0, 0.0)
        return ours, there, there - idle, quota * time.monotonic(), limited


class DiskStalls:
    """How much of the time all work of the machine that was not idle waited for its disks.

    Of Linux' pressure stall information ("full" of ``io``); nothing is said where the kernel does not keep it.
    """

    def __init__(self, file: Path = Path("/proc/pressure/io")) -> None:
        self._file = file
        self._last = self._figures()

    def since_last(self) -> Mapping[str, float]:
        """``disk_stalled_percent`` since the last call; empty where it is not known."""
        last, self._last = self._last, self._figures()
        if last is None or self._last is None or self._last[0] <= last[0]:
            return {}
        (now, stalled), (before, had_stalled) = self._last, last
        return {"disk_stalled_percent": round(min(100.0, 100 * (stalled - had_stalled) / (now - before)), 1)}

    def _figures(self) -> tuple[float, float] | None:
        """Now, and how long it was stalled since boot, in µs."""
        try:
            found = re.search(r"^full .*total=(\d+)", self._file.read_text(), re.MULTILINE)
        except OSError:
            return None
        return (time.monotonic() * 1e6, float(found[1])) if found else None


class _DiskBytes(NamedTuple):
    """What our processes and others read and wrote since each began, and the CPU seconds of those one cannot see."""

    ours: int
    others: int
    hidden: Mapping[int, float]


class DiskUse:
    """Other work's part of what is read from disks and written to them; nothing is said where that cannot be told.

    Counted are the bytes of all processes. What is left of the disks' own counters would be no measure of others: a
    file system's journal is written for whoever asked, and by none of them. Ours are the process ``root`` and
    everything below it, also what ended meanwhile. An ordinary user may not look into the processes of others, nor root
    into all in a container: where one of those used CPU, what it did to the disks is not known; else it did nothing.
    """

    def __init__(self, root: int) -> None:
        import psutil

        self._root = root
        self._kernel = {process.pid for process in psutil.process_iter(["name"]) if process.info["name"] == KERNEL}
        self._last = self._bytes()

    def since_last(self) -> Mapping[str, float]:
        """``disk_others_percent`` since the last call; empty where it is not known."""
        last, self._last = self._last, self._bytes()
        now = self._last
        if last is None or now is None or any(cpu > last.hidden.get(pid, 0.0) for pid, cpu in now.hidden.items()):
            return {}
        ours, others = max(0, now.ours - last.ours), max(0, now.others - last.others)
        return {"disk_others_percent": round(100 * others / max(1, ours + others), 1)}

    def _bytes(self) -> _DiskBytes | None:
        import psutil

        if not hasattr(psutil.Process, "io_counters"):
            return None
        try:
            root = psutil.Process(self._root)
            mine = {process.pid for process in (root, *root.children(recursive=True))}
        except psutil.Error:
            return None
        ours, others, hidden = 0, 0, dict[int, float]()
        for process in psutil.process_iter():
            with suppress(psutil.NoSuchProcess):
                if not self._kernel.isdisjoint((process.pid, process.ppid())):
                    continue
                try:
                    io = process.io_counters()
                except psutil.AccessDenied:
                    if process.pid in mine:  # what we do ourselves must not seem to be others'
                        return None
                    hidden[process.pid] = sum(process.cpu_times()[:2])
                    continue
                if process.pid in mine:
                    ours += io.read_bytes + io.write_bytes
                else:
                    others += io.read_bytes + io.write_bytes
        return _DiskBytes(ours, others, hidden)


def memory_and_load() -> Mapping[str, float]:
    """The machine's load average over a minute, and the memory that is available."""
    import psutil

    return {"load_1m": psutil.getloadavg()[0], "memory_available_mib": psutil.virtual_memory().available >> 20}


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
