"""The table of versions, from records as pytest-benchmark stores them."""

import math

import pytest

from plugin.micro.benchmarks import baselines
from plugin.micro.table import ADVICE, Turn, newest, ratio, table, turns
from tests.plugin.micro.runs import record

OLD, NEW, NEXT = "v9.2.0", "v10.1.0-alpha.20210228", "v10.1.0"
READ = "point read"


def of(version: str, medians: list[float], **how: object) -> list[Turn]:
    return list(turns(record(version, {READ: medians}, **how)))  # type: ignore[arg-type]


def test_a_row_a_statement_and_a_column_a_version_oldest_first() -> None:
    slow, fast = {READ: [2.0, 2.2], "write": [20.0, 22.0]}, {READ: [1.0, 1.1], "write": [20.0, 22.0]}
    found = [*turns(record(NEXT, slow)), *turns(record(OLD, fast)), *turns(record(NEW, fast))]
    lines = table(found, [], apart="", notes=["A note."])
    assert lines[0] == f"median in ms (quartiles of the rounds); below: × the oldest, {OLD} (95% interval)"
    assert lines[2].split() == [OLD, NEW, NEXT]
    assert lines[3].split() == [
        "point",
        "read",
        "1.05",
        "(0.95–1.17)",
        "1.05",
        "(0.95–1.17)",
        "2.10",
        "(1.91–2.33)",
    ]
    assert lines[4].split() == ["×", "1.00", "(1.00–1.00)", "×", "2.00", "(2.00–2.00)"]
    assert lines[5].split() == ["write", *["21.0", "(19.1–23.3)"] * 3]
    assert "A note." in lines
    assert " ".join(lines).endswith(ADVICE)
    assert max(map(len, lines)) <= 100


def test_a_ratio_of_pairs_is_student_s() -> None:
    """What the machine did to both of a pair cancels out."""
    found = ratio(of(NEW, [math.e**0.1, 5 * math.e**0.2, 9 * math.e**0.3]), of(OLD, [1, 5, 9]), paired=True)
    assert math.log(found.value) == pytest.approx(0.2)
    assert found.interval is not None
    half = 4.30265 * 0.1 / math.sqrt(3)  # t for 2 degrees of freedom
    assert [math.log(end) for end in found.interval] == pytest.approx([0.2 - half, 0.2 + half], abs=1e-5)


def test_a_ratio_to_a_stored_baseline_is_welch_s() -> None:
    found = ratio(of(NEW, [math.e**0.1, math.e**0.2, math.e**0.3]), of(OLD, [1, 1, 1]), paired=False)
    assert found.interval is not None
    half = 4.30265 * 0.1 / math.sqrt(3)  # all the spread is one side's: its 2 degrees of freedom
    assert [math.log(end) for end in found.interval] == pytest.approx([0.2 - half, 0.2 + half], abs=1e-5)
    wide = ratio(of(NEW, [1, 5, 9]), of(OLD, [1, 5, 9]), paired=False).interval
    assert wide is not None
    assert wide[0] < 0.2 < 5 < wide[1]


def test_one_turn_has_no_interval() -> None:
    for paired in (True, False):
        assert ratio(of(NEW, [2]), of(OLD, [1]), paired=paired).interval is None
    lines = table([*of(OLD, [1]), *of(NEW, [2])], [], apart="", notes=[])
    assert any(line.strip() == "× 2.00 (one turn)" for line in lines)


def test_the_same_version_twice_has_two_columns() -> None:
    lines = table(of(NEW, [1, 2], targets=[f"{NEW}#1", f"{NEW}#2"]), [], apart="", notes=[])
    assert [f"{NEW}#1", f"{NEW}#2"] in [line.split() for line in lines]


def test_many_versions_are_shown_below_each_other() -> None:
    found = [turn for minor in range(6) for turn in of(f"v24.{minor}.0", [1 + minor, 1 + minor])]
    lines = table(found, [], apart="", notes=[])
    heads = [line.split() for line in lines if line.startswith(" ") and "v24." in line]
    assert [name for head in heads for name in head] == [f"v24.{minor}.0" for minor in range(6)]
    assert len(heads) == 2
    assert "× 6.00 (6.00–6.00)" in " ".join(lines)
    assert max(map(len, lines)) <= 100


def test_what_was_not_interleaved_is_said() -> None:
    both = [*of(OLD, [1, 2]), *of(NEW, [2, 4])]
    together = " ".join(table(both, [], apart="", notes=[]))
    assert "back to back" in together
    assert "× 2.00 (2.00–2.00)" in together
    apart = " ".join(table(both, [], apart="no room for two", notes=[]))
    assert "not interleaved, one was measured after the other: no room for two." in apart
    assert "× 2.00 (2.00–2.00)" not in apart


def test_a_stored_baseline_says_from_when_it_is() -> None:
    stored = list(turns(record(OLD, {READ: [1, 1]}), file="0001_x.json"))
    lines = table(of(NEW, [2, 2]), stored, apart="", notes=[])
    assert lines[2].split() == [f"{OLD}*", NEW]
    assert (
        f"* {OLD}: a stored baseline of 2026-11-20 10:00 UTC (0001_x.json; load average 0.5 before it), not interleaved"
        in " ".join(lines)
    )
    alone = " ".join(table(of(NEW, [2, 2]), [], apart="", notes=[]))
    assert "Nothing to compare with" in alone


def test_retries_are_told() -> None:
    lines = table([*of(OLD, [1, 1]), *of(NEW, [1, 1], retries=3)], [], apart="", notes=[])
    assert f"timed with it: 6 on {NEW}." in " ".join(lines)


def test_only_baselines_of_this_machine_and_these_settings_count() -> None:
    here = record(NEW, {READ: [1]})["machine_info"]
    foreign = {
        "datetime": "",
        "machine_info": here,
        "benchmarks": [{"group": None, "stats": {}, "extra_info": {}}],
    }
    stored = [
        ("a", record(OLD, {READ: [1, 2]})),
        ("b", record(OLD, {READ: [1]}, node="elsewhere")),
        ("c", record(OLD, {READ: [1]}, profile="medium")),
        ("d", foreign),
    ]
    found, left = baselines(iter(stored), here)
    assert [(each.file, each.turn) for each in found] == [("a", 1), ("a", 2)]
    assert left == 2


def test_of_each_statement_the_newest_baseline_counts() -> None:
    early = list(turns(record(OLD, {READ: [1, 1], "write": [1]}, when="2026-11-01T00:00:00"), file="0001"))
    late = list(turns(record(OLD, {READ: [2, 2]}, when="2026-11-02T00:00:00"), file="0002"))
    for stored in ([*early, *late], [*late, *early]):
        kept = newest(stored)
        assert [(each.file, each.statement, each.turn) for each in sorted(kept, key=lambda t: (t.file, t.turn))] == [
            ("0001", "write", 1), ("0002", READ, 1), ("0002", READ, 2),
        ]  # fmt: skip
