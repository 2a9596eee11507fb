"""What runs inside a lab's namespaces: the control plane, and machines with a kubelet and a containerd each.

Started by ``Lab`` as ``python -m tests.kubernetes.lab.machines DESCRIPTION``, as process 1 of its own namespaces:
whatever it started dies with it.
"""

import contextlib
import ctypes
import json
import os
import shutil
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

GATEWAY = "172.30.0.1"
API = f"https://{GATEWAY}:6443"
TOKEN = "lab"
READY, API_UP = "ready", "api-up"
_NEW_NET, _NEW_MOUNTS = 0x40000000, 0x20000
_libc = ctypes.CDLL(None, use_errno=True)
_unverified = ssl._create_unverified_context()

CONTAINERD = """\
version = 2
root = "{root}/containerd"
state = "/run/containerd-state"
[grpc]
  address = "{root}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  # Without CAP_SYS_RESOURCE no process can be given a better score than its parent's.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{cni}"
    conf_dir = "{root}/cni"
[plugins."io.containerd.internal.v1.opt"]
  path = "{root}/containerd-opt"
"""


def until(what: str, check: Callable[[], Any], timeout: float = 120.0) -> Any:
    """Wait for something to be true; what it was. Raises ``TimeoutError``."""
    began = time.monotonic()
    while not (found := check()):
        if time.monotonic() - began > timeout:
            raise TimeoutError(f"{what}: not within {timeout:g} s")
        time.sleep(0.05)
    return found


def ask(path: str) -> str:
    """What the API server answers; nothing where it does not."""
    request = urllib.request.Request(API + path, headers={"Authorization": f"Bearer {TOKEN}"})
    try:
        return str(urllib.request.urlopen(request, context=_unverified, timeout=3).read().decode())
    except OSError:
        return ""


def _do(*lines: str) -> None:
    for line in lines:
        subprocess.run(line.split(), check=True)


def _write(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def _spawn(directory: Path, name: str, *argv: str) -> None:
    log = (directory / f"{name}.log").open("ab")
    subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)


def _own_mounts() -> None:
    for place in ("/run", "/var/log", "/var/lib/cni", "/var/lib/kubelet"):
        Path(place).mkdir(parents=True, exist_ok=True)
        _do(f"mount -t tmpfs tmpfs {place}")


def control_plane(lab: dict[str, Any]) -> None:
    """Start everything, and stay until the end. ``READY`` is made once all machines are ready."""
    root, programs = Path(lab["directory"]), Path(lab["programs"])
    _own_mounts()
    # Where the controller manager's provisioner makes volumes.
    volumes = Path("/tmp/hostpath_pv")
    (root / "volumes").mkdir()
    volumes.mkdir(exist_ok=True)
    _do(f"mount --bind {root}/volumes {volumes}", "ip link set lo up", "ip link add lan0 type bridge")
    _do(f"ip addr add {GATEWAY}/32 dev lan0", "ip link set lan0 up", "ip route add default dev lan0")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    _write(root / "tokens.csv", f'{TOKEN},admin,admin,"system:masters"\n')
    _do(f"openssl genrsa -out {root}/accounts.key 2048")
    _write(root / "kubeconfig", _kubeconfig(root))
    _spawn(root, "etcd", f"{programs}/etcd", "--data-dir", f"{root}/etcd", "--unsafe-no-fsync", "--log-level", "warn")
    _spawn(root, "apiserver", f"{programs}/kube-apiserver", *_api_flags(root))
    machines = [_machine(lab, number) for number in range(1, len(lab["zones"]) + 1)]
    until("the API server", lambda: ask("/readyz") == "ok")
    (root / API_UP).touch()
    config = f"--kubeconfig={root}/kubeconfig"
    _spawn(
        root,
        "controllers",
        f"{programs}/kube-controller-manager",
        config,
        "--leader-elect=false",
        f"--root-ca-file={root}/pki/apiserver.crt",
        f"--service-account-private-key-file={root}/accounts.key",
        f"--cert-dir={root}/pki-controllers",
        "--enable-hostpath-provisioner=true",
        "--node-monitor-grace-period=8s",
        "--node-monitor-period=1s",
    )
    _spawn(root, "scheduler", f"{programs}/kube-scheduler", config, "--leader-elect=false", f"--cert-dir={root}/pki-s")
    _spawn(root, "dns", sys.executable, "-m", "tests.kubernetes.lab.dns")
    until("its machines", lambda: _ready() >= len(machines))
    until("an account", lambda: ask("/api/v1/namespaces/default/serviceaccounts/default"))
    storage = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "kubernetes.io/host-path",
    }
    made = _write(root / "storage.json", storage)
    subprocess.run([programs / "kubectl", config, "create", "-f", made], check=True, stdout=subprocess.DEVNULL)
    (root / READY).touch()
    while True:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
        _open_volumes(root / "volumes")
        time.sleep(0.05)


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
        f"--bind-address={GATEWAY}",
        f"--advertise-address={GATEWAY}",
        "--secure-port=6443",
        f"--cert-dir={root}/pki",
        "--service-cluster-ip-range=10.96.0.0/16",
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


def _machine(lab: dict[str, Any], number: int) -> int:
    """Begin one machine in namespaces of its own, and connect it; its process id."""
    reader, writer = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            os.setsid()
            if _libc.unshare(_NEW_NET | _NEW_MOUNTS):
                raise OSError(ctypes.get_errno(), "unshare")
            _do("mount --make-rprivate /")
            os.write(writer, b"x")
            _kubelet(lab, number)
        except BaseException as error:  # noqa: BLE001, RUF100 - a child never returns into its parent's code
            print(f"machine {number}: {error!r}", flush=True)
        finally:
            os._exit(1)
    os.read(reader, 1)
    os.close(reader)
    os.close(writer)
    link, address = f"up{number}", f"172.30.1.{number}"
    _do(f"ip link add {link} type veth peer name eth0 netns {pid}", f"ip link set {link} up")
    _do(f"ip route add {address}/32 dev {link} src {GATEWAY}")
    _do(f"ip route add 10.244.{number}.0/24 via {address} dev {link} onlink src {GATEWAY}")
    Path(lab["directory"], f"linked-{number}").touch()
    return pid


def _kubelet(lab: dict[str, Any], number: int) -> None:
    root = Path(lab["directory"])
    own, address = root / f"machine-{number}", f"172.30.1.{number}"
    (own / "kubelet").mkdir(parents=True)
    _own_mounts()
    _do("mount --make-rshared /")
    until("its link", (root / f"linked-{number}").exists)
    _do("ip link set lo up", "ip link add cni0 type bridge", f"ip addr add 10.244.{number}.1/24 dev cni0")
    _do("ip link set cni0 up", f"ip addr add {address}/32 dev eth0", "ip link set eth0 up")
    _do(f"ip route add {GATEWAY} dev eth0", f"ip route add default via {GATEWAY}")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    _write(own / "cni" / "10.conflist", _pod_network(number))
    _write(own / "kubelet.json", _kubelet_settings(lab, own, number))
    _write(own / "containerd.toml", CONTAINERD.format(root=own, cni=lab["cni"], pause=lab["pause"]))
    store = Path(lab["store"]) / "containerd"
    _do(f"cp -al {store} {own}/containerd")
    # These are written to: every machine has its own.
    for database in ("io.containerd.metadata.v1.bolt/meta.db", "io.containerd.snapshotter.v1.overlayfs/metadata.db"):
        (own / "containerd" / database).unlink()
        shutil.copy(store / database, own / "containerd" / database)
    _spawn(own, "containerd", "containerd", "-c", f"{own}/containerd.toml", "-l", "warn")
    until("containerd and the API server", lambda: (root / API_UP).exists() and (own / "containerd.sock").exists())
    region, zone = lab["zones"][number - 1]
    _spawn(
        own,
        "kubelet",
        f"{lab['programs']}/kubelet",
        f"--config={own}/kubelet.json",
        f"--kubeconfig={root}/kubeconfig",
        f"--root-dir={own}/kubelet",
        f"--cert-dir={own}/pki",
        f"--hostname-override=machine-{number}",
        f"--node-ip={address}",
        f"--node-labels=topology.kubernetes.io/region={region},topology.kubernetes.io/zone={zone}",
    )
    while True:
        with contextlib.suppress(ChildProcessError):
            os.wait()
        time.sleep(0.5)


def _pod_network(number: int) -> object:
    addresses = {"type": "host-local", "dataDir": "/run/ipam", "ranges": [[{"subnet": f"10.244.{number}.0/24"}]]}
    bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True}
    return {
        "cniVersion": "1.0.0",
        "name": "lab",
        "plugins": [{**bridge, "ipam": {**addresses, "routes": [{"dst": "0.0.0.0/0"}]}}],
    }


def _kubelet_settings(lab: dict[str, Any], own: Path, number: int) -> object:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{lab['name']}/machine-{number}",
        "enforceNodeAllocatable": [],
        "containerRuntimeEndpoint": f"unix://{own}/containerd.sock",
        "failSwapOn": False,
        "oomScoreAdj": 0,
        "evictionHard": {
            "memory.available": "50Mi",
            "nodefs.available": "0%",
            "imagefs.available": "0%",
            "nodefs.inodesFree": "0%",
        },
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "makeIPTablesUtilChains": False,
        "resolvConf": "",
        "clusterDNS": [GATEWAY],
        "clusterDomain": "cluster.local",
        "volumePluginDir": f"{own}/plugins",
        "podLogsDir": f"{own}/logs",
        "nodeStatusUpdateFrequency": "2s",
        "nodeLeaseDurationSeconds": 8,
    }


if __name__ == "__main__":
    control_plane(json.loads(sys.argv[1]))
