"""The machines of a lab: a kubelet and a containerd each, in namespaces of their own, linked to the control plane."""

import ctypes
import os
import shutil
import time
from pathlib import Path
from typing import Any

from tests.kubernetes.lab.inside import API_UP, GATEWAY, LIBC, complete, do, own_mounts, parts, spawn, until, write

_NEW_NET, _NEW_MOUNTS = 0x40000000, 0x20000

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


def machine(lab: dict[str, Any], number: int) -> int:
    """Begin one machine in namespaces of its own, and connect it; its process id."""
    reader, writer = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            parts.clear()
            os.setsid()
            if LIBC.unshare(_NEW_NET | _NEW_MOUNTS):
                raise OSError(ctypes.get_errno(), "unshare")
            do("mount --make-rprivate /")
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
    do(f"ip link add {link} type veth peer name eth0 netns {pid}", f"ip link set {link} up")
    do(f"ip route add {address}/32 dev {link} src {GATEWAY}")
    do(f"ip route add 10.244.{number}.0/24 via {address} dev {link} onlink src {GATEWAY}")
    Path(lab["directory"], f"linked-{number}").touch()
    return pid


def _kubelet(lab: dict[str, Any], number: int) -> None:
    root = Path(lab["directory"])
    own, address = root / f"machine-{number}", f"172.30.1.{number}"
    (own / "kubelet").mkdir(parents=True)
    own_mounts()
    do("mount --make-rshared /")
    until("its link", (root / f"linked-{number}").exists)
    do("ip link set lo up", "ip link add cni0 type bridge", f"ip addr add 10.244.{number}.1/24 dev cni0")
    do("ip link set cni0 up", f"ip addr add {address}/32 dev eth0", "ip link set eth0 up")
    do(f"ip route add {GATEWAY} dev eth0", f"ip route add default via {GATEWAY}")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    write(own / "cni" / "10.conflist", _pod_network(number))
    write(own / "kubelet.json", _kubelet_settings(lab, own, number))
    write(own / "containerd.toml", CONTAINERD.format(root=own, cni=lab["cni"], pause=lab["pause"]))
    store = Path(lab["store"]) / "containerd"
    do(f"cp -al {store} {own}/containerd")
    # These are written to: every machine has its own.
    for database in ("io.containerd.metadata.v1.bolt/meta.db", "io.containerd.snapshotter.v1.overlayfs/metadata.db"):
        (own / "containerd" / database).unlink()
        shutil.copy(store / database, own / "containerd" / database)
    spawn(own, "containerd", "containerd", "-c", f"{own}/containerd.toml", "-l", "warn")
    socket = own / "containerd.sock"
    until("containerd and the API server", lambda: complete() and (root / API_UP).exists() and socket.exists())
    region, zone = lab["zones"][number - 1]
    spawn(
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
    while complete():
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
