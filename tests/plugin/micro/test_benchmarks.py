"""Micro benchmarks: what is measured in which order, what is never passed over in silence, and what is kept."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from clusters.cache import cache_dir
from clusters.engines.cockroach.cache import binary_path
from clusters.engines.cockroach.version import Version
from tests.plugin.conftest import CHECKOUT, Gate, Ran
from tests.plugin.micro.runs import prepared

OLD, NEW = "v24.1.3", "v24.2.0"
REAL = Version.parse("v21.1.0-alpha.20210228")
TIMEOUT_S = 600.0


def plain(ran: Ran) -> str:
    return " ".join(ran.text.split())


def stored(gate: Gate) -> list[Path]:
    return sorted((gate.path / "kept").rglob("*.json"))


def test_two_versions_are_measured_in_turns_and_compared(gate: Gate) -> None:
    ran = gate(*prepared(gate, OLD, NEW))
    assert ran.status == 0, ran.text
    measured = json.loads((gate.run_dir / "micro" / "benchmarks.json").read_text())["benchmarks"]
    names = [re.fullmatch(r"test_(\w+)\[(v[\d.]+)-turn(\d)\]", each["name"]) for each in measured]
    order = [name.groups() for name in names if name]
    assert order == [
        ("read", OLD, "1"), ("read", NEW, "1"), ("write", NEW, "1"), ("write", OLD, "1"),
        ("read", NEW, "2"), ("read", OLD, "2"), ("write", OLD, "2"), ("write", NEW, "2"),
    ]  # fmt: skip
    table = ran.text.partition("micro benchmarks, version against version")[2]
    assert re.search(rf"^ +{re.escape(OLD)} +{re.escape(NEW)}$", table, re.MULTILINE)
    for statement in ("a read", "a write"):
        row = re.search(
            rf"^{statement} +([\d.]+) \(.*?\) +([\d.]+) \(.*\)\n +× ([\d.]+) \([\d.]+–[\d.]+\)$",
            table,
            re.MULTILINE,
        )
        assert row, table
        old, new, ratio = float(row[1]), float(row[2]), float(row[3])
        # they sleep 2 and 30 ms, and longer on a busy machine
        assert 1.8 < old < new < 1000
        assert new > 29
        assert new / old / 2 < ratio < new / old * 2
    assert "Measured in this run in 2 turns" in plain(ran)
    assert "This is advice, not a verdict" in plain(ran)
    assert "stored baseline of" not in ran.text


def test_what_is_kept_says_what_it_is_and_no_more(gate: Gate) -> None:
    """Every round in the run directory; the figures of each version under its name in pytest-benchmark's storage."""
    ran = gate(*prepared(gate, OLD, NEW))
    assert ran.status == 0, ran.text
    assert [path.name for path in stored(gate)] == [
        f"0001_cockroach-{OLD}.json",
        f"0002_cockroach-{NEW}.json",
    ]
    whole = json.loads((gate.run_dir / "micro" / "benchmarks.json").read_text())
    for version, path in zip((OLD, NEW), stored(gate), strict=True):
        kept = json.loads(path.read_text())
        assert len(kept["benchmarks"]) == 4
        assert not any("data" in each["stats"] for each in kept["benchmarks"])
        assert set(kept["machine_info"]["roachproof"]) == {
            "asyncpg", "cores", "nodes", "profile", "rows", "substrate", "topology",
        }  # fmt: skip
        for each in kept["benchmarks"]:
            about = each["extra_info"]["roachproof"]
            assert len(about.pop("sha256")) == 64
            assert about.pop("turn") in (1, 2)
            assert about == {
                "engine": "cockroach", "version": version, "target": version, "nodes": 1, "profile": "laptop",
                "tuned": ["x = 1"], "retries": 0,
            }  # fmt: skip
    assert len(whole["benchmarks"]) == 8
    assert all(len(each["stats"]["data"]) == each["stats"]["rounds"] >= 5 for each in whole["benchmarks"])


def test_one_version_is_compared_with_what_is_stored_of_others(gate: Gate) -> None:
    arguments = prepared(gate, OLD)
    first = gate(*arguments)
    assert first.status == 0, first.text
    assert "Nothing to compare with: no baseline of another version" in plain(first)
    assert "Give --cockroach-version twice" in plain(first)

    second = gate(*prepared(gate, NEW), "--run-dir", "out2")
    assert second.status == 0, second.text
    assert re.search(rf"^ +{re.escape(OLD)}\* +{re.escape(NEW)}$", second.text, re.MULTILINE)
    assert re.search(
        rf"\* {re.escape(OLD)}: a stored baseline of \d{{4}}-\d\d-\d\d \d\d:\d\d UTC "
        rf"\(\S*0001_cockroach-{OLD}\.json; load average [\d.]+ before it\), "
        "not interleaved with this run; the machine may have changed since",
        plain(second),
    )

    other = gate(*arguments, "--run-dir", "out3", "--topology", "one")
    assert other.status == 0, other.text
    assert "2 stored runs of another machine or with other settings: not compared with" in plain(other)


def test_a_version_is_no_baseline_when_a_benchmark_of_it_failed(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKEN", NEW)
    ran = gate(*prepared(gate, OLD, NEW))
    assert ran.status == 1, ran.text
    assert f"{NEW} is not stored as a baseline: 2 of its benchmarks failed or were not run" in plain(ran)
    assert [path.name for path in stored(gate)] == [f"0001_cockroach-{OLD}.json"]


def test_a_run_that_was_cut_short_leaves_no_baseline(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was measured until then is shown and kept with the run."""
    monkeypatch.setenv("BROKEN", NEW)
    ran = gate(*prepared(gate, OLD, NEW), "-x")
    assert ran.status == 1, ran.text
    assert f"{OLD} is not stored as a baseline: 3 of its benchmarks failed or were not run" in plain(ran)
    assert f"{NEW} is not stored as a baseline: 3 of its benchmarks failed or were not run" in plain(ran)
    assert not stored(gate)
    whole = json.loads((gate.run_dir / "micro" / "benchmarks.json").read_text())
    assert [each["name"] for each in whole["benchmarks"]] == [
        f"test_read[{OLD}-turn1]",
        f"test_read[{NEW}-turn1]",
    ]


def test_what_is_refused_with_40001_is_repeated_and_counted(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONFLICTS", "1")
    ran = gate(*prepared(gate, OLD), "--benchmark-max-time", "0.2")
    assert ran.status == 0, ran.text
    whole = json.loads((gate.run_dir / "micro" / "benchmarks.json").read_text())
    counts = {each["group"]: each["extra_info"]["roachproof"]["retries"] for each in whole["benchmarks"]}
    assert counts["a read"] == 0
    assert counts["a write"] > 0
    assert re.search(rf"Repeated after a serialization failure \(40001\), and timed with it: \d+ on {OLD}", plain(ran))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("-n", "2"), "without -n"),
        (("--benchmark-disable",), "--benchmark-disable was given"),
        (("--benchmark-skip",), "--benchmark-skip was given"),
        (("--profile", "adversity-15"), "this host cannot carry 1 node of profile adversity-15"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_what_is_not_measured_is_never_a_green_run(gate: Gate, options: tuple[str, ...], said: str) -> None:
    arguments = prepared(gate, OLD)
    ran = gate(*arguments, *options)
    assert ran.status == 6, ran.text
    assert re.search(rf"4 not evaluated: .*{re.escape(said)}", plain(ran)), ran.text
    assert "NOTHING WAS MEASURED" in ran.text
    assert "4 skipped" in ran.text
    beside = gate(*arguments, *gate.tests("ordinary"), *options, "--run-dir", "out2")
    assert beside.status == 0, beside.text
    assert re.search(rf"4 not evaluated: .*{re.escape(said)}", plain(beside)), beside.text
    assert "NOTHING WAS MEASURED" not in beside.text
    assert not stored(gate)


def test_a_benchmark_that_times_nothing_has_failed(gate: Gate) -> None:
    arguments = prepared(gate, OLD)
    (gate.path / "test_micro.py").write_text("def test_idle(micro):\n    pass\n")
    ran = gate(*arguments)
    assert ran.status == 1, ran.text
    assert "nothing was timed; give micro.measure the statement and its operation" in plain(ran)


def test_a_cluster_that_cannot_be_had_is_the_harness_fault(gate: Gate) -> None:
    ran = gate(*prepared(gate, "v24.9.9"))
    assert ran.status == 7, ran.text
    assert "no room" in ran.text
    assert "version against version" not in ran.text


@pytest.mark.parametrize(
    ("options", "source", "said"),
    [
        ((), "", "no CockroachDB to test"),
        (("-p", "no:benchmark"), "", "needs pytest-benchmark, which is not at hand"),
        (
            (),
            "import pytest\npytestmark = pytest.mark.claim('answer')\n",
            "the fixture micro is for benchmarks",
        ),
    ],
    ids=["no-cockroach", "no-pytest-benchmark", "a-claim"],
)
def test_what_cannot_be_run_is_refused(gate: Gate, options: tuple[str, ...], source: str, said: str) -> None:
    (gate.path / "test_micro.py").write_text(f"{source}def test_it(micro):\n    micro.measure('it', None)\n")
    ran = gate("test_micro.py", *options)
    assert ran.status == 4, ran.text
    assert said in plain(ran)
    assert "Traceback" not in ran.text


def test_nothing_heavy_is_imported_to_collect(gate: Gate) -> None:
    (gate.path / "conftest.py").write_text(
        "import sys\n\ndef pytest_collection_finish():\n"
        "    heavy = {'asyncpg', 'hdrh', 'yaml', 'cpuinfo'} & set(sys.modules)\n    assert not heavy, heavy\n"
    )
    ran = gate(
        str(CHECKOUT / "tests" / "micro"),
        "--collect-only",
        "-q",
        "--confcutdir",
        str(gate.path),
        "test_claims.py",
    )
    assert ran.status == 0, ran.text
    assert ran.text.count("test_statements.py::test_point_read[turn") == 5


def test_the_statements_on_a_real_database(tmp_path: Path) -> None:
    """On CockroachDB where it is at hand, else on the control: each is timed, and leaves nothing behind."""
    binary = binary_path(cache_dir(os.environ), REAL)
    database = ("--cockroach", str(binary)) if binary.is_file() else ("--engine", "postgres")
    out, kept = tmp_path / "out", tmp_path / "kept"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/micro", *database, "--micro-turns", "1",
         "--benchmark-max-time", "0.1", "--benchmark-quiet", "--run-dir", str(out), "--benchmark-storage", str(kept)],
        cwd=CHECKOUT,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        | {"ROACHPROOF_STATE": str(tmp_path / "state")},  # it waits for no other run's clusters
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    whole = json.loads((out / "micro" / "benchmarks.json").read_text())
    assert [each["group"] for each in whole["benchmarks"]] == [
        "point read", "index lookup", "single-row write", "multi-row write", "small transaction",
    ]  # fmt: skip
    assert all(each["stats"]["rounds"] >= 5 and each["stats"]["min"] > 0 for each in whole["benchmarks"])
    assert len(list(kept.rglob("*.json"))) == 1
    assert list((out / "clusters").iterdir()) == []
    assert next((out / "micro" / "logs").rglob("*.log")).stat().st_size > 0
