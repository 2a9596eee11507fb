"""Limits of CPU and memory by control groups, version 1 or 2, where this process may make some.

Standard library only.
"""

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_PERIOD_US = 100_000
_UNLIMITED = 1 << 60
"""Version 1 shows a limit of about 2^63 where there is none."""


def parents() -> dict[str, str]:
    """Where groups for ``cpu`` and ``memory`` can be made, by controller; empty if not for both.

    Version 1: below our own group. Version 2 lets no group with processes in it hand on controllers, so there it is the
    nearest group above ours that already hands on both.
    """
    own: dict[str, str] = {}
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            own.update(dict.fromkeys(controllers.split(","), path))
    found: dict[str, str] = {}
    with suppress(OSError):
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            left, _, right = line.partition(" - ")
            kind, _, options = right.split()[:3]
            mount = Path(left.split()[4])
            if kind == "cgroup":
                for controller in {"cpu", "memory"} & set(options.split(",")):
                    place = mount / own.get(controller, "/").lstrip("/")
                    found[controller] = str(place if place.is_dir() else mount)
            elif kind == "cgroup2" and (place2 := handing_on(mount, own.get("", "/"))) is not None:
                found = {"cpu": str(place2), "memory": str(place2)}
                break
    usable = {"cpu", "memory"} <= found.keys() and all(os.access(place, os.W_OK) for place in found.values())
    return found if usable else {}


def handing_on(mount: Path, own: str) -> Path | None:
    """The nearest group of version 2, at ``own`` or above it, that hands on both controllers."""
    place = mount / own.lstrip("/")
    for candidate in (place, *place.parents):
        with suppress(OSError):
            handed = candidate.joinpath("cgroup.subtree_control").read_text().split()
            if {"cpu", "memory"} <= set(handed) and os.access(candidate, os.W_OK):
                return candidate
        if candidate == mount:
            break
    return None


def _groups(places: Mapping[str, str], cluster: str) -> set[Path]:
    return {Path(place) / f"roachproof-{cluster}" for place in places.values()}


def create(places: Mapping[str, str], cluster: str) -> None:
    """Make the cluster's groups. Raises ``OSError`` where that is not allowed."""
    for group in _groups(places, cluster):
        group.mkdir()
        control = group / "cgroup.subtree_control"
        if control.exists():
            control.write_text("+cpu +memory")


def limit(
    places: Mapping[str, str], cluster: str, name: str, *, cpus: float | None, memory_mib: int | None
) -> list[str]:
    """Make or adjust the groups of one node; the files into which a process writes ``0`` to join.

    Raises ``OSError``.
    """
    joins: list[str] = []
    quota = -1 if cpus is None else max(1000, int(cpus * _PERIOD_US))
    size = -1 if memory_mib is None else memory_mib << 20
    for group in _groups(places, cluster):
        node = group / name
        node.mkdir(exist_ok=True)
        if node.joinpath("cgroup.type").exists():
            node.joinpath("cpu.max").write_text(f"{'max' if quota < 0 else quota} {_PERIOD_US}")
            node.joinpath("memory.max").write_text("max" if size < 0 else str(size))
        elif node.joinpath("cpu.cfs_quota_us").exists():
            node.joinpath("cpu.cfs_period_us").write_text(str(_PERIOD_US))
            node.joinpath("cpu.cfs_quota_us").write_text(str(quota))
        if node.joinpath("memory.limit_in_bytes").exists():
            node.joinpath("memory.limit_in_bytes").write_text(str(size))
        joins.append(str(node / "cgroup.procs"))
    return joins


def limits(places: Mapping[str, str], cluster: str, name: str, pid: int) -> dict[str, float]:
    """What the groups of one node that a process is in allow: ``cpus`` in cores, ``memory_mib``, where limited."""
    found: dict[str, float] = {}
    for group in _groups(places, cluster):
        node = group / name
        if str(pid) not in _words(node / "cgroup.procs"):
            continue
        cpu = _words(node / "cpu.max") or _words(node / "cpu.cfs_quota_us") + _words(node / "cpu.cfs_period_us")
        if len(cpu) == 2 and cpu[0].isdigit():
            found["cpus"] = int(cpu[0]) / int(cpu[1])
        for size in (_words(node / "memory.max") or _words(node / "memory.limit_in_bytes"))[:1]:
            if size.isdigit() and int(size) < _UNLIMITED:
                found["memory_mib"] = int(size) / (1 << 20)
    return found


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


def remove(places: Mapping[str, str], cluster: str) -> None:
    """Remove the cluster's groups; nothing where there are none. A group empties a moment after its last process."""
    for group in _groups(places, cluster):
        if not group.is_dir():
            continue
        for place in (*(child for child in group.iterdir() if child.is_dir()), group):
            for _ in range(100):
                try:
                    place.rmdir()
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.01)
                else:
                    break
