"""Which cluster of a namespace is meant, and what it is: pure functions of what the API server tells."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from clusters.engines import ENGINES
from clusters.engines.charted import Charted
from clusters.errors import BadInput

ADOPT = "ROACHPROOF_ADOPT"
SECRET = "ROACHPROOF_ADOPT_SECRET"  # noqa: S105 - the name of a variable
FOUND = "roachproof/found"
"""An annotation of a StatefulSet that a run has changed: how it was found."""
_NAME, _INSTANCE, _BY = (f"app.kubernetes.io/{label}" for label in ("name", "instance", "managed-by"))
_DECLARES = {
    "argocd.argoproj.io/": "Argo CD",
    "kustomize.toolkit.fluxcd.io/": "Flux",
    "helm.toolkit.fluxcd.io/": "Flux",
}
_Told = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """A cluster: its StatefulSet, who made that, and its pods in the order of their numbers."""

    namespace: str
    name: str
    of: str
    """Who owns the StatefulSet, in words; empty where it is nobody's."""
    pods: tuple[str, ...]
    machines: tuple[str, ...]
    labels: Mapping[str, str]
    """By which its pods are found."""
    service: str
    container: str
    image: str
    command: tuple[str, ...]
    store: PurePath
    grace_s: int
    strategy: Mapping[str, Any]
    """How its pods get another template."""
    claims: tuple[str, ...]
    """What the volumes of its pods are called, before the pod's name."""
    fast: bool
    """Whether its servers were started with the fast pace of repair that some profiles count on."""
    custom: bool
    """Whether it has an owner, whose controller undoes what others change of it."""
    declared_by: str
    """What may put it back to what somebody declared, as Argo CD and Flux do; empty where nothing is known."""
    generation: int
    """How often its specification was changed."""
    secrets: tuple[str, ...]
    """Where the administrator's certificate may be, the likeliest first."""
    charted: Charted
    """How its engine is known here."""

    def address(self, pod: str) -> str:
        """The name by which a pod is found, whatever address it has at the time."""
        return f"{pod}.{self.service}.{self.namespace}.svc.cluster.local"

    @property
    def first(self) -> int:
        """The number of the first pod."""
        return int(self.pods[0].rpartition("-")[2])

    def pod(self, number: int) -> str:
        """The name of the pod before which so many come; it is there, or would be once there are more."""
        return f"{self.name}-{self.first + number}"

    @property
    def was(self) -> Mapping[str, Any]:
        """What a run may change of it, as it was found."""
        return {"replicas": len(self.pods), "image": self.image, "updateStrategy": self.strategy}

    @property
    def selector(self) -> str:
        """The labels as a selector."""
        return ",".join(f"{key}={value}" for key, value in self.labels.items())


class OnlyDescribed(BadInput):
    """A cluster is there that is left alone, whatever its owner allows; ``described`` says what was found."""

    def __init__(self, why: str, described: Sequence[str]) -> None:
        super().__init__(why)
        self.described = [*described, f"nothing is done to it: {why}"]


def find(wanted: str, where: str, sets: Sequence[_Told], pods: Sequence[_Told], *, namespace: str) -> Found:
    """The cluster called ``wanted``: by its StatefulSet, Helm release or custom resource, or by ``label=value``.

    Without a name it is the only one that there is. Raises ``BadInput`` for none, several, and what is something else,
    ``OnlyDescribed`` where its pods are of no StatefulSet.
    """
    asked = f"{where}: namespace {namespace}: {ADOPT}={wanted}:" if wanted else f"{where}: namespace {namespace}:"
    called = [one for one in sets if (_is_called(one, wanted) if wanted else _database(one))]
    if not called:
        there = ", ".join(f"StatefulSet {_of(one)['name']}" for one in sets if _database(one)) or "none"
        if others := _others(wanted, pods):
            kinds = " and ".join(sorted({_controller(pod).get("kind", "nobody") for pod in others}))
            why = f"{asked} its pods are of a {kinds}, and only those of a StatefulSet are adopted; name one ({there})"
            if not (databases := [pod for pod in others if _in_containers(pod["spec"])]):
                raise BadInput(why)
            raise OnlyDescribed(why, _told_of(databases, kinds, f"namespace {namespace}, {where}"))
        raise BadInput(
            f"{asked} no {_titles()} is there whose StatefulSet, Helm release or {_customs()} is called so or has that "
            f"label; there are: {there}; name one of them, or another namespace"
        )
    if len(called) > 1:
        names = ", ".join(_of(one)["name"] for one in called)
        raise BadInput(f"{asked} {len(called)} are meant by it: {names}; set {ADOPT} to the name of one StatefulSet")
    (found,) = called
    return _described(found, pods, asked, namespace)


def _described(found: _Told, pods: Sequence[_Told], asked: str, namespace: str) -> Found:
    name, spec = _of(found)["name"], found["spec"]
    template = spec["template"]["spec"]
    database = _database(found)
    if database is None:
        images = ", ".join(one["image"] for one in template["containers"])
        raise BadInput(f"{asked} StatefulSet {name} runs {images}, and no {_titles()}; name one that does")
    charted, container = database
    command = _command(container)
    if against := charted.against(" ".join(command)):
        raise BadInput(f"{asked} StatefulSet {name} {against}")
    if was := (_of(found).get("annotations") or {}).get(FOUND):
        raise BadInput(
            f"{asked} StatefulSet {name} was changed by a run that goes on, or that was killed; before it was {was}; "
            f"wait for its end, or {_by_hand(namespace, name, container['name'])}"
        )
    lacks = [] if spec["selector"].get("matchLabels") else ["labels in its selector (matchLabels), to know its pods by"]
    lacks += [] if spec.get("serviceName") else ["service (serviceName), which gives each pod its name"]
    if lacks:
        raise BadInput(f"{asked} StatefulSet {name} has no {', and no '.join(lacks)}; name one that has both")
    own = [pod for pod in pods if _controller(pod).get("uid") == _of(found)["uid"]]
    own.sort(key=lambda pod: int(_of(pod)["name"].rpartition("-")[2]))
    ready = [pod for pod in own if _is_ready(pod)]
    if len(ready) != spec["replicas"] or not ready:
        raise BadInput(
            f"{asked} StatefulSet {name} wants {spec['replicas']} pods, of which {len(ready)} are ready; wait until "
            "all are, or see why they are not (kubectl describe)"
        )
    if staged := _staged(found, own):
        raise BadInput(
            f"{asked} StatefulSet {name} is in the middle of a rollout: {', '.join(staged)} would come back of another "
            "template than they are; bring it to its end, or take it back, before the cluster is disturbed"
        )
    release, owner = _release(found), _controller(found)
    of = f"{owner['kind']} {owner['name']}" if owner else f"Helm release {release}" if release else ""
    volumes = {_of(claim)["name"] for claim in spec.get("volumeClaimTemplates") or ()}
    mounts = [mount for mount in container.get("volumeMounts") or () if mount["name"] in volumes]
    return Found(
        namespace=namespace,
        name=name,
        of=of,
        pods=tuple(_of(pod)["name"] for pod in own),
        machines=tuple(pod["spec"].get("nodeName") or "" for pod in own),
        labels=spec["selector"]["matchLabels"],
        service=spec["serviceName"],
        container=container["name"],
        image=container["image"],
        command=command,
        store=PurePath(mounts[0]["mountPath"]) if mounts else charted.store,
        grace_s=template.get("terminationGracePeriodSeconds") or 30,
        strategy=spec.get("updateStrategy") or {"type": "RollingUpdate"},
        claims=tuple(sorted(volumes)),
        fast=charted.fast.items() <= {one["name"]: one.get("value") for one in container.get("env") or ()}.items(),
        custom=bool(owner),
        declared_by=_declared_by(found),
        generation=_of(found).get("generation", 0),
        secrets=tuple(dict.fromkeys(charted.secrets(name, owner.get("name", name)))),
        charted=charted,
    )


def _staged(found: _Told, own: Sequence[_Told]) -> Sequence[str]:
    """The pods that are not of the template as it stands, as where its strategy is ``OnDelete``, or a partition."""
    wanted = (found.get("status") or {}).get("updateRevision")
    has = ((_of(pod)["name"], _labels(pod).get("controller-revision-hash", wanted)) for pod in own)
    return [name for name, revision in has if wanted and revision != wanted]


def put_back(found: Found) -> str:
    """How a person puts a StatefulSet back that a run could not."""
    return _by_hand(found.namespace, found.name, found.container)


def _by_hand(namespace: str, name: str, container: str) -> str:
    of = f"-n {namespace} statefulset {name}"
    return (
        f"put it back by hand: decommission each added node before `kubectl scale {of} --replicas=…`; "
        f"`kubectl set image {of} {container}=…`; `kubectl patch {of} -p` with its updateStrategy; "
        f"then `kubectl annotate {of} {FOUND}-`"
    )


def certificates(secret: _Told) -> Mapping[str, str]:
    """By the name of the file each certificate of a secret, as the secret has it; nothing where it lacks one."""
    has = secret.get("data") or {}
    for _, charted in _charted():
        found = {file: next((has[key] for key in keys if key in has), "") for file, keys in charted.certificate.items()}
        if all(found.values()):
            return found
    return {}


def _charted() -> list[tuple[str, Charted]]:
    """The engines whose clusters can be known, by their titles."""
    return [(kind.title, kind.charted) for kind in ENGINES.values() if kind.charted is not None]


def _titles() -> str:
    return " or ".join(title for title, _ in _charted())


def _customs() -> str:
    return " or ".join(charted.custom for _, charted in _charted())


def _of(told: _Told) -> _Told:
    metadata: _Told = told["metadata"]
    return metadata


def _labels(told: _Told) -> _Told:
    return _of(told).get("labels") or {}


def _controller(told: _Told) -> _Told:
    """Who made it, and makes it anew."""
    owners: Iterable[_Told] = _of(told).get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller") or _is_custom(owner)), {})


def _is_custom(owner: _Told) -> bool:
    return any(owner.get("kind") == charted.custom for _, charted in _charted())


def _declared_by(told: _Told) -> str:
    """By its labels and annotations."""
    marks = [*_labels(told), *(_of(told).get("annotations") or {})]
    return next((who for mark, who in _DECLARES.items() if any(one.startswith(mark) for one in marks)), "")


def _release(told: _Told) -> str:
    labels = _labels(told)
    return str(labels.get(_INSTANCE, "")) if labels.get(_BY) == "Helm" else ""


def _is_called(told: _Told, wanted: str) -> bool:
    if "=" in wanted:
        return dict(part.partition("=")[::2] for part in wanted.split(",")).items() <= _labels(told).items()
    custom = _controller(told)
    return wanted in (_of(told)["name"], _release(told), custom.get("name"))


def _database(told: _Told) -> tuple[Charted, _Told] | None:
    """The engine and the container that is its database, if one is."""
    return _in_containers(told["spec"]["template"]["spec"])


def _in_containers(pod: _Told) -> tuple[Charted, _Told] | None:
    """The same of what a pod is made of: the container that charts call so, else any."""
    containers: Sequence[_Told] = pod.get("containers") or ()
    for _, charted in _charted():
        for one in sorted(containers, key=lambda one: bool(one["name"] != charted.container)):
            if charted.is_it(one["image"], " ".join(_command(one))):
                return charted, one
    return None


def _command(container: _Told) -> tuple[str, ...]:
    return (*(container.get("command") or ()), *(container.get("args") or ()))


def _others(wanted: str, pods: Sequence[_Told]) -> Sequence[_Told]:
    """The pods that are called so and belong to no StatefulSet; without a name those of a database."""
    return [
        pod
        for pod in pods
        if _controller(pod).get("kind") != "StatefulSet"
        and (wanted in _names(pod) if wanted else _in_containers(pod["spec"]))
    ]


def _names(pod: _Told) -> Sequence[str]:
    """What its labels say that a pod is of."""
    labels = (_INSTANCE, _NAME, *(charted.custom_label for _, charted in _charted()))
    return [_labels(pod)[label] for label in labels if label in _labels(pod)]


def _told_of(pods: Sequence[_Told], kinds: str, where: str) -> Sequence[str]:
    """What is seen of a database whose pods belong to no StatefulSet."""
    called = sorted({name for pod in pods for name in _names(pod)})
    nodes = (
        f"{_of(pod)['name']} on {pod['spec'].get('nodeName') or 'no machine'}{'' if _is_ready(pod) else ' (not ready)'}"
        for pod in pods
    )
    images = dict.fromkeys(one[1]["image"] for pod in pods if (one := _in_containers(pod["spec"])))
    return [
        f"adopted: pods of {kinds} ({', '.join(called) or 'without a name'}), {where}",
        f"nodes: {', '.join(nodes)}; image {', '.join(images)}",
    ]


def _is_ready(pod: _Told) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
