"""The objects of one cluster, as the API server takes them: pure functions of what was placed and what it runs."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from types import MappingProxyType
from typing import Any

from clusters.generators import WantedGenerators
from clusters.model import NodeSpec

Object = Mapping[str, Any]

BASE = PurePath("/roachproof/node")
"""Where a node's volume is mounted: below it its home, and what only the harness writes."""
HOME = BASE / "home"
STORE, LOGS = HOME / "store", HOME / "logs"
ORDER = BASE / "order"
PROGRAMS = BASE / "programs"
POD = BASE / "pod"
"""The UID of the pod that has the volume, as its container's first process writes it."""
SCRIPT = PurePath("/roachproof/scripts/node.sh")
CUT = SCRIPT.with_name("cutter.py")
CONTAINER, CUTTER = "node", "cutter"
"""Those of a node's pod: what the node is, and what cuts its links once that is asked for."""
GENERATORS, GENERATOR = "roachproof-generators", "generator"
"""The Job of load generators, which may be in a namespace of somebody's, and the container of each."""
SUITE = PurePath("/suite")
"""Where the suite's image has the suite (``Containerfile``)."""
PRIVATE, EVIDENCE = PurePath("/roachproof/private"), PurePath("/roachproof/evidence")
"""Where a generator has what is secret, in memory, and what its programs write."""
SERVICE, PUBLIC = "nodes", "nodes-public"
"""The service that gives each node its name, and the one of whoever does not care for the node."""
SCRIPTS = "node-scripts"
MANAGED = "app.kubernetes.io/managed-by"
INSTANCE = "app.kubernetes.io/instance"
OWNER = "roachproof"
RENEWED = "roachproof/renewed"
"""An annotation of a cluster's own namespace, else of its first object in one that was named: when its owner last said
that it lives, in seconds since 1970."""
NOBODY = 65534
"""Who runs in the pods: a user that most images know, and PostgreSQL refuses root."""
COMPONENT = "app.kubernetes.io/component"
_NODE = {"roachproof/node": "true"}
"""A label of all pods but load generators: selectors of services know no exceptions."""
LONGEST_S = 7 * 86_400
"""No cluster is needed for longer: load generators that nobody ends end by themselves then."""
LEAST_GRACE_S = 1
"""The grace of a pod that is to end at once. With none the API server forgets it, and makes another while it may still
run: nobody says that it has ended."""
_GRACE_S = 60
"""A server that is asked to stop drains first; what Kubernetes' own users set is 60 to 300."""
_LONGEST = 52
SYSTEM, _LINUX = "kubernetes.io/os", "linux"
_REGION, _ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"
_MACHINE = "kubernetes.io/hostname"


@dataclass(frozen=True, kw_only=True, slots=True)
class Template:
    """What a pod runs in: its image, and its limits in cores and MiB where there are any."""

    image: str
    cpus: float | None = None
    memory_mib: int | None = None

    @property
    def limits(self) -> Mapping[str, str]:
        """Those that there are, as Kubernetes writes them."""
        return _limits(self.cpus, self.memory_mib)


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What all objects of a cluster share. ``volume_mib`` is the size that each node's volume is asked for."""

    namespace: str
    cluster: str
    generators: bool = False
    """Whether it has load generators."""
    ports: Sequence[int] = ()
    """Those of its nodes that others may reach, where they are known."""
    cuts: bool = False
    """Whether links between its pods are to be cut."""
    storage_class: str | None = None
    volume_mib: int = 0
    owner: tuple[str, str] | None = None
    """The pod of the harness in the same namespace, by name and uid: when that is deleted, all of it goes with it."""
    pods: Mapping[str, Any] = field(default_factory=dict)
    """What the specification of all pods has beside: ``nodeSelector``, ``tolerations`` and the like."""
    others: Mapping[str, str] | None = None
    """Beside a cluster that is there already: the labels of its pods. Of ours there are load generators alone then."""

    @property
    def labels(self) -> Mapping[str, str]:
        """By which a person finds all of it: ``kubectl get all -l app.kubernetes.io/instance=…``."""
        return {MANAGED: OWNER, INSTANCE: self.cluster}

    @property
    def selector(self) -> str:
        """The same as a selector."""
        return ",".join(f"{key}={value}" for key, value in self.labels.items())


def cluster(name: str, token: str) -> str:
    """What a cluster of a test is called, its own namespace and the label of all that is of it: 63 characters at most.

    ``token``: eight characters that no other one has.
    """
    return f"{OWNER}-{re.sub(r'[^a-z0-9-]+', '-', name.lower()).strip('-')[:40]}-{token}"


def group(node: NodeSpec) -> str:
    """The StatefulSet that a node belongs to: one a zone of a region."""
    return _slug(f"node-{node.region}-{node.zone}")


def beside(service: str) -> str:
    """The StatefulSet that a service beside the nodes is."""
    return _slug(f"beside-{service}")


def host(pod: str, namespace: str) -> str:
    """The name by which a pod is found as long as its StatefulSet lives, whatever address it has at the time."""
    return f"{pod}.{SERVICE}.{namespace}.svc.cluster.local"


def _slug(name: str) -> str:
    """A name that Kubernetes takes for a StatefulSet: a label of its pods is 11 characters longer, and 63 at most.

    Where that is not the name itself it ends with a digest of it, so that no two names become one.
    """
    slug = re.sub(r"[^a-z0-9-]+", "-", name.lower()).strip("-")
    if slug == name and len(slug) <= _LONGEST:
        return slug
    return f"{slug[: _LONGEST - 9].rstrip('-')}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def namespace(settings: Settings, renewed: float | None) -> Object:
    """The cluster's own namespace; without ``renewed`` nobody says that it has an owner."""
    # What cuts links may change its pod's network, which other levels forbid.
    allows = {"pod-security.kubernetes.io/enforce": "privileged"} if settings.cuts else {}
    labels = {**settings.labels, **allows}
    described = {"name": settings.namespace, "labels": labels, "annotations": renewal(renewed)}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": described}


def renewal(at: float | None) -> Mapping[str, str]:
    """What a cluster's owner writes there."""
    return {} if at is None else {RENEWED: f"{at:.0f}"}


def scripts(settings: Settings, script: str, cut: str, renewed: float | None = None) -> Object:
    """What the pods' first process is, and what cuts their links; ``renewed`` as of ``namespace``."""
    named = {**_named(settings, SCRIPTS), "annotations": renewal(renewed)}
    return {"metadata": named, "data": {SCRIPT.name: script, CUT.name: cut}}


def service(settings: Settings) -> Object:
    """The headless service that gives every pod its name, before it is ready, too: nodes find each other by it."""
    spec = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": settings.labels,
    }
    return {"metadata": _named(settings, SERVICE), "spec": spec}


def public(settings: Settings) -> Object:
    """The service of whoever does not care for the node, as persons who look at a cluster that was kept.

    It leads to pods in which a process runs, whatever that does: where it takes no clients they try another.
    """
    ports = [{"name": f"port-{port}", "port": port} for port in settings.ports]
    return {"metadata": _named(settings, PUBLIC), "spec": {"selector": {**settings.labels, **_NODE}, "ports": ports}}


def budget(settings: Settings) -> Object:
    """At most one node at a time may be evicted by the cluster's own maintenance, and none while another is down.

    Generators are left out: Kubernetes does not work out a budget that has pods of Jobs.
    """
    selector = {"matchLabels": {**settings.labels, **_NODE}}
    return {"metadata": _named(settings, SERVICE), "spec": {"maxUnavailable": 1, "selector": selector}}


def stateful_set(
    settings: Settings, name: str, template: Template, *, replicas: int, place: Mapping[str, str] | None = None
) -> Object:
    """Pods of one group, each with a volume of its own. ``place``: labels that their machines must have.

    A pod gets another template when it is deleted, and not before: in which order versions change is the plan's to say.
    """
    own = {**settings.labels, COMPONENT: name}
    return {
        "metadata": _named(settings, name),
        "spec": {
            "serviceName": SERVICE,
            "replicas": replicas,
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "OnDelete"},
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Retain"},
            "selector": {"matchLabels": own},
            "template": _template({**own, **_NODE}, _pod(settings, template, place or {})),
            "volumeClaimTemplates": [{"metadata": _labelled(settings, "home"), "spec": _claim(settings)}],
        },
    }


def changed(made: Object) -> Object:
    """What a StatefulSet is told to become as one that is made: a merge alone would leave limits that it has not."""
    spec = made["spec"]
    pod = spec["template"]["spec"]
    containers = [{**one, "resources": {"$patch": "replace", **one["resources"]}} for one in pod["containers"]]
    return {
        "spec": {
            "replicas": spec["replicas"],
            "template": {**spec["template"], "spec": {**pod, "containers": containers}},
        },
    }


def job(settings: Settings, wanted: WantedGenerators) -> Object:
    """The load generators: pods that wait for programs to be run in them. One that ends is not made anew."""
    limits = _limits(wanted.cpus, wanted.memory_mib)
    mounts = [{"name": "private", "mountPath": str(PRIVATE)}, {"name": "evidence", "mountPath": str(EVIDENCE)}]
    container = {
        "name": GENERATOR,
        "image": wanted.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sleep", "infinity"],
        "workingDir": str(SUITE),
        "env": [{"name": "PYTHONDONTWRITEBYTECODE", "value": "1"}, {"name": "HOME", "value": str(EVIDENCE)}],
        "resources": {"limits": limits, "requests": limits},
        "securityContext": {**_NO_RIGHTS, "readOnlyRootFilesystem": True},
        "volumeMounts": mounts,
    }
    pod = {
        "restartPolicy": "Never",
        "containers": [container],
        "volumes": [
            {"name": "private", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}},
            {"name": "evidence", "emptyDir": {}},
        ],
        "terminationGracePeriodSeconds": 1,
        **_common(settings),
    }
    return {
        "metadata": _named(settings, GENERATORS),
        "spec": {
            "completions": wanted.number,
            "parallelism": wanted.number,
            "completionMode": "Indexed",
            "backoffLimitPerIndex": 0,
            "activeDeadlineSeconds": LONGEST_S,
            "template": _template({**settings.labels, COMPONENT: GENERATOR}, pod),
        },
    }


_NO_RIGHTS = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
_NOBODY = {
    "runAsUser": NOBODY,
    "runAsGroup": NOBODY,
    "fsGroup": NOBODY,
    "fsGroupChangePolicy": "OnRootMismatch",
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""With ``_NO_RIGHTS`` of each container all that the level ``restricted`` of pod security asks of a pod."""
_STAYS = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false", "karpenter.sh/do-not-disrupt": "true"}
"""Annotations of pods that no autoscaler is to end to save a machine while something is measured on them."""


def _limits(cpus: float | None, memory_mib: int | None) -> Mapping[str, str]:
    limits = {"cpu": cpus and f"{cpus * 1000:.0f}m", "memory": memory_mib and f"{memory_mib}Mi"}
    return {key: value for key, value in limits.items() if value}


def selected(pods: Mapping[str, Any]) -> Mapping[str, str]:
    """The labels that the machines of all pods must have: what runs there is for Linux."""
    return {SYSTEM: _LINUX, **pods.get("nodeSelector", {})}


def _template(labels: Mapping[str, str], pod: Object) -> Object:
    return {"metadata": {"labels": labels, "annotations": _STAYS}, "spec": pod}


def _common(settings: Settings, place: Mapping[str, str] = MappingProxyType({})) -> Object:
    """What all pods have: no token, a user without rights, as far as can be a machine of their own, and what was told.

    ``place``: labels that their machines must have.
    """
    apart = [
        {"topologyKey": _MACHINE, "labelSelector": {"matchLabels": labels}}
        for labels in (settings.labels, settings.others)
        if labels
    ]
    preferred = [{"weight": 100, "podAffinityTerm": term} for term in apart]
    return {
        **settings.pods,
        "nodeSelector": {**selected(settings.pods), **place},
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": _NOBODY,
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}},
    }


def _pod(settings: Settings, template: Template, place: Mapping[str, str]) -> Object:
    return {
        "containers": [_container(template)],
        "volumes": [{"name": "scripts", "configMap": {"name": SCRIPTS, "defaultMode": 0o555}}],
        "terminationGracePeriodSeconds": _GRACE_S,
        **_common(settings, place),
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": _MACHINE,
                # Where there are too few machines a note says who shares one.
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {**settings.labels, **_NODE}},
            }
        ],
    }


_RESIZES = [
    {"resourceName": "cpu", "restartPolicy": "NotRequired"},
    {"resourceName": "memory", "restartPolicy": "RestartContainer"},
]
"""How a container is resized in its pod. Its memory with another container in its place: before 1.34 Kubernetes makes
it no smaller otherwise, and what the former one had cached would count against it. Servers before 1.33 ignore it."""


_RUNS = {
    "exec": {"command": ["/bin/sh", str(SCRIPT), "runs"]},
    "periodSeconds": 10,
    "timeoutSeconds": 10,
    "failureThreshold": 1,
}
"""What makes a pod ready: that a process runs in it, or never did. Seldom, as each look takes the node some of its CPU.

At once where nothing ran yet: of a pod that is not ready no event tells that its machine is lost.
"""


def _container(template: Template) -> Object:
    return {
        "name": CONTAINER,
        "image": template.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/bin/sh", str(SCRIPT), "serve"],
        "env": [{"name": "ROACHPROOF_POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}],
        **_sized(template),
        "resizePolicy": _RESIZES,
        "readinessProbe": _RUNS,
        "securityContext": _NO_RIGHTS,
        "volumeMounts": [
            {"name": "home", "mountPath": str(BASE)},
            {"name": "scripts", "mountPath": str(SCRIPT.parent)},
        ],
    }


def _sized(template: Template) -> Object:
    return {"resources": {"limits": template.limits, "requests": template.limits}}


def resized(template: Template) -> Object:
    """What a node's pod is told that is to have these limits without another in its place."""
    return {"spec": {"containers": [{"name": CONTAINER, **_sized(template)}]}}


def cutter(image: str) -> Object:
    """What a pod gets once its links are to be cut: a container that may change that pod's own network."""
    container = {
        "name": CUTTER,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python", str(CUT)],
        "securityContext": {
            "runAsUser": 0,
            "runAsGroup": 0,
            "runAsNonRoot": False,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]},
        },
        "volumeMounts": [{"name": "scripts", "mountPath": str(SCRIPT.parent)}],
    }
    return {"spec": {"ephemeralContainers": [container]}}


def _claim(settings: Settings) -> Object:
    named = {"storageClassName": settings.storage_class} if settings.storage_class else {}
    size = {"requests": {"storage": f"{settings.volume_mib}Mi"}}
    return {"accessModes": ["ReadWriteOnce"], "resources": size, **named}


def _named(settings: Settings, name: str) -> Object:
    named = _labelled(settings, name)
    if settings.owner is None:
        return named
    pod, uid = settings.owner
    return {**named, "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid}]}


def _labelled(settings: Settings, name: str) -> Object:
    return {"name": name, "namespace": settings.namespace, "labels": settings.labels}


def places(
    wanted: Sequence[tuple[str, str]],
    machines: Sequence[Mapping[str, str]],
    taken: Mapping[tuple[str, str], Mapping[str, str]] = MappingProxyType({}),
) -> Mapping[tuple[str, str], Mapping[str, str]]:
    """Where the declared zones are, each ``(region, zone)``: machines' labels, or nothing where these have too few.

    A declared region goes to a region of the machines of its own, a declared zone to a zone of that, in order of their
    names. Where all nodes are declared in one zone they go anywhere. ``taken``: where some are already.
    """
    if len(set(wanted)) < 2:
        return {}
    there: dict[str, set[str]] = {}
    for labels in machines:
        if _REGION in labels and _ZONE in labels:
            there.setdefault(labels[_REGION], set()).add(labels[_ZONE])
    asked: dict[str, set[str]] = {}
    for region, zone in wanted:
        asked.setdefault(region, set()).add(zone)
    regions = {region: labels[_REGION] for (region, _), labels in taken.items()}
    # The regions with most zones to those that need most.
    by_size = sorted(there.keys() - regions.values(), key=lambda region: (-len(there[region]), region))
    needing = sorted(asked.keys() - regions.keys(), key=lambda region: (-len(asked[region]), region))
    if len(needing) > len(by_size):
        return {}
    found = dict(taken)
    for region, machine_region in [*regions.items(), *zip(needing, by_size, strict=False)]:
        zones = sorted(zone for zone in asked.get(region, ()) if (region, zone) not in taken)
        used = {labels[_ZONE] for labels in taken.values() if labels[_REGION] == machine_region}
        free = sorted(there.get(machine_region, set()) - used)
        if len(zones) > len(free):
            return {}
        for zone, machine_zone in zip(zones, free, strict=False):
            found[region, zone] = {_REGION: machine_region, _ZONE: machine_zone}
    return found
