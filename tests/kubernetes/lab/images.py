"""Container images of this machine's own files, as archives that containerd imports: no registry is asked."""

import hashlib
import io
import json
import re
import subprocess
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

BUSYBOX = Path("/bin/busybox")
DASH = Path("/bin/dash")
SHELL = "roachproof.local/shell:1"
_TOOLS = ("/usr/bin/date", "/usr/bin/setpriv", "/usr/bin/env", "/usr/bin/tar", "/usr/bin/stat")
"""Of the machine itself, where it has them: busybox's know less."""
_USERS = "root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/tmp:/bin/sh\n"
_GROUPS = "root:x:0:\nnogroup:x:65534:\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class Image:
    """An image to be made: a shell, and ``programs`` of this machine, each by where it is to be in the image.

    Left alone it sleeps, so that sandboxes can be made of it.
    """

    name: str
    programs: Mapping[str, Path] = field(default_factory=dict)

    @property
    def where(self) -> Mapping[str, str]:
        """Where it has what this machine has at a path, as the substrate is told."""
        return {str(source): inside for inside, source in self.programs.items()}

    def write(self, archive: Path) -> None:
        """Write it in the format of ``docker save``."""
        layer = archive.with_suffix(".layer")
        try:
            with tarfile.open(layer, "w") as tar:
                _Layer(tar).fill(self.programs)
            _wrap(self.name, layer, archive)
        finally:
            layer.unlink(missing_ok=True)

    @property
    def key(self) -> str:
        """What it is made of: the same key, the same image."""
        found = [(inside, str(source), *_dated(source)) for inside, source in self.programs.items()]
        found += [(str(tool), "", *_dated(tool)) for tool in (BUSYBOX, *map(Path, _TOOLS))]
        told = json.dumps([self.name, found, _USERS, Path(__file__).read_text()])
        return hashlib.sha256(told.encode()).hexdigest()[:16]


class _Layer:
    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self._there: set[str] = set()

    def fill(self, programs: Mapping[str, Path]) -> None:
        """A shell, users, and the programs with the libraries that they are linked with."""
        self._file(BUSYBOX, "bin/busybox")
        tools = [Path(tool) for tool in _TOOLS if Path(tool).exists()]
        for tool in tools:
            self._file(tool, str(tool)[1:])
        # Not busybox's: that prefers its own applets to programs.
        self._file(DASH, "bin/sh")
        for applet in subprocess.run(
            [BUSYBOX, "--list-full"], capture_output=True, text=True, check=True
        ).stdout.split():
            self._link(applet, "/bin/busybox")
        for name, content in (
            ("etc/passwd", _USERS),
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
        linked = [path for path in files if path.is_file() and (path.stat().st_mode & 0o111 or ".so" in path.name)]
        for library in _libraries(linked):
            if not library.is_relative_to(source):
                self._file(library, str(library)[1:])

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


def _libraries(programs: Iterable[Path]) -> list[Path]:
    """What programs are linked with, the loader too. Scripts and static programs are linked with nothing."""
    found: set[str] = set()
    for program in programs:
        told = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
        found.update(re.findall(r"(/\S+)(?= \(0x)", told))
    return [Path(library) for library in sorted(found)]


def _dated(path: Path) -> tuple[int, int]:
    if not path.exists():
        return 0, 0
    files = [path] if path.is_file() else [found for found in path.rglob("*") if found.is_file()]
    return sum(found.stat().st_size for found in files), max(found.stat().st_mtime_ns for found in files)


def _wrap(name: str, layer: Path, archive: Path) -> None:
    digest = hashlib.sha256()
    with layer.open("rb") as content:
        while part := content.read(1 << 20):
            digest.update(part)
    described = {
        "architecture": "amd64",
        "os": "linux",
        "config": {
            "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
            "Cmd": ["/bin/sleep", "infinity"],
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest.hexdigest()}"]},
    }
    config = json.dumps(described).encode()
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = [{"Config": config_name, "RepoTags": [name], "Layers": ["layer.tar"]}]
    with tarfile.open(archive, "w") as tar:
        for entry, told in ((config_name, config), ("manifest.json", json.dumps(manifest).encode())):
            info = tarfile.TarInfo(entry)
            info.size = len(told)
            tar.addfile(info, io.BytesIO(told))
        tar.add(layer, "layer.tar")
