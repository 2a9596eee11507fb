"""The shipped catalogue is complete and says what the sources say; a minimal one of a user's own loads."""

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from clusters.errors import BadInput
from clusters.model import Capability
from fixtures.workloads.tenants.sizes import TenantsSizes
from fixtures.workloads.tenants.workload import KIND
from plugin.catalogue import HOME, SHIPPED, load, schema
from plugin.claims import Estimate, Mark, Status
from plugin.judge.model import Check, Comparison, Kind
from plugin.profiles import profile_named
from plugin.suites import EVERY, Suite
from tests.docs.extending.pages import example
from tests.plugin.conftest import CHECKOUT

GROWTH = ["rebalance", "rebalance-scale-in", "scale-up"]
THROUGHPUT = ["parity", "parity-resources", "stress", "regression"]
SURVIVABILITY = [f"survivability{end}" for end in ("", "-disk-lost", "-pod-deleted", "-pause", "-drain", "-quorum")]
TENANCY = [
    *("tenancy", "tenancy-drop", "tenancy-larger-not-slower", "tenancy-noisy-tenant", "tenancy-survivability"),
    *("tenancy-schema-change", "tenancy-isolation", "tenancy-growth"),
]
ROW_GROUPS = [
    *SURVIVABILITY,
    *GROWTH,
    *THROUGHPUT,
    *("hot-swap", "hot-swap-failed-node"),
    *TENANCY,
    *("adversity", "distribution-cost", "ycsb"),
]
SEEN = {
    ("tenancy", Suite.GATE): 132,
    ("tenancy-drop", Suite.GATE): 69,
    ("tenancy", Suite.NIGHTLY): 270,
    ("tenancy-drop", Suite.NIGHTLY): 119,
    ("tenancy-larger-not-slower", Suite.NIGHTLY): 195,
    ("tenancy-noisy-tenant", Suite.NIGHTLY): 159,
    ("tenancy-survivability", Suite.NIGHTLY): 154,
    ("tenancy-schema-change", Suite.NIGHTLY): 247,
    ("tenancy-isolation", Suite.NIGHTLY): 482,
}
"""Seconds on two cores: of the gate on v21.1 and v26.1, of the night on v26.1 and PostgreSQL, with nothing else at work
but beside the gate's `tenancy-drop`. Six of the noisy tenant's are rests that it had not yet when it was seen."""
MINIMAL = """
[claims.mine]
sentence = "Nothing is lost."
checks = [{ metric = "lost", comparison = "==", limit = 0 }]
"""

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_(text: str, name: str = "mine.toml") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write_


def test_claims_of_tenants_keep_to_the_gates_minutes_and_to_half_an_hour_of_a_night() -> None:
    """By their estimates, none of which is less than what was seen; profiles say so."""
    catalogue, sizes = load(), {suite: _tenants("laptop", suite).why for suite in (Suite.GATE, Suite.NIGHTLY)}
    estimates = {
        (claim.id, suite): one.seconds
        for claim in catalogue
        for suite in sizes
        if claim.id in TENANCY and (one := claim.estimate_for(suite))
    }
    assert all(estimates[of] >= seconds for of, seconds in SEEN.items())
    assert estimates["tenancy", Suite.GATE] <= 3 * 60
    assert estimates["tenancy-drop", Suite.GATE] <= 70
    gate = r"tenancy was seen to take about three minutes of the gate .* tenancy-drop takes one more$"
    assert re.search(gate, sizes[Suite.GATE])
    assert sum(seconds for (_, suite), seconds in estimates.items() if suite is Suite.NIGHTLY) <= 30 * 60
    assert "are estimated to take no more than half an hour of a night" in sizes[Suite.NIGHTLY]


def _tenants(profile: str, suite: Suite) -> TenantsSizes:
    sizes = profile_named(profile).size(KIND, suite)
    assert isinstance(sizes, TenantsSizes)
    return sizes


def test_shipped_catalogue_has_every_claim() -> None:
    catalogue = load()
    assert list(catalogue.claims) == ROW_GROUPS
    assert [claim.id for claim in catalogue if claim.status is Status.READY] == [
        *SURVIVABILITY,
        *GROWTH,
        *THROUGHPUT,
        "hot-swap",
        "hot-swap-failed-node",
        *TENANCY,
    ]


@pytest.mark.parametrize("claim_id", ROW_GROUPS)
def test_shipped_claim_is_complete(claim_id: str) -> None:
    claim = load().claim(claim_id)
    assert claim.sentence.endswith(".")
    assert claim.refuted_by
    assert claim.disturbs
    assert claim.steps
    assert claim.source
    assert claim.source.work
    assert all((claim.labels.epic, claim.labels.feature, claim.labels.story, claim.labels.owner))
    assert claim.suites
    assert all(claim.estimate_for(suite) for suite in claim.suites)
    assert "integrity" in claim.needs
    assert claim.checks
    for check in claim.checks:
        assert check.source
        assert isinstance(check.mark, Mark)
        assert (check.limit is None) == (check.kind is Kind.REPORT)
    informational = claim_id in ("distribution-cost", "ycsb")
    assert informational == all(check.kind is Kind.REPORT for check in claim.checks)


def test_every_source_is_known_and_the_documents_cite_it_alike() -> None:
    document = (CHECKOUT / "docs" / "claims.md").read_text().partition("## Sources")[2]
    works = {claim.source.work: claim.source.about for claim in load() if claim.source}
    assert works.pop("our own", None) is None
    for name, work in works.items():
        assert work, name
        (row,) = (line for line in document.splitlines() if line.startswith(f"| {name} |"))
        for part in (*work.authors, work.title, work.publisher, work.link):
            assert part in row, name
        assert (str(work.year) in row) if work.year else not re.search(r"\b(19|20)\d\d\b", row), name
    assert str(works["thesis"]).startswith("Kristina Håkansson and Andreas Rosenqvist: Evaluation of CockroachDB")


def test_a_work_is_declared_once(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('[sources.thesis]\nauthors = ["A"]\ntitle = "B"\n')
    with pytest.raises(BadInput, match="another file declares this work already"):
        load([*SHIPPED, own])


def test_gate_suite_keeps_to_its_time() -> None:
    """Without what takes two versions, for which all other claims are run twice as well."""
    ready = [claim for claim in load() if "gate" in claim.suites and claim.status is Status.READY]
    claims = [claim for claim in ready if not claim.takes_versions]
    seconds = sum(estimate.seconds for claim in claims if (estimate := claim.estimate_for(Suite.GATE)))
    assert claims
    assert seconds <= 19 * 60, "the whole of the gate, on two cores"


def limits(claim_id: str, profile: str) -> dict[str, float | None]:
    checks = load().claim(claim_id).checks_for(profile)
    return {check.metric: check.limit for check in checks if check.kind is not Kind.REPORT}


@pytest.mark.parametrize(
    ("claim_id", "profile", "metric", "limit"),
    [
        ("survivability", "laptop", "lost", 0),
        ("survivability", "laptop", "gap_s", 30),
        ("survivability-quorum", "laptop", "acknowledged_without_quorum", 0),
        ("survivability-quorum", "laptop", "resumed_s", 30),
        ("rebalance", "medium", "balanced_3_to_6_min", 300),
        ("rebalance", "medium", "balanced_6_to_9_min", 180),
        ("rebalance", "laptop", "balanced_6_to_9_min", None),
        ("hot-swap", "laptop", "throughput_buckets_kept", 0.95),
        ("rebalance-scale-in", "laptop", "decommissioned", 1),
        ("parity", "medium", "tpmc_ratio_interval", 2),
        ("stress", "small", "capacity_warehouses", 500),
        ("stress", "medium", "capacity_warehouses", 900),
        ("stress", "large", "capacity_warehouses", 1500),
        ("hot-swap", "adversity-9", "minutes_a_node", 11.4),
        ("tenancy", "tenancy-9", "latency_p99_1000_ms", 87.5),
        ("tenancy", "tenancy-9", "tenant_cpu", 60),
        ("tenancy", "medium", "databases", None),
        ("tenancy-larger-not-slower", "laptop", "larger_efficiency_loss_interval", 5),
        ("adversity", "adversity-9", "zone_throughput_share", 0.65),
        ("adversity", "adversity-15", "zone_throughput_share", 0.95),
        ("adversity", "adversity-15", "region_latency_recovery_min", 26),
    ],
)
def test_limits_are_those_of_the_sources(claim_id: str, profile: str, metric: str, limit: float | None) -> None:
    assert limits(claim_id, profile)[metric] == limit


def test_paper_rows_of_table_5_6_match_the_trials() -> None:
    claim = load().claim("survivability")
    rows = claim.paper["table_5_6"]
    assert tuple(row["inserts"] for row in rows) == claim.parameters_for(Suite.PAPER)["inserts"]
    assert [row["row_number_is_id"] for row in rows] == [
        f"yes (row {number})" for number in (245, 3333, 5420, 7001, 10000)
    ]
    known = {check.metric for check in claim.checks} | {*claim.needs}
    assert {*claim.measured.values()} <= known, "each column is answered by a check or a condition"
    assert all(row["rows"] == row["inserts"] for row in rows)


def test_checks_keep_what_was_declared() -> None:
    check = next(check for check in load().claim("survivability").checks_for("laptop") if check.metric == "gap_s")
    assert check == Check(
        metric="gap_s",
        comparison=Comparison.LE,
        limit=30,
        kind=Kind.ABSOLUTE,
        mark="R",
        source=check.source,
        unit="s",
        needs=("probe_complete", "probe_on_time"),
    )


def test_an_unknown_claim_says_what_was_meant() -> None:
    catalogue = load()
    with pytest.raises(
        BadInput, match=r"'survivabilty' is in no catalogue; did you mean 'survivability'\?.*--catalogue"
    ):
        catalogue.claim("survivabilty")


def test_trials_by_suite() -> None:
    claim = load().claim("survivability")
    assert claim.parameters_for(Suite.GATE) == {"inserts": (2000,)}
    assert claim.parameters_for(Suite.NIGHTLY) == {"inserts": (2000, 4000, 6000, 8000, 10000)}
    assert claim.estimate_for(Suite.NIGHTLY) == Estimate(seconds=5 * 115, disk_mib=1500)
    pause = load().claim("survivability-pause")
    assert pause.parameters_for(Suite.GATE) == pause.parameters_for(Suite.NIGHTLY), (
        "a test deselected later still has arguments"
    )
    assert pause.estimate_for(Suite.GATE) is None
    parity = load().claim("parity")
    assert [parity.nodes_for(suite) for suite in EVERY] == [6, 9, 9]
    assert pause.nodes_for(Suite.GATE) == 3


def test_every_file_is_listed_and_a_person_can_read_it() -> None:
    assert set(SHIPPED) == set(HOME.glob("*.toml"))
    for path in SHIPPED:
        text = path.read_text()
        assert text.startswith("#:schema ./catalogue.schema.json\n")
        assert max(map(len, text.splitlines())) <= 120


def test_editors_know_the_form() -> None:
    """``python -c 'from plugin import catalogue; catalogue.write_schema()'`` writes it anew."""
    stored = json.loads((HOME / "catalogue.schema.json").read_text())
    assert stored == json.loads(json.dumps(schema()))
    jsonschema.Draft202012Validator.check_schema(stored)
    validator = jsonschema.Draft202012Validator(stored)
    pages = [example(page)["claims.toml"] for page in ("claim.md", "workload.md")]
    for text in (*(path.read_text() for path in SHIPPED), MINIMAL, *pages):
        assert not [*validator.iter_errors(tomllib.loads(text))]
    for wrong in (
        MINIMAL.replace("metric", "metrik"),
        MINIMAL.replace('"=="', '"="'),
        MINIMAL.replace("mine", "Mine"),
        MINIMAL + "nodes = 0",
        MINIMAL + 'needs = ["Fault bit"]',
    ):
        assert [*validator.iter_errors(tomllib.loads(wrong))], wrong


def test_minimal_claim_of_ones_own(write: Write) -> None:
    claim = load([*SHIPPED, write(MINIMAL)]).claim("mine")
    assert (claim.status, claim.suites, claim.capabilities) == (Status.READY, EVERY, frozenset())
    assert (claim.parameters_for(Suite.GATE), claim.estimate_for(Suite.GATE), claim.nodes_for(Suite.GATE)) == (
        {},
        None,
        3,
    )
    (check,) = claim.checks
    assert (check.kind, check.mark, check.source) == (Kind.ABSOLUTE, Mark.OWN, "our own choice")


def test_own_claim_uses_the_suites_checks_and_its_own(write: Write) -> None:
    text = MINIMAL.replace("lost", "bytes_leaked").replace("limit = 0", "limit = 5, recorded = true")
    claim = load([*SHIPPED, write(text + 'include = ["ledger-audit"]\ncapabilities = ["kill"]\n')]).claim("mine")
    assert [claim.checks[at].metric for at in (0, -1)] == ["lost", "bytes_leaked"]
    assert claim.capabilities == {Capability.KILL}


def test_checks_default_to_the_claims_source(write: Write) -> None:
    text = MINIMAL.replace("limit = 0", 'limit = 0, mark = "S"') + 'source = { work = "A book", where = "p. 3" }\n'
    (check,) = load([write(text)]).claim("mine").checks_for("laptop")
    assert (check.mark, check.source) == ("S", "A book, p. 3")
