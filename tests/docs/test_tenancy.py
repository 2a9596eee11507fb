"""``docs/tenancy.md``: its table of what passed has every claim of tenants, and no build that was never run."""

import re
from pathlib import Path

from clusters.engines import ENGINES
from clusters.engines.cockroach.builds import RUN
from fixtures.workloads.tenants.isolation.visible import visible
from plugin.catalogue import load
from plugin.judge.model import Kind
from plugin.suites import Suite

TEXT = (Path(__file__).parents[2] / "docs" / "tenancy.md").read_text()
VERDICT = re.compile(r"(PASS|REFUTED|inconclusive|ended by its time|as \[below\]|\*not seen\*|\*not run\*)")


def rows() -> list[list[str]]:
    """The cells of what passed: claim, suite, engine and build, day, verdict."""
    table = TEXT.partition("## What passed")[2].partition("\n## ")[0].partition("|---|")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[1:]]


def test_every_claim_of_tenants_says_what_it_came_to_on_both_engines() -> None:
    known = {f"`{claim.id}`": claim for claim in load() if claim.id.startswith("tenancy")}
    said = {name: [row for row in rows() if row[0] == name] for name in known}
    for name, claim in known.items():
        engines = {row[2].split()[0] for row in said[name]}
        assert engines >= {"CockroachDB", "PostgreSQL"} or "any" in engines, name
        assert {row[1] for row in said[name]} == {str(suite) for suite in claim.suites} - {"paper"}, name
    assert {row[0] for row in rows()} == {*known, "all"}


def test_a_verdict_has_a_day_and_a_build_that_was_run() -> None:
    builds = {"v26.1", "PostgreSQL 18.4", *(build.tag for build in RUN), "v26.1.0-alpha.2", "v26.1.0-alpha.3"}
    for claim, _, where, day, verdict in rows():
        assert VERDICT.match(verdict), (claim, verdict)
        seen = not verdict.startswith("*")
        assert bool(re.fullmatch(r"2026-\d\d-\d\d", day)) is seen, (claim, verdict)
        assert not seen or where.removeprefix("CockroachDB ") in builds, where


def test_every_check_that_decides_is_sabotaged_or_said_to_be_never_seen_refuted() -> None:
    """Of claims of tenants: in the table, by one that has it, or among those that none was seen refuted by."""
    sabotages = TEXT.partition("## Sabotages")[2].partition("\n## ")[0]
    table = "".join(line.split("|")[-2] for line in sabotages.splitlines() if line.startswith("| "))
    never = sabotages.partition("*Never seen refuted*")[2].partition("All others")[0]
    named = {metric for text in (table, never) for metric in re.findall(r"`([a-z_0-9]+)`", text)}
    deciding = {
        check.metric
        for claim in load()
        if claim.id.startswith("tenancy")
        for check in claim.checks
        if check.kind is not Kind.REPORT
    }
    assert deciding
    assert not deciding - named


def test_what_is_accepted_of_others_has_a_document_or_is_named() -> None:
    """A statement on another's that is not refused, and that no documentation tells of, is no small thing."""
    declared = [one for engine in ENGINES for one in visible(engine) if "accepted" in one.words]
    undocumented = {name for one in declared if "documentation" not in one.source for name in one.through}
    told = TEXT.partition("Two were seen on v26.1, and no documentation tells of them:")[2].partition("\n## ")[0]
    assert undocumented == set(re.findall(r"^- .*\(`([a-z-]+)`\)", told, re.MULTILINE))


def test_the_claims_of_the_gate_are_counted() -> None:
    gate = [claim.id for claim in load() if claim.id.startswith("tenancy") and Suite.GATE in claim.suites]
    assert gate == ["tenancy", "tenancy-drop"]
    assert f"Only two of the eight fit into the gate's minutes on two cores: `{gate[0]}`, and `{gate[1]}`" in TEXT
