"""What became of a cluster's pods, as one watch of them tells it: which container runs in each, how others ended."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from clusters.errors import HarnessError
from clusters.substrates.adopted.finding import Found
from clusters.substrates.kubernetes.api import Api
from clusters.substrates.kubernetes.commands import exit_code
from clusters.substrates.kubernetes.pods import crashes, last_words, way_out

OUTSIDE = "ended with its pod or its machine, by a person, an eviction or a new version of its StatefulSet"
MEMORY = "killed by the kernel, as its container's memory ran out"
_OF_ITSELF = ("", "Completed", "Error")
"""What Kubernetes says of a container that ended by itself; other words are of its machine, or of its start."""


@dataclass(slots=True)
class Pod:
    """One pod, by its name. ``container``: the id of the one that is the database, empty where none runs."""

    uid: str = ""
    container: str = ""
    image: str = ""
    """What that container is to be made of."""
    addresses: tuple[str, ...] = ()
    since: str = ""
    """Since when that runs, in its kubelet's words."""
    waiting: str = ""
    """Why none runs, in Kubernetes' words."""
    last_words: str = ""
    """What the database said before it crashed, where it does so again and again."""
    stuck: bool = False
    """Whether that does not pass by itself."""
    limits: Mapping[str, str] = field(default_factory=dict)
    codes: dict[str, int] = field(default_factory=dict)
    """The exit codes of containers that have ended, by their ids."""
    memory: set[str] = field(default_factory=set)
    """Those of them that ended for lack of memory."""
    outside: set[str] = field(default_factory=set)
    """Those that something outside of them ended: their pod was to go or was evicted, or their machine was lost."""

    @property
    def ended(self) -> frozenset[str]:
        """All containers that are known to have ended."""
        return frozenset(self.codes) | self.outside


class Pods:
    """All pods of a cluster, from ``begin`` to ``close``. ``on`` is told on which machine each is.

    ``away`` is told for how many seconds the API server was.
    """

    def __init__(
        self,
        api: Api,
        found: Found,
        on: Callable[[str, str], None] = lambda *_: None,
        away: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._api, self._found, self._on, self._away = api, found, on, away
        self._pods: dict[str, Pod] = {}
        self._ended = threading.Event()
        self.listed = threading.Event()
        """Set once the pods were looked at."""
        self.unheard: HarnessError | None = None
        """Why they are not watched any more."""
        self._watching = threading.Thread(target=self._watch, name=f"pods of {found.name}", daemon=True)
        self._watching.start()

    def __getitem__(self, name: str) -> Pod:
        return self._pods.setdefault(name, Pod())

    def close(self) -> None:
        """Watch no more."""
        self._ended.set()

    def _watch(self) -> None:
        listing, selector = self._api.core.list_namespaced_pod, self._found.selector
        try:
            where = (self._found.namespace, self._ended)
            watched = self._api.watch("watch pods", listing, *where, away=self._away, label_selector=selector)
            for kind, seen in watched:
                if kind == "LISTED":
                    there = {one.metadata.name: one.metadata.uid for one in seen}
                    for name, pod in list(self._pods.items()):
                        if pod.uid and there.get(name) != pod.uid:
                            _gone(pod)
                    for one in seen:
                        self._seen(one)
                    self.listed.set()
                else:
                    self._seen(seen)
                    if kind == "DELETED" and self[seen.metadata.name].uid == seen.metadata.uid:
                        _gone(self[seen.metadata.name])
        except Exception as error:  # noqa: BLE001, RUF100 - a thread that ends unheard leaves all as it was last seen
            if not self._ended.is_set():
                self.unheard = HarnessError(f"pods are not watched any more: {type(error).__name__} {error}")
            self.listed.set()

    def _seen(self, seen: Any) -> None:
        spec = next((one for one in seen.spec.containers if one.name == self._found.container), None)
        if spec is None:  # of something else that has the same labels, as a Job that initialises the cluster
            return
        pod = self[seen.metadata.name]
        if pod.uid not in ("", seen.metadata.uid):
            _gone(pod)
        pod.uid = seen.metadata.uid
        self._on(seen.metadata.name, seen.spec.node_name or "")
        pod.image = spec.image
        pod.limits = (spec.resources and spec.resources.limits) or {}
        status = next((one for one in seen.status.container_statuses or () if one.name == self._found.container), None)
        if status is None:
            return
        # Its pod is seen to end before it is seen to be gone: whoever looks in between is not to blame the database.
        pod_ends = seen.metadata.deletion_timestamp is not None or seen.status.phase == "Failed"
        for state in (status.last_state, status.state):
            if state is None or (ended := state.terminated) is None or not ended.container_id:
                continue
            if ended.reason == "OOMKilled":
                pod.memory.add(ended.container_id)
            elif ended.container_id not in pod.codes and (pod_ends or (ended.reason or "") not in _OF_ITSELF):
                pod.outside.add(ended.container_id)
            pod.codes[ended.container_id] = exit_code(ended.exit_code)
        waiting = status.state.waiting
        pod.waiting = f"{waiting.reason}: {waiting.message or ''}" if waiting else ""
        if not crashes(pod.waiting):
            pod.last_words = ""
        elif not pod.last_words:
            found = self._found
            pod.last_words = last_words(self._api, found.namespace, seen.metadata.name, found.container)
        pod.addresses = tuple(one.ip for one in seen.status.pod_ips or ())
        pod.stuck = bool(waiting and way_out(waiting))
        pod.since = str(status.state.running.started_at) if status.state.running else ""
        pod.container = status.container_id or "" if status.state.running else ""


def _gone(pod: Pod) -> None:
    if pod.container:
        pod.outside.add(pod.container)
    pod.uid = pod.container = ""
