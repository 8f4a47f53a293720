"""Truth about outcomes: the outcome of a commit is the weakest of its tries (H2, H3);
when it is tried again (H8)."""

import sqlite3

import msgspec
import pytest

from lakebed.errors import (
    ConflictError,
    CorruptError,
    FencedError,
    InvalidError,
    LakebedError,
    LogConflictError,
    NewerFormatError,
    UnavailableError,
    UnknownOutcomeError,
)
from lakebed.model.names import JobId, TransactionNumber
from lakebed.statestore.answers import Retry
from lakebed.statestore.log_entries.codec import ENTRY_FORMAT
from lakebed.statestore.log_entries.file_changes import AddFiles, ClaimFiles, RaiseFloor
from lakebed.statestore.log_entries.transactions import Transaction
from tests.dsl import TableStory

FOR_EVER = 100_000


def adding(story: TableStory, name: str) -> Transaction:
    return story.transaction(AddFiles(story.new_files("all", **{name: 1})))


def outcome(story: TableStory, transaction: Transaction) -> LakebedError:
    with pytest.raises(LakebedError) as caught:
        story.head.commit(transaction)
    return caught.value


def test_an_unanswered_try_that_landed_is_found_by_its_id() -> None:
    story = TableStory()
    story.log.appends = ["unanswered"]
    assert story.given_files("all", a=1) == 2
    assert story.log.appended == 2  # the creation, and one try


def test_a_lost_try_is_sent_again() -> None:
    story = TableStory()
    story.log.appends = ["lost", "lost"]
    assert story.given_files("all", a=1) == 2


def test_taken_may_be_our_own_earlier_try() -> None:
    story = TableStory()
    story.log.appends = ["own try"]
    assert story.given_files("all", a=1) == 2
    assert story.summary() == "all\n  a  1 rows"


def test_a_late_try_and_its_repetition_are_one_commit() -> None:
    story = TableStory()
    story.log.appends = ["late"]
    story.log.reads = [story.log.deliver]
    assert story.given_files("all", a=1) == 2
    assert story.log.appended == 2


def test_a_late_try_that_comes_after_its_repetition_changes_nothing() -> None:
    story = TableStory()
    story.log.appends = ["late"]
    assert story.given_files("all", a=1) == 2
    story.log.deliver()
    assert story.another_head().commit(adding(story, "b")) == 3


def test_unanswered_then_throttled_is_not_nothing_was_written() -> None:
    story = TableStory()
    story.log.appends = ["late", *["throttled"] * FOR_EVER]
    transaction = adding(story, "a")
    assert isinstance(outcome(story, transaction), UnknownOutcomeError)
    story.log.deliver()
    story.log.appends.clear()
    assert story.head.commit(transaction) == 2


def test_unanswered_then_an_unreadable_log_is_unknown() -> None:
    story = TableStory()
    story.log.appends, story.log.reads = ["unanswered"], ["throttled"] * FOR_EVER
    assert isinstance(outcome(story, adding(story, "a")), UnknownOutcomeError)


def test_never_sent_is_told_as_unavailable() -> None:
    story = TableStory()
    story.log.appends = ["throttled"] * FOR_EVER
    assert isinstance(outcome(story, adding(story, "a")), UnavailableError)
    assert not list(story.log.log.read_after(TransactionNumber(1)))


def test_an_unreadable_log_is_told_as_unavailable() -> None:
    story = TableStory()
    story.log.appends = ["throttled"]
    story.log.reads = ["throttled"] * FOR_EVER
    assert isinstance(outcome(story, adding(story, "a")), UnavailableError)


def test_no_answers_until_the_deadline_is_unknown() -> None:
    story = TableStory()
    story.head = story.another_head(retry=Retry(jitter_seconds=1))
    story.head.follow()
    story.log.appends = ["lost"] * FOR_EVER
    begun = story.clock.monotonic()
    assert isinstance(outcome(story, adding(story, "a")), UnknownOutcomeError)
    assert 60 <= story.clock.monotonic() - begun < 63


def test_at_the_deadline_the_log_is_read_once_more() -> None:
    story = TableStory()
    story.head = story.another_head(retry=Retry(seconds_max=0))
    story.head.follow()
    story.log.appends = ["unanswered"]
    assert story.given_files("all", a=1) == 2


def test_a_number_that_another_took_resolves_a_try_without_answer() -> None:
    story = TableStory()
    other = story.another_head(log=story.log.log)
    rival = adding(story, "rival")
    story.log.appends = ["late", *["throttled"] * FOR_EVER]
    story.log.reads = [lambda: other.commit(rival)]
    error = outcome(story, adding(story, "a"))
    assert isinstance(error, (ConflictError, UnavailableError))
    story.log.deliver()
    assert story.summary() == "all\n  rival  1 rows"


def test_a_refusal_after_the_number_was_read_as_taken_is_told() -> None:
    story = TableStory()
    story.given_files("all", a=1)
    other = story.another_head(log=story.log.log)
    claims = [
        story.transaction(ClaimFiles(JobId(j), story.partitions["all"], (story.file("a"),)))
        for j in ("ours", "theirs")
    ]
    story.log.appends = ["late"]
    story.log.reads = [lambda: other.commit(claims[1])]
    error = outcome(story, claims[0])
    assert type(error) is ConflictError
    story.log.deliver()
    assert story.summary() == "all\n  a  1 rows  theirs"


def test_a_member_without_answer_is_not_refused_because_of_a_neighbour() -> None:
    story = TableStory()
    story.given_files("all", a=1)
    one, two = (
        story.transaction(ClaimFiles(JobId(j), story.partitions["all"], (story.file("a"),)))
        for j in ("one", "two")
    )
    story.log.appends = ["late", *["throttled"] * FOR_EVER]
    answers = story.head.commit_group([one, two])
    assert isinstance(answers[0], UnknownOutcomeError)
    assert isinstance(answers[1], (ConflictError, UnavailableError))
    story.log.deliver()
    assert story.summary() == "all\n  a  1 rows  one"


def test_a_commit_that_landed_and_was_forgotten_by_the_floor_is_not_called_refused() -> None:
    story = TableStory()
    other = story.another_head(log=story.log.log)
    transaction = adding(story, "a")

    def forget() -> None:
        other.follow()
        other.commit(story.transaction(RaiseFloor(TransactionNumber(2)), base=2))

    story.log.appends, story.log.reads = ["unanswered"], [forget]
    assert story.head.commit(transaction) == 2
    assert (
        story.state.landed((transaction.id,)).number_of(transaction.id, transaction.digest) is None
    )


def test_a_commit_that_lost_to_the_floor_is_fenced() -> None:
    story = TableStory()
    other = story.another_head(log=story.log.log)
    transaction = adding(story, "a")

    def forget() -> None:
        other.follow()
        other.commit(adding(story, "b"))
        other.commit(story.transaction(RaiseFloor(TransactionNumber(2)), base=2))

    story.log.appends, story.log.reads = ["lost"], [forget]
    assert isinstance(outcome(story, transaction), FencedError)


def test_a_forgotten_commit_whose_entry_is_gone_is_unknown() -> None:
    story = TableStory()
    other = story.another_head(log=story.log.log)
    transaction = adding(story, "a")

    def forget() -> None:
        other.follow()
        other.commit(story.transaction(RaiseFloor(TransactionNumber(2)), base=2))

    def strip() -> None:
        story.log.truncate(TransactionNumber(3))

    story.log.appends, story.log.reads = ["unanswered"], [forget, strip]
    assert isinstance(outcome(story, transaction), UnknownOutcomeError)


@pytest.mark.parametrize(
    ("body", "kind"),
    [(bytes([ENTRY_FORMAT + 1, 0]), NewerFormatError), (b"\x01\x00rubbish", CorruptError)],
)
def test_an_unreadable_entry_does_not_hide_what_landed_before_it(
    body: bytes, kind: type[LakebedError]
) -> None:
    story = TableStory()
    story.log.appends = ["unanswered"]
    story.log.reads = [lambda: story.log.log.append(TransactionNumber(3), body)]
    transaction = adding(story, "a")
    assert isinstance(outcome(story, transaction), UnknownOutcomeError)
    assert story.head.commit(transaction) == 2  # the state has come as far as it can
    with pytest.raises(kind):
        story.head.follow()
    late = outcome(story, adding(story, "b"))  # "taken" may be our own try, and nobody can tell
    assert isinstance(late, UnknownOutcomeError)
    assert type(late.facts["reason"]) is kind


def test_answers_stand_when_the_state_cannot_keep_what_the_log_has() -> None:
    story = TableStory()
    real = story.state._run

    def full(statement: str, *values: object) -> object:
        if statement == "COMMIT":
            story.state._run = real
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        return real(statement, *values)

    story.state._run = full  # type: ignore[assignment]  # a disk that fills at one moment
    assert story.given_files("all", a=1) == 2
    assert story.state.head().number == 1
    assert story.summary() == "all\n  a  1 rows"


def test_what_was_read_before_a_read_was_cut_is_kept() -> None:
    story = TableStory()
    for name in "abcd":
        story.given_files("all", **{name: 1})
    reader = story.another_head()
    story.log.reads = [2, "throttled"]
    with pytest.raises(UnavailableError):
        reader.follow()
    assert reader.state.head().number == 2
    story.log.reads = [1, 1, 1]
    reader.follow()
    assert reader.state.digest() == story.state.digest()


def test_refused_and_nothing_sent_is_told_at_once() -> None:
    story = TableStory()
    appended = story.log.appended
    (reference,) = story.new_files("all", a=1)
    elsewhere = msgspec.structs.replace(reference, partition=99)
    with pytest.raises(InvalidError, match="no such partition"):
        story.when_committed(AddFiles((elsewhere,)))
    assert story.log.appended == appended


def test_a_conflict_is_tried_again_at_once_and_only_throttling_waits() -> None:
    story = TableStory()
    retry = Retry()
    waits = [retry.wait_seconds(LogConflictError(1), story.rng) for _ in range(50)]
    assert max(waits) <= 0.005
    waits = [retry.wait_seconds(UnavailableError("busy"), story.rng) for _ in range(50)]
    assert 0.1 < max(waits) <= 0.2
