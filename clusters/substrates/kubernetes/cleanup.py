"""Clearing away what a cluster is in Kubernetes: at its end, when the harness was killed, and what lost runs left."""

import asyncio
import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from email.utils import parsedate_to_datetime
from pathlib import Path

from clusters.errors import BadInput, HarnessError
from clusters.substrates.kubernetes.api import Api, Refused
from clusters.substrates.kubernetes.companion import Companion
from clusters.substrates.kubernetes.manifests import INSTANCE, MANAGED, OWNER, RENEWED, SCRIPTS, Settings, renewal
from clusters.substrates.kubernetes.volumes import Files

RENEW_S = 20.0
"""How often a cluster's owner says that it lives."""
LOST_S = 180.0
"""An owner that has said nothing for so long is gone, with its machine or its network."""
_GONE_S = 120.0
_LOOK_S = 0.5
"""How often it is looked whether pods are gone: with what tells them to end that is four requests a second."""
_AGAIN_S, _GIVE_UP_S = 5.0, 900.0
"""How often, and for how long, what a killed harness left is to be deleted where that cannot be."""


class Guard:
    """A process beside the harness that clears a cluster away once the harness is gone, however that ended.

    ``scratch``: the directory of this machine that goes with it, where that has one: with keys, and with passwords.
    """

    def __init__(
        self, settings: Settings, context: str | None, *, own: bool, keep_logs: Path | None, scratch: Path | None
    ) -> None:
        self._companion = Companion(__name__, "guards the cluster")
        logs, private = (None if path is None else str(path.resolve()) for path in (keep_logs, scratch))
        told = {"settings": asdict(settings), "context": context, "own": own, "keep_logs": logs, "scratch": private}
        self._companion.tell(told)

    def refuse_dead(self) -> None:
        """Raise ``HarnessError`` where it has died: a killed harness would leave all, and all may be taken for left."""
        self._companion.refuse_ended()

    def dismiss(self) -> None:
        """End it: the cluster was cleared away, or is to be kept."""
        self._companion.end("done")


def remove(api: Api, settings: Settings, *, own: bool, wait: bool = True) -> None:
    """Delete everything of a cluster, and its namespace where that is our ``own``. Blocks until all pods are gone.

    Beside a cluster of ``others`` that is the Job of load generators, whose pods go with it. Kubernetes keeps a
    namespace that is deleted for five seconds more; that is not waited for. Raises ``HarnessError`` where a pod is
    still there after two minutes.
    """
    namespace, selected = settings.namespace, {"label_selector": settings.selector}
    if own and not api.call_now("look for the namespace", api.core.list_namespace, **selected).items:
        return
    if settings.generators:
        jobs = api.batch.delete_collection_namespaced_job
        api.call_now(
            f"delete what is left in {namespace}", jobs, namespace, propagation_policy="Background", **selected
        )
    if settings.others is not None:
        _gone_pods(api, settings, lambda: None, wait=wait)
        return
    for delete in (
        api.apps.delete_collection_namespaced_stateful_set,
        api.policy.delete_collection_namespaced_pod_disruption_budget,
        api.core.delete_collection_namespaced_config_map,
    ):
        api.call_now(f"delete what is left in {namespace}", delete, namespace, **selected)

    def end() -> None:
        pods = api.core.delete_collection_namespaced_pod
        api.call_now("end pods", pods, namespace, grace_period_seconds=0, **selected)

    end()
    claims = api.core.delete_collection_namespaced_persistent_volume_claim
    api.call_now("delete volumes", claims, namespace, **selected)
    for service in api.call_now("list services", api.core.list_namespaced_service, namespace, **selected).items:
        api.delete_now("delete a service", api.core.delete_namespaced_service, service.metadata.name, namespace)
    # A StatefulSet that was not gone yet may have made another.
    _gone_pods(api, settings, end, wait=wait)
    if own:
        api.delete_now("delete the namespace", api.core.delete_namespace, namespace)


def _gone_pods(api: Api, settings: Settings, end: Callable[[], None], *, wait: bool) -> None:
    """Wait until no pod is there any more, telling those that are to ``end``."""
    namespace, until = settings.namespace, time.monotonic() + _GONE_S
    listing, selector = api.core.list_namespaced_pod, settings.selector
    while wait and (left := api.call_now("look for pods", listing, namespace, label_selector=selector).items):
        if time.monotonic() > until:
            names = ", ".join(pod.metadata.name for pod in left)
            raise HarnessError(f"{api.where}: {names} of {namespace} did not end within {_GONE_S:g} s")
        end()
        time.sleep(_LOOK_S)


def now(api: Api, namespace: str | None) -> float:
    """The time by the API server, in seconds since 1970: the machines of two runs need not agree on it. Blocks.

    ``namespace``: where the account may look at pods; without one it may look at namespaces.
    """
    core = api.core
    ask = (core.list_namespaced_pod_with_http_info, namespace) if namespace else (core.list_namespace_with_http_info,)
    _, _, headers = api.call_now("ask for the time", *ask, limit=1)
    return parsedate_to_datetime(headers["Date"]).timestamp()


def sweep(api: Api) -> list[str]:
    """Delete namespaces of ours whose owner has said nothing for long; their names. Blocks. May lack the right to."""
    swept, until = [], now(api, None) - LOST_S
    for found in api.call_now("list namespaces", api.core.list_namespace, label_selector=f"{MANAGED}={OWNER}").items:
        renewed = (found.metadata.annotations or {}).get(RENEWED, "")
        if renewed.isdecimal() and int(renewed) < until and found.status.phase == "Active":
            name = found.metadata.name
            api.delete_now("delete a namespace that a lost run left", api.core.delete_namespace, name)
            swept.append(name)
    return swept


def sweep_named(api: Api, settings: Settings) -> str:
    """Delete what a lost run left in a namespace that was named; what it is called, nothing where none is lost.

    Blocks. ``settings``: those of the cluster that is to be there instead.
    """
    called, renewed = _who_is_in(api, settings.namespace)
    if not called or not renewed.isdecimal() or int(renewed) >= now(api, settings.namespace) - LOST_S:
        return ""
    remove(api, replace(settings, cluster=called), own=False)
    return called


def is_in(api: Api, settings: Settings) -> bool:
    """Whether the one cluster of the namespace is this one. Blocks."""
    return _who_is_in(api, settings.namespace)[0] == settings.cluster


def _who_is_in(api: Api, namespace: str) -> tuple[str, str]:
    """What its cluster is called, and when that one's owner last said that it lives; empty where there is none."""
    try:
        read = api.core.read_namespaced_config_map
        found = api.call_now("look who is in the namespace", read, SCRIPTS, namespace).metadata
    except Refused as error:
        if error.is_not_there:  # another run cleared it away meanwhile
            return "", ""
        raise
    return str((found.labels or {}).get(INSTANCE, "")), (found.annotations or {}).get(RENEWED, "")


def _renew(api: Api, settings: Settings, *, own: bool) -> None:
    """Say that the cluster's owner lives. Raises ``BadInput`` or ``HarnessError`` where another has its place."""
    written, namespace = renewal(now(api, settings.namespace)), settings.namespace
    if own:
        api.call_now("renew the namespace", api.core.patch_namespace, namespace, {"metadata": {"annotations": written}})
        return
    ours = {"op": "test", "path": _pointer("labels", INSTANCE), "value": settings.cluster}
    renewed = [{"op": "add", "path": _pointer("annotations", key), "value": at} for key, at in written.items()]
    api.call_now("renew the cluster", api.core.patch_namespaced_config_map, SCRIPTS, namespace, [ours, *renewed])


def _pointer(among: str, key: str) -> str:
    """Where a label or an annotation is, as a JSON patch has it (RFC 6901)."""
    return f"/metadata/{among}/{key.replace('~', '~0').replace('/', '~1')}"


def _insist(remove: Callable[[], None]) -> None:
    """Try it again where that fails, for a quarter of an hour: nobody else clears a named namespace away."""
    until = time.monotonic() + _GIVE_UP_S
    while True:
        try:
            return remove()
        except (HarnessError, BadInput):
            if time.monotonic() > until:
                raise
        time.sleep(_AGAIN_S)


async def save_logs(api: Api, settings: Settings, into: Path) -> None:
    """Keep the logs of all pods that are there, each by the pod's name. What cannot be had is not kept."""
    files, listed = Files(api, settings.namespace), api.core.list_namespaced_pod
    pods = (await api.call("look for pods", listed, settings.namespace, label_selector=settings.selector)).items
    await asyncio.gather(*(files.save_logs(pod.metadata.name, into / pod.metadata.name) for pod in pods))


def guard() -> None:
    """What the guarding process does: renews until the harness says that it is done, or is gone; then clears away."""
    import select
    import signal

    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    # Unbuffered: what was read ahead, `select` would not see.
    orders = os.fdopen(0, "rb", buffering=0)
    told = json.loads(orders.readline())
    settings, own = Settings(**told["settings"]), told["own"]
    api = Api(told["context"])
    while not select.select([orders], [], [], RENEW_S)[0]:
        if settings.others is None:
            try:
                _renew(api, settings, own=own)
            except Exception:  # noqa: BLE001, S112, RUF100 - the next time; it is lost only after many
                continue
    if not orders.readline():
        logs, private = (told[name] and Path(told[name]) for name in ("keep_logs", "scratch"))
        _clear_away(api, settings, own=own, keep_logs=logs, scratch=private)


def _clear_away(api: Api, settings: Settings, *, own: bool, keep_logs: Path | None, scratch: Path | None) -> None:
    """Everything that a killed harness left; its keys at once, whatever becomes of the rest."""
    try:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)
        if keep_logs is not None:
            asyncio.run(save_logs(api, settings, keep_logs))
    finally:
        _insist(lambda: remove(api, settings, own=own, wait=False))


if __name__ == "__main__":
    guard()
