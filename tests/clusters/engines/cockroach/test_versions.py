"""Version numbers, the table of version differences, and what is read out of servers' answers."""

import json
import random
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from clusters.engines.cockroach import KIND
from clusters.engines.cockroach.introspection import (
    parse_build,
    parse_memberships,
    parse_ranges,
    parse_sizes,
    parse_vars,
)
from clusters.engines.cockroach.version import Version
from clusters.engines.cockroach.versions import CHANGES, NEWEST, Dialect, dialect_for
from clusters.errors import BadInput, HarnessError

RECORDED = Path(__file__).parents[2] / "recorded"


def recorded(name: str) -> dict[str, Any]:
    content = json.loads((RECORDED / name).read_text())
    assert isinstance(content, dict)
    return content


def dialect(version: str) -> Dialect:
    return dialect_for(Version.parse(version))


@pytest.fixture(params=["v20.2", "v21.1", "v26.1"])
def answers(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What a real cluster answered."""
    return recorded(f"cockroach_{request.param}.json")


@pytest.fixture
def spoken(answers: dict[str, Any]) -> Dialect:
    return dialect_for(parse_build(answers["build_tag"]["rows"][0]["version"]))


class TestVersion:
    def test_order_is_that_of_semantic_versioning(self) -> None:
        ordered = [
            Version.parse(text)
            for text in (
                "v19.2.9",
                "v20.2.0-alpha",
                "v20.2.0-alpha.1",
                "v20.2.0-alpha.beta",
                "v20.2.0-beta.2",
                "v20.2.0-beta.11",
                "v20.2.0-rc.1",
                "v20.2.0",
                "v20.2.6",
                "v20.2.10",
                "v21.1.0-alpha.20210228",
                "v26.1.0",
            )
        ]
        shuffled = random.Random(7).sample(ordered, len(ordered))
        assert sorted(shuffled) == ordered

    @pytest.mark.parametrize(
        ("text", "printed"),
        [
            ("20.2.6", "v20.2.6"),
            ("v24.1.0-beta.1", "v24.1.0-beta.1"),
            (" v21.1.0-alpha.20210228\n", "v21.1.0-alpha.20210228"),
            ("v19.2.0-alpha.20190606-2479-gd98e0839dc", "v19.2.0-alpha.20190606-2479-gd98e0839dc"),
            ("v24.1.3+build.5", "v24.1.3"),
        ],
    )
    def test_prints_what_it_read(self, text: str, printed: str) -> None:
        assert str(Version.parse(text)) == printed

    @pytest.mark.parametrize(
        "text", ["", "latest", "24.1", "v24", "24.1.x", "v24.1.3-", "24.1.3 or so", "../24.1.3", "٢٤.1.3"]
    )
    def test_nonsense_is_refused_with_its_origin(self, text: str) -> None:
        with pytest.raises(BadInput, match=r"--cockroach-version: .*is not a CockroachDB version") as caught:
            Version.parse(text, origin="--cockroach-version")
        assert repr(text) in str(caught.value)


class TestTable:
    def test_every_change_changes_something_and_names_its_source(self) -> None:
        for change in CHANGES:
            assert change.source.startswith("https://"), change
            assert change.note or change.apply(Dialect()) != Dialect(), change.what
        assert list(CHANGES) == sorted(CHANGES, key=lambda change: change.since)

    @pytest.mark.parametrize(
        ("version", "joins", "copy"),
        [("v21.1.0", "off", ""), ("v21.2.0", "on", ""), ("v26.1.0", "on", "copy_from_atomic_enabled = off")],
    )
    def test_workloads_write_their_sql_as_the_version_takes_it(self, version: str, joins: str, copy: str) -> None:
        sql = replace(KIND.sql, **dialect_for(Version.parse(version)).traits)
        other = {"on": "off", "off": "on"}[joins]
        assert (sql.bulk_joins, sql.other_joins) == (f"vectorize = {joins}", f"vectorize = {other}")
        assert sql.bulk_copy == copy

    @pytest.mark.parametrize(
        ("version", "backup", "restore"),
        [
            ("v20.2.0", "BACKUP DATABASE \"tpcc\" TO 'x'", "RESTORE \"tpcc\".* FROM 'x' WITH into_db = 'two'"),
            ("v21.2.0", "BACKUP DATABASE \"tpcc\" TO 'x'", "RESTORE \"tpcc\".* FROM 'x' WITH into_db = 'two'"),
            (
                "v22.1.0",
                "BACKUP DATABASE \"tpcc\" INTO 'x'",
                "RESTORE \"tpcc\".* FROM LATEST IN 'x' WITH into_db = 'two'",
            ),
            (
                "v26.2.0",
                "BACKUP DATABASE \"tpcc\" INTO 'x'",
                "RESTORE \"tpcc\".* FROM LATEST IN 'x' WITH into_db = 'two'",
            ),
        ],
    )
    def test_backup_of_a_database(self, version: str, backup: str, restore: str) -> None:
        assert dialect(version).backup("tpcc", "x") == backup
        assert dialect(version).restore("tpcc", "x", "two") == restore

    def test_the_workload_opens_no_port(self) -> None:
        assert dialect("v21.1.0").workload_shared == ("--pprofport=-1",)
        assert dialect("v21.2.0").workload_shared == ("--pprofport=-1", "--prometheus-port=-1")
        assert dialect("v26.1.0").workload_shared == ("--pprofport=-1", "--prometheus-port=-1")

    def test_the_workload_tells_of_latencies_while_it_runs(self) -> None:
        assert dialect("v25.2.0").workload_run == ()
        assert dialect("v26.1.0").workload_run == ("--disable-temp-hist-file",)

    def test_too_old(self) -> None:
        with pytest.raises(BadInput, match=r"v20\.1\.17 is too old: versions from v20\.2 on"):
            dialect("v20.1.17")

    def test_newer_than_the_table_gets_the_newest_entry_and_a_note(self) -> None:
        newer, newest = dialect("v27.1.0"), dialect(f"v{NEWEST[0]}.{NEWEST[1]}.0")
        assert "newer than anything this suite knows" in newer.notes[0]
        assert newer.notes[1:] == newest.notes
        differing = {f.name for f in fields(Dialect) if getattr(newer, f.name) != getattr(newest, f.name)}
        assert differing == {"notes"}

    @pytest.mark.parametrize(
        ("version", "expected"),
        [
            ("v22.2.9", "[SHOW RANGES FROM TABLE t]"),
            ("v23.1.0", "[SHOW RANGES FROM TABLE t WITH DETAILS]"),
            ("v26.2.1", "[SHOW RANGES FROM TABLE t WITH DETAILS]"),
        ],
    )
    def test_ranges_of_a_table(self, version: str, expected: str) -> None:
        assert dialect(version).table_ranges("t").endswith(expected)

    def test_since_22_1_ranges_are_held_against_what_is_kept_by_their_keys(self) -> None:
        assert "crdb_internal.zones" in dialect("v21.2.0").wanted
        assert "system.span_configurations" in dialect("v22.1.0").wanted
        assert dialect("v22.1.0").wanted == dialect("v26.1.0").wanted

    def test_23_1_alone_must_be_told_to_use_the_new_output(self) -> None:
        setting = "SET CLUSTER SETTING sql.show_ranges_deprecated_behavior.enabled = false"
        assert dialect("v22.2.0").setup == ()
        assert dialect("v23.1.30").setup == (setting,)
        assert dialect("v23.2.0").setup == ()

    def test_closed_internals_are_opened_from_26_1(self) -> None:
        assert dialect("v25.4.0").session == {}
        assert dialect("v26.1.0").session == {"allow_unsafe_internals": "on"}
        assert "crdb_internal" not in dialect("v26.1.0").all_ranges + dialect("v26.1.0").table_ranges("t")

    def test_drain(self) -> None:
        assert dialect("v21.2.0").drain_flags == ()
        assert dialect("v22.1.0").drain_flags == dialect("v26.1.0").drain_flags == ("--self",)

    def test_a_report_tells_the_settings_that_say_how_a_version_works(self) -> None:
        assert "admission.kv.enabled" not in dialect("v21.2.0").behaviour_settings
        assert "admission.kv.enabled" in dialect("v22.1.0").behaviour
        assert "kv.raft.leader_fortification.fraction_enabled" in dialect("v25.2.0").behaviour
        assert not any("Buffered writes" in note for note in dialect("v25.1.0").notes)
        assert any("Buffered writes" in note for note in dialect("v26.1.0").notes)

    def test_licence_is_mentioned_where_it_binds(self) -> None:
        assert not any("licence key" in note for note in dialect("v24.2.0").notes)
        assert any("licence key" in note for note in dialect("v24.3.0").notes)


class TestRealAnswers:
    """On 20.2, 21.1 and 26.1. Should a statement of the table change, its answer has to be recorded anew."""

    def test_the_statements_are_those_that_were_answered(self, answers: dict[str, Any], spoken: Dialect) -> None:
        assert answers["table_ranges"]["sql"] == spoken.table_ranges("ledger")
        for name in (
            "all_ranges",
            "nodes",
            "stores",
            "build_tag",
            "arguments",
            "behaviour",
        ):
            assert answers[name]["sql"] == getattr(spoken, name)
        assert answers["by_hand"]["sql"] == spoken.by_hand(600)
        assert answers["moves"]["sql"] == spoken.moves(600)
        assert answers["node_status"]["argv"] == list(spoken.node_status)
        assert answers["drain"]["argv"] == ["node", "drain", *spoken.drain_flags]
        for statement in (
            spoken.diagnostics_off,
            spoken.split("ledger", (100, 200, 300)),
            spoken.relocate_lease("ledger", 2, 100),
        ):
            assert statement in answers["sent"]

    def test_ranges(self, answers: dict[str, Any]) -> None:
        found = parse_ranges(answers["table_ranges"]["rows"], {1: "n1", 2: "n2"})
        assert {r.start.rpartition("/")[2] for r in found} > {"100", "200", "300"}
        leases = {row["range_id"]: row["lease_holder"] for row in answers["table_ranges"]["rows"]}
        names = {1: "n1", 2: "n2", 3: "node 3"}
        assert {r.range_id: r.lease for r in found} == {id_: names[node] for id_, node in leases.items()}
        assert {r.replicas for r in found} == {("n1", "n2", "node 3")}

    def test_nodes(self, answers: dict[str, Any]) -> None:
        assert parse_memberships(answers["node_status"]["out"]) == dict.fromkeys((1, 2, 3), "active")
        assert parse_memberships(answers["node_status_drained"]["out"]) == dict.fromkeys((1, 2, 3), "active")

    def test_what_a_node_was_started_with(self, answers: dict[str, Any]) -> None:
        (row,) = answers["arguments"]["rows"]
        assert parse_sizes(row["args"]) == {"cache_mib": 384, "sql_memory_mib": 256}

    def test_how_it_works(self, answers: dict[str, Any], spoken: Dialect) -> None:
        """Every setting that the table names for a version is one that its server knows."""
        found = {row["name"]: row["value"] for row in answers["behaviour"]["rows"]}
        assert sorted(found) == sorted(spoken.behaviour_settings)
        assert found["kv.allocator.load_based_rebalancing"] == "leases and replicas"

    def test_what_was_done_by_hand(self, answers: dict[str, Any]) -> None:
        """Settings of the bootstrap among them: only the seconds since a growth began are asked for."""
        assert {row["what"] for row in answers["by_hand"]["rows"]} >= {
            "set_cluster_setting",
            "set_zone_config",
            "ALTER TABLE ledger SCATTER",
        }

    def test_why_replicas_moved(self, answers: dict[str, Any]) -> None:
        """Of a cluster that just began: its first node's ranges got their other replicas."""
        reasons = {row["why"]: row["times"] for row in answers["moves"]["rows"]}
        assert reasons["range under-replicated"] >= 30

    def test_metrics(self, answers: dict[str, Any], spoken: Dialect) -> None:
        nodes = [parse_vars(text) for text in answers["vars"]]
        assert [node[spoken.underreplicated] for node in nodes] == [0, 0, 0]
        assert [node[spoken.unavailable] for node in nodes] == [0, 0, 0]


class TestDocumentedAnswers:
    documented = recorded("cockroach_documented.json")

    def test_ranges_of_later_versions(self) -> None:
        found = parse_ranges(self.documented["ranges_23_2"]["rows"], {2: "n1"})
        assert [(r.range_id, r.lease, r.replicas) for r in found] == [
            (94, "node 5", ("n1", "node 5", "node 7")),
            (178, "n1", ("n1", "node 5", "node 7")),
            (181, "node 8", ("node 7", "node 8", "node 9")),
        ]

    def test_unknown_lease_and_first_key(self) -> None:
        first, _ = parse_ranges(self.documented["ranges_23_1_deprecated"]["rows"], {})
        assert (first.start, first.lease, first.replicas) == ("", "", ("node 1", "node 2", "node 4"))

    def test_node_status(self) -> None:
        told = parse_memberships(self.documented["node_status_22_2"]["out"])
        assert told == {1: "active", 3: "active", 5: "decommissioned"}
        assert parse_memberships(self.documented["node_status_25_3"]["out"]) == {1: "active"}

    def test_metrics(self) -> None:
        node = parse_vars(self.documented["vars_26_2"]["text"])
        assert node == {
            "ranges_underreplicated": 7,
            "sql_insert_count": 27,
            "sql_insert_count_internal": 1201,
            "clock_offset_stddevnanos": 7,
            "round_trip_latency_bucket": 1500,
            "liveness_livenodes": 3,
        }


def test_sizes_of_a_command_line() -> None:
    line = ["/bin/cockroach", "start", "--cache=256MiB", "--max-sql-memory=25%", "--store=/s"]
    assert parse_sizes(json.dumps(line)) == {"cache_mib": 256.0}, "what was not given in MiB was not given by us"
    assert parse_sizes("[]") == {}
    for text in ("", "null", "{"):
        with pytest.raises(HarnessError, match="as its command line"):
            parse_sizes(text)


def test_answers_that_are_no_answers() -> None:
    for text in ("", "id,membership\n", "id,address\n1,x\n", "id,membership\none,active\n"):
        with pytest.raises(HarnessError, match="printed no list of nodes"):
            parse_memberships(text)
    with pytest.raises(HarnessError, match="not CockroachDB"):
        parse_build("PostgreSQL 16.4 on x86_64")
    assert str(parse_build("CockroachDB OSS v23.2.0 (x86_64-pc-linux-gnu)")) == "v23.2.0"
