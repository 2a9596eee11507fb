"""The one layer of an image: a shell, users, and files of this machine with the libraries that they are linked with."""

import io
import os
import re
import subprocess
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path

BUSYBOX = Path("/bin/busybox")
DASH = Path("/bin/dash")
TOOLS = ("/usr/bin/date", "/usr/bin/setpriv", "/usr/bin/env", "/usr/bin/tar", "/usr/bin/stat")
"""Of the machine itself, where it has them: busybox's know less."""
_UNWINDER = "libgcc_s.so.1"
"""What the C library opens by itself when a thread ends before its function does; without it the process is aborted."""
USERS = "root:x:0:0::/:/bin/sh\npostgres:x:999:999::/tmp:/bin/sh\nroachproof:x:1000:1000::/tmp:/bin/sh\n" \
    "nobody:x:65534:65534::/tmp:/bin/sh\n"  # fmt: skip
_GROUPS = "root:x:0:\npostgres:x:999:\nroachproof:x:1000:\nnogroup:x:65534:\n"


class Layer:
    """Writes the layer; what was written under a name first stays."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self._there: set[str] = set()

    def fill(self, programs: Mapping[str, Path]) -> None:
        """A shell, users, and the programs with the libraries that they are linked with."""
        self._file(BUSYBOX, "bin/busybox")
        tools = [Path(tool) for tool in TOOLS if Path(tool).exists()]
        for tool in tools:
            self._file(tool, str(tool)[1:])
        # Not busybox's: that prefers its own applets to programs.
        self._file(DASH, "bin/sh")
        for applet in subprocess.run(
            [BUSYBOX, "--list-full"], capture_output=True, text=True, check=True
        ).stdout.split():
            self._link(applet, "/bin/busybox")
        for name, content in (
            ("etc/passwd", USERS),
            ("etc/group", _GROUPS),
            ("etc/nsswitch.conf", "hosts: files dns\n"),
        ):
            self._data(name, content.encode())
        self._directory("tmp", 0o1777)
        for library in _libraries([*tools, DASH]):
            self._file(library, str(library)[1:])
        for inside, source in programs.items():
            self._tree(source, inside.strip("/"))

    def _tree(self, source: Path, inside: str) -> None:
        files = [source] if source.is_file() else [path for path in sorted(source.rglob("*")) if not path.is_dir()]
        for path in files:
            at = inside if path == source else f"{inside}/{path.relative_to(source)}"
            if path.is_symlink() and path != source:
                # As an environment's interpreter: through whatever links, to what is in the image.
                outside = not path.resolve().is_relative_to(source)
                self._link(at, str(path.resolve() if outside else path.readlink()))
            else:
                self._file(path, at)
        for library in _libraries(path for path in files if _is_program(path)):
            if not library.is_relative_to(source):
                self._file(library, str(library)[1:])

    def add(self, files: Iterable[Path]) -> None:
        """Files where this machine has them, with the libraries that they are linked with."""
        for path in files:
            self._as_here(path)
        for library in _libraries(path for path in files if _is_program(path)):
            self._as_here(library)

    def _as_here(self, path: Path) -> None:
        if path.is_symlink():
            self._link(str(path)[1:], str(path.readlink()))
            self._as_here(Path(os.path.normpath(path.parent / path.readlink())))
        else:
            self._file(path, str(path)[1:])

    def _new(self, name: str) -> bool:
        if name in self._there:
            return False
        self._there.add(name)
        for parent in reversed(Path(name).parents):
            if str(parent) != ".":
                self._directory(str(parent), 0o755)
        return True

    def _directory(self, name: str, mode: int) -> None:
        if name not in self._there:
            self._there.add(name)
            info = tarfile.TarInfo(name)
            info.type, info.mode = tarfile.DIRTYPE, mode
            self._tar.addfile(info)

    def _file(self, source: Path, name: str) -> None:
        if self._new(name):
            info, found = tarfile.TarInfo(name), source.stat()
            info.size, info.mode = found.st_size, (found.st_mode & 0o777) | 0o444
            with source.open("rb") as content:
                self._tar.addfile(info, content)

    def _data(self, name: str, content: bytes) -> None:
        if self._new(name):
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), 0o644
            self._tar.addfile(info, io.BytesIO(content))

    def _link(self, name: str, target: str) -> None:
        if self._new(name):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            self._tar.addfile(info)


def _is_program(path: Path) -> bool:
    if not path.is_file() or not (path.stat().st_mode & 0o111 or ".so" in path.name):
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def _libraries(programs: Iterable[Path]) -> list[Path]:
    """What programs are linked with, the loader too. Scripts and static programs are linked with nothing.

    And what the C library itself opens, which no program tells.
    """
    found: set[str] = set()
    for program in programs:
        told = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
        found.update(re.findall(r"(/\S+)(?= \(0x)", told))
    libraries = {Path(library) for library in found}
    beside = (library.with_name(_UNWINDER) for library in libraries if library.name == "libc.so.6")
    return sorted(libraries | {library for library in beside if library.exists()})
