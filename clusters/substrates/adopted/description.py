"""Looking at a cluster that is there already: which one is meant, what would be done to it. Changes nothing."""

import asyncio
import os
from base64 import b64decode
from collections.abc import Mapping, Sequence

from clusters import hidden
from clusters.errors import BadInput
from clusters.substrates.adopted.finding import ADOPT, SECRET, Found, OnlyDescribed, certificates, find
from clusters.substrates.kubernetes.api import Api, Refused
from clusters.substrates.kubernetes.manifests import GENERATORS
from clusters.substrates.kubernetes.rights import ADOPTED, refuse_without
from clusters.substrates.kubernetes.settings import NAMESPACE, Given


async def describe() -> Sequence[str]:
    """What is found, and what each capability would do to it. Raises ``BadInput``, ``HarnessError``."""
    try:
        api, found, secret, _ = await look()
    except OnlyDescribed as only:
        return only.described
    try:
        services = await api.told("look at services", api.core.list_namespaced_service, found.namespace)
        listed = api.policy.list_namespaced_pod_disruption_budget
        budgets = await api.told("look at disruption budgets", listed, found.namespace)
        return [
            f"adopted: StatefulSet {found.name}{f' of {found.of}' if found.of else ''}, namespace "
            f"{found.namespace}, {api.where}",
            f"nodes: {', '.join(map(_on, found.pods, found.machines))}; image {found.image}",
            f"services: {_selecting(services, found, 'selector') or 'none'}; disruption budgets: "
            f"{_selecting(budgets, found, 'matchLabels') or 'none'}; certificate of {found.charted.user}: "
            f"secret {secret}",
            "any load: makes database roachproof, writes to it through every pod, and drops it",
            "kill, delete pod, restart: deletes a pod, with a second's grace; its StatefulSet makes it anew at once, "
            "with its volume",
            f"drain, restart: `{found.charted.drain}`, and deletes the pod with its own grace of {found.grace_s} s",
            *_changing(found),
            f"--generators: makes a Job {GENERATORS} beside it, which goes with the run",
            "anything else is not done, and nothing without --allow-disruption",
        ]
    finally:
        api.close()


async def found() -> Found:
    """The cluster alone. Raises ``BadInput``, ``HarnessError``."""
    api, cluster, _, _ = await look()
    api.close()
    return cluster


def _changing(found: Found) -> Sequence[str]:
    """What is done to a StatefulSet that nobody owns."""
    if found.custom:
        return [f"add, remove, swap: not done, as the controller of {found.of} would undo it"]
    declared = (
        [f"declared by {found.declared_by}, which may undo that in the middle: suspend it for as long as a run takes"]
        if found.declared_by
        else []
    )
    return [
        "add, remove: changes replicas; a node is decommissioned before it is scaled away, and its volume deleted",
        "swap: changes the image, and deletes one pod after the other; replicas, image and strategy are put back",
        *declared,
    ]


async def look() -> tuple[Api, Found, str, Mapping[str, str]]:
    """The cluster that the environment names, and its administrator's certificate. Changes nothing."""
    given = Given.read()
    if given.namespace is None:
        raise BadInput(f"substrate adopted: no namespace is named; set {NAMESPACE} to that of the cluster")
    namespace, wanted = given.namespace, os.environ.get(ADOPT, "")
    api = await asyncio.to_thread(Api, given.context)
    try:
        await refuse_without(api, ADOPTED, namespace)
        sets = await api.told("look at StatefulSets", api.apps.list_namespaced_stateful_set, namespace)
        pods = await api.told("look at pods", api.core.list_namespaced_pod, namespace)
        found = find(wanted, api.where, sets, pods, namespace=namespace)
        secret, files = await _root(api, found)
    except BaseException:
        api.close()
        raise
    return api, found, secret, files


async def _root(api: Api, found: Found) -> tuple[str, Mapping[str, str]]:
    """The secret that has the administrator's certificate, and its files."""
    asked = os.environ.get(SECRET, "")
    looked = (asked,) if asked else found.secrets
    for name in looked:
        try:
            read = await api.call("read a secret", api.core.read_namespaced_secret, name, found.namespace)
        except Refused as error:
            if not error.is_not_there:
                raise
            continue
        if files := certificates({"data": read.data}):
            hidden.tell({file: b64decode(content).decode(errors="replace") for file, content in files.items()})
            return name, files
    keys = ", ".join(" or ".join(names) for names in found.charted.certificate.values())
    raise BadInput(
        f"{api.where}: namespace {found.namespace}: no secret has the certificate of the client {found.charted.user} "
        f"of StatefulSet {found.name}: looked for {keys} in {', '.join(looked)}; "
        f"name the secret that has them in {SECRET}"
    )


def _on(pod: str, machine: str) -> str:
    return f"{pod} on {machine}"


def _selecting(objects: Sequence[Mapping[str, object]], found: Found, key: str) -> str:
    """The names of the objects whose selector means the cluster's pods."""
    names = []
    for one in objects:
        spec: Mapping[str, object] = one["spec"]  # type: ignore[assignment]
        selector = spec.get("selector") or {}
        chosen = selector.get(key, selector) if isinstance(selector, dict) else {}
        if (chosen and chosen.items() <= found.labels.items()) or chosen == found.labels:
            metadata: Mapping[str, str] = one["metadata"]  # type: ignore[assignment]
            names.append(metadata["name"])
    return ", ".join(names)
