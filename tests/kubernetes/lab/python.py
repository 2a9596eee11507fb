"""A Python with packages, of this machine's own files: what images need that run one."""

import importlib.metadata
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path

from packaging.requirements import Requirement

_NOT_NEEDED = ("__pycache__", "site-packages", "dist-packages", "test", "idlelib", "tkinter", "lib2to3", "ensurepip")


def interpreter() -> list[Path]:
    """The interpreter of this environment, and its standard library."""
    environment = [path for path in (Path(sys.prefix, "pyvenv.cfg"), Path(sys.executable)) if path.exists()]
    return [*environment, *_standard_library()]


def called(directory: Path) -> Path:
    """A program in the directory that is the interpreter, whatever that is called."""
    program, text = directory / "python", f'#!/bin/sh\nexec {sys.executable} "$@"\n'
    # Else an image that has it would be made anew each time.
    if not program.exists() or program.read_text() != text:
        program.write_text(text)
        program.chmod(0o755)
    return program


def packages(wheels: Sequence[str]) -> list[Path]:
    """The files of these packages and of all that they need, as far as they are installed."""
    return sorted({file for wheel in wheels for found in _with_needed(wheel, set()) for file in _files(found)})


def _with_needed(wheel: str, seen: set[str]) -> Iterator[Distribution]:
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
