"""Identity and group commit: what is sent again is done once (H1, H5, H7), and how long a commit
tries (H8); an entry goes behind the one that was applied (H33)."""

import threading

import pytest

from lakebed.errors import (
    ConflictError,
    InvalidError,
    JobIdReusedError,
    LakebedError,
    LogConflictError,
    LogRolledBackError,
    TableExistsError,
)
from lakebed.model.names import JobId, TransactionNumber
from lakebed.statestore.log_entries.file_changes import AddFiles, ClaimFiles, ReleaseClaim
from lakebed.statestore.log_entries.table_changes import create_table
from lakebed.statestore.log_entries.transactions import Transaction
from tests.dsl import TableStory
from tests.dsl.table_story import SCHEMA


def adding(
    story: TableStory,
    name: str,
    *,
    id_: str | None = None,
    digest: str | None = None,
    base: int | None = None,
) -> Transaction:
    files = AddFiles(story.new_files("all", **{name: 1}))
    return story.transaction(files, id_=id_, digest=digest, base=base)


def test_the_same_commit_again_answers_with_its_number_and_writes_nothing() -> None:
    story = TableStory()
    transaction = adding(story, "a")
    number = story.head.commit(transaction)
    appended = story.log.appended
    assert story.head.commit(transaction) == number
    assert story.another_head().commit(transaction) == number
    assert story.log.appended == appended


def test_a_commit_redelivered_in_another_group_is_done_once() -> None:
    story = TableStory()
    a, b = adding(story, "a"), adding(story, "b")
    (number,) = story.head.commit_group([a])
    assert story.another_head().commit_group([b, a]) == [number + 1, number]


def test_a_commit_twice_in_one_group_is_done_once_and_answered_twice() -> None:
    story = TableStory()
    a = adding(story, "a")
    assert story.head.commit_group([a, a]) == [2, 2]
    assert story.summary() == "all\n  a  1 rows"


def test_an_id_used_for_another_request_is_refused() -> None:
    story = TableStory()
    story.head.commit(adding(story, "a", id_="daily", digest="monday"))
    with pytest.raises(JobIdReusedError, match="with the day in it"):
        story.head.commit(adding(story, "b", id_="daily", digest="tuesday"))
    assert story.summary() == "all\n  a  1 rows"


def test_an_id_used_for_two_requests_of_one_group_stands_for_the_first() -> None:
    story = TableStory()
    first = adding(story, "a", id_="daily", digest="monday")
    second = adding(story, "b", id_="daily", digest="tuesday")
    answers = story.head.commit_group([first, second])
    assert answers[0] == 2
    assert isinstance(answers[1], JobIdReusedError)


def test_a_group_is_one_entry() -> None:
    story = TableStory()
    appended = story.log.appended
    group = [adding(story, name) for name in "abc"]
    assert story.head.commit_group(group) == [2, 2, 2]
    assert story.log.appended == appended + 1


def test_an_empty_group_is_no_entry() -> None:
    story = TableStory()
    assert story.head.commit_group([]) == []
    assert story.state.head().number == 1


def test_a_refused_member_does_not_harm_its_neighbours() -> None:
    story = TableStory()
    group = [adding(story, "a"), story.transaction(ReleaseClaim(JobId("none"))), adding(story, "b")]
    answers = story.head.commit_group(group)
    assert [answers[0], answers[2]] == [2, 2]
    assert isinstance(answers[1], ConflictError)
    assert story.summary() == "all\n  a  1 rows\n  b  1 rows"


def test_a_member_refused_halfway_leaves_nothing_of_itself() -> None:
    story = TableStory()
    half = story.transaction(AddFiles(story.new_files("all", a=1)), ReleaseClaim(JobId("none")))
    answers = story.head.commit_group([half, adding(story, "b")])
    assert isinstance(answers[0], ConflictError)
    assert story.summary() == "all\n  b  1 rows"
    assert story.another_head().state.head().number == 0


def test_members_are_checked_in_order_against_those_before_them() -> None:
    story = TableStory()
    story.given_files("all", a=1)
    claims = [
        story.transaction(ClaimFiles(JobId(job), story.partitions["all"], (story.file("a"),)))
        for job in ("one", "two")
    ]
    answers = story.head.commit_group(claims)
    assert answers[0] == 3
    assert isinstance(answers[1], ConflictError)
    assert story.summary() == "all\n  a  1 rows  one"


@pytest.mark.parametrize("before", [[], ["throttled"]], ids=["first try", "after reading"])
def test_a_refusal_that_rests_on_a_neighbour_whose_append_loses_is_no_answer(
    before: list[str],
) -> None:
    story = TableStory()
    story.given_files("all", a=1)
    one, two = (
        story.transaction(ClaimFiles(JobId(job), story.partitions["all"], (story.file("a"),)))
        for job in ("one", "two")
    )
    other = story.another_head(log=story.log.log)

    taken = story.transaction(AddFiles(()), id_=one.id, digest="another request")
    story.log.appends = [*before, lambda: other.commit(taken)]  # now `one` is refused, `two` is not
    answers = story.head.commit_group([one, two])
    assert isinstance(answers[0], JobIdReusedError)
    assert answers[1] == 4
    assert story.summary() == "all\n  a  1 rows  two"


def test_nobody_is_answered_before_the_entry_is_in_the_log() -> None:
    story = TableStory()
    story.given_files("all", a=1)
    group = [
        story.transaction(ClaimFiles(JobId(job), story.partitions["all"], (story.file("a"),)))
        for job in ("one", "two")
    ]
    story.log.appends = ["throttled"] * 10_000
    answers = story.head.commit_group(group)
    assert all(isinstance(a, LakebedError) and not isinstance(a, InvalidError) for a in answers)
    assert [type(a).__name__ for a in answers] == ["UnavailableError", "UnavailableError"]


def test_a_table_is_created_once_even_in_one_group() -> None:
    story = TableStory()
    head = story.another_head(log=type(story.log)(type(story.log.log)(story.clock)))
    twice = [
        story.transaction(create_table(SCHEMA, {}, ()), base=0, generation=generation)
        for generation in (0, 1)
    ]
    answers = head.commit_group(twice)
    assert answers[0] == 1
    assert isinstance(answers[1], TableExistsError)


def test_the_first_try_does_not_read_the_log() -> None:
    story = TableStory()
    before = story.log.read
    story.given_files("all", a=1)
    assert story.log.read == before


def test_a_head_that_is_behind_commits_after_reading() -> None:
    story = TableStory()
    behind = story.another_head()
    behind.follow()
    story.given_files("all", a=1)
    assert story.when_committed(AddFiles(story.new_files("all", b=1)), head=behind) == 3


def test_a_refusal_rests_on_a_log_that_was_read_to_its_end() -> None:
    story = TableStory()
    story.given_files("all", a=1)
    behind = story.another_head()
    behind.follow()
    story.when_claimed("job", "all", "a")
    number = behind.commit(story.transaction(ReleaseClaim(JobId("job"))))  # unknown to it at first
    assert number == 4


def test_others_winning_for_ever_ends_as_a_conflict_at_the_deadline() -> None:
    story = TableStory()
    other = story.another_head(log=story.log.log)

    def lose() -> None:
        other.commit(story.transaction(AddFiles(())))
        story.clock.advance(11)

    story.log.appends = [lose] * 100
    begun = story.clock.monotonic()
    with pytest.raises(LogConflictError):
        story.given_files("all", a=1)
    assert 60 <= story.clock.monotonic() - begun < 75


def test_an_entry_goes_behind_the_one_that_was_applied_and_behind_no_other() -> None:
    story = TableStory()
    first = next(story.log.log.read_after(TransactionNumber(0)))
    story.given_files("all", a=1)
    restored = type(story.log.log)(story.clock)
    restored.append(*first)
    story.another_head(log=restored).commit(story.transaction(AddFiles(()), base=1))
    story.log.log = restored
    with pytest.raises(LogRolledBackError):
        story.head.commit(adding(story, "c"))
    assert restored.newest() == 2


def test_new_files_must_carry_the_base_of_their_commit() -> None:
    story = TableStory()
    with pytest.raises(AssertionError, match="base"):
        story.head.commit(adding(story, "a", base=0))


def test_threads_share_a_head() -> None:
    story = TableStory()
    transactions = [adding(story, f"f{i}") for i in range(40)]
    answers: list[int] = []
    threads = [
        threading.Thread(target=lambda t: answers.append(story.head.commit(t)), args=(t,))
        for t in transactions
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == list(range(2, 42))
