"""Bad histories written by hand: each is found and named. Good ones are not accused."""

import pytest

from plugin.evidence.records import (
    FinalRow,
    Op,
    payload,
)
from plugin.judge.findings import EXAMPLES
from tests.plugin.judge.histories import SEED, Story, final, row, wrong


def test_a_clean_history_is_not_accused() -> None:
    story = Story()
    story.insert(0, 1, 2)
    story.pair(3, 4)
    story.update(1, 2)
    story.delete(2, 2)
    story.read(1, 2)
    story.read(2, 0)
    story.ok(story.begin(Op.READ_PAIR, 3, 4), 1, 1)
    found = story.audit(final([row(0), row(1, 2), row(3), row(4)]))
    assert wrong(found) == {}
    assert found.problems == ()
    assert (found.acknowledged, found.reads, found.indeterminate, found.failed) == (5, 3, 0, 0)
    assert found.expected == (4, 4)
    assert found.found == 4
    assert found.operations[Op.INSERT].acknowledged == 3
    assert found.ended
    assert (found.read, found.unreadable, found.unread) == ((0, 1, 2), (), ())


def test_lost() -> None:
    story = Story()
    story.insert(0, 1, 2)
    found = story.audit(final([row(0), row(2)]))
    assert wrong(found) == {"lost": 1}
    assert found.findings["lost"].examples == ("key 1: version 1 acknowledged at 0.0 s, absent at the end",)


def test_a_row_that_was_only_read_is_lost_too() -> None:
    story = Story()
    story.unknown(story.begin(Op.INSERT, 0))
    story.read(0, 1)
    found = story.audit(final([]))
    assert wrong(found) == {"lost": 1}
    assert "version 1 read at" in found.findings["lost"].examples[0]


def test_the_missing_half_of_an_acknowledged_pair_is_lost() -> None:
    story = Story()
    story.pair(0, 1)
    found = story.audit(final([row(0)]))
    assert wrong(found) == {"lost": 1}
    assert "its other half, key 0, is there" in found.findings["lost"].examples[0]


def test_every_row_counts_and_the_first_five_are_told() -> None:
    story = Story()
    story.insert(*range(20))
    found = story.audit(final([row(0)]))
    assert wrong(found) == {"lost": 19}
    assert len(found.findings["lost"].examples) == EXAMPLES


def test_duplicated() -> None:
    story = Story()
    story.insert(0, 1)
    found = story.audit(final([row(0), row(0), row(0), row(1)]))
    assert wrong(found) == {"duplicated": 1}


@pytest.mark.parametrize("key", [7, 10**12, -4])
def test_phantom_of_a_row_nobody_wrote(key: int) -> None:
    story = Story()
    story.insert(0)
    assert wrong(story.audit(final([row(0), row(key)]))) == {"phantom": 1}


def test_phantom_of_an_insert_that_certainly_failed() -> None:
    story = Story()
    story.failed(story.begin(Op.INSERT, 0))
    found = story.audit(final([row(0)]))
    assert wrong(found) == {"phantom": 1}
    assert found.expected == (0, 0)


def test_phantom_of_an_update_that_certainly_failed() -> None:
    story = Story()
    story.insert(0)
    story.failed(story.begin(Op.UPDATE, 0, version=2))
    story.update(0, 3)
    assert wrong(story.audit(final([row(0, 2)]))) == {"phantom": 1}


@pytest.mark.parametrize("version", [2, 9, 0])
def test_phantom_of_a_version_nobody_wrote(version: int) -> None:
    story = Story()
    story.insert(0)
    assert wrong(story.audit(final([row(0, version)]))) == {"phantom": 1}


def test_phantom_of_a_version_that_was_left_out() -> None:
    story = Story()
    story.insert(0)
    story.update(0, 3)
    assert wrong(story.audit(final([row(0, 2)]))) == {"phantom": 1}


@pytest.mark.parametrize("key", [0, 5, 5000])
def test_phantom_in_a_read(key: int) -> None:
    story = Story()
    story.insert(0)
    story.read(key, 3)
    assert wrong(story.audit(final([row(0)]))) == {"phantom": 1}


def test_a_read_of_a_write_that_then_certainly_failed_is_phantom() -> None:
    story = Story()
    story.insert(0)
    update = story.begin(Op.UPDATE, 0, version=2)
    story.read(0, 2)
    story.failed(update)
    found = story.audit(final([row(0)]))
    assert wrong(found) == {"phantom": 1}


def test_a_read_that_missed_a_row_whose_delete_then_failed_is_stale() -> None:
    story = Story()
    story.insert(0)
    delete = story.begin(Op.DELETE, 0, version=2)
    story.read(0, 0)
    story.failed(delete)
    assert wrong(story.audit(final([row(0)]))) == {"stale": 1}


def test_altered() -> None:
    story = Story()
    story.insert(0, 1)
    other = FinalRow(1, 1, payload(SEED, 0, 1))
    assert wrong(story.audit(final([row(0), other]))) == {"altered": 1}


def test_altered_in_a_read() -> None:
    story = Story()
    story.insert(0)
    story.read(0, -1)
    assert wrong(story.audit(final([row(0)]))) == {"altered": 1}


def test_revived_after_a_delete() -> None:
    story = Story()
    story.insert(0)
    story.delete(0, 2)
    found = story.audit(final([row(0)]))
    assert wrong(found) == {"revived": 1}
    assert "its delete acknowledged at" in found.findings["revived"].examples[0]


def test_revived_at_an_older_version() -> None:
    story = Story()
    story.insert(0)
    story.update(0, 2)
    assert wrong(story.audit(final([row(0, 1)]))) == {"revived": 1}


@pytest.mark.parametrize("seen", [0, 1])
def test_stale_after_an_acknowledgement(seen: int) -> None:
    story = Story()
    story.insert(0)
    story.update(0, 2)
    story.read(0, seen)
    assert wrong(story.audit(final([row(0, 2)]))) == {"stale": 1}


def test_stale_after_a_newer_read() -> None:
    story = Story()
    story.insert(0)
    update = story.begin(Op.UPDATE, 0, version=2)
    story.read(0, 2)
    story.read(0, 1)
    story.ok(update)
    assert wrong(story.audit(final([row(0, 2)]))) == {"stale": 1}


def test_stale_when_a_deleted_row_is_read() -> None:
    story = Story()
    story.insert(0)
    story.delete(0, 2)
    story.read(0, 1)
    assert wrong(story.audit(final([]))) == {"stale": 1}


def test_a_read_that_began_before_the_acknowledgement_may_miss_it() -> None:
    story = Story()
    insert = story.begin(Op.INSERT, 0)
    read = story.begin(Op.READ, 0)
    story.ok(insert)
    story.ok(read, 0)
    assert wrong(story.audit(final([row(0)]))) == {}


@pytest.mark.parametrize("acknowledged", [True, False])
def test_torn_in_a_read(acknowledged: bool) -> None:
    story = Story()
    pair = story.begin(Op.PAIR, 0, 1)
    if acknowledged:
        story.ok(pair)
    story.ok(story.begin(Op.READ_PAIR, 0, 1), 0, 1)
    found = story.audit(final([row(0), row(1)]))
    assert wrong(found) == {"torn": 1}
    assert "saw only its other half, key 1" in found.findings["torn"].examples[0]


@pytest.mark.parametrize("there", [0, 1])
def test_torn_at_the_end(there: int) -> None:
    story = Story()
    story.unknown(story.begin(Op.PAIR, 0, 1))
    assert wrong(story.audit(final([row(there)]))) == {"torn": 1}


def test_half_a_pair_that_certainly_failed_is_phantom_not_torn() -> None:
    story = Story()
    story.failed(story.begin(Op.PAIR, 0, 1))
    assert wrong(story.audit(final([row(0)]))) == {"phantom": 1}


def test_half_a_pair_may_have_been_deleted() -> None:
    story = Story()
    story.pair(0, 1)
    story.delete(0, 2)
    story.ok(story.begin(Op.READ_PAIR, 0, 1), 0, 1)
    assert wrong(story.audit(final([row(1)]))) == {}


def test_halves_of_a_failed_pair_that_are_inserted_singly_are_no_pair() -> None:
    story = Story()
    story.failed(story.begin(Op.PAIR, 0, 1))
    story.insert(0)
    story.ok(story.begin(Op.READ_PAIR, 0, 1), 1, 0)
    assert wrong(story.audit(final([row(0)]))) == {}


def test_unreadable() -> None:
    story = Story()
    story.insert(0, 1, 2, 3)
    story.unknown(story.begin(Op.INSERT, 6))
    found = story.audit(final([row(1), row(2)], unreadable=[0]))
    assert wrong(found) == {"unreadable": 2}
    assert "timeout after 60 s" in found.findings["unreadable"].examples[0]
    assert found.unreadable == (0,)


def test_never_read() -> None:
    story = Story()
    story.insert(0, 1, 2, 3)
    found = story.audit(final([row(1), row(2)], unread=[0]))
    assert wrong(found) == {"unknown": 2}
    assert found.unread == (0,)
    assert wrong(story.audit([])) == {"unknown": 4}
