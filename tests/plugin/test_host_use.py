"""What of this machine is in use, and by whom."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from plugin import host_use
from plugin.host_use import KERNEL, CpuUse, DiskStalls, DiskUse, NetworkUse


@pytest.fixture
def stranger() -> Iterator[int]:
    """A process that is not the test's, whatever becomes of the test: its id."""
    with subprocess.Popen(["sleep", "3600"]) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def test_cpu_of_a_process_that_ended_is_its_parents_and_of_nobody_else(stranger: int) -> None:
    burn = [sys.executable, "-c", "import time\nwhile time.process_time() < 1: pass"]
    began = time.monotonic()
    ours, theirs = CpuUse(os.getpid()), CpuUse(stranger)
    subprocess.run(burn, check=True)
    seen = [use.since_last() for use in (ours, theirs)]
    cores = (os.cpu_count() or 1) * (time.monotonic() - began) / 100
    for use in seen:
        assert 0 <= use["others_percent"] <= use["cpu_percent"] <= 100
    assert (seen[1]["others_percent"] - seen[0]["others_percent"]) * cores > 0.8


def test_cpu_below_any_of_the_roots_is_ours_and_counts_once(stranger: int) -> None:
    """A cluster that runs on this machine and not below the harness is no other work."""
    burn = [sys.executable, "-c", "import time\nwhile time.process_time() < 1: pass"]
    began = time.monotonic()
    theirs, both = CpuUse(stranger), CpuUse(stranger, os.getpid(), os.getpid(), stranger)
    twice = [both._seconds()[0], CpuUse(os.getpid(), stranger)._seconds()[0]]
    subprocess.run(burn, check=True)
    seen = [use.since_last()["others_percent"] for use in (theirs, both)]
    assert (seen[0] - seen[1]) * (os.cpu_count() or 1) * (time.monotonic() - began) / 100 > 0.8
    assert twice[0] < 1.5 * twice[1] + 1


def test_a_process_that_is_gone_uses_nothing() -> None:
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    use = CpuUse(gone.pid)
    seen = use.since_last()
    assert seen["others_percent"] == seen["cpu_percent"], "nothing of it is ours"


def test_a_quota_that_is_used_up_leaves_nothing_whatever_the_machine_has() -> None:
    """A container may use two cores of sixteen: what it does with them is an eighth of the machine."""
    told = iter([(2.0, 0.0), (2.0, 1e6), (2.0, 1e6)])
    use = CpuUse(os.getpid(), quota=told.__next__)
    seen = use.since_last()
    assert seen["cpu_percent"] == 100.0
    assert 0 <= seen["others_percent"] <= 100
    assert 0 <= use.since_last()["cpu_percent"] <= 100, "of the quota nothing was used any more"


def test_how_long_everything_waited_for_disks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10.0, 12.0, 12.0, 13.0, 14.0])
    monkeypatch.setattr(host_use, "time", SimpleNamespace(monotonic=clock.__next__))  # of this module alone
    kernel = tmp_path / "io"
    line = "some avg10=9.00 avg60=9.00 avg300=9.00 total=999\nfull avg10=9.00 avg60=9.00 avg300=9.00 total={}\n"
    kernel.write_text(line.format(1000))
    disks = DiskStalls(kernel)
    kernel.write_text(line.format(501_000))
    assert disks.since_last() == {"disk_stalled_percent": 25.0}
    assert disks.since_last() == {}, "no time has passed"
    kernel.write_text("nothing of it\n")
    assert disks.since_last() == {}
    assert DiskStalls(tmp_path / "a kernel that does not say").since_last() == {}


WRITE = "import os, sys; f = open(sys.argv[1], 'wb'); f.write(os.urandom(32 << 20)); f.flush(); os.fsync(f.fileno())"


@pytest.mark.skipif(DiskUse(os.getpid()).since_last() == {}, reason="this system does not tell who uses its disks")
def test_what_a_process_wrote_is_its_parents_and_of_nobody_else(tmp_path: Path, stranger: int) -> None:
    ours, theirs = DiskUse(stranger, os.getpid()), DiskUse(stranger)
    subprocess.run([sys.executable, "-c", WRITE, str(tmp_path / "file")], check=True)
    seen = [use.since_last() for use in (ours, theirs)]
    if {} in seen:
        pytest.skip("somebody whom one may not look into was at work meanwhile")
    own, other = (use["disk_others_percent"] for use in seen)
    assert 0 <= own < other <= 100
    assert other > 95, "whoever wrote is none of the stranger's"


def test_whose_work_disks_do_is_not_told_where_somebody_hidden_was_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an ordinary user sees it: what others write would seem to be none. The kernel's own work is not asked for."""
    cpu_s = {10: 1.0, 20: 5.0, 30: 7.0}
    wrote = {10: 100}

    class Seen(SimpleNamespace):
        def ppid(self) -> int:
            return 2 if self.pid == 30 else 1

        def children(self, *, recursive: bool) -> list[object]:
            return []

        def io_counters(self) -> object:
            if self.pid not in wrote:
                raise psutil.AccessDenied(self.pid)
            return SimpleNamespace(read_bytes=0, write_bytes=wrote[self.pid])

        def cpu_times(self) -> tuple[float, float]:
            return cpu_s[self.pid], 0.0

    there = [Seen(pid=pid, info={"name": KERNEL if pid == 2 else "x"}) for pid in (2, 10, 20, 30)]
    monkeypatch.setattr(psutil, "process_iter", lambda *_: iter(there))
    monkeypatch.setattr(psutil, "Process", lambda pid: Seen(pid=pid))
    monkeypatch.setattr(psutil.Process, "io_counters", None, raising=False)
    use = DiskUse(10)
    wrote[10], cpu_s[30] = 200, 9.0
    assert use.since_last() == {"disk_others_percent": 0.0}, "who used no CPU wrote nothing"
    wrote[10], cpu_s[20] = 300, 5.01
    assert use.since_last() == {}
    assert use.since_last() == {"disk_others_percent": 0.0}
    cpu_s[40] = 0.01
    there.append(Seen(pid=40, info={"name": "x"}))
    assert use.since_last() == {}, "it has come since"
    del wrote[10]
    assert use.since_last() == {}, "we cannot see what we do ourselves"
    wrote[10] = 400
    assert use.since_last() == {}, "nor since when"


def test_disks_of_a_run_that_is_gone_are_not_told() -> None:
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    assert DiskUse(gone.pid).since_last() == {}


def interface(home: Path, name: str, speed: str | None, received: int, sent: int, *, device: bool = True) -> None:
    """As Linux shows one; ``speed`` in Mbit/s, ``None`` where it is down."""
    (home / name / "statistics").mkdir(parents=True, exist_ok=True)
    if device:
        (home / name / "device").mkdir(exist_ok=True)
    for file, content in {"speed": speed, "statistics/rx_bytes": received, "statistics/tx_bytes": sent}.items():
        if content is not None:
            (home / name / file).write_text(f"{content}\n")


def test_how_full_the_fullest_network_interface_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the direction that is fuller: 50 MB a second are 40 % of 1 Gbit/s, and 4 % of 10."""
    clock = iter([10.0, 12.0, 12.0, 13.0, 14.0])
    monkeypatch.setattr(host_use, "time", SimpleNamespace(monotonic=clock.__next__))
    interface(tmp_path, "eth0", "1000", 5, 7)
    interface(tmp_path, "eth1", "10000", 0, 0)
    interface(tmp_path, "veth0", "10", 0, 0, device=False)
    interface(tmp_path, "eth2", "-1", 0, 0)
    interface(tmp_path, "eth3", None, 0, 0)
    network = NetworkUse(tmp_path)
    interface(tmp_path, "eth0", "1000", 5 + 10_000_000, 7 + 100_000_000)
    interface(tmp_path, "eth1", "10000", 200_000_000, 0)
    for name in ("veth0", "eth2", "eth3"):
        (tmp_path / name / "statistics" / "rx_bytes").write_text(str(10**12))
    assert network.since_last() == {"network_bytes": 50_000_000, "network_percent": 40.0}
    assert network.since_last() == {}, "no time has passed"
    interface(tmp_path, "eth0", "1000", 0, 0)
    assert network.since_last() == {"network_bytes": 0, "network_percent": 0.0}, "its counters began anew"
    interface(tmp_path, "eth0", "-1", 10**9, 0)
    interface(tmp_path, "eth1", "-1", 0, 0)
    assert network.since_last() == {}


def test_where_no_interface_says_its_speed_nothing_is_said_of_the_network(tmp_path: Path) -> None:
    interface(tmp_path, "lo", "1000", 0, 0, device=False)
    for network in (NetworkUse(tmp_path), NetworkUse(tmp_path / "of no Linux")):
        assert network.since_last() == {}
