"""What the audit must allow (indeterminate operations), what it counts, and records that contradict themselves."""

import pytest

from plugin.evidence.records import (
    BucketRead,
    BucketUnreadable,
    FinalLine,
    HistoryEnd,
    MalformedRecord,
    Ok,
    Op,
    RowCount,
    SampledRow,
    payload,
    read_history,
)
from plugin.judge.audit import audit
from tests.plugin.judge.histories import BUCKETS, SEED, Story, final, row, wrong


@pytest.mark.parametrize("there", [True, False])
def test_an_indeterminate_insert_may_be_there_or_not(there: bool) -> None:
    story = Story()
    story.insert(0)
    story.unknown(story.begin(Op.INSERT, 1))
    found = story.audit(final([row(0), *([row(1)] if there else [])]))
    assert wrong(found) == {}
    assert found.indeterminate == 1
    assert found.expected == (1, 2)


@pytest.mark.parametrize("version", [1, 2])
def test_an_indeterminate_update_may_have_happened(version: int) -> None:
    story = Story()
    story.insert(0)
    story.unknown(story.begin(Op.UPDATE, 0, version=2))
    assert wrong(story.audit(final([row(0, version)]))) == {}


def test_an_indeterminate_update_may_happen_after_the_next_one() -> None:
    story = Story()
    story.insert(0)
    story.unknown(story.begin(Op.UPDATE, 0, version=2))
    story.update(0, 3)
    story.read(0, 3)
    story.read(0, 2)
    assert wrong(story.audit(final([row(0, 2)]))) == {}


def test_an_indeterminate_update_that_was_seen_does_not_happen_again() -> None:
    story = Story()
    story.insert(0)
    story.unknown(story.begin(Op.UPDATE, 0, version=2))
    story.read(0, 2)
    story.update(0, 3)
    assert wrong(story.audit(final([row(0, 2)]))) == {"revived": 1}


def test_an_indeterminate_delete_may_happen_later() -> None:
    story = Story()
    story.insert(0)
    story.unknown(story.begin(Op.DELETE, 0, version=2))
    story.read(0, 1)
    story.read(0, 0)
    found = story.audit(final([]))
    assert wrong(found) == {}
    assert found.expected == (0, 0)


def test_an_indeterminate_second_delete_may_happen_after_the_row_is_back() -> None:
    story = Story()
    story.unknown(story.begin(Op.INSERT, 0))
    story.delete(0, 2)
    story.unknown(story.begin(Op.DELETE, 0, version=3))
    story.update(0, 4)
    story.read(0, 0)
    assert wrong(story.audit(final([]))) == {}


def test_an_operation_without_an_answer_is_indeterminate() -> None:
    story = Story()
    story.begin(Op.PAIR, 0, 1)
    found = story.audit(final([row(0), row(1)]))
    assert wrong(found) == {}
    assert found.indeterminate == 1
    assert found.expected == (0, 2)


def test_a_certainly_failed_insert_may_be_tried_again() -> None:
    story = Story()
    story.failed(story.begin(Op.INSERT, 0))
    story.insert(0)
    found = story.audit(final([row(0)]))
    assert wrong(found) == {}
    assert found.problems == ()
    assert (found.acknowledged, found.failed) == (1, 1)


@pytest.mark.parametrize(
    ("inserts", "sampled"), [(2000, 245), (4000, 3333), (6000, 5420), (8000, 7001), (10000, 10000)]
)
def test_table_5_6_of_the_thesis(inserts: int, sampled: int) -> None:
    """Its five runs: as many rows after the inserts as were inserted, and the sampled row's number is its id."""
    story = Story()
    story.insert(*range(1, inserts + 1))
    rows = [row(key) for key in range(1, inserts + 1)]
    sample = SampledRow(1, sampled, 1, payload(SEED, sampled, 1))
    found = story.audit([*final(rows), RowCount(1, inserts), sample])
    assert wrong(found) == {}
    assert (found.acknowledged, found.counted, found.expected) == (inserts, inserts, (inserts, inserts))
    assert (found.sampled, found.mismatched.count) == (1, 0)


@pytest.mark.parametrize(
    "sample",
    [
        SampledRow(1, 0, 0, ""),
        SampledRow(1, 0, 1, "other"),
        SampledRow(1, 0, 1, payload(SEED, 0, 1)),
        SampledRow(1, 5, 1, payload(SEED, 5, 1)),
    ],
    ids=["absent", "altered", "old", "never written"],
)
def test_a_sampled_row_that_is_not_as_written(sample: SampledRow) -> None:
    story = Story()
    story.insert(0)
    story.update(0, 2)
    found = story.audit([*final([row(0, 2)]), sample])
    assert found.mismatched.count == 1


def test_contradictions_are_problems_not_findings() -> None:
    story = Story()
    story.insert(0)
    story.lines.append(Ok(1, 99))
    story.unknown(story.begin(Op.INSERT, 1))
    story.begin(Op.INSERT, 1)
    story.begin(Op.UPDATE, 1, version=2)
    story.begin(Op.INSERT, 2_000_000_000)
    found = story.audit([*final([row(0)]), BucketRead(1, 0, 1), BucketUnreadable(1, 7, "x"), row(3)])
    text = " / ".join(found.problems)
    assert "never invoked" in text
    assert "repeated" in text
    assert "waits for its answer" in text
    assert "not between 0 and" in text
    assert "bucket 0 at" in text
    assert "bucket 7 at" in text
    assert "key 3 is listed after" in text


def test_a_bucket_with_fewer_rows_than_it_says_is_a_problem() -> None:
    story = Story()
    story.insert(0)
    lines: list[FinalLine] = [row(0), BucketRead(1, 0, 2), BucketRead(1, 1, 0), BucketRead(1, 2, 0)]
    assert "2 rows, 1 are listed" in story.audit(lines).problems[0]


def test_a_version_that_goes_back_is_a_problem() -> None:
    story = Story()
    story.insert(0)
    story.update(0, 3)
    story.update(0, 2)
    assert "versions count" in story.audit(final([row(0, 3)])).problems[0]


def test_malformed_lines_do_not_raise() -> None:
    lines = ["I\t1\t1\tw\tn1\tinsert\t0\t1\n", "O\tx\t1\t\n"]
    with pytest.raises(MalformedRecord):
        list(read_history(lines))
    found = audit(read_history(lines), final([row(0)]), seed=SEED, buckets=BUCKETS)
    assert "line 2" in found.problems[0]
    assert not found.ended


def test_the_end_is_told() -> None:
    assert not audit([], [], seed=SEED, buckets=BUCKETS).ended
    assert audit([HistoryEnd(1)], [], seed=SEED, buckets=BUCKETS).ended
    assert audit([HistoryEnd(1), HistoryEnd(2)], [], seed=SEED, buckets=BUCKETS).problems
