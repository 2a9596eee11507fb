"""Which cluster is meant, of what the API server tells; what is none, two, or something else is said with a way out."""

import re
from typing import Any

import pytest

from clusters.errors import BadInput
from clusters.substrates.adopted.description import _changing
from clusters.substrates.adopted.finding import OnlyDescribed, certificates, find

HELM = {"app.kubernetes.io/name": "cockroachdb", "app.kubernetes.io/instance": "shop"}
START = ["shell", "-ecx", "exec /cockroach/cockroach start --certs-dir=/cockroach/cockroach-certs/"]


def owned(kind: str, name: str, uid: str = "") -> list[dict[str, Any]]:
    return [{"kind": kind, "name": name, "uid": uid or f"{kind}-{name}", "controller": True}]


def stateful(name: str, *, labels: dict[str, str] | None = None, **changed: Any) -> dict[str, Any]:
    container = {"name": "db", "image": "cockroachdb/cockroach:v24.1.3", "args": START, **changed.pop("container", {})}
    container["volumeMounts"] = [{"name": "datadir", "mountPath": "/cockroach/cockroach-data/"}]
    own, beside = labels or {"app": name}, {"name": "beside", "image": "proxy:1"}
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": own, **changed},
        "spec": {
            "replicas": 3,
            "serviceName": name,
            "selector": {"matchLabels": own},
            "volumeClaimTemplates": [{"metadata": {"name": "datadir"}}],
            "template": {"spec": {"terminationGracePeriodSeconds": 60, "containers": [beside, container]}},
        },
    }


def pods(name: str, *, ready: int = 3, kind: str = "StatefulSet", instance: str = "") -> list[dict[str, Any]]:
    return [
        {
            "metadata": {
                "name": f"{name}-{number}",
                "ownerReferences": owned(kind, name, f"uid-{name}"),
                "labels": {"app.kubernetes.io/instance": instance},
            },
            "spec": {"nodeName": f"machine-{number}"},
            "status": {"conditions": [{"type": "Ready", "status": "True" if number < ready else "False"}]},
        }
        for number in (2, 0, 1)
    ]


RELEASE = stateful("shop-cockroachdb", labels={**HELM, "app.kubernetes.io/managed-by": "Helm"})
CUSTOM = stateful("orders", ownerReferences=owned("CrdbCluster", "orders"))
OTHER = stateful("web", container={"image": "nginx:1", "args": ["start"], "name": "web"})
PLAIN = stateful("plain")
ALL = [RELEASE, CUSTOM, OTHER, PLAIN]
OPERATED = pods("new", kind="CrdbNode", instance="new")
for pod in OPERATED:
    pod["spec"]["containers"] = PLAIN["spec"]["template"]["spec"]["containers"]
PODS = [pod for one in ALL for pod in pods(one["metadata"]["name"])]


def found(wanted: str, sets: Any = ALL, there: Any = PODS) -> Any:
    return find(wanted, "context lab", sets, there, namespace="team")


@pytest.mark.parametrize(
    ("wanted", "name", "of"),
    [
        ("plain", "plain", ""),
        ("app=plain", "plain", ""),
        ("shop", "shop-cockroachdb", "Helm release shop"),
        ("shop-cockroachdb", "shop-cockroachdb", "Helm release shop"),
        ("app.kubernetes.io/instance=shop", "shop-cockroachdb", "Helm release shop"),
        ("orders", "orders", "CrdbCluster orders"),
    ],
)
def test_a_cluster_is_found_by_what_its_owner_calls_it(wanted: str, name: str, of: str) -> None:
    cluster = found(wanted)
    assert (cluster.name, cluster.of, cluster.container) == (name, of, "db")
    assert cluster.pods == (f"{name}-0", f"{name}-1", f"{name}-2"), "in the order of their numbers"
    assert cluster.machines == ("machine-0", "machine-1", "machine-2")
    assert cluster.address(f"{name}-1") == f"{name}-1.{name}.team.svc.cluster.local"
    assert (str(cluster.store), cluster.grace_s) == ("/cockroach/cockroach-data", 60)


def test_the_only_one_needs_no_name() -> None:
    assert found("", [OTHER, PLAIN]).name == "plain"


@pytest.mark.parametrize(
    ("env", "fast"),
    [
        ([], False),
        ([{"name": "COCKROACH_SCAN_INTERVAL", "value": "10s"}, {"name": "POD", "valueFrom": {}}], True),
        ([{"name": "COCKROACH_SCAN_INTERVAL", "value": "10m"}], False),
    ],
)
def test_the_pace_of_repair_is_that_of_its_servers(env: list[dict[str, Any]], fast: bool) -> None:
    there = pods("quick")
    assert found("quick", [stateful("quick", container={"env": env})], there).fast is fast


def test_the_secret_is_looked_for_where_charts_and_operators_put_it() -> None:
    assert found("shop").secrets == ("shop-cockroachdb-client-secret", "shop-cockroachdb-root", "cockroachdb-root")
    assert "orders-root" in found("orders").secrets


@pytest.mark.parametrize(
    ("wanted", "sets", "there", "message"),
    [
        ("none", ALL, PODS, "ROACHPROOF_ADOPT=none: no CockroachDB is there .* there are: StatefulSet "
         "shop-cockroachdb, StatefulSet orders, StatefulSet plain; name one"),
        ("", [OTHER], PODS, "namespace team: no CockroachDB .*there are: none; name one of them, or another namespace"),
        ("", ALL, PODS, "3 are meant by it: shop-cockroachdb, orders, plain; set ROACHPROOF_ADOPT"),
        ("web", ALL, PODS, "StatefulSet web runs proxy:1, nginx:1, and no CockroachDB; name one that does"),
        ("new", ALL, [*PODS, *OPERATED],
         "its pods are of a CrdbNode, and only those of a StatefulSet are adopted"),
        ("", [OTHER], [*PODS, *OPERATED], "its pods are of a CrdbNode, and only those of a StatefulSet are adopted"),
        ("plain", ALL, pods("plain", ready=2), "wants 3 pods, of which 2 are ready; wait until all are"),
        ("noted", [stateful("noted", annotations={"roachproof/found": "{\"replicas\": 3}"})], PODS,
         r"changed by a run .*; before it was {\"replicas\": 3}; wait .* `kubectl annotate .* roachproof/found-`"),
        ("bare", [stateful("bare", container={"args": ["start", "--insecure"]})], PODS, "runs with --insecure, .*TLS"),
    ],
)  # fmt: skip
def test_what_cannot_be_adopted_is_said_with_a_way_out(wanted: str, sets: Any, there: Any, message: str) -> None:
    with pytest.raises(BadInput) as refused:
        found(wanted, sets, there)
    assert re.search(message, str(refused.value)), refused.value
    assert str(refused.value).startswith("context lab: namespace team:")


@pytest.mark.parametrize(
    "strategy",
    [{"type": "OnDelete"}, {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}, {"type": "RollingUpdate"}],
)
def test_a_rollout_that_is_half_done_is_not_gone_on_with(strategy: dict[str, Any]) -> None:
    """A pod that is deleted would come back as another version, and its owner wanted to say when."""
    there = pods("plain")
    for pod in there:
        pod["metadata"]["labels"]["controller-revision-hash"] = "old"
    now = {**PLAIN, "spec": {**PLAIN["spec"], "updateStrategy": strategy}, "status": {"updateRevision": "old"}}
    assert found("plain", [now], there).strategy == strategy, "one that is all of its template is kept so"
    there[1]["metadata"]["labels"]["controller-revision-hash"] = "new"
    now["status"] = {"updateRevision": "new"}
    with pytest.raises(
        BadInput, match=r"is in the middle of a rollout: plain-1, plain-2 would come back .* take it ba"
    ):
        found("plain", [now], there)


def test_pods_of_the_new_operator_are_described_and_left_alone() -> None:
    operated: Any = [
        {**pod, "metadata": {**pod["metadata"], "labels": {"crdb.cockroachlabs.com/cluster": "new"}}}
        for pod in pods("new", kind="CrdbNode", ready=2)
    ]
    for pod in operated:
        pod["spec"]["containers"] = PLAIN["spec"]["template"]["spec"]["containers"]
    for wanted, sets in (("new", ALL), ("", [OTHER])):
        with pytest.raises(OnlyDescribed) as only:
            found(wanted, sets, [*PODS, *operated])
        assert only.value.described[:2] == [
            "adopted: pods of CrdbNode (new), namespace team, context lab",
            "nodes: new-2 on machine-2 (not ready), new-0 on machine-0, new-1 on machine-1; "
            "image cockroachdb/cockroach:v24.1.3",
        ]
        assert only.value.described[-1] == f"nothing is done to it: {only.value}"
    web = pods("web", kind="ReplicaSet", instance="front")
    for pod in web:
        pod["spec"]["containers"] = [{"name": "web", "image": "nginx:1"}]
    with pytest.raises(BadInput, match="its pods are of a ReplicaSet, and only those of a StatefulSet") as refused:
        found("front", ALL, [*PODS, *web])
    assert type(refused.value) is BadInput, "a database alone is described"


def test_certificates_are_those_of_a_chart_or_of_the_program_itself_or_none() -> None:
    names = ["ca.crt", "client.root.crt", "client.root.key"]
    assert certificates({"data": {"ca.crt": "a", "tls.crt": "b", "tls.key": "c"}}) == dict(
        zip(names, "abc", strict=True)
    )
    own = dict(zip(names, "abc", strict=True))
    assert certificates({"data": {**own, "more": "d"}}) == own
    assert certificates({"data": {"ca.crt": "a", "tls.crt": "b"}}) == {}
    assert certificates({"data": None}) == {}


@pytest.mark.parametrize(
    ("changed", "lacks"),
    [
        ({"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}, "no labels in its selector"),
        ({"serviceName": None}, "no service (serviceName)"),
        (
            {"serviceName": "", "selector": {}},
            "no labels in its selector (matchLabels), to know its pods by, and no ser",
        ),
    ],
)
def test_a_stateful_set_that_lacks_what_its_pods_are_known_by_is_named(changed: dict[str, Any], lacks: str) -> None:
    """It ended as a defect of ours, by the name of a key."""
    spec = {key: value for key, value in {**PLAIN["spec"], **changed}.items() if value is not None}
    with pytest.raises(BadInput, match=re.escape(f"StatefulSet plain has {lacks}")):
        found("plain", [{**PLAIN, "spec": spec}])


def test_one_that_any_owner_has_is_not_changed() -> None:
    """Its controller would undo that."""
    (one,) = [stateful("orders", ownerReferences=owned("AcmeCockroach", "shop"))]
    assert found("orders", [one]).custom
    assert found("shop", [one]).of == "AcmeCockroach shop"
    assert not found("plain").custom


@pytest.mark.parametrize(
    ("marks", "who"),
    [
        ({"annotations": {"argocd.argoproj.io/tracking-id": "shop:apps/StatefulSet:team/plain"}}, "Argo CD"),
        ({"labels": {"app": "plain", "helm.toolkit.fluxcd.io/name": "shop"}}, "Flux"),
        ({"labels": {"app": "plain", "kustomize.toolkit.fluxcd.io/name": "shop"}}, "Flux"),
        ({}, ""),
    ],
)
def test_one_that_somebody_declares_elsewhere_is_said_to_be(marks: dict[str, Any], who: str) -> None:
    one = {**PLAIN, "metadata": {**PLAIN["metadata"], **marks}}
    cluster = found("plain", [one])
    assert cluster.declared_by == who
    said = [line for line in _changing(cluster) if "suspend it" in line]
    assert said == (
        [f"declared by {who}, which may undo that in the middle: suspend it for as long as a run takes"] * bool(who)
    )
