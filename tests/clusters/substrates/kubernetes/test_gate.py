"""The manifest of a gate that is a Job: what it names is there, in the manifest of rights, the image, and the cache."""

from pathlib import Path
from typing import Any

import yaml

from clusters.engines.cockroach.cache import binary_path
from clusters.engines.cockroach.version import Version
from clusters.substrates.kubernetes import manifests, settings
from clusters.substrates.kubernetes.rights import MANIFEST
from clusters.substrates.kubernetes.settings import Given
from tests.clusters.substrates.kubernetes.pod_security import violations
from tests.docs import containerfile

VOLUME, SETTINGS, JOB = yaml.safe_load_all(MANIFEST.with_name("gate.yaml").read_text())
POD = JOB["spec"]["template"]["spec"]
(GATE,) = POD["containers"]


def test_its_account_is_that_of_the_rights() -> None:
    rights: list[Any] = list(yaml.safe_load_all(MANIFEST.read_text()))
    accounts = [one["metadata"] for one in rights if one["kind"] == "ServiceAccount"]
    assert {"name": POD["serviceAccountName"], "namespace": JOB["metadata"]["namespace"]} in accounts
    assert len({one["metadata"]["namespace"] for one in (VOLUME, SETTINGS, JOB)}) == 1


def test_a_restricted_namespace_takes_it() -> None:
    assert list(violations(POD)) == []


def test_nodes_keep_away_from_its_machine_and_services_of_the_namespace_tell_it_nothing() -> None:
    """A service called cockroach would be ``COCKROACH_PORT``, by which its programs go."""
    (rule,) = POD["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    term = rule["podAffinityTerm"]
    selected = manifests.Settings(namespace="roachproof", cluster="one").labels
    assert term["labelSelector"]["matchLabels"].items() <= selected.items()
    assert term["topologyKey"] == "kubernetes.io/hostname"
    assert POD["enableServiceLinks"] is False


def test_what_the_suite_writes_is_kept() -> None:
    mounts = {mount["mountPath"]: mount["name"] for mount in GATE["volumeMounts"]}
    assert {path for path, name in mounts.items() if name == "kept"} == containerfile.writable()
    named = {volume["name"]: volume for volume in POD["volumes"]}
    assert named["kept"]["persistentVolumeClaim"]["claimName"] == VOLUME["metadata"]["name"]
    assert named["settings"]["configMap"]["name"] == SETTINGS["metadata"]["name"]


def test_what_it_is_told_is_understood(tmp_path: Path) -> None:
    env = {one["name"]: one.get("value", "") for one in GATE["env"]}
    (tmp_path / "images.json").write_text(SETTINGS["data"]["images.json"])
    where = Path(env[settings.IMAGES])
    assert where == Path(next(m["mountPath"] for m in GATE["volumeMounts"] if m["name"] == "settings"), "images.json")
    owner = env[settings.POD].replace("$(POD)", "gate-x").replace("$(POD_UID)", "7")
    given = Given.read({**env, settings.IMAGES: str(tmp_path / "images.json"), settings.POD: owner})
    assert (given.namespace, given.owner) == (JOB["metadata"]["namespace"], ("gate-x", "7"))
    (version,) = (word.partition("=")[2] for word in GATE["args"] if word.startswith("--cockroach-version="))
    (cache,) = (word.partition("=")[2] for line in containerfile.of("ENV") for word in line.split() if "CACHE" in word)
    assert given.program(binary_path(Path(cache), Version.parse(version))).image == f"cockroachdb/cockroach:{version}"
