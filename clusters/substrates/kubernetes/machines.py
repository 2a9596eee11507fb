"""Which machines under pods were not ready, and since when: what ran on one then is not heard of, or does not run."""

import threading
from collections.abc import Callable
from typing import Any

from clusters.substrates.kubernetes.api import Api
from clusters.substrates.kubernetes.history import History
from clusters.substrates.kubernetes.rights import MACHINES, granted, lacking

_READY = "Ready"


class Machines:
    """The machines that pods are on, from ``begin`` to ``close``. Threads may share it.

    One that was not ready and is again is remembered for the pods that were on it.
    """

    def __init__(self, api: Api, history: History) -> None:
        self._api, self._history = api, history
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._on: dict[str, str] = {}
        """By pod its machine."""
        self._unready: dict[str, str] = {}
        """By machine that is not ready now how it is."""
        self._lost: dict[str, str] = {}
        """By pod what became of its machine first."""
        self._told = set[str]()
        """The machines of which it was written that they are lost."""

    async def begin(self, say: Callable[[str], None]) -> None:
        """Watch them as far as the account may; else ``say`` so: then Kubernetes' events of pods tell it alone."""
        if missing := await lacking(self._api, [one for one in granted(MACHINES) if one.resource == "nodes"], None):
            takes = f"{', '.join(map(str, missing))} (whole cluster)"
            say(f"that a machine is lost is known by events of its pods alone; to see why takes: {takes}")
            return
        threading.Thread(target=self._watch, name="machines", daemon=True).start()

    def close(self) -> None:
        """Watch no more."""
        self._ended.set()

    def on(self, pod: str, machine: str) -> None:
        """Say on which machine a pod is; on none, if it is gone."""
        with self._lock:
            self._on[pod] = machine
            if how := self._unready.get(machine):
                self._lost.setdefault(pod, f"its machine {machine} {how}")

    def of(self, pod: str) -> str:
        """The machine that a pod is on; empty where it is on none."""
        with self._lock:
            return self._on.get(pod, "")

    def forget(self, pod: str) -> None:
        """Know nothing of a pod that is gone, whatever becomes of its machine."""
        with self._lock:
            self._on.pop(pod, None)
            self._lost.pop(pod, None)

    def lost(self, pod: str) -> str:
        """What became of the machine of a pod while that was on it, if it was lost; it may be back."""
        with self._lock:
            seen, machine = self._lost.get(pod, ""), self._on.get(pod)
        told = self._history.unready(pod)
        return seen or (told and f"its machine {machine or '(not known)'} was not ready ({told})")

    def _watch(self) -> None:
        try:
            for kind, seen in self._api.watch("watch machines", self._api.core.list_node, None, self._ended):
                for machine in seen if kind == "LISTED" else [seen]:
                    self._seen(machine.metadata.name, "was taken out" if kind == "DELETED" else _how(machine))
        except Exception as error:  # noqa: BLE001, RUF100 - events of pods tell it all the same
            self._history.write(f"machines are not watched any more: {type(error).__name__} {error}")

    def _seen(self, machine: str, how: str) -> None:
        with self._lock:
            before = self._unready.pop(machine, "")
            if how:
                self._unready[machine] = how
            ours = [pod for pod, on in self._on.items() if on == machine]
            for pod in ours if how else ():
                self._lost.setdefault(pod, f"its machine {machine} {how}")
        if how != before and (ours or machine in self._told):
            self._told.add(machine)
            self._history.write(f"machine {machine} {how or 'is ready again'}")


def _how(machine: Any) -> str:
    """Why a machine is not ready, and since when; nothing of one that is."""
    ready = next((one for one in machine.status.conditions or () if one.type == _READY), None)
    if ready is None or ready.status == "True":  # one that is new says nothing yet, and has no pods
        return ""
    words = " ".join(filter(None, (ready.reason, ready.message)))
    since = f" since {ready.last_transition_time:%Y-%m-%d %H:%M:%S} UTC" if ready.last_transition_time else ""
    return f"was not ready{since} ({_READY} {ready.status}: {words})"
