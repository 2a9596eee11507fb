"""What became of a cluster's pods and of the processes in them, as their containers' states and logs tell it.

Two witnesses: one watch of all pods, and each container's log, in which its first process says what it started and how
that ended. Both are read by threads, so that asking costs nothing. How a pod and its container are is kept as history.
"""

import asyncio
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from kubernetes.client.exceptions import ApiException
from kubernetes.utils.quantity import parse_quantity

from clusters.errors import BadInput, HarnessError
from clusters.model import ProcessState
from clusters.substrates.kubernetes.api import Api, said
from clusters.substrates.kubernetes.commands import exit_code
from clusters.substrates.kubernetes.history import History
from clusters.substrates.kubernetes.manifests import (
    COMPONENT,
    CONTAINER,
    CUTTER,
    GENERATOR,
    GENERATORS,
    NOBODY,
    Settings,
    Template,
)
from clusters.substrates.kubernetes.settings import PODS

_CRASHES, _LAST_LINES = "CrashLoopBackOff", 20
"""Of a container that crashes again and again, and so many lines of its log are kept."""
CANNOT_PULL = "name an image that the cluster can pull"
_STUCK = {
    "ErrImagePull": CANNOT_PULL,
    "ImagePullBackOff": CANNOT_PULL,
    "ErrImageNeverPull": "name an image that the cluster has",
    "InvalidImageName": "correct the image's name",
    "CreateContainerConfigError": "see the pod's events",
    "CreateContainerError": "see the pod's events",
    _CRASHES: "see what it said last",
    "RunContainerError": "choose an image that has /bin/sh and coreutils",
}
"""Reasons of a waiting container that do not pass by themselves, and what to do."""
_OF_IMAGES = ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "RunContainerError")
"""Those of them that are the image's."""
_PULLS = ("ErrImagePull", "ImagePullBackOff")
_NEVER = re.compile(r"not found|does not exist|manifest unknown|no such host|denied|unauthorized", re.IGNORECASE)
"""What is said of an image that is not pulled, where that stays so: else the kubelet tries again, with success, too."""
_DENIED = re.compile(r"denied|unauthorized", re.IGNORECASE)
_OUTSIDE = "its pod was ended from outside, by a person, an eviction or the end of its namespace"
_WENT_ON = f"{_OUTSIDE}, and another went on with its order"
_CONTAINERS = (CONTAINER, GENERATOR)
_RESIZES = ("PodResizePending", "PodResizeInProgress")
"""The conditions of a pod that is to have other limits: while its machine cannot give them, and until it has."""
RUNS = "runs"
_ENDED_BY = {"memory": "killed by the kernel, as its container's memory ran out", "pod": _OUTSIDE}
"""What a container's first process says of what ended another."""
_LAST = "roachproof exited"
_AGAIN_S, _SELDOM_S = 0.1, 2.0
"""How soon a log is asked for again whose connection was lost, and how soon where nothing new is heard of it."""
_REFUSED_S, _LOOK_S = 15.0, 1.0
"""A StatefulSet or Job that is refused a pod for so long will be: in a new namespace it is until that has an account.
And how often that is looked for."""
HARMLESS_S = 2.0
"""An API server may be away for so long while nodes are reached through it: they are asked again for longer."""


@dataclass(slots=True)
class Pod:
    """One pod, by its name: what it is now, and what of the process in it was last told."""

    name: str
    uid: str = ""
    container: str = ""
    """The id of the container that runs; empty where none does."""
    image_id: str = ""
    """What its container's image is by its content, in its machine's words: a tag may be another elsewhere."""
    template: Template | None = None
    waiting: str = ""
    """Why it does not run, in Kubernetes' words."""
    stuck: str = ""
    """What to do about that, where it does not pass by itself."""
    last_words: str = ""
    """What its container said before it crashed, where it does so again and again: its log goes with the pod."""
    ready: bool = False
    """Whether its first process takes orders."""
    starts: int = 0
    asked: int = 0
    """So many of its starts were asked for at the most."""
    went_on: str = ""
    """That it started unasked, and so in the place of one that somebody ended; that stays true of it."""
    pid: int | None = None
    code: int | None = None
    ended_by: str = ""
    """What outside of it ended the process, where that was seen."""
    described: str = ""
    """How the pod was when it was looked at last."""
    alive: bool = False
    paused: bool = False
    addresses: tuple[str, ...] = ()
    cutter: str = ""
    """How its container that cuts links is: ``RUNS``, or in words."""
    cutter_stuck: str = ""
    """What to do about that, where it will never run."""
    told: Template | None = None
    """What its container has, by the word of its machine, where it runs."""
    not_resized: str = ""
    """Why its machine does not give it what it is to have, in its words."""
    resizing: str = ""
    """That its machine is about to, and what went wrong, if something did."""

    @property
    def state(self) -> ProcessState:
        """What the process does that was started last."""
        if self.alive:
            return ProcessState.PAUSED if self.paused else ProcessState.RUNNING
        return ProcessState.EXITED if self.starts else ProcessState.ABSENT


class UnfitImage(HarnessError):  # noqa: N818 - what was found
    """A pod never runs with its ``image``, or that has another version than was said."""

    def __init__(self, why: str, image: str) -> None:
        super().__init__(why)
        self.image = image


class Pods:
    """All pods of a cluster. Belongs to the event loop that made it.

    ``on`` is told on which machine the pod of a node is.
    """

    def __init__(
        self,
        api: Api,
        settings: Settings,
        history: History,
        on: Callable[[str, str], None] = lambda *_: None,
    ) -> None:
        self._api, self._history, self._on = api, history, on
        self._settings = settings
        self._pods: dict[str, Pod] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._changed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._images: dict[str, str] = {}
        """By StatefulSet the image that it was told last."""
        self._meant: dict[str, str] = {}
        """By image that pods have the one that their StatefulSet was told: a webhook may give them another."""
        self.through_it = False
        """Whether nodes are reached through the API server."""
        self._unheard: HarnessError | None = None
        """Why the pods are not watched any more."""
        self._watching = threading.Thread(target=self._watch, name="pods", daemon=True)
        self._watching.start()

    def __getitem__(self, name: str) -> Pod:
        with self._lock:
            return self._pods.setdefault(name, Pod(name))

    def forget(self, name: str) -> None:
        """Know nothing of a pod that is gone: another of that name is no successor of it."""
        with self._lock:
            self._pods.pop(name, None)

    def expect(self, group: str, image: str) -> None:
        """Know that from now on a StatefulSet makes its pods of this image, whatever a webhook makes of that."""
        with self._lock:
            self._images[group] = self._meant[image] = image

    def generators(self) -> dict[int, Pod]:
        """The pods of load generators, by their number in the Job."""
        with self._lock:
            names = {name: name.removeprefix(f"{GENERATORS}-").split("-")[0] for name in self._pods}
            return {int(number): self._pods[name] for name, number in names.items() if number.isdecimal()}

    def warnings(self, pod: Pod) -> str:
        """The last warnings of a pod."""
        return self._history.warnings(pod.name)

    def close(self) -> None:
        """Listen no more."""
        self._ended.set()

    def refuse_unwatched(self) -> None:
        """Raise ``HarnessError`` where nothing is heard of the pods any more: how they are is not known."""
        if self._unheard:
            raise self._unheard

    def refuse_not_admitted(self, owner: str, what: str) -> None:
        """Raise ``BadInput`` where a StatefulSet or a Job is refused pods, and stays so."""
        if words := self._history.refused(owner, _REFUSED_S):
            raise BadInput(
                f"{self._api.where}: {what} is not admitted: {words}; have namespace {self._settings.namespace} admit "
                "it (docs/kubernetes.md says what pods ask for)"
            )

    async def until(self, what: str, pod: Pod, check: Callable[[], bool], *, timeout: float, of: str = "") -> None:
        """Wait for the pod to be so. ``of``: the StatefulSet that is to make it, which may be refused that.

        Raises ``BadInput`` where that stays so; ``HarnessError`` where it is stuck (``UnfitImage``: by its image), and
        with what it was last where that takes too long: not ``TimedOut``, which is evidence of what a database did. An
        image that is not pulled is tried again by Kubernetes for so long.
        """
        try:
            async with asyncio.timeout(timeout):
                while not check():
                    self.refuse_unwatched()
                    if pod.stuck:
                        raise _stuck(pod, pod.stuck)
                    if of:
                        self.refuse_not_admitted(of, f"pod {pod.name}")
                    self._changed.clear()
                    if not check():
                        with suppress(TimeoutError):  # what a StatefulSet is refused is no change of a pod
                            async with asyncio.timeout(_LOOK_S):
                                await self._changed.wait()
        except TimeoutError:
            if unpulled(pod.waiting):
                raise _stuck(pod, f"so for {timeout:g} s; {CANNOT_PULL}") from None
            last = pod.waiting or f"its process is {pod.state}"
            if warnings := self._history.warnings(pod.name):
                last += f" (last warnings: {warnings})"
            raise HarnessError(f"waiting for {what}: not after {timeout:g} s; pod {pod.name}: {last}") from None

    def _tell(self) -> None:
        if not self._ended.is_set():
            with suppress(RuntimeError):  # the loop is closed: nobody waits for it any more
                self._loop.call_soon_threadsafe(self._changed.set)

    def _watch(self) -> None:
        try:
            listing, selector = self._api.core.list_namespaced_pod, self._settings.selector
            where = (self._settings.namespace, self._ended)
            watched = self._api.watch("watch pods", listing, *where, away=self._was_away, label_selector=selector)
            for kind, seen in watched:
                if kind == "LISTED":
                    there = {one.metadata.uid for one in seen}
                    with self._lock:  # others ask for further pods meanwhile
                        known = [*self._pods.values()]
                    for pod in known:
                        if pod.uid not in ("", *there):
                            self._gone(pod, None)
                    for one in seen:
                        self._seen(one)
                elif kind == "DELETED":
                    pod = self[seen.metadata.name]
                    if pod.uid == seen.metadata.uid:
                        self._gone(pod, _terminated(seen))
                else:
                    self._seen(seen)
                self._tell()
        except Exception as error:  # noqa: BLE001, RUF100 - a thread that ends unheard leaves all as it was last seen
            if not self._ended.is_set():
                self._unheard = HarnessError(f"pods are not watched any more: {type(error).__name__} {error}")
                self._tell()

    def _was_away(self, seconds: float) -> None:
        """The API server was."""
        self._history.was_away(seconds)
        if self.through_it and seconds > HARMLESS_S:
            self._unheard = HarnessError(
                f"the API server was away for {seconds:.0f} s, and nodes are reached through it: what was asked of "
                "them meanwhile says nothing of the database"
            )

    def _gone(self, pod: Pod, code: int | None) -> None:
        pod.uid = pod.container = ""
        pod.ready, pod.template, pod.told = False, None, None
        self._container_ended(pod, code, _OUTSIDE)
        self._on(pod.name, "")
        self._describe(pod, "gone")

    def _seen(self, seen: Any) -> None:
        pod, uid = self[seen.metadata.name], seen.metadata.uid
        waiting, stuck = _waiting(seen)
        if not crashes(waiting):
            pod.last_words = ""
        elif not pod.last_words:
            pod.last_words = last_words(self._api, self._settings.namespace, pod.name, _status(seen).name)
            for line in pod.last_words.splitlines():
                self._history.write(f"pod {pod.name}: its container said last: {line}")
        pod.waiting, pod.stuck = waiting, stuck  # the last: whoever sees that asks at once what it said
        if (seen.metadata.labels or {}).get(COMPONENT) == GENERATOR:
            # It runs what it is told by commands of their own: its log says nothing.
            pod.uid, pod.container = uid, _running(seen)
            self._describe(pod, _described(seen))
            return
        self._on(pod.name, seen.spec.node_name or "")
        pod.template = self._as_meant(pod.name, _template(_node(seen.spec.containers)))
        pod.told = _told(seen)
        pod.not_resized, pod.resizing = (_condition(seen, name) for name in _RESIZES)
        pod.addresses = tuple(one.ip for one in seen.status.pod_ips or ())
        pod.cutter, pod.cutter_stuck = _cutter(seen)
        if uid != pod.uid:
            self._history.admitted(pod.name.rpartition("-")[0])
        pod.uid = uid  # once its template is known: whoever waits for the one asks for the other at once
        self._describe(pod, _described(seen))
        container = _running(seen)
        if pod.container and container != pod.container:
            pod.container, pod.ready = "", False
            self._container_ended(pod, _terminated(seen), f"its container ended ({_ending(seen)})")
        if container and container != pod.container:
            pod.container, pod.image_id = container, _status(seen).image_id or ""
            threading.Thread(target=self._listen, args=(pod, container), name=f"log of {pod.name}", daemon=True).start()

    def _as_meant(self, pod: str, template: Template) -> Template:
        """A template with the image that the pod's StatefulSet was told, which is what others ask for."""
        with self._lock:
            last = self._images.get(pod.rpartition("-")[0], template.image)
            return replace(template, image=self._meant.setdefault(template.image, last))

    def _describe(self, pod: Pod, now: str) -> None:
        if now != pod.described:
            pod.described = now
            self._history.write(f"pod {pod.name}: {now}")

    def _container_ended(self, pod: Pod, code: int | None, by: str) -> None:
        """The container is no more, and what ran in it neither, whether or not its log was read to its end."""
        if pod.alive:
            pod.code, pod.paused, pod.ended_by = code, False, by
            pod.alive = False  # the last: whoever sees that asks at once what ended it

    def _listen(self, pod: Pod, container: str) -> None:
        heard, pause = 0, _AGAIN_S
        while pod.container == container and not self._ended.is_set():
            before = heard
            for number, line in enumerate(self._api.follow_log(self._settings.namespace, pod.name, CONTAINER)):
                # Of a container that was seen to end only its last word counts: what began in it is over.
                last = not pod.container and line.startswith(_LAST)
                if number >= heard and (last or pod.container == container):
                    heard = number + 1
                    self._said(pod, line)
            pause = _AGAIN_S if heard > before else min(2 * pause, _SELDOM_S)
            self._ended.wait(pause)

    def _said(self, pod: Pod, line: str) -> None:
        match line.split():
            case ["roachproof", "failed", *words]:
                pod.waiting = " ".join(words)
                pod.stuck = f"give user {NOBODY} a volume (fsGroup), or choose another storage class"
            case ["roachproof", "ready"]:
                pod.ready = True
            case ["roachproof", "started", pid]:
                pod.starts += 1
                if pod.starts > pod.asked:  # said before it is forgotten what ended the one before
                    pod.went_on = _WENT_ON
                    self._history.write(f"pod {pod.name}: {_WENT_ON}")
                pod.pid, pod.code, pod.paused, pod.ended_by = int(pid), None, False, ""
                pod.alive = True
            case ["roachproof", "exited", code, *why]:
                pod.code, pod.paused = exit_code(int(code)), False
                pod.ended_by = _ENDED_BY.get("".join(why), "")
                pod.alive = False
        self._tell()


def way_out(waiting: Any) -> str:
    """What to do about a container that waits, where that does not pass by itself."""
    words = waiting.message or ""
    if waiting.reason in _PULLS and not _NEVER.search(words):
        return ""
    found = _STUCK.get(waiting.reason or "", "")
    return f"{found}, or a secret to pull it with ({PODS})" if found and _DENIED.search(words) else found


def crashes(waiting: str) -> bool:
    """Whether a container waits, by what is said of it, as it crashes again and again."""
    return waiting.startswith(_CRASHES)


def last_words(api: Api, namespace: str, pod: str, container: str) -> str:
    """The end of what the container said that ran before; where that cannot be read, why."""
    try:
        return api.log(namespace, pod, container, previous=True, tail_lines=_LAST_LINES).strip() or "nothing"
    except ApiException as error:
        return f"what is not known, as its log cannot be read ({said(error)})"
    except OSError as error:
        return f"what is not known ({error})"


def unpulled(waiting: str) -> bool:
    """Whether a container waits, by what is said of it, as its image is not pulled."""
    return waiting.startswith(_PULLS)


def _stuck(pod: Pod, way_out: str) -> HarnessError:
    why = f"pod {pod.name}: {pod.waiting}; {way_out}" + (f": {pod.last_words}" if pod.last_words else "")
    if pod.template is not None and pod.waiting.startswith(_OF_IMAGES):
        return UnfitImage(why, pod.template.image)
    return HarnessError(why)


def _status(seen: Any) -> Any:
    found = [status for status in seen.status.container_statuses or () if status.name in _CONTAINERS]
    return found[0] if found else None


def _running(seen: Any) -> str:
    status = _status(seen)
    return (status.container_id or "") if status is not None and status.state.running is not None else ""


def _terminated(seen: Any) -> int | None:
    status = _status(seen)
    if status is None:
        return None
    return exit_code(ended.exit_code) if (ended := _ended(status)) else None


def _described(seen: Any) -> str:
    """A pod and its container in a line."""
    words = [seen.status.phase, f"on {seen.spec.node_name}" if seen.spec.node_name else "on no machine"]
    words += ["to be deleted"] if seen.metadata.deletion_timestamp else []
    words += [f"{seen.status.reason}: {seen.status.message}"] if seen.status.reason else []
    if waiting := _waiting(seen)[0]:
        words.append(f"waiting: {waiting}")
    if (status := _status(seen)) is not None:
        words += ["container runs"] if status.state.running else []
        words += [f"container ended: {_ending(seen)}"] if _ended(status) else []
        words += [f"restarted {status.restart_count} times"] if status.restart_count else []
    words += [f"not resized: {why}"] if (why := _condition(seen, _RESIZES[0])) else []
    return ", ".join(words)


def _ended(status: Any) -> Any:
    """How a container ended, or the one before it in its pod."""
    return status.state.terminated or (status.last_state and status.last_state.terminated)


def _ending(seen: Any) -> str:
    """The same in words: OOMKilled where its memory ran out."""
    status = _status(seen)
    ended = _ended(status) if status is not None else None
    if ended is None:
        return "nobody says how"
    return f"{ended.reason}, exit code {ended.exit_code}" + (f": {ended.message}" if ended.message else "")


def _waiting(seen: Any) -> tuple[str, str]:
    """Why the pod does not run, and what to do where that does not pass by itself."""
    status = _status(seen)
    if status is not None and status.state.waiting is not None:
        return _why(status.state.waiting)
    for condition in seen.status.conditions or ():
        if condition.type == "PodScheduled" and condition.status == "False":
            return f"{condition.reason}: {condition.message}", ""
    return "", ""


def _why(waiting: Any) -> tuple[str, str]:
    """Why a container waits, and what to do where that does not pass by itself."""
    words = ": ".join(filter(None, [waiting.reason, waiting.message])) if waiting else ""
    return words, way_out(waiting) if waiting else ""


def _cutter(seen: Any) -> tuple[str, str]:
    """How the container that cuts links is, and what to do where it will never run."""
    for status in seen.status.ephemeral_container_statuses or ():
        if status.name == CUTTER:
            if ended := status.state.terminated:
                return f"{ended.reason}, exit code {ended.exit_code}: {ended.message}", "name an image that has python"
            return (RUNS, "") if status.state.running else _why(status.state.waiting)
    return "", ""


def _condition(seen: Any, name: str) -> str:
    """A pod's condition in words, where it is in it."""
    found = [one for one in seen.status.conditions or () if one.type == name and one.status == "True"]
    return ": ".join(filter(None, [found[0].reason or name, found[0].message])) if found else ""


def _node(those: Any) -> Any:
    return next(one for one in those if one.name == CONTAINER)


def _told(seen: Any) -> Template | None:
    return _template(_node(seen.status.container_statuses)) if _running(seen) else None


def _template(container: Any) -> Template:
    """What a container is to have, or by its status has."""
    limits = (container.resources and container.resources.limits) or {}
    cpu, memory = (parse_quantity(limits[name]) if name in limits else None for name in ("cpu", "memory"))
    return Template(
        image=container.image,
        cpus=None if cpu is None else float(cpu),
        memory_mib=None if memory is None else round(memory / 2**20),
    )
