"""A real Kubernetes for tests: control plane and kubelets of this machine, in namespaces that end with the test."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from clusters.substrates.kubernetes.settings import PROCESSES
from fixtures.workloads.relay import ROOT
from tests.kubernetes.lab import hyperkube
from tests.kubernetes.lab.images import Image
from tests.kubernetes.lab.inside import APART, GATEWAY, READY, die_with_parent, until
from tests.kubernetes.lab.remains import (
    CONTROL_GROUPS,
    PREFIX,
    alone,
    groups,
    hold,
    make_places,
    remove,
    remove_after_us,
    sweep_alone,
)
from tests.kubernetes.lab.store import cni, stored

PROGRAMS = ("containerd", "runc", "ctr", "ip", "unshare", "nsenter", "mount", "openssl", "nft", "ldd")
"""What a machine needs for one, beside what is no program on ``PATH``."""
_LOG = "lab.log"


def why_not() -> str:
    """The reason why no lab can be had here; nothing where one can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "a Kubernetes of its own needs Linux and root"
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if not Path("/bin/busybox").exists():
        missing.append("busybox")
    if cni() is None:
        missing.append("the CNI plugins bridge and host-local")
    if missing:
        return (
            f"a Kubernetes of its own needs {', '.join(missing)}: install them (docs/kubernetes.md names the packages)"
        )
    if not os.access(CONTROL_GROUPS, os.W_OK):
        return f"a Kubernetes of its own needs control groups, and {CONTROL_GROUPS} cannot be written"
    return hyperkube.why_not()


class Lab:
    """A cluster that is there between ``start`` and ``stop``, and no longer than the process that started it.

    ``zones`` has the region and the zone of each machine. The first of ``images`` is what sandboxes are made of.
    """

    def __init__(self, base: Path, images: Sequence[Image], zones: Sequence[tuple[str, str]]) -> None:
        self._base, self._images, self._zones = base, images, zones
        self.name = f"{PREFIX}{os.getpid()}-{time.time_ns() % 10**6}"
        self.directory = base / self.name
        self.kubeconfig = self.directory / "kubeconfig"
        self._process: subprocess.Popen[bytes] | None = None
        self.remover: subprocess.Popen[bytes] | None = None
        """The process that removes what a killed owner leaves."""
        self.pid = 0
        """The cluster's first process, which has its network."""

    def start(self) -> Self:
        """Start it, what killed ones left swept first; returns once its machines are ready.

        Raises ``NotBuilt``, ``RuntimeError``.
        It ends with the thread that calls this: the kernel counts that as its parent.
        """
        with alone(self._base):
            sweep_alone(self._base)
            self._begin(hyperkube.build(), stored(self._base, self._images))
        process, log = self._process, self.directory / _LOG
        assert process is not None
        try:
            until("the lab", lambda: process.poll() is not None or (self.directory / READY).exists(), 240)
            if process.poll() is not None:
                raise RuntimeError(f"the lab ended with {process.returncode}: {log.read_text()}")
            self.pid = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])
        except BaseException:
            self.stop()
            raise
        return self

    def _begin(self, programs: Path, store: Path) -> None:
        self.directory.mkdir(parents=True)
        self.remover = remove_after_us(self.directory)
        for root in groups():
            for number in range(1, len(self._zones) + 1):
                (root / self.name / f"machine-{number}").mkdir(parents=True, exist_ok=True)
        make_places(self.directory)
        told = {
            "name": self.name,
            "directory": str(self.directory),
            "programs": str(programs),
            "store": str(store),
            "cni": cni(),
            "pause": self._images[0].name,
            "zones": list(self._zones),
        }
        line = [*APART, "--net", sys.executable, "-m", "tests.kubernetes.lab.control_plane", json.dumps(told)]
        held = hold(self.directory)
        try:
            with (self.directory / _LOG).open("wb") as output:
                self._process = subprocess.Popen(
                    line,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    cwd=ROOT,
                    pass_fds=(held,),
                    # Ctrl-C is for the tests, which need the lab to end in good order.
                    start_new_session=True,
                    preexec_fn=die_with_parent,  # noqa: PLW1509, RUF100
                )
        finally:
            os.close(held)

    def enter(self, argv: Sequence[str]) -> list[str]:
        """A command line that runs in the cluster's network, with its names."""
        resolver = self.directory / "resolv.conf"
        resolver.write_text(f"nameserver {GATEWAY}\noptions timeout:1 attempts:2\n")
        script = 'mount --make-rprivate / && mount --bind "$0" "$(readlink -f /etc/resolv.conf)" && exec "$@"'
        into = ["nsenter", f"--net=/proc/{self.pid}/ns/net", "unshare", "--mount"]
        return [*into, "sh", "-c", script, str(resolver), *argv]

    def environment(self) -> dict[str, str]:
        """What a command needs to find the cluster and ``kubectl``, and to know the cluster's work for its own."""
        assert self._process is not None
        path = f"{hyperkube.directory()}:{os.environ.get('PATH', '')}"
        told = {"KUBECONFIG": str(self.kubeconfig), PROCESSES: str(self._process.pid)}
        return {**os.environ, "PATH": path, **told}

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
        remove(self.directory)
        if self.remover is not None:
            self.remover.communicate()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: TracebackType | type[BaseException] | BaseException | None) -> None:
        self.stop()
