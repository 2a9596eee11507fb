"""What of this machine is in use: CPU, disks, network and memory; of the first two how much by other work."""

import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from plugin.host import quota_used

if TYPE_CHECKING:
    import psutil

CPU_FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
"""What a CPU's time is made of; time of guests is in ``user`` already (proc(5))."""
KERNEL = "kthreadd"
"""The process whose children are the kernel's own on Linux: what these write is for somebody else."""


def _below(root: int) -> "Iterable[psutil.Process]":
    """The process and everything below it. Raises ``psutil.Error`` where it is gone."""
    import psutil

    process = psutil.Process(root)
    return process, *process.children(recursive=True)


class CpuUse:
    """The share of the CPU in use that there is for us: ``cpu_percent`` in all, ``others_percent`` by other work.

    There are the cores that this process may run on, and where its control groups have less, their quota: whichever has
    the larger share in use. Ours are the processes ``roots`` and everything below them, also what ended meanwhile. What
    a hypervisor took is others'.
    """

    def __init__(self, *roots: int, quota: Callable[[], tuple[float, float] | None] | None = None) -> None:
        self._roots, self._quota = roots, quota or quota_used
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
        ours, own_processes = 0.0, dict[int, psutil.Process]()
        for root in self._roots:
            with suppress(psutil.Error):
                own_processes |= {process.pid: process for process in _below(root)}
        for process in own_processes.values():
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
    file system's journal is written for whoever asked, and by none of them. Ours are the processes ``roots`` and
    everything below them, also what ended meanwhile. An ordinary user may not look into the processes of others, nor
    root into all in a container: where one of those used CPU, what it did to the disks is not known; else it did
    nothing.
    """

    def __init__(self, *roots: int) -> None:
        import psutil

        self._roots = roots
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
            mine = {process.pid for root in self._roots for process in _below(root)}
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


class _Interface(NamedTuple):
    """How many bytes a second it can pass in each direction, and how many it received and sent so far."""

    most: float
    passed: tuple[int, ...]


class NetworkUse:
    """How full the fullest network interface is, in its busier direction; nothing is said where that is not known.

    Of Linux' ``/sys/class/net``. Asked are interfaces of a device that say their speed: loopback, bridges and tunnels
    have no device, those of many virtual machines no speed.
    """

    def __init__(self, interfaces: Path = Path("/sys/class/net")) -> None:
        self._interfaces = interfaces
        self._last = time.monotonic(), self._seen()

    def since_last(self) -> Mapping[str, float]:
        """Since the last call ``network_bytes`` a second, and ``network_percent`` of what there could be."""
        (before, had), (now, has) = self._last, (time.monotonic(), self._seen())
        self._last = now, has
        if now <= before or not had.keys() & has.keys():
            return {}
        rates = [
            (max(0, *(new - old for new, old in zip(has[name].passed, had[name].passed, strict=True))), has[name].most)
            for name in had.keys() & has.keys()
        ]
        passed, most = max(rates, key=lambda rate: rate[0] / rate[1])
        each_s = passed / (now - before)
        return {"network_bytes": round(each_s), "network_percent": round(min(100.0, 100 * each_s / most), 1)}

    def _seen(self) -> Mapping[str, _Interface]:
        """All that say their speed, by name."""
        found = {}
        for interface in self._interfaces.glob("*/device"):
            with suppress(OSError, ValueError):  # one that is down has a speed that cannot be read
                own = interface.parent
                speed, *passed = (
                    int((own / file).read_text()) for file in ("speed", "statistics/rx_bytes", "statistics/tx_bytes")
                )
                if speed > 0:
                    found[own.name] = _Interface(speed * 1e6 / 8, tuple(passed))
        return found


def memory_and_load() -> Mapping[str, float]:
    """The machine's load average over a minute, and the memory that is available."""
    import psutil

    return {"load_1m": psutil.getloadavg()[0], "memory_available_mib": psutil.virtual_memory().available >> 20}
