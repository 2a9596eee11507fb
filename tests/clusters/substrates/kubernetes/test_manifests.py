"""What the API server is given: pure functions of what was placed."""

import copy
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from clusters.generators import WantedGenerators
from clusters.model import NodeSpec
from clusters.substrates.kubernetes import manifests
from clusters.substrates.kubernetes.manifests import Settings, Template
from plugin.catalogue import load
from tests.clusters.substrates.kubernetes.pod_security import violations

SETTINGS = Settings(namespace="own", cluster="roachproof-x-1")


def made(template: Template, **options: Any) -> Any:
    return manifests.stateful_set(SETTINGS, "node-region-1-zone-1", template, replicas=3, **options)


def generators(**wanted: Any) -> Any:
    return manifests.job(SETTINGS, WantedGenerators(**{"number": 1, "image": "suite:1", **wanted}))


def test_all_objects_carry_the_labels_by_which_a_person_finds_them() -> None:
    for found in (
        manifests.namespace(SETTINGS, 1.0),
        manifests.scripts(SETTINGS, "true", "pass"),
        manifests.service(SETTINGS),
        manifests.public(SETTINGS),
        manifests.budget(SETTINGS),
        made(Template(image="db:1")),
        made(Template(image="db:1"))["spec"]["template"],
        generators(),
        generators()["spec"]["template"],
    ):
        labels = found["metadata"]["labels"]
        assert all(f"{key}={labels[key]}" in SETTINGS.selector.split(",") for key in SETTINGS.labels)


def test_what_a_pod_owns_goes_with_it_and_volumes_with_their_statefulset() -> None:
    owned = replace(SETTINGS, owner=("gate-1", "7"))
    made = manifests.stateful_set(owned, "node", Template(image="db:1"), replicas=1)
    job = manifests.job(owned, WantedGenerators(number=1, image="suite:1"))
    for found in (
        manifests.scripts(owned, "true", "pass"),
        manifests.service(owned),
        manifests.budget(owned),
        made,
        job,
    ):
        pod = {"apiVersion": "v1", "kind": "Pod", "name": "gate-1", "uid": "7"}
        assert found["metadata"]["ownerReferences"] == [pod]
    (claim,) = made["spec"]["volumeClaimTemplates"]
    assert "ownerReferences" not in claim["metadata"]
    assert made["spec"]["persistentVolumeClaimRetentionPolicy"]["whenDeleted"] == "Delete"
    assert "ownerReferences" not in manifests.service(SETTINGS)["metadata"]


def test_load_generators_outlive_every_trial_of_the_catalogue() -> None:
    """Estimates are of the suites' own machines: on others a trial may take twice as long."""
    takes = {f"{claim.id}, {suite}": one.seconds for claim in load() for suite, one in claim.estimate.items()}
    assert max(takes.values()) > 86_400, "else a day would do"
    deadline = generators()["spec"]["activeDeadlineSeconds"]
    assert not {trial for trial, seconds in takes.items() if 2 * seconds > deadline}


def test_load_generators_are_an_indexed_job_of_pods_without_rights() -> None:
    job = generators(number=3, cpus=2, memory_mib=1024)["spec"]
    assert (job["completions"], job["parallelism"], job["completionMode"]) == (3, 3, "Indexed")
    assert job["backoffLimitPerIndex"] == 0, "one that ended has lost evidence: another would only hide that"
    pod = job["template"]["spec"]
    (container,) = pod["containers"]
    assert container["image"] == "suite:1"
    assert (
        container["resources"]["limits"] == {"cpu": "2000m", "memory": "1024Mi"} == container["resources"]["requests"]
    )
    assert pod["restartPolicy"] == "Never"
    assert list(violations(pod)) == []
    assert not pod["automountServiceAccountToken"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True,
    }  # fmt: skip
    volumes = {volume["name"]: volume["emptyDir"] for volume in pod["volumes"]}
    assert volumes["private"]["medium"] == "Memory"


def test_load_generators_keep_away_from_the_pods_of_others() -> None:
    beside = Settings(namespace="team", cluster="c", generators=True, others={"app": "shop"})
    wanted: Any = manifests.job(beside, WantedGenerators(number=1, image="suite:1"))
    away = wanted["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"].values()
    labels = [term["podAffinityTerm"]["labelSelector"]["matchLabels"] for terms in away for term in terms]
    assert labels == [beside.labels, {"app": "shop"}]


def test_the_budget_and_the_public_service_are_of_all_pods_but_load_generators() -> None:
    node = made(Template(image="db:1"))["spec"]["template"]["metadata"]["labels"]
    budget: Any = manifests.budget(SETTINGS)
    public: Any = manifests.public(replace(SETTINGS, ports=(26257, 8080)))
    for selector in (budget["spec"]["selector"]["matchLabels"], public["spec"]["selector"]):
        assert selector.items() <= node.items()
        assert not selector.items() <= generators()["spec"]["template"]["metadata"]["labels"].items()
    assert [port["port"] for port in public["spec"]["ports"]] == [26257, 8080]
    assert len({port["name"] for port in public["spec"]["ports"]}) == 2, (
        "Kubernetes wants names where there are several"
    )
    assert "clusterIP" not in public["spec"], "it gets one"


def test_pods_get_what_their_template_says_and_no_rights() -> None:
    pod = made(Template(image="db:1", cpus=0.5, memory_mib=512), place={"zone": "a"})["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["image"] == "db:1"
    assert container["resources"]["limits"] == {"cpu": "500m", "memory": "512Mi"} == container["resources"]["requests"]
    assert pod["nodeSelector"] == {"kubernetes.io/os": "linux", "zone": "a"}
    assert list(violations(pod)) == []
    assert not pod["automountServiceAccountToken"]
    unlimited = made(Template(image="db:1"))["spec"]["template"]["spec"]["containers"][0]
    assert unlimited["resources"] == {"limits": {}, "requests": {}}


def test_nodes_are_spread_over_machines_and_ready_while_a_process_runs_in_them() -> None:
    """So that no second node is evicted while one is down. Where machines are too few they share one."""
    template = made(Template(image="db:1"))["spec"]["template"]
    (spread,) = template["spec"]["topologySpreadConstraints"]
    assert (spread["maxSkew"], spread["topologyKey"]) == (1, "kubernetes.io/hostname")
    assert spread["whenUnsatisfiable"] == "ScheduleAnyway"
    selected = spread["labelSelector"]["matchLabels"].items()
    assert selected <= template["metadata"]["labels"].items()
    assert not selected <= generators()["spec"]["template"]["metadata"]["labels"].items()
    probe = template["spec"]["containers"][0]["readinessProbe"]
    assert probe["exec"]["command"] == ["/bin/sh", str(manifests.SCRIPT), "runs"]


def test_a_stateful_set_is_changed_to_what_it_would_be_made_as() -> None:
    """A merge would leave limits that pods are not to have any more."""
    there: Any = manifests.stateful_set(SETTINGS, "node", Template(image="db:2"), replicas=2)
    told: Any = manifests.changed(there)
    (container,) = told["spec"]["template"]["spec"]["containers"]
    assert container["resources"].pop("$patch") == "replace"
    assert container["resources"] == {"limits": {}, "requests": {}}
    assert told["spec"] == {"replicas": 2, "template": there["spec"]["template"]}


def test_a_pod_is_resized_by_its_limits_alone_and_its_memory_with_another_container() -> None:
    """Kubernetes 1.33 makes the memory of a container that goes on no smaller, and merges containers by their names."""
    small, large = (Template(image="db:1", cpus=cpus, memory_mib=512) for cpus in (0.5, 2))
    (container,) = made(small)["spec"]["template"]["spec"]["containers"]
    policy = {one["resourceName"]: one["restartPolicy"] for one in container["resizePolicy"]}
    assert policy == {"cpu": "NotRequired", "memory": "RestartContainer"}
    told: Any = manifests.resized(large)
    (asked,) = told["spec"]["containers"]
    (as_made,) = made(large)["spec"]["template"]["spec"]["containers"]
    assert asked == {"name": container["name"], "resources": as_made["resources"]}
    assert made(small)["spec"]["updateStrategy"] == {"type": "OnDelete"}, "none is made anew for its other limits"


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda pod, one: pod["securityContext"].pop("seccompProfile"), "node: seccompProfile"),
        (lambda pod, one: pod["securityContext"].update(seccompProfile={"type": "Unconfined"}), "node: seccompProfile"),
        (lambda pod, one: pod["securityContext"].pop("runAsNonRoot"), "node: runAsNonRoot"),
        (lambda pod, one: one["securityContext"].update(runAsUser=0), "node: runAsNonRoot"),
        (lambda pod, one: one["securityContext"].pop("allowPrivilegeEscalation"), "node: allowPrivilegeEscalation"),
        (lambda pod, one: one["securityContext"].update(privileged=True), "node is privileged"),
        (lambda pod, one: one["securityContext"]["capabilities"].update(add=["NET_ADMIN"]), "node: capabilities"),
        (lambda pod, one: one["securityContext"]["capabilities"].update(drop=["CHOWN"]), "node: capabilities"),
        (lambda pod, one: one.update(ports=[{"hostPort": 1}]), "node: hostPort"),
        (lambda pod, one: pod["volumes"].append({"name": "disk", "hostPath": {"path": "/"}}), "volume disk: hostPath"),
        (lambda pod, one: pod.update(hostNetwork=True), "hostNetwork"),
    ],
    ids=[
        "no profile",
        "unconfined",
        "any user",
        "root",
        "escalation",
        "privileged",
        "a capability more",
        "not all dropped",
        "a port of the machine",
        "a directory of the machine",
        "the machine's network",
    ],
)
def test_what_a_restricted_namespace_would_refuse_is_seen(harm: Callable[[Any, Any], object], said: str) -> None:
    pod = copy.deepcopy(made(Template(image="db:1"))["spec"]["template"]["spec"])
    harm(pod, pod["containers"][0])
    assert list(violations(pod)) == [said]


def test_what_cuts_links_may_change_its_pods_network_and_nothing_else() -> None:
    patch: Any = manifests.cutter("cutter:1")
    (container,) = patch["spec"]["ephemeralContainers"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["NET_ADMIN"]}
    assert not container["securityContext"]["allowPrivilegeEscalation"]
    (mount,) = container["volumeMounts"]
    pod = made(Template(image="db:1"))["spec"]["template"]["spec"]
    assert mount["name"] in {volume["name"] for volume in pod["volumes"]}
    scripts: Any = manifests.scripts(SETTINGS, "true", "pass")
    assert container["command"] == ["python", f"{mount['mountPath']}/cutter.py"]
    assert scripts["data"]["cutter.py"] == "pass"
    for cuts in (False, True):
        own: Any = manifests.namespace(replace(SETTINGS, cuts=cuts), 1.0)
        assert ("pod-security.kubernetes.io/enforce" in own["metadata"]["labels"]) is cuts


@pytest.mark.parametrize("name", ["survivability", "Tenancy_gate", "a" * 200, "é" * 200, "x" * 39 + "-yz", ""])
def test_a_namespace_has_a_name_that_kubernetes_takes_whatever_the_test_is_called(name: str) -> None:
    called = manifests.cluster(name, "0123abcd")
    assert re.fullmatch(r"roachproof-[-a-z0-9]*-0123abcd", called)
    assert len(called) <= 63


def test_one_stateful_set_a_zone_of_a_region_with_a_name_that_kubernetes_takes() -> None:
    assert manifests.group(NodeSpec(name="n1")) == manifests.group(NodeSpec(name="n2")) == "node-region-1-zone-1"
    long = manifests.group(NodeSpec(name="n1", region="Eu_West 1", zone="z" * 80))
    assert long.startswith("node-eu-west-1-zzz")
    assert len(long) == 52
    assert manifests.beside("etcd1") == "beside-etcd1"
    for shared in ("z" * 80, "Etcd_1"):
        names = {manifests.beside(shared), manifests.beside(f"{shared}!"), manifests.beside(shared.lower() + "-")}
        assert len(names) == 3, "what is cut off or replaced makes no two names one"
        assert all(re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?", name) for name in names)


def labels(region: str, zone: str) -> dict[str, str]:
    return {"topology.kubernetes.io/region": region, "topology.kubernetes.io/zone": zone}


def test_declared_zones_go_to_machines_of_their_own() -> None:
    machines = [labels("eu", "a"), labels("eu", "b"), labels("us", "a"), labels("us", "b"), labels("us", "c")]
    wanted = [("r1", "z1"), ("r2", "z1"), ("r2", "z2"), ("r2", "z3")]
    assert manifests.places(wanted, machines) == {
        ("r1", "z1"): labels("eu", "a"),
        ("r2", "z1"): labels("us", "a"),
        ("r2", "z2"): labels("us", "b"),
        ("r2", "z3"): labels("us", "c"),
    }
    assert manifests.places([("r1", "z1")] * 3, machines) == {}, "one zone is anywhere"


def test_a_zone_that_is_declared_later_goes_to_one_that_is_free_and_the_others_stay() -> None:
    machines = [labels(region, zone) for region in ("eu", "us") for zone in "abc"]
    taken = {("r2", "z1"): labels("us", "b"), ("r1", "z1"): labels("eu", "a")}
    wanted = [("r1", "z1"), ("r2", "z1"), ("r2", "z0"), ("r2", "z9")]
    found = manifests.places(wanted, machines, taken)
    assert found == {**taken, ("r2", "z0"): labels("us", "a"), ("r2", "z9"): labels("us", "c")}
    assert manifests.places([*wanted, ("r2", "z5")], machines, taken) == {}, "there are three zones"
    assert manifests.places([*wanted, ("r3", "z1")], machines, taken) == {}, "there are two regions"
    one = {("r1", "z1"): labels("us", "a")}
    assert manifests.places([("r1", "z1"), ("r2", "z1")], machines, one)["r2", "z1"] == labels("eu", "a")


@pytest.mark.parametrize(
    ("wanted", "machines"),
    [
        ([("r1", "z1"), ("r2", "z1")], [labels("eu", "a"), labels("eu", "b")]),
        ([("r1", "z1"), ("r1", "z2")], [labels("eu", "a"), labels("us", "a")]),
        ([("r1", "z1"), ("r1", "z2")], [{}, {}]),
    ],
    ids=["one region too few", "one zone too few", "no labels"],
)
def test_machines_that_have_too_few_zones_are_not_chosen(wanted: Any, machines: Any) -> None:
    assert manifests.places(wanted, machines) == {}


def test_what_all_pods_are_told_beside_is_in_nodes_and_load_generators() -> None:
    told = {
        "nodeSelector": {"pool": "databases"},
        "tolerations": [{"key": "only", "operator": "Exists"}],
        "imagePullSecrets": [{"name": "registry"}],
        "priorityClassName": "high",
    }
    settings, place = replace(SETTINGS, pods=told), {"topology.kubernetes.io/zone": "a"}
    node = manifests.stateful_set(settings, "node", Template(image="db:1"), replicas=1, place=place)
    job = manifests.job(settings, WantedGenerators(number=1, image="suite:1"))
    for made, placed in ((node, place), (job, {})):
        spec = made["spec"]["template"]["spec"]
        assert spec["nodeSelector"] == {"kubernetes.io/os": "linux", "pool": "databases", **placed}
        assert all(spec[key] == value for key, value in told.items() if key != "nodeSelector")
        assert list(violations(spec)) == []


def test_no_autoscaler_ends_a_pod_on_which_something_is_measured() -> None:
    for found in (made(Template(image="db:1")), generators()):
        annotations = found["spec"]["template"]["metadata"]["annotations"]
        assert annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"
        assert annotations["karpenter.sh/do-not-disrupt"] == "true"


def test_a_volume_that_is_mounted_again_is_not_gone_through_by_its_kubelet() -> None:
    """It takes long where there are many files, and lets our group read all of them."""
    assert made(Template(image="db:1"))["spec"]["template"]["spec"]["securityContext"]["fsGroupChangePolicy"] == (
        "OnRootMismatch"
    )
