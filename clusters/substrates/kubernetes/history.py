"""What became of a cluster's pods, in the words of Kubernetes: its events, kept in a file as they happen."""

import re
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from clusters.substrates.kubernetes.api import Api

_NOT_ADMITTED = re.compile(r" is forbidden: | denied the request")
"""What policies and quotas say of a pod, and webhooks; one that does not answer says something else, and may again."""
_NOT_READY = "Unhealthy"
"""Of a pod in which nothing runs: that is known, and no reason for anything."""


class History:
    """Events of a namespace from ``begin`` on, and whatever else is written, a line each, with the time it was heard.

    ``file`` keeps them, if one is given. ``of``: whether what is called so is of ours. Threads may share it.
    """

    def __init__(self, api: Api, namespace: str, file: Path | None, *, of: Callable[[str], object]) -> None:
        self._api, self._namespace, self._of = api, namespace, of
        self._file = file
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._heard: set[tuple[str, str]] = set()
        self._warnings: dict[str, str] = {}
        self._probed: dict[str, str] = {}
        self._unready: dict[str, str] = {}
        self._refused: dict[str, tuple[float, str]] = {}

    async def begin(self) -> None:
        """Listen from now on: what is there already is of others. Raises ``BadInput``, ``HarnessError``."""
        listed = await self._api.call("look at events", self._api.core.list_namespaced_event, self._namespace)
        self._heard.update(map(_identity, listed.items))
        threading.Thread(target=self._listen, name="events", daemon=True).start()

    def close(self) -> None:
        """Listen no more, and write no more."""
        with self._lock:
            self._ended.set()

    def was_away(self, seconds: float) -> None:
        """Keep that the API server was away for so long."""
        self.write(f"the API server was away for {seconds:.1f} s")

    def write(self, line: str) -> None:
        """Keep a line with the time of now."""
        with self._lock:
            if self._file is None or self._ended.is_set():
                return
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.open("a", encoding="utf-8") as file:
                file.write(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} {' '.join(line.split())}\n")

    def warnings(self, pod: str) -> str:
        """The last warning of each of a pod, its volume and its StatefulSet; nothing where there was none."""
        of = (pod, f"home-{pod}", pod.rpartition("-")[0])
        return "; ".join(self._warnings[name] for name in of if name in self._warnings)

    def probed(self, pod: str) -> str:
        """That a container of a pod is ended as it fails a probe, in the words of Kubernetes, if it is."""
        return self._probed.get(pod, "")

    def unready(self, pod: str) -> str:
        """That a pod's machine was not ready, in the words of Kubernetes and with the time, if it was."""
        return self._unready.get(pod, "")

    def refused(self, group: str, seconds: float) -> str:
        """What a StatefulSet is refused pods by, in the words of Kubernetes, if it is so for that long."""
        since, words = self._refused.get(group, (0.0, ""))
        return words if time.monotonic() - since >= seconds else ""

    def admitted(self, group: str) -> None:
        """A pod of a StatefulSet is there: it is refused none, though the event that says so may have been dropped."""
        self._refused.pop(group, None)

    def forget(self, pod: str) -> None:
        """Know nothing of a pod that is gone; what was written of it stays."""
        for of in (self._warnings, self._probed, self._unready):
            of.pop(pod, None)
        self._warnings.pop(f"home-{pod}", None)

    def begins(self, pod: str) -> None:
        """Another container runs in a pod: what was said of the former one is over."""
        self._probed.pop(pod, None)

    def _listen(self) -> None:
        listing = self._api.core.list_namespaced_event
        try:
            for kind, seen in self._api.watch("watch events", listing, self._namespace, self._ended):
                for event in seen if kind == "LISTED" else [seen] if kind != "DELETED" else []:
                    self._happened(event)
        except Exception as error:  # noqa: BLE001, RUF100 - a thread that ends unheard leaves all as it was last heard
            self.write(f"events are not heard any more: {type(error).__name__} {error}")

    def _happened(self, event: Any) -> None:
        of, key = event.involved_object, _identity(event)
        if key in self._heard or not self._of(of.name or ""):
            return
        self._heard.add(key)
        words = f"{event.reason}: {' '.join((event.message or '').split())}"
        if event.type == "Warning" and event.reason != _NOT_READY:
            self._warnings[of.name] = words
        if event.reason == "FailedCreate" and _NOT_ADMITTED.search(words):
            self._refused.setdefault(of.name, (time.monotonic(), words))
        if event.reason == "SuccessfulCreate":
            self.admitted(of.name)
        if event.reason == "Killing" and " probe" in words:
            self._probed[of.name] = words
        if event.reason == "NodeNotReady":
            since = event.first_timestamp or datetime.now(UTC)
            self._unready.setdefault(of.name, f"{words}, since {since:%Y-%m-%d %H:%M:%S} UTC")
        times = f" (time {event.count})" if (event.count or 1) > 1 else ""
        self.write(f"{event.type} {of.kind} {of.name}: {words}{times}")


def _identity(event: Any) -> tuple[str, str]:
    """Of one that happens again only the version is another."""
    return event.metadata.uid, event.metadata.resource_version
