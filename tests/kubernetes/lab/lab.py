"""A real Kubernetes for tests: control plane and kubelets of this machine, in namespaces that end with the test."""

import ctypes
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.kubernetes.lab import hyperkube
from tests.kubernetes.lab.images import Image
from tests.kubernetes.lab.machines import CONTAINERD, GATEWAY, READY, until

ROOT = Path(__file__).resolve().parents[3]
CNI = ("/usr/lib/cni", "/opt/cni/bin")
"""Where Debian's package and the upstream archive put the plugins of container networks."""
_PROGRAMS = ("containerd", "runc", "ctr", "ip", "unshare", "nsenter", "mount", "openssl", "nft", "ldd")
_APART = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private", "--mount-proc"]
_CONTROL_GROUPS = Path("/sys/fs/cgroup")
_PREFIX = "roachproof-lab-"
_libc = ctypes.CDLL(None, use_errno=True)


def why_not() -> str:
    """The reason why no lab can be had here; nothing where one can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "a Kubernetes of its own needs Linux and root"
    missing = [program for program in _PROGRAMS if shutil.which(program) is None]
    if not Path("/bin/busybox").exists():
        missing.append("busybox")
    if _cni() is None:
        missing.append("the CNI plugins bridge and host-local")
    if missing:
        return (
            f"a Kubernetes of its own needs {', '.join(missing)}: install them (docs/kubernetes.md names the packages)"
        )
    if not os.access(_CONTROL_GROUPS, os.W_OK):
        return f"a Kubernetes of its own needs control groups, and {_CONTROL_GROUPS} cannot be written"
    return hyperkube.why_not()


def _cni() -> str | None:
    return next((place for place in CNI if all(Path(place, name).exists() for name in ("bridge", "host-local"))), None)


def _child(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def _groups() -> list[Path]:
    """The roots of control groups: one, or one a controller."""
    if (_CONTROL_GROUPS / "cgroup.controllers").exists():
        return [_CONTROL_GROUPS]
    return [path for path in _CONTROL_GROUPS.iterdir() if path.is_dir() and not path.is_symlink()]


class Lab:
    """A cluster that is there between ``start`` and ``stop``, and no longer than the process that started it.

    ``zones`` has the region and the zone of each machine. The first of ``images`` is what sandboxes are made of.
    """

    def __init__(self, base: Path, images: Sequence[Image], zones: Sequence[tuple[str, str]]) -> None:
        self._base, self._images, self._zones = base, images, zones
        self.name = f"{_PREFIX}{os.getpid()}-{time.time_ns() % 10**6}"
        self.directory = base / self.name
        self.kubeconfig = self.directory / "kubeconfig"
        self._process: subprocess.Popen[bytes] | None = None
        self.pid = 0
        """The cluster's first process, which has its network."""

    def start(self) -> Self:
        """Start it, what killed ones left swept first; returns once its machines are ready. Raises ``RuntimeError``."""
        sweep(self._base)
        programs = hyperkube.build()
        store = _store(self._base, self._images)
        self.directory.mkdir(parents=True)
        for root in _groups():
            for number in range(1, len(self._zones) + 1):
                (root / self.name / f"machine-{number}").mkdir(parents=True, exist_ok=True)
        told = {
            "name": self.name,
            "directory": str(self.directory),
            "programs": str(programs),
            "store": str(store),
            "cni": _cni(),
            "pause": self._images[0].name,
            "zones": list(self._zones),
        }
        line = [*_APART, "--net", sys.executable, "-m", "tests.kubernetes.lab.machines", json.dumps(told)]
        log = self.directory / "lab.log"
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                line,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=ROOT,
                preexec_fn=lambda: _libc.prctl(1, signal.SIGKILL),  # noqa: PLW1509, RUF100 - it dies when we do
            )
        process = self._process
        try:
            until("the lab", lambda: process.poll() is not None or (self.directory / READY).exists(), 240)
            if process.poll() is not None:
                raise RuntimeError(f"the lab ended with {process.returncode}: {log.read_text()}")
        except BaseException:
            self.stop()
            raise
        self.pid = _child(process.pid)
        return self

    def enter(self, argv: Sequence[str]) -> list[str]:
        """A command line that runs in the cluster's network, with its names."""
        resolver = self.directory / "resolv.conf"
        resolver.write_text(f"nameserver {GATEWAY}\noptions timeout:1 attempts:2\n")
        script = 'mount --make-rprivate / && mount --bind "$0" "$(readlink -f /etc/resolv.conf)" && exec "$@"'
        into = ["nsenter", f"--net=/proc/{self.pid}/ns/net", "unshare", "--mount"]
        return [*into, "sh", "-c", script, str(resolver), *argv]

    def environment(self) -> dict[str, str]:
        """What a command needs to find the cluster, and ``kubectl``."""
        path = f"{hyperkube.directory()}:{os.environ.get('PATH', '')}"
        return {**os.environ, "PATH": path, "KUBECONFIG": str(self.kubeconfig)}

    def kubectl(self, *arguments: str, check: bool = True) -> str:
        """What ``kubectl`` says. Raises ``CalledProcessError``."""
        line = self.enter(["kubectl", *arguments])
        done = subprocess.run(line, env=self.environment(), capture_output=True, text=True, check=False, timeout=180)
        if check and done.returncode:
            raise RuntimeError(f"kubectl {' '.join(arguments)}: {done.stderr}")
        return done.stdout + done.stderr

    def isolate(self, *machines: int) -> None:
        """Let nothing pass to and from machines (by number) any more."""
        links = "{ " + ", ".join(f'"up{number}"' for number in machines) + " }"
        rules = ["add table inet isolated"]
        for hook, match in (("input", "iifname"), ("output", "oifname"), ("forward", "iifname")):
            rules.append(f"add chain inet isolated {hook} {{ type filter hook {hook} priority -10; }}")
            rules.append(f"add rule inet isolated {hook} {match} {links} drop")
        rules.append(f"add rule inet isolated forward oifname {links} drop")
        self._nft("; ".join(rules))

    def heal(self) -> None:
        """Undo ``isolate``."""
        self._nft("delete table inet isolated")

    def _nft(self, rules: str) -> None:
        subprocess.run(["nsenter", f"--net=/proc/{self.pid}/ns/net", "nft", rules], check=True)

    def stop(self) -> None:
        """End everything, and remove what it left."""
        if self._process is not None:
            # Its child is process 1 of the namespaces: with that everything ends.
            self._process.kill()
            self._process.wait()
        _remove(self.directory)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: TracebackType | type[BaseException] | BaseException | None) -> None:
        self.stop()


def sweep(base: Path) -> list[str]:
    """Remove what labs left whose process was killed; their names."""
    names = {path.name for path in base.glob(f"{_PREFIX}*")}
    for root in _groups():
        names |= {path.name for path in root.glob(f"{_PREFIX}*")}
    dead = [name for name in sorted(names) if not Path(f"/proc/{name.removeprefix(_PREFIX).split('-')[0]}").exists()]
    for name in dead:
        _remove(base / name)
    return dead


def _remove(directory: Path) -> None:
    for root in _groups():
        group = root / directory.name
        for path in sorted(group.rglob("*"), reverse=True):
            if path.is_dir():
                until(f"{path} to be empty", lambda path=path: _removed(path), 30)  # type: ignore[misc]
        if group.is_dir():
            until(f"{group} to be empty", lambda group=group: _removed(group), 30)  # type: ignore[misc]
    subprocess.run(["rm", "-rf", directory], check=True)


def _removed(group: Path) -> bool:
    """A control group goes once its last process is gone, which takes a moment."""
    try:
        group.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _store(base: Path, images: Sequence[Image]) -> Path:
    """Where containerd has the images unpacked, once: machines get it by hard links. Earlier ones are deleted."""
    store = base / f"store-{hashlib.sha256(repr([image.key for image in images]).encode()).hexdigest()[:12]}"
    if (store / "done").exists():
        return store
    for former in base.glob("store-*"):
        shutil.rmtree(former)
    store.mkdir(parents=True)
    (settings := store / "containerd.toml").write_text(CONTAINERD.format(root=store, cni=_cni(), pause="none"))
    address, archive = f"{store}/containerd.sock", store / "image.tar"
    daemon = subprocess.Popen(
        [*_APART, "sh", "-c", f"mount -t tmpfs tmpfs /run && exec containerd -c {settings} -l warn > {store}/log 2>&1"],
        stdin=subprocess.DEVNULL,
    )
    try:
        ask = ["ctr", "-a", address]
        until("containerd", lambda: subprocess.run([*ask, "version"], capture_output=True, check=False).returncode == 0)
        for image in images:
            image.write(archive)
            into = [*ask, "-n", "k8s.io", "images", "import", "--snapshotter", "overlayfs", str(archive)]
            subprocess.run(into, stdout=subprocess.DEVNULL, check=True)
    finally:
        archive.unlink(missing_ok=True)
        # Not the process that waits for it in the namespaces' stead: that listens to no signal.
        os.kill(_child(daemon.pid), signal.SIGTERM)
        daemon.wait()
    (store / "done").touch()
    return store
