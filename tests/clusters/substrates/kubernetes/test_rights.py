"""The manifest of rights: it has those of every call that the code makes and no other; which one is lacking is said."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from clusters.errors import BadInput
from clusters.substrates.kubernetes.rights import MANIFEST, Right, granted, refuse_without

GROUPS = {"core": "", "apps": "apps", "batch": "batch", "policy": "policy", "storage": "storage.k8s.io"}
VERBS = {"read": "get", "connect_get": "get", "delete_collection": "deletecollection"}
CALL = re.compile(
    rf"\b({'|'.join(GROUPS)}|CoreV1Api\(.*?\))\.(create|patch|read|list|delete_collection|delete|connect_get)_(\w+)"
)
NOT_BY_NAME = {Right(verb="watch", resource=of) for of in ("pods", "events", "nodes")} | {
    Right(verb="create", resource=f"pods/{part}") for part in ("exec", "portforward")
}
"""What calls do besides: lists that are watched, and what Kubernetes asks for since 1.35."""
ROLES = [one["metadata"]["name"] for one in yaml.safe_load_all(MANIFEST.read_text()) if one["kind"] == "ClusterRole"]


def called(group: str, verb: str, name: str) -> Right:
    of, _, part = (
        name.removeprefix("namespaced_")
        .removesuffix("_with_http_info")
        .removesuffix("_for_all_namespaces")
        .partition("pod_")
    )
    resource = f"pods/{part}" if part and part != "disruption_budget" else (of or f"pod_{part}")
    plural = resource if "/" in resource else resource + ("es" if resource.endswith("ss") else "s")
    return Right(verb=VERBS.get(verb, verb), resource=plural.replace("_", ""), group=GROUPS.get(group, ""))


def test_it_grants_what_is_called_and_no_more() -> None:
    sources = [file for of in ("kubernetes", "adopted") for file in (MANIFEST.parents[1] / of).glob("*.py")]
    calls = {called(*call) for file in sources for call in CALL.findall(Path(file).read_text())}
    every = {right for role in ROLES for right in granted(role)}
    assert {str(right) for right in calls | NOT_BY_NAME} == {str(right) for right in every}


@pytest.mark.parametrize(("role", "lacks"), [(role, right) for role in ROLES for right in granted(role)], ids=str)
async def test_one_that_is_lacking_is_named_with_the_role_that_has_it(role: str, lacks: Right) -> None:
    async def call(what: str, ask: Any, review: Any) -> Any:
        asked = review.spec.resource_attributes
        resource = "/".join(filter(None, (asked.resource, asked.subresource)))
        assert asked.namespace == "team"
        may = Right(verb=asked.verb, resource=resource, group=asked.group) != lacks
        return SimpleNamespace(status=SimpleNamespace(allowed=may))

    api: Any = SimpleNamespace(
        call=call, where="context lab", authorization=SimpleNamespace(create_self_subject_access_review=None)
    )
    said = f"context lab: the account lacks rights in namespace team: {lacks}; grant it the ClusterRole {role} of "
    with pytest.raises(BadInput, match=re.escape(said)):
        await refuse_without(api, role, "team")
