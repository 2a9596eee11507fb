"""A lab's first process: the control plane, in namespaces of its own, and the machines in theirs.

Started by ``Lab`` as ``python -m tests.kubernetes.lab.control_plane DESCRIPTION``: whatever it started dies with it.
"""

import contextlib
import functools
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.kubernetes.lab.inside import (
    API,
    API_PORT,
    API_UP,
    GATEWAY,
    READY,
    SERVICE,
    SERVICES,
    TOKEN,
    ask,
    complete,
    do,
    own_mounts,
    parts,
    spawn,
    until,
    write,
)
from tests.kubernetes.lab.machines import machine


def control_plane(lab: dict[str, Any]) -> None:
    """Start everything, and stay until the end. ``READY`` is made once all machines are ready."""
    root, programs = Path(lab["directory"]), Path(lab["programs"])
    own_mounts()
    # Where the controller manager's provisioner makes volumes.
    volumes = Path("/tmp/hostpath_pv")
    (root / "volumes").mkdir()
    do(f"mount --bind {root}/volumes {volumes}", "ip link set lo up", "ip link add lan0 type bridge")
    do(*(f"ip addr add {address}/32 dev lan0" for address in (GATEWAY, SERVICE)))
    do("ip link set lan0 up", "ip route add default dev lan0")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    write(root / "tokens.csv", f'{TOKEN},admin,admin,"system:masters"\n')
    do(f"openssl genrsa -out {root}/accounts.key 2048")
    write(root / "kubeconfig", _kubeconfig(root))
    spawn(root, "etcd", f"{programs}/etcd", "--data-dir", f"{root}/etcd", "--unsafe-no-fsync", "--log-level", "warn")
    spawn(root, "apiserver", f"{programs}/kube-apiserver", *_api_flags(root))
    for number in range(1, len(lab["zones"]) + 1):
        parts[f"machine {number}"] = functools.partial(_ended, machine(lab, number))
    until("the API server", lambda: complete() and ask("/readyz") == "ok")
    (root / API_UP).touch()
    config = f"--kubeconfig={root}/kubeconfig"
    spawn(
        root,
        "controllers",
        f"{programs}/kube-controller-manager",
        config,
        "--leader-elect=false",
        f"--root-ca-file={root}/pki/apiserver.crt",
        f"--service-account-private-key-file={root}/accounts.key",
        f"--cert-dir={root}/pki-controllers",
        "--enable-hostpath-provisioner=true",
        # A claim that it is told of twice at once it looks at again no sooner: by default after 15 s.
        "--pvclaimbinder-sync-period=1s",
        "--node-monitor-grace-period=8s",
        "--node-monitor-period=1s",
    )
    spawn(root, "scheduler", f"{programs}/kube-scheduler", config, "--leader-elect=false", f"--cert-dir={root}/pki-s")
    spawn(root, "dns", sys.executable, "-m", "tests.kubernetes.lab.dns")
    until("its machines", lambda: complete() and _ready() >= len(lab["zones"]))
    until("an account", lambda: complete() and ask("/api/v1/namespaces/default/serviceaccounts/default"))
    storage = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "kubernetes.io/host-path",
        # As clouds have it. Of a volume that is bound at once the scheduler may hear before its plugin for volumes does
        # (kubernetes/kubernetes#73216): the pod waited for the next event, up to five minutes.
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    made = write(root / "storage.json", storage)
    subprocess.run([programs / "kubectl", config, "create", "-f", made], check=True, stdout=subprocess.DEVNULL)
    (root / READY).touch()
    while True:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
        _open_volumes(root / "volumes")
        time.sleep(0.05)


def _ended(pid: int) -> int | None:
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def _open_volumes(volumes: Path) -> None:
    """Let everybody write to new volumes, as drivers do that know fsGroup: the provisioner here is not one of them."""
    for volume in volumes.iterdir():
        with contextlib.suppress(OSError):
            if volume.stat().st_mode & 0o777 != 0o777:
                volume.chmod(0o777)


def _kubeconfig(root: Path) -> object:
    cluster = {"server": API, "certificate-authority": f"{root}/pki/apiserver.crt"}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "lab",
        "clusters": [{"name": "lab", "cluster": cluster}],
        "users": [{"name": "admin", "user": {"token": TOKEN}}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "admin"}}],
    }


def _api_flags(root: Path) -> list[str]:
    return [
        "--etcd-servers=http://127.0.0.1:2379",
        # All addresses of its own network: the gateway's, and that of its service.
        "--bind-address=0.0.0.0",
        f"--advertise-address={GATEWAY}",
        f"--secure-port={API_PORT}",
        f"--cert-dir={root}/pki",
        f"--service-cluster-ip-range={SERVICES}",
        f"--token-auth-file={root}/tokens.csv",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={root}/accounts.key",
        f"--service-account-key-file={root}/accounts.key",
        "--kubelet-preferred-address-types=InternalIP",
        "--default-not-ready-toleration-seconds=5",
        "--default-unreachable-toleration-seconds=5",
    ]


def _ready() -> int:
    nodes = json.loads(ask("/api/v1/nodes") or '{"items": []}')["items"]
    conditions = [node["status"].get("conditions", []) for node in nodes]
    return sum(any(c["type"] == "Ready" and c["status"] == "True" for c in of_one) for of_one in conditions)


if __name__ == "__main__":
    control_plane(json.loads(sys.argv[1]))
