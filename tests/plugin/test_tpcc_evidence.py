"""The evidence of a TPC-C run comes back as it was written, whole, cut off, or from several processes."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.workloads.tpcc.evidence import (
    SECOND,
    TYPES,
    TpccAudit,
    TpccHeader,
    TpccSecond,
    TypeSecond,
    encode,
    merged,
    new_histogram,
    read_tpcc,
    tpcc_end_line,
    tpcc_header_line,
    tpcc_second_line,
)
from fixtures.workloads.tpcc.history import (
    OUTCOMES,
    TPCC_HISTORY_HEADER,
    TpccSeen,
    read_tpcc_history,
    tpcc_history_line,
)
from plugin.evidence.records import MalformedRecord

COUNT = st.integers(0, 10**6)


def header(**changes: Any) -> TpccHeader:
    values: dict[str, Any] = {
        "run": "r01",
        "driver": "native",
        "warehouses": 4,
        "terminals": 40,
        "connections": 8,
        "waits": True,
        "seed": 7,
        "ramp_s": 5.0,
        "duration_s": 60.0,
    }
    return TpccHeader(**{**values, **changes})


def histogram(*latencies: int) -> str:
    values = new_histogram()
    for latency in latencies:
        values.record_value(latency)
    return encode(values)


def second(t: int, *latencies: int, **changes: Any) -> TpccSecond:
    types = {name: TypeSecond() for name in TYPES}
    types["payment"] = TypeSecond(ok=len(latencies), histogram=histogram(*latencies))
    return TpccSecond(t=t * SECOND, types=types, **changes)


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(lines))
    return path


SECONDS = st.builds(
    TpccSecond,
    t=st.just(3 * SECOND),
    types=st.fixed_dictionaries(
        {name: st.builds(TypeSecond, ok=COUNT, rolled_back=COUNT, histogram=st.just("")) for name in TYPES}
    ),
    retries=st.dictionaries(st.sampled_from(["40001", "40P01", "refused"]), COUNT),
    errors=st.dictionaries(st.text(max_size=9), COUNT),
    ambiguous=COUNT,
    reconnects=COUNT,
    lag_ms=st.floats(0, 1e6),
    cpu_s=st.floats(0, 1e6),
    measured=st.booleans(),
)
AUDITS = st.builds(TpccAudit, **dict.fromkeys(("new_orders", "order_lines", "stock_levels"), COUNT))


DUE = st.none() | st.fixed_dictionaries(dict.fromkeys(TYPES, COUNT))


@given(one=SECONDS, audit=AUDITS, why=st.sampled_from(["duration", "stopped"]), due=DUE)
@settings(deadline=None, derandomize=True, max_examples=50)
def test_what_was_written_comes_back(
    tmp_path_factory: pytest.TempPathFactory,
    one: TpccSecond,
    audit: TpccAudit,
    why: str,
    due: dict[str, int] | None,
) -> None:
    path = tmp_path_factory.getbasetemp() / "tpcc-hypothesis.jsonl"
    write(path, tpcc_header_line(header()), tpcc_second_line(one), tpcc_end_line(why, audit, due))
    run = read_tpcc([path])
    assert run.header == header()
    assert list(run.seconds) == [one]
    assert (run.audit, run.end, run.due, run.problems) == (audit, why, due, ())


def test_processes_are_merged_second_by_second(tmp_path: Path) -> None:
    audit = TpccAudit(new_orders=3, payments=5)
    files = [
        write(
            tmp_path / f"tpcc-r01-{i}.jsonl",
            tpcc_header_line(header(process=i, processes=2)),
            *(tpcc_second_line(one) for one in seconds),
            tpcc_end_line("duration", audit, {**dict.fromkeys(TYPES, 0), "payment": 4 + i}),
        )
        for i, seconds in enumerate(
            [
                [
                    second(4, 100, 200, errors={"40003": 1}, cpu_s=1.0, lag_ms=3.0),
                    second(5, 100, cpu_s=1.5, reconnects=2),
                ],
                [second(4, 5000, errors={"40003": 2, "57014": 1}, cpu_s=0.25, lag_ms=9.0, ambiguous=1)],
            ]
        )
    ]
    run = read_tpcc(files)
    assert run.problems == ()
    assert run.end == "duration"
    assert run.audit == TpccAudit(new_orders=6, payments=10)
    assert run.due == {**dict.fromkeys(TYPES, 0), "payment": 9}
    first, last = run.seconds
    assert (first.t, last.t) == (4 * SECOND, 5 * SECOND)
    assert first.types["payment"].ok == 3
    values = merged([first.types["payment"].histogram])
    assert values.get_total_count() == 3
    assert values.get_value_at_percentile(100) == pytest.approx(5000, rel=0.01)
    assert first.errors == {"40003": 3, "57014": 1}
    assert (first.ambiguous, first.lag_ms, first.cpu_s) == (1, 9.0, 1.25)
    assert (last.reconnects, last.cpu_s) == (2, 1.75), "a process that ended used what it used"


@given(cut=st.integers(0, 2000))
@settings(deadline=None, derandomize=True, max_examples=80)
def test_a_file_cut_anywhere_is_read_as_far_as_it_goes(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    whole = "".join(
        [
            tpcc_header_line(header()),
            tpcc_second_line(second(4, 10)),
            tpcc_second_line(second(5, 20)),
            tpcc_end_line("stopped", TpccAudit()),
        ]
    )
    text = whole[:cut]
    path = write(tmp_path_factory.getbasetemp() / "tpcc-cut.jsonl", text)
    if "\n" not in text:
        with pytest.raises(MalformedRecord, match="no header"):
            read_tpcc([path])
        return
    run = read_tpcc([path])
    assert len(run.seconds) == min(max(0, text.count("\n") - 1), 2)
    assert (run.audit is None) == (text != whole)
    assert bool(run.problems) == (text != whole)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    lines = (tpcc_header_line(header(processes=3)), tpcc_second_line(second(4)), tpcc_second_line(second(7)))
    whole = write(tmp_path / "tpcc-r01-0.jsonl", *lines, tpcc_end_line("stopped", TpccAudit()))
    empty = write(tmp_path / "tpcc-r01-1.jsonl")
    run = read_tpcc([whole, empty])
    assert run.audit is None
    assert run.end is None
    assert "no record between 4 s and 7 s" in " ".join(run.problems)
    assert "tpcc-r01-1.jsonl: was cut off before its header" in run.problems
    assert "no evidence of process 1, 2 of 3" in run.problems
    other = write(tmp_path / "other", tpcc_header_line(header(seed=8)), tpcc_end_line("stopped", TpccAudit()))
    assert "headers differ" in " ".join(read_tpcc([whole, other]).problems)
    assert "two files of process 0" in read_tpcc([whole, other]).problems


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"t": 5000000}\n', "KeyError"),
        ("nonsense\n", "JSONDecodeError"),
        (tpcc_second_line(second(4)).replace('"ok": 0', '"ok": -1', 1), "is not a count"),
        (tpcc_second_line(second(4)).replace('"ok": 0', '"ok": true', 1), "is not a count"),
        (tpcc_second_line(second(4)).replace("4000000", "4000001"), "not the end of a second"),
        (tpcc_second_line(second(3)), "does not follow"),
        ('{"end": true, "why": "x", "audit": {"new_orders": 1.5}}\n', "is not a count"),
        ('{"end": true, "why": "x", "audit": {"ponies": 1}}\n', "ponies"),
    ],
)
def test_nonsense_is_refused(line: str, why: str, tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", tpcc_header_line(header()), tpcc_second_line(second(3)), line)
    with pytest.raises(MalformedRecord, match=why) as caught:
        read_tpcc([path])
    assert "x.jsonl: line 3" in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        {"tpcc": 2},
        {"process": 1},
        {"warehouses": -1},
        {"warehouses": "4"},
        {"waits": 1},
        {"run": None},
        {"client": 3},
    ],
)
def test_a_header_that_is_none_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    data = json.loads(tpcc_header_line(header()))
    path = write(tmp_path / "x.jsonl", json.dumps({**data, **change}) + "\n")
    with pytest.raises(MalformedRecord, match=r"x\.jsonl: line 1"):
        read_tpcc([path])


def test_evidence_of_before_headers_named_the_client_is_read(tmp_path: Path) -> None:
    said = header(client="asyncpg 1, uvloop 2")
    data = json.loads(tpcc_header_line(said))
    assert read_tpcc([write(tmp_path / "new.jsonl", json.dumps(data) + "\n")]).header == said
    del data["client"]
    assert read_tpcc([write(tmp_path / "old.jsonl", json.dumps(data) + "\n")]).header == header()


def test_an_unreadable_histogram_is_refused() -> None:
    with pytest.raises(MalformedRecord, match="histogram 'rubbish'"):
        merged(["rubbish"])


@given(
    seen=st.lists(
        st.builds(
            TpccSeen,
            t=COUNT,
            kind=st.sampled_from(["new_order", "payment"]),
            outcome=st.sampled_from(OUTCOMES),
            warehouse=COUNT,
            district=COUNT,
            value=COUNT,
            detail=st.sampled_from(["", "40001", "connection lost"]),
        )
    )
)
@settings(deadline=None, derandomize=True)
def test_a_history_comes_back(seen: list[TpccSeen]) -> None:
    lines = [TPCC_HISTORY_HEADER + "\n", *map(tpcc_history_line, seen)]
    assert list(read_tpcc_history(lines)) == seen
    assert list(read_tpcc_history([*lines, "5\tpaym"])) == seen, "cut off"


@pytest.mark.parametrize(
    "line", ["# another\n", "1\t2\n", "1\tdelivery\tok\t1\t1\t1\t-\n", "1\tpayment\tyes\t1\t1\t1\t-\n"]
)
def test_a_history_of_another_kind_is_refused(line: str) -> None:
    with pytest.raises(MalformedRecord, match="line 1"):
        list(read_tpcc_history([line]))
