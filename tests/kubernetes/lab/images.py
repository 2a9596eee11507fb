"""Container images of this machine's own files, as archives that containerd imports: no registry is asked."""

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.kubernetes.lab import layers
from tests.kubernetes.lab.layers import BUSYBOX, DASH, TOOLS, Layer

SHELL = "roachproof.local/shell:1"
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Of the environment of all images."""
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""What images call the machines that have another name for themselves: their programs are this one's."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Image:
    """An image to be made: a shell, and ``programs`` of this machine, each by where it is to be in the image.

    ``beside`` are files that it has where this machine has them, links among them with what they lead to; ``known`` are
    the directories and programs among these that are asked for by name.

    Left alone it sleeps, so that sandboxes can be made of it.
    """

    name: str
    programs: Mapping[str, Path] = field(default_factory=dict)
    beside: Sequence[Path] = ()
    known: Sequence[Path] = ()
    config: Mapping[str, object] = field(default_factory=dict)
    """Of the image's own configuration what is other than here: where its programs begin to run, as whom, what runs."""

    @property
    def where(self) -> Mapping[str, str]:
        """Where it has what this machine has at a path, as the substrate is told."""
        own = {str(source): inside for inside, source in self.programs.items()}
        return own | {str(path): str(path) for path in self.known}

    def write(self, archive: Path) -> None:
        """Write it in the format of ``docker save``."""
        layer = archive.with_suffix(".layer")
        try:
            with tarfile.open(layer, "w") as tar:
                contents = Layer(tar)
                contents.fill(self.programs)
                contents.add(self.beside)
            _wrap(self.name, layer, archive, self.config)
        finally:
            layer.unlink(missing_ok=True)

    @property
    def key(self) -> str:
        """What it is made of: the same key, the same image."""
        found = [(inside, str(source), *_dated(source)) for inside, source in self.programs.items()]
        found += [(str(path), "", *_dated(path)) for path in (BUSYBOX, DASH, *map(Path, TOOLS), *self.beside)]
        told = json.dumps(
            [
                self.name,
                found,
                [str(path) for path in self.known],
                dict(self.config),
                *(Path(code).read_text() for code in (__file__, layers.__file__)),
            ]
        )
        return hashlib.sha256(told.encode()).hexdigest()[:16]


def _dated(path: Path) -> tuple[int, int]:
    if not path.exists():
        return 0, 0
    files = [path] if path.is_file() else [found for found in path.rglob("*") if found.is_file()]
    return sum(found.stat().st_size for found in files), max(found.stat().st_mtime_ns for found in files)


def _wrap(name: str, layer: Path, archive: Path, config: Mapping[str, object]) -> None:
    digest = hashlib.sha256()
    with layer.open("rb") as content:
        while part := content.read(1 << 20):
            digest.update(part)
    described = {
        "architecture": ARCHITECTURES.get(machine := platform.machine(), machine),
        "os": "linux",
        "config": {
            "Env": [PATH],
            "Cmd": ["/bin/sleep", "infinity"],
            "WorkingDir": "/",
            **config,
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest.hexdigest()}"]},
    }
    told = json.dumps(described).encode()
    config_name = f"{hashlib.sha256(told).hexdigest()}.json"
    manifest = [{"Config": config_name, "RepoTags": [name], "Layers": ["layer.tar"]}]
    with tarfile.open(archive, "w") as tar:
        for entry, words in ((config_name, told), ("manifest.json", json.dumps(manifest).encode())):
            info = tarfile.TarInfo(entry)
            info.size = len(words)
            tar.addfile(info, io.BytesIO(words))
        tar.add(layer, "layer.tar")
