"""A CockroachDB cluster as a user's chart makes it, as far as it is known by: labels, service, secrets, StatefulSet."""

import base64
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from clusters.engines.cockroach.pace import FAST_PACE
from clusters.engines.cockroach.version import Version
from tests.kubernetes.at_hand import apply

NAME, NAMESPACE = "shop-cockroachdb", "team"
LABELS = {"app.kubernetes.io/name": "cockroachdb", "app.kubernetes.io/instance": "shop"}
ADDRESSES = [f"{NAME}-{number}.{NAME}.{NAMESPACE}.svc.cluster.local" for number in range(3)]
_TRIES = 200


def _builds() -> list[tuple[Version, tuple[str, str]]]:
    """Each build of CockroachDB of which the cluster at hand has an image, with its program here; the oldest first."""
    file = os.environ.get("ROACHPROOF_KUBERNETES_IMAGES")
    images = json.loads(Path(file).read_text()) if file else {}
    named = [(name, next(iter(has))) for name, has in images.items() if "/cockroach:" in name]
    return sorted((Version.parse(name.rpartition(":")[2]), (name, program)) for name, program in named)


def image_of(program: str = "") -> tuple[str, str]:
    """The image of a build of CockroachDB that the cluster at hand has, and its program here; by default the newest."""
    return next((found for _, found in reversed(_builds()) if program in ("", found[1])), ("", ""))


def other_than(image: str) -> tuple[str, str]:
    """The same of another build of that series, where there is one: the newest of them."""
    builds = _builds()
    series = next((version.series for version, found in builds if found[0] == image), None)
    others = (found for version, found in reversed(builds) if version.series == series and found[0] != image)
    return next(others, ("", ""))


def stateful(
    name: str, *, container: Mapping[str, Any], replicas: int = 3, labels: Mapping[str, str] | None = None, **own: Any
) -> dict[str, Any]:
    """As the chart makes it, without what does not matter here. ``own`` is more of its metadata."""
    selected = labels or {"app": name}
    mounts = [{"name": "datadir", "mountPath": "/cockroach/cockroach-data/"}, {"name": "certs", "mountPath": "/certs"}]
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "256Mi"}}}
    certs = {"secretName": f"{NAME}-node-secret", "defaultMode": 0o400, "optional": True}
    pod = {
        "terminationGracePeriodSeconds": 60,
        "containers": [{"name": "db", "volumeMounts": mounts, **container}],
        "volumes": [{"name": "certs", "secret": certs}],
    }
    by = {"app.kubernetes.io/managed-by": "Helm"} if labels else {}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {**selected, **by}, **own},
        "spec": {
            "serviceName": name,
            "replicas": replicas,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": selected},
            "template": {"metadata": {"labels": selected}, "spec": pod},
            "volumeClaimTemplates": [{"metadata": {"name": "datadir"}, "spec": claim}],
        },
    }


def secret(name: str, files: Mapping[str, bytes]) -> dict[str, Any]:
    """Of these files."""
    has = {key: base64.b64encode(content).decode() for key, content in files.items()}
    named = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": named, "data": has}


def _certificates(program: str, certs: Path) -> list[dict[str, Any]]:
    """Secrets as the chart's own signer makes them."""
    flags = [f"--certs-dir={certs}", f"--ca-key={certs.parent / 'ca.key'}"]
    for command in (
        ["create-ca"],
        ["create-client", "root"],
        ["create-node", "localhost", f"*.{NAME}.{NAMESPACE}.svc.cluster.local"],
    ):
        subprocess.run([program, "cert", *command, *flags], check=True, capture_output=True)
    node = {name: name for name in ("ca.crt", "node.crt", "node.key")}
    root = {"ca.crt": "ca.crt", "tls.crt": "client.root.crt", "tls.key": "client.root.key"}
    return [
        secret(f"{NAME}-{whose}-secret", {key: (certs / file).read_bytes() for key, file in files.items()})
        for whose, files in (("node", node), ("client", root))
    ]


def begin(directory: Path, program: str, image: str, *, flags: Sequence[str]) -> Path:
    """``kubectl apply`` of it, and ``cockroach init`` until that is answered; the directory of its certificates."""
    (certs := directory / "certs").mkdir()
    started = (
        f"exec /cockroach/cockroach start --join={','.join(f'{address}:26257' for address in ADDRESSES)} "
        f"--advertise-host=$(POD).{NAME}.{NAMESPACE}.svc.cluster.local --certs-dir=/certs "
        f"--store=/cockroach/cockroach-data --logtostderr=WARNING {' '.join(flags)}"
    )
    pod_name = {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    pace = [{"name": name, "value": value} for name, value in FAST_PACE.items()]
    container = {"image": image, "command": ["/bin/sh", "-ec", started], "env": [pod_name, *pace]}
    service = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": LABELS, "ports": [{"port": 26257}]}
    named = {"name": NAME, "namespace": NAMESPACE, "labels": LABELS}
    budget = {"maxUnavailable": 1, "selector": {"matchLabels": LABELS}}
    apply(directory / "namespace.json", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    apply(
        directory / "release.json",
        *_certificates(program, certs),
        {"apiVersion": "v1", "kind": "Service", "metadata": named, "spec": service},
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {**named, "name": f"{NAME}-budget"},
            "spec": budget,
        },
        stateful(NAME, container=container, labels=LABELS),
    )
    init = [program, "init", f"--host={ADDRESSES[0]}:26257", f"--certs-dir={certs}"]
    for _ in range(_TRIES):
        done = subprocess.run(init, capture_output=True, text=True, check=False)
        if not done.returncode or "already been initialized" in done.stderr:
            break
    return certs


def serving(program: str, certs: Path) -> None:
    """Wait until all of its nodes answer: a pod runs before its node has joined."""
    for address in ADDRESSES:
        asking = [program, "sql", f"--host={address}:26257", f"--certs-dir={certs}", "-e", "SELECT 1"]
        for _ in range(_TRIES):
            done = subprocess.run(asking, capture_output=True, text=True, check=False)
            if not done.returncode:
                break
        assert not done.returncode, done.stderr
