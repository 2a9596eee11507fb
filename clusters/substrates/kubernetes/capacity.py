"""Whether a cluster's first pods fit: what quotas leave, what limit ranges allow, what machines and storage there are.

Pure functions of what the API server tells, as it tells it, and one that asks.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from kubernetes.utils.quantity import parse_quantity

from clusters.errors import BadInput
from clusters.generators import WantedGenerators
from clusters.model import NodeResources, NodeSpec
from clusters.substrates.kubernetes.api import Api
from clusters.substrates.kubernetes.manifests import SYSTEM, Settings, group, places, selected
from clusters.substrates.kubernetes.rights import MACHINES, ROOM, granted, lacking, refuse_without
from clusters.substrates.kubernetes.settings import SCALES

_Told = Mapping[str, Any]
_MIB = 1 << 20
OLDEST = (1, 29)
"""The first with ``backoffLimitPerIndex`` of Jobs by default."""
_DIGITS = re.compile(r"\d+")
_DEFAULT = "storageclass.kubernetes.io/is-default-class"


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What the pods ask: how many, each with how much, and what load generators ask beside the nodes.

    ``None``: their limits are not declared.
    """

    nodes: int
    groups: int
    cpus: float | None = None
    memory_mib: int | None = None
    volume_mib: int = 0
    storage_class: str | None = None
    services: int = 1
    pods: Mapping[str, Any] = field(default_factory=dict)
    """What all of them have beside, as ``Settings.pods``."""
    generators: WantedGenerators | None = None

    @property
    def each(self) -> Mapping[str, Decimal | None]:
        """What a node's pod asks, by Kubernetes' names, in cores and bytes."""
        return _each(self.cpus, self.memory_mib)

    @property
    def kinds(self) -> Sequence[tuple[int, Mapping[str, Decimal | None]]]:
        """How many pods of each kind there are to be, and what each of them asks."""
        beside = self.generators
        nodes = [(self.nodes, self.each)] if self.nodes else []
        return [*nodes, *([(beside.number, _each(beside.cpus, beside.memory_mib))] if beside else [])]


def _each(cpus: float | None, memory_mib: int | None) -> Mapping[str, Decimal | None]:
    cpu = None if cpus is None else Decimal(f"{cpus:.3f}")
    return {"cpu": cpu, "memory": None if memory_mib is None else Decimal(memory_mib * _MIB)}


def beyond_quotas(asked: Asked, quotas: Iterable[_Told]) -> Iterator[str]:
    """What quotas do not leave. One for pods of a certain kind alone (with scopes) is not looked at."""
    nodes, volumes = asked.nodes, asked.nodes * asked.volume_mib * _MIB
    pods = sum(number for number, _ in asked.kinds)
    one = min(1, nodes)
    services = asked.services if nodes else 0
    counts = {"pods": pods, "persistentvolumeclaims": nodes, "services": services, "configmaps": one}
    objects = {**counts, "statefulsets.apps": asked.groups, "poddisruptionbudgets.policy": one}
    if asked.generators:
        objects["jobs.batch"] = 1
    of_class = asked.storage_class and f"{asked.storage_class}.storageclass.storage.k8s.io"
    sums: dict[str, Decimal | int | None] = {
        **counts,
        **{f"count/{name}": number for name, number in objects.items()},
        "requests.storage": volumes,
    }
    if of_class:
        sums |= {f"{of_class}/requests.storage": volumes, f"{of_class}/persistentvolumeclaims": nodes}
    for name in asked.each:
        each = [(number, sizes[name]) for number, sizes in asked.kinds]
        declared = [number * size for number, size in each if size is not None]
        for of in (name, f"requests.{name}", f"limits.{name}"):
            sums[of] = sum(declared) if len(declared) == len(each) else None
    for quota in quotas:
        named, spec = f"ResourceQuota {quota['metadata']['name']}", quota["spec"]
        if spec.get("scopes") or spec.get("scopeSelector"):
            continue
        for name, hard in (spec.get("hard") or {}).items():
            if (wanted := sums.get(name, 0)) == 0:
                continue
            used = ((quota.get("status") or {}).get("used") or {}).get(name, "0")
            left = parse_quantity(hard) - parse_quantity(used)
            if wanted is None:
                yield f"{named} admits only pods with {name}, of which the profile declares none"
            elif wanted > left:
                yield f"{named}: {name}: {_size(name, wanted)} are asked, {_size(name, left)} of {hard} are left"


def beyond_limit_ranges(asked: Asked, ranges: Iterable[_Told]) -> Iterator[str]:
    """What limit ranges refuse; or would give pods that declare none, which would change what is measured."""
    volume: Mapping[str, Decimal | None] = {"storage": Decimal(asked.volume_mib * _MIB)}
    pods = [sizes for _, sizes in asked.kinds]
    of_kind = {"Container": pods, "Pod": pods, "PersistentVolumeClaim": [volume] if asked.nodes else []}
    for limit_range in ranges:
        for limits in limit_range["spec"].get("limits") or ():
            named = f"LimitRange {limit_range['metadata']['name']}"
            every = (each for sizes in of_kind.get(limits["type"], []) for each in sizes.items())
            for name, each in dict.fromkeys(every):
                most, least = ((limits.get(bound) or {}).get(name) for bound in ("max", "min"))
                given = most or (limits.get("default") or {}).get(name)
                if each is None:
                    if given:
                        yield f"{named} limits {name} to {given}, and the profile declares no such limit"
                elif most and each > parse_quantity(most):
                    yield f"{named}: a {limits['type']} may have {name} {most}, {_size(name, each)} are asked"
                elif least and each < parse_quantity(least):
                    yield f"{named}: a {limits['type']} must have {name} {least}, {_size(name, each)} are asked"


def beyond_machines(
    asked: Asked,
    machines: Sequence[_Told],
    pods: Iterable[_Told],
    groups: Mapping[str, int],
    where: Mapping[str, Mapping[str, str]],
) -> Iterator[str]:
    """Which groups of pods (of each how many) the machines, with the pods that run there, have no room for.

    ``where``: what labels the machines of a group must have. Machines that take no pods of ours do not count.
    """
    free = {
        machine["metadata"]["name"]: {
            name: parse_quantity(_allocatable(machine).get(name, "0")) for name in ("cpu", "memory", "pods")
        }
        for machine in machines
        if takes(machine, asked.pods)
    }
    for pod in pods:
        if (on := pod["spec"].get("nodeName")) in free:
            _take(free[on], pod)
    labels = {machine["metadata"]["name"]: machine["metadata"].get("labels") or {} for machine in machines}
    each = {**{name: size for name, size in asked.each.items() if size}, "pods": Decimal(1)}
    for name, number in groups.items():
        theirs = {one: has for one, has in free.items() if where.get(name, {}).items() <= labels[one].items()}
        fit = sum(max(0, min(int(has[of] // size) for of, size in each.items())) for has in theirs.values())
        if fit < number:
            wants = (
                ", ".join(f"{of} {_size(of, size)}" for of, size in each.items() if of != "pods") or "room for a pod"
            )
            has = "; ".join(
                f"{one} has {', '.join(f'{of} {_size(of, what[of])}' for of in each)}" for one, what in theirs.items()
            )
            yield f"machines: {number} nodes of {name} ask {wants} each, {fit} fit ({has or 'none takes them'})"
    yield from _beside_nodes(asked, free)


def _beside_nodes(asked: Asked, free: Mapping[str, Mapping[str, Decimal]]) -> Iterator[str]:
    """That load generators do not fit beside the nodes, as far as that is certain however pods are spread."""
    if not asked.generators:
        return
    nodes, of_node = asked.nodes, asked.each
    number, of_generator = asked.kinds[-1]
    sizes = {**{name: size for name, size in of_generator.items() if size}, "pods": Decimal(1)}
    fit = sum(max(0, min(int(has[of] // size) for of, size in sizes.items())) for has in free.values())
    for name, size in sizes.items():
        left = sum(has[name] for has in free.values()) - nodes * (Decimal(1) if name == "pods" else of_node[name] or 0)
        fit = min(fit, max(0, int(left // size)))
    if fit < number:
        wants = ", ".join(f"{of} {_size(of, size)}" for of, size in sizes.items() if of != "pods") or "room for a pod"
        yield f"machines: {number} load generators ask {wants} each, {fit} fit beside the nodes (see --generators)"


def without_storage(asked: Asked, classes: Sequence[_Told]) -> Iterator[str]:
    """That there is no such storage class, or none by default."""
    names = [one["metadata"]["name"] for one in classes]
    there = f"there are: {', '.join(names) or 'none'}"
    if asked.storage_class is not None:
        if asked.storage_class not in names:
            yield f"storage class {asked.storage_class} is not there; {there}"
    elif not default_class(classes):
        yield f"no storage class is the default one, and ROACHPROOF_KUBERNETES_STORAGE_CLASS names none; {there}"


def default_class(classes: Sequence[_Told]) -> str | None:
    """The storage class of volumes that name none, if one is; of several the newest, as Kubernetes has it."""
    called = [one["metadata"] for one in classes]
    default = [one for one in called if (one.get("annotations") or {}).get(_DEFAULT) == "true"]
    newest = max(default, key=lambda one: str(one.get("creationTimestamp", "")), default=None)
    return newest and str(newest["name"])


def _take(free: dict[str, Decimal], pod: _Told) -> None:
    """Subtract what a pod takes of its machine; what it takes only while it begins is not counted."""
    free["pods"] -= 1
    for container in pod["spec"]["containers"]:
        requests = (container.get("resources") or {}).get("requests") or {}
        for name in free.keys() & requests.keys():
            free[name] -= parse_quantity(requests[name])


def _allocatable(machine: _Told) -> _Told:
    """What a machine has for pods: nothing where it does not say so yet, as one that is just being made."""
    return (machine.get("status") or {}).get("allocatable") or {}


def takes(machine: _Told, pods: Mapping[str, Any] = MappingProxyType({})) -> bool:
    """Whether a machine takes pods that select machines and tolerate taints as is told; see ``Settings.pods``."""
    labels = {SYSTEM: "linux", **(machine["metadata"].get("labels") or {})}
    taints = [one for one in machine["spec"].get("taints") or () if one["effect"] in ("NoSchedule", "NoExecute")]
    tolerations: Sequence[_Told] = pods.get("tolerations", ())
    tolerated = all(any(_tolerates(one, taint) for one in tolerations) for taint in taints)
    return not machine["spec"].get("unschedulable") and tolerated and selected(pods).items() <= labels.items()


def _tolerates(toleration: _Told, taint: _Told) -> bool:
    """As Kubernetes has it: without a key it is of every taint, without an effect of every effect."""
    every = toleration.get("operator") == "Exists"
    same = every or toleration.get("value", "") == taint.get("value", "")
    of_key = toleration.get("key", "") == taint["key"] or (every and not toleration.get("key"))
    return of_key and same and toleration.get("effect", "") in ("", taint["effect"])


def _size(name: str, value: Decimal | int) -> str:
    return f"{value / _MIB:,.0f} MiB" if "memory" in name or "storage" in name else f"{float(value):g}"


async def refuse_old(api: Api) -> None:
    """Raise ``BadInput`` for a Kubernetes before ``OLDEST``, as far as it tells: some tell nobody."""
    told = await api.version()
    if told and (minor := _DIGITS.match(told.minor)) and (int(told.major), int(minor[0])) < OLDEST:
        raise BadInput(
            f"{api.where}: its Kubernetes is {told.git_version}, and must be {'.'.join(map(str, OLDEST))} or later, as "
            "before a load generator that ends would be made anew; choose another cluster"
        )


async def zones(
    api: Api,
    nodes: Sequence[NodeSpec],
    *,
    known: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    pods: Mapping[str, Any] = MappingProxyType({}),
) -> Mapping[str, Mapping[str, str]]:
    """By StatefulSet the labels of the machines that its zone is, where there are several. Raises ``BadInput``.

    ``known``: what was answered before for some of these nodes, and stays so. Machines that take no such ``pods`` do
    not count.
    """
    wanted = [(node.region, node.zone) for node in nodes]
    if len(set(wanted)) < 2:
        return {}
    await refuse_without(api, MACHINES, None)
    machines = await api.told("look at the machines", api.core.list_node)
    taken = {(node.region, node.zone): known[group(node)] for node in nodes if group(node) in known}
    found = places(wanted, [one["metadata"].get("labels") or {} for one in machines if takes(one, pods)], taken)
    if not found:
        raise BadInput(
            f"{api.where}: its machines that take pods have no topology.kubernetes.io/region and /zone labels for the "
            f"{len(set(wanted))} zones of the topology; label them, or choose a topology of one zone"
        )
    return {group(node): found[node.region, node.zone] for node in nodes}


async def refuse_shortage(
    api: Api,
    settings: Settings,
    *,
    own: bool,
    nodes: Sequence[NodeSpec],
    resources: NodeResources | None,
    generators: WantedGenerators | None,
    where: Mapping[str, Mapping[str, str]],
    say: Callable[[str], None],
    autoscaled: bool = False,
) -> None:
    """Raise ``BadInput`` with everything that these nodes and load generators lack.

    What the account may not look at is said; and what machines lack, where they are ``autoscaled``.

    A namespace that is ``own`` is not there yet, and has no quotas.
    """
    if not nodes and not generators:
        return
    groups = Counter(map(group, nodes))
    asked = Asked(
        nodes=len(nodes),
        groups=len(groups),
        cpus=resources.cpus if resources else None,
        memory_mib=resources.memory_mib if resources else None,
        volume_mib=settings.volume_mib,
        storage_class=settings.storage_class,
        services=2 if settings.ports else 1,
        generators=generators,
        pods=settings.pods,
    )
    lacks: list[str] = []
    looks = [right for right in granted(MACHINES) if right.verb == "list"]
    hidden = await lacking(api, [*looks, *granted(ROOM)], None)
    if nodes and not any(right.resource == "storageclasses" for right in hidden):
        classes = await api.told("look at storage classes", api.storage.list_storage_class)
        lacks += without_storage(asked, classes)
        asked = replace(asked, storage_class=asked.storage_class or default_class(classes))
    if not own:
        lacks += beyond_quotas(
            asked, await api.told("look at quotas", api.core.list_namespaced_resource_quota, settings.namespace)
        )
        lacks += beyond_limit_ranges(
            asked, await api.told("look at limits", api.core.list_namespaced_limit_range, settings.namespace)
        )
    if not any(right.resource == "nodes" for right in hidden):
        machines = await api.told("look at the machines", api.core.list_node)
        counted = any(size for _, sizes in asked.kinds for size in sizes.values()) and not {*granted(ROOM)} & {*hidden}
        alive = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
        pods = (
            await api.told("look at all pods", api.core.list_pod_for_all_namespaces, field_selector=alive)
            if counted
            else ()
        )
        short = list(beyond_machines(asked, machines, pods, groups, where))
        if short and autoscaled:
            say(f"{'; '.join(short)}: machines must be added ({SCALES})")
        elif short:
            lacks += [*short, f"where machines are added as they are needed set {SCALES}=1"]
    if lacks:
        are = [f"{len(nodes)} nodes"] if nodes else []
        are += [f"{generators.number} load generators"] if generators else []
        raise BadInput(
            f"{api.where}: {' and '.join(are)} cannot be placed in namespace {settings.namespace}: "
            f"{'; '.join(lacks)}; "
            "make room for them, or choose a smaller profile, another namespace or another cluster"
        )
    if hidden:
        say(
            f"whether there is room was not looked at as far as it takes: {', '.join(map(str, hidden))} (whole cluster)"
        )
