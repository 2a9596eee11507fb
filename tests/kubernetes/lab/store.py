"""Images as containerd keeps them, unpacked once for all machines of all labs."""

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.kubernetes.lab.images import Image
from tests.kubernetes.lab.inside import APART, die_with_parent, until
from tests.kubernetes.lab.machines import CONTAINERD

CNI = ("/usr/lib/cni", "/opt/cni/bin")
"""Where Debian's package and the upstream archive put the plugins of container networks."""
_PREFIX, _DONE = "store-", "done"
_KEPT = 2
"""How many stores are kept: one of all images, and one of the few that the lab's own tests need."""


def cni() -> str | None:
    """Where the plugins are, if anywhere."""
    return next((place for place in CNI if all(Path(place, name).exists() for name in ("bridge", "host-local"))), None)


def stored(base: Path, images: Sequence[Image]) -> Path:
    """Where containerd has the images unpacked: machines get it by hard links. For who is ``alone``."""
    store = base / f"{_PREFIX}{hashlib.sha256(repr([image.key for image in images]).encode()).hexdigest()[:12]}"
    if (store / _DONE).exists():
        (store / _DONE).touch()
        return store
    shutil.rmtree(store, ignore_errors=True)
    store.mkdir(parents=True)
    _fill(store, images)
    (store / _DONE).touch()
    _forget(base)
    return store


def _fill(store: Path, images: Sequence[Image]) -> None:
    (settings := store / "containerd.toml").write_text(CONTAINERD.format(root=store, cni=cni(), pause="none"))
    archive = store / "image.tar"
    ask = ["ctr", "-a", f"{store}/containerd.sock"]
    daemon = subprocess.Popen(
        [*APART, "sh", "-c", f"mount -t tmpfs tmpfs /run && exec containerd -c {settings} -l warn > {store}/log 2>&1"],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=die_with_parent,  # noqa: PLW1509, RUF100
    )

    def answers() -> bool:
        if daemon.poll() is not None:
            raise RuntimeError(f"containerd ended with {daemon.returncode}: {(store / 'log').read_text()}")
        return subprocess.run([*ask, "version"], capture_output=True, check=False).returncode == 0

    try:
        until("containerd", answers)
        for image in images:
            image.write(archive)
            into = [*ask, "-n", "k8s.io", "images", "import", "--snapshotter", "overlayfs", str(archive)]
            subprocess.run(into, stdout=subprocess.DEVNULL, check=True)
    finally:
        archive.unlink(missing_ok=True)
        _end(daemon)


def _end(daemon: "subprocess.Popen[bytes]") -> None:
    """Have containerd close its databases: it is the child of `unshare`, which blocks the signal."""
    children = Path(f"/proc/{daemon.pid}/task/{daemon.pid}/children")
    with contextlib.suppress(OSError):
        for child in children.read_text().split():
            os.kill(int(child), signal.SIGTERM)
    daemon.wait()


def _forget(base: Path) -> None:
    """Remove the stores that were not used lately. Machines that run have links of their own to what they need."""
    done = sorted(base.glob(f"{_PREFIX}*/{_DONE}"), key=lambda path: path.stat().st_mtime, reverse=True)
    kept = {path.parent for path in done[:_KEPT]}
    for store in base.glob(f"{_PREFIX}*"):
        if store not in kept:
            shutil.rmtree(store)
