"""Which rights an account needs, as ``rights.yaml`` grants them, and which of them it lacks."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from kubernetes import client

from clusters.errors import BadInput
from clusters.substrates.kubernetes.api import Api

MANIFEST = Path(__file__).with_name("rights.yaml")
IN_A_NAMESPACE, NAMESPACES, MACHINES = "roachproof", "roachproof-namespaces", "roachproof-machines"
ROOM = "roachproof-room"
GENERATORS, ADOPTED = "roachproof-generators", "roachproof-adopted"
ADOPTED_CHANGES, FORWARDS, CUTTING = "roachproof-adopted-changes", "roachproof-port-forward", "roachproof-cuts"
"""The manifest's roles: in the namespace of a run, to make such namespaces, to look at the cluster's machines, and at
all that runs there; for load generators in the namespace of a run; in the namespace of a cluster that is there already,
and to change that one; to reach pods from outside of the cluster's network; to cut links between pods of a run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Right:
    """To do ``verb`` to what is a ``resource`` (``pods/log``: a part of one) of an API ``group``."""

    verb: str
    resource: str
    group: str = ""

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}" + (f" ({self.group})" if self.group else "")


def granted(role: str) -> list[Right]:
    """What a role of the manifest grants."""
    documents = yaml.safe_load_all(MANIFEST.read_text(encoding="utf-8"))
    (rules,) = (one["rules"] for one in documents if one["kind"] == "ClusterRole" and one["metadata"]["name"] == role)
    return [
        Right(verb=verb, resource=resource, group=group)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]


async def lacking(api: Api, rights: Sequence[Right], namespace: str | None) -> list[Right]:
    """Those that the account lacks in a namespace, or in the whole cluster. Asks the API server, and does nothing."""

    async def has(right: Right) -> bool:
        resource, _, part = right.resource.partition("/")
        asked = client.V1ResourceAttributes(
            verb=right.verb, group=right.group, resource=resource, subresource=part, namespace=namespace or ""
        )
        review = client.V1SelfSubjectAccessReview(spec=client.V1SelfSubjectAccessReviewSpec(resource_attributes=asked))
        ask = api.authorization.create_self_subject_access_review
        return bool((await api.call("ask what the account may do", ask, review)).status.allowed)

    allowed = await asyncio.gather(*map(has, rights))
    return [right for right, may in zip(rights, allowed, strict=True) if not may]


async def refuse_without(api: Api, role: str, namespace: str | None) -> None:
    """Raise ``BadInput`` with what the account lacks of a role in a namespace, or in the whole cluster."""
    if missing := await lacking(api, granted(role), namespace):
        where = f"namespace {namespace}" if namespace else "the whole cluster"
        raise BadInput(
            f"{api.where}: the account lacks rights in {where}: {', '.join(map(str, missing))}; grant it the "
            f"ClusterRole {role} of {MANIFEST} there, which has them, or choose another account"
        )
