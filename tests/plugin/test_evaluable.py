"""Which claims can be evaluated here: an engine with ranges, a host with enough cores, networks that can be cut."""

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from clusters.engines import ENGINES, Choice
from clusters.model import PLANNED, Capability
from clusters.substrates import SUBSTRATES, adopted, processes
from fixtures.swapping.given import Given
from fixtures.swapping.plan import draw
from fixtures.workloads.tenants.workload import KIND as TENANTS
from plugin import evaluable
from plugin.catalogue import load
from plugin.profiles import Generators, profile_named
from plugin.suites import Suite
from plugin.workloads import Workload
from tests.plugin.test_host import PLENTY


class Run:
    """What is asked of a run: its engine, its suite and its host."""

    def __init__(self, engine: str = "cockroach", suite: str = "nightly", cores: float = 2.0) -> None:
        self.settings: Any = self
        self.engine, self.suite, self.substrate = engine, suite, "processes"
        self.profile = profile_named("laptop")
        self.host = replace(PLENTY, cores=cores)
        self.targets = ("v21.1.0",)
        self.plan: Any = None
        self.generators = 0

    def parameters_for(self, claim: Any) -> Any:
        return claim.parameters_for(self.suite)

    def size(self, kind: Workload[Any]) -> Any:
        return self.profile.size(kind, Suite(self.suite))


def why_not(claim: str, **asked: Any) -> str | None:
    return evaluable.reason_not_evaluated(load().claim(claim), 3, Run(**asked))  # type: ignore[arg-type]


@pytest.mark.parametrize("claim", ["rebalance", "rebalance-scale-in"])
def test_the_control_has_no_ranges_to_move(claim: str) -> None:
    reason = why_not(claim, engine="postgres")
    assert reason is not None
    assert reason.startswith("postgres on processes cannot")
    assert "rebalance" in reason
    assert why_not(claim) is None


@pytest.mark.parametrize("claim", ["scale-up", "parity-resources"])
def test_nodes_get_no_more_cores_than_the_host_has(claim: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluable, "offered", lambda *_: frozenset(load().claim(claim).capabilities))
    assert why_not(claim) is None
    assert why_not(claim, suite="paper", cores=40) is None
    assert "cannot carry 3 nodes of profile medium" in (why_not(claim, suite="paper", cores=20) or "")


def test_a_number_of_cores_is_held_against_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluable, "offered", lambda *_: frozenset(load().claim("scale-up").capabilities))
    run: Any = Run()
    run.host = replace(PLENTY, cores=0.7)
    monkeypatch.setattr(evaluable, "carries", lambda *_: None)
    reason = evaluable.reason_not_evaluated(load().claim("scale-up"), 3, run)
    assert reason == "this host has 0.7 cores, and a node of size 0.75/1536 is to get 0.75"


@pytest.mark.parametrize(("cores", "generators", "says"), [
    (2.0, 2, ""),
    (2.0, 0, "this host cannot make all load of profile medium: cores 2.0 of 8.0"),
    (8.0, 0, ""),
])  # fmt: skip
def test_nodes_that_run_elsewhere_need_nothing_of_the_host(
    cores: float, generators: int, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluable, "offered", lambda *_: frozenset(Capability))
    run: Any = Run(suite="paper", cores=cores)
    run.substrate, run.profile, run.generators = "kubernetes", profile_named("medium"), generators
    for claim in ("rebalance", "scale-up"):
        reason = evaluable.reason_not_evaluated(load().claim(claim), 9, run)
        assert (reason or "").startswith(says)
        assert bool(reason) is bool(says)


@pytest.mark.parametrize(("profile", "suite", "lacks"), [
    ("laptop", "gate", ""),
    ("laptop", "nightly", ""),
    ("small", "gate", ""),
    ("tenancy-9", "paper", ""),
    ("tenancy-9", "nightly", "key_value"),
])  # fmt: skip
def test_a_profile_that_loads_no_tenants_with_a_mix_is_told_before_a_cluster_starts(
    profile: str, suite: str, lacks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for the claim that loads each mix of the profile, which needs none by name."""
    monkeypatch.setattr(evaluable, "carries", lambda *_: None)
    run: Any = Run(suite=suite)
    run.profile = profile_named(profile)
    assert evaluable.reason_not_evaluated(load().claim("tenancy"), 3, run) is None
    for claim in (one for one in load() if suite in one.suites and "mix" in one.parameters):
        reason = evaluable.reason_not_evaluated(claim, 3, run)
        assert (reason is None) is (not lacks), reason
        assert not lacks or f"loads no tenants with mix {lacks!r}: choose" in str(reason)


@pytest.mark.parametrize(("claim", "loaded", "why"), [
    ("tenancy", 0, "has 15"),
    ("tenancy", 1, ""),
    ("tenancy-noisy-tenant", 1, "has 15"),
])  # fmt: skip
def test_a_profile_without_the_tenants_of_a_mix_is_told_before_a_cluster_starts(
    claim: str, loaded: int, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that it has only where each mix is loaded are no other claim's."""
    monkeypatch.setattr(evaluable, "carries", lambda *_: None)
    run: Any = Run(suite="nightly")
    sized = run.size

    def size(kind: Workload[Any]) -> Any:
        sizes = sized(kind)
        if kind is not TENANTS:
            return sizes
        return replace(sizes, mix={**sizes.mix, "key-value": 15}, loaded={**sizes.loaded, "key-value": loaded})

    run.size = size
    told = (
        f"a load of 16 tenants with mix 'key_value' needs as many that are made from key-value, and the profile {why}"
    )
    reason = evaluable.reason_not_evaluated(load().claim(claim), 3, run)
    assert reason == (f"{told}: choose another --suite or --profile" if why else None)


def test_what_is_offered_is_implemented() -> None:
    """A claim that has its test asks for it, a fault does, or it is a cluster's shape or its backups."""
    catalogue = load()
    ready, planned = (
        {one for claim in catalogue for one in claim.capabilities if (claim.status == "ready") is tested}
        for tested in (True, False)
    )
    others = {Capability.CUT_LINKS, Capability.ZONES, Capability.REGIONS, Capability.BACKUP}
    assert ENGINES["cockroach"].capabilities == ready | others
    assert ENGINES["postgres"].capabilities <= ready | others
    assert SUBSTRATES["processes"].offered(frozenset(Capability)) <= ready | others
    assert planned - ready - others == PLANNED


@pytest.mark.parametrize("capability", sorted(PLANNED))
def test_what_nothing_implements_is_told_as_planned(capability: Capability) -> None:
    told = {why_not(claim.id) for claim in load() if capability in claim.capabilities}
    assert told == {"its test is planned, not written yet"}
    run: Any = Run()
    mine = replace(load().claim("survivability"), capabilities=frozenset({capability}))
    assert evaluable.reason_not_evaluated(mine, 3, run) == f"cockroach on processes cannot {capability}"


@pytest.mark.parametrize("engine", ["cockroach", "postgres"])
def test_the_engine_s_own_option_is_named_where_versions_are_missing(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    way_out = f": give the old and the new one with --{engine}-version, twice"
    assert why_not("regression", engine=engine) == f"compares two versions{way_out}"
    assert why_not("hot-swap", engine=engine) == f"changes the version{way_out} or more often"
    assert why_not("hot-swap-failed-node", engine=engine) is None, "it does with one"
    kind = replace(ENGINES[engine], choice=Choice())
    monkeypatch.setattr(evaluable, "ENGINES", {engine: kind})
    assert why_not("regression", engine=engine) == f"compares two versions, and no option chooses those of {kind.title}"


def asking(*capabilities: Capability) -> Any:
    return SimpleNamespace(
        status="ready",
        capabilities=frozenset(capabilities),
        compares_versions=False,
        changes_versions=False,
        parameters={},
        costs=(),
    )


def anywhere() -> Any:
    settings = SimpleNamespace(engine="cockroach", substrate="processes")
    return SimpleNamespace(settings=settings, profile=None, host=None)


CUTS = asking(Capability.KILL, Capability.CUT_LINKS)


@pytest.mark.parametrize(("pace", "given", "operated", "says"), [
    ("fast", False, False, "profile laptop counts on servers .* adopted cluster were not: give a --profile of the def"),
    ("fast", True, False, ""),
    ("default", False, False, ""),
    ("default", False, True, r"cockroach on adopted cannot rebalance \(rebalance: an operator has its StatefulSet"),
])  # fmt: skip
def test_nodes_are_added_to_clusters_of_others_where_that_can_be_judged_and_undone(
    pace: str, given: bool, operated: bool, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adopted, "_may_change", lambda: not operated)
    monkeypatch.setattr(adopted, "KIND", replace(adopted.KIND, fast=lambda: given))
    settings = SimpleNamespace(engine="cockroach", substrate="adopted", allow_disruption=True)
    profile = SimpleNamespace(name="laptop", pace=pace, generators=Generators())
    run: Any = SimpleNamespace(settings=settings, profile=profile, host=PLENTY, generators=0)
    reason = evaluable.reason_not_evaluated(asking(Capability.REBALANCE), 3, run)
    assert re.search(says, reason or ""), reason
    assert bool(reason) is bool(says)


@pytest.mark.parametrize("claim", [claim.id for claim in load() if claim.id.startswith("tenancy")])
def test_no_tenant_is_made_on_a_cluster_of_others(claim: str) -> None:
    """Making them takes settings of the whole cluster, and rights from PUBLIC: not even with --allow-disruption."""
    wanted = load().claim(claim).capabilities
    assert SUBSTRATES["processes"].offered(wanted) == wanted, "on clusters of its own they are made"
    run: Any = Run()
    run.substrate, run.allow_disruption = "adopted", True
    reason = evaluable.reason_not_evaluated(load().claim(claim), 3, run)
    assert reason is not None
    assert "many_databases is not done to a cluster that Roachproof did not make" in reason


def test_of_auto_the_engine_that_is_found_is_named() -> None:
    found = SimpleNamespace(kind=ENGINES["postgres"])
    run: Any = SimpleNamespace(settings=SimpleNamespace(engine="auto", substrate="processes"), engine=lambda: found)
    reason = evaluable.reason_not_evaluated(asking(Capability.REBALANCE), 3, run)
    assert reason == "postgres on processes cannot rebalance"


@pytest.fixture
def roomy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluable, "carries", lambda *_: None)


@pytest.mark.usefixtures("roomy")
def test_where_links_can_be_cut_the_claim_is_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "cannot_cut", lambda: None)
    assert evaluable.reason_not_evaluated(CUTS, 3, anywhere()) is None


@pytest.mark.usefixtures("roomy")
def test_where_links_cannot_be_cut_the_reason_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "cannot_cut", lambda: "CAP_NET_ADMIN is missing")
    assert (
        evaluable.reason_not_evaluated(CUTS, 3, anywhere())
        == "cockroach on processes cannot cut_links (CAP_NET_ADMIN is missing)"
    )


@pytest.mark.usefixtures("roomy")
def test_no_network_is_tried_for_a_claim_that_does_not_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "cannot_cut", lambda: pytest.fail("was tried"))
    assert evaluable.reason_not_evaluated(asking(Capability.KILL), 3, anywhere()) is None


@pytest.mark.parametrize(
    ("suite", "path", "most"),
    [("gate", "final", 3), ("gate", "joined-while-mixed", 5), ("gate", "drawn", 5), ("nightly", "drawn", 7)],
)
def test_nodes_that_join_by_a_plan_are_carried_by_the_host_too(suite: str, path: str, most: int) -> None:
    run: Any = Run(suite=suite)
    claim = load().claim("hot-swap")
    run.plan = Given(path=path)
    begins = {"gate": 3, "nightly": 5}[suite]
    assert evaluable.most_nodes(claim, run) == evaluable.most_nodes(claim, run, begins) == most
    run.plan = Given(path="given", plan=draw(path, ["v0", "v1"], ["n1", "n2", "n3"], 3))
    assert evaluable.most_nodes(load().claim("survivability"), run, 3) == 3
    run.plan = None
    assert evaluable.most_nodes(claim, run, 3) == claim.nodes_for(Suite(suite))
