"""Commits that are queued: packed, answered by id, done once, refused for good (H1, H7, H30)."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from lakebed.backends.memory import MemoryJobTracker, MemoryTransactionLog
from lakebed.errors import ConflictError, JobIdReusedError, UnavailableError
from lakebed.feed_errors import PositionMovedError
from lakebed.model.names import JobId, TableId
from lakebed.ports.job_queue import Message
from lakebed.ports.job_tracker import JobReport
from lakebed.statestore.answers import Retry
from lakebed.statestore.committer import RETRY_SECONDS, Committer, answers_of
from lakebed.statestore.head import TableHead
from lakebed.statestore.log_entries.file_changes import AddFiles, ClaimFiles, RaiseFloor
from lakebed.statestore.log_entries.transactions import Transaction
from lakebed.statestore.snapshots import Snapshots
from tests.dsl.commit_queue_story import TABLE, CommitQueueStory, queued
from tests.dsl.table_story import next_position


def test_commits_that_wait_go_into_one_entry_and_each_job_is_told() -> None:
    commits = CommitQueueStory()
    appended = commits.table.log.appended
    commits.given_sent(commits.adding("a"), commits.adding("b"))
    commits.given_sent(commits.adding("c"))
    assert commits.committer.run(batches_max=10) == 3
    assert commits.table.log.appended == appended + 1
    report = commits.report_of("b")
    assert (report.event, report.number, report.run) == ("committed", 2, "run-1")
    assert report.rows_per_second == 10
    assert commits.events("a", "c") == ["committed", "committed"]
    assert commits.queue.depth() == (0, 0)
    assert commits.table.summary() == "all\n  a  1 rows\n  b  1 rows\n  c  1 rows"


def test_a_refused_commit_does_no_harm_to_its_neighbours() -> None:
    commits = CommitQueueStory()
    bad = commits.table.transaction(AddFiles(()), id_="bad", generation=7)
    commits.given_sent(commits.adding("a"), bad, commits.adding("b"))
    commits.committer.run(batches_max=1)
    assert commits.events("a", "bad", "b") == ["committed", "failed", "committed"]
    assert commits.report_of("bad").reason.startswith("generation")
    assert commits.report_of("bad").number == 0


def test_a_refusal_is_told_with_its_facts() -> None:
    commits = CommitQueueStory()
    a = commits.adding("a")
    commits.given_sent(a, commits.table.transaction(a.changes[0], id_="again"))
    commits.committer.run(batches_max=1)
    assert "file=" in commits.report_of("again").reason


def test_a_message_that_comes_again_is_done_once_and_answered_the_same() -> None:
    commits = CommitQueueStory()
    a = commits.adding("a")
    for _ in range(2):
        commits.given_sent(a)
    other = commits.another_committer()
    commits.committer.step()
    first = commits.report_of("a")
    commits.given_sent(a, commits.adding("b"))
    other.step()
    assert commits.report_of("a").number == first.number == 2
    assert commits.table.summary() == "all\n  a  1 rows\n  b  1 rows"


def test_a_committer_that_dies_before_it_deletes_harms_nobody() -> None:
    commits = CommitQueueStory()
    commits.given_sent(commits.adding("a"))
    (message,) = commits.queue.receive(messages_max=1, hidden_seconds=1)
    commits.queue.extend(message.receipt, hidden_seconds=0)
    commits.committer.step()
    commits.queue.send([Message(message.body)])
    assert commits.committer.step() == 1
    assert commits.table.summary() == "all\n  a  1 rows"


def test_two_committers_of_one_table_hold_the_same_message_at_once() -> None:
    commits = CommitQueueStory()
    a, b = commits.adding("a"), commits.adding("b")
    commits.given_sent(a, b)
    second = commits.another_committer()

    def meanwhile() -> None:
        commits.when_messages_come_again()
        commits.given_sent(commits.adding("c"), a)
        assert second.run(batches_max=5) == 4

    commits.table.log.appends = [meanwhile]
    assert commits.committer.step() == 2
    assert [commits.report_of(job).number for job in ("a", "b", "c")] == [2, 2, 2]
    assert commits.table.summary() == "all\n  a  1 rows\n  b  1 rows\n  c  1 rows"


def test_direct_commits_go_on_beside_the_committer() -> None:
    commits = CommitQueueStory()
    commits.given_sent(commits.adding("a"))
    direct = commits.adding("b")
    commits.table.log.appends = [lambda: commits.table.head.commit(direct)]
    commits.committer.step()
    assert commits.report_of("a").number == 3
    assert commits.table.summary() == "all\n  a  1 rows\n  b  1 rows"


def test_nobody_is_told_before_the_entry_is_in_the_log() -> None:
    commits = CommitQueueStory()
    commits.given_sent(commits.adding("a"))
    seen = []
    commits.table.log.appends = [lambda: seen.append(commits.tracker.last(TABLE, JobId("a")))]
    commits.committer.step()
    assert seen == [None]
    assert commits.events("a") == ["committed"]


def test_without_an_answer_nobody_is_told_and_the_message_comes_back() -> None:
    commits = CommitQueueStory()
    quick = commits.table.another_head(retry=Retry(seconds_max=0.0))
    commits.given_sent(commits.adding("a"))
    commits.table.log.appends = ["late"] * 2
    assert commits.another_committer(quick).step() == 0
    assert commits.tracker.last(TABLE, JobId("a")) is None
    assert commits.queue.depth() == (1, 0)
    commits.table.log.deliver()
    commits.when_messages_come_again()
    assert commits.committer.step() == 1
    assert commits.report_of("a").number == 2
    assert commits.table.summary() == "all\n  a  1 rows"


def test_a_commit_behind_an_entry_of_time_without_an_answer_comes_back() -> None:
    """Log time is told first, in an entry of its own: what becomes of that refuses nobody."""
    commits = CommitQueueStory()
    commits.clock.advance(3 * 86_400)
    clock, retry = commits.clock.machine(0), Retry(seconds_max=0.0)
    head = commits.table.another_head(clock=clock, retry=retry)
    commits.given_sent(commits.adding("a"))
    commits.table.log.appends = ["late"]
    assert commits.another_committer(head).step() == 0
    assert commits.tracker.last(TABLE, JobId("a")) is None
    commits.table.log.deliver()
    commits.when_messages_come_again()
    assert commits.another_committer(head).step() == 1
    assert commits.events("a") == ["committed"]
    assert commits.table.summary() == "all\n  a  1 rows"


def test_a_commit_whose_log_is_missing_comes_back_until_the_log_is_restored() -> None:
    """A committer without a cache sees an empty log: that is no refusal, and begins no log."""
    commits = CommitQueueStory()
    commits.given_sent(commits.adding("a"))
    missing = MemoryTransactionLog(commits.clock)
    assert commits.another_committer(commits.table.another_head(log=missing)).step() == 0
    assert commits.tracker.last(TABLE, JobId("a")) is None
    assert missing.newest() == 0
    commits.when_messages_come_again()
    assert commits.committer.step() == 1
    assert commits.events("a") == ["committed"]


def claim(commits: CommitQueueStory, job: str, *files: str) -> Transaction:
    names = tuple(map(commits.table.file, files))
    change = ClaimFiles(JobId(job), commits.table.partitions["all"], names)
    return commits.table.transaction(change, id_=job)


def test_a_refusal_stays_a_refusal_when_what_refused_it_is_gone() -> None:
    """The files are free again when the message is delivered a second time."""
    commits = CommitQueueStory()
    commits.table.given_files("all", a=1, b=1)
    late = claim(commits, "late", "a", "b")
    commits.table.when_claimed("first", "all", "a", "b")
    commits.given_sent(late)
    commits.given_sent(late)
    (one,) = commits.queue.receive(messages_max=1, hidden_seconds=5)
    commits.queue.delete(one.receipt)
    commits.committer.step()
    assert commits.events("late") == ["failed"]
    commits.table.when_given_up("first")
    commits.queue.send([Message(one.body)])
    commits.committer.step()
    assert commits.events("late") == ["rejected"]
    with pytest.raises(JobIdReusedError):
        commits.table.head.commit(late)
    assert commits.table.summary() == "all\n  a  1 rows\n  b  1 rows"


def test_a_refusal_that_another_committer_turned_into_a_success_is_none() -> None:
    """Both hold the message; the files were free for the second, a moment later."""
    commits = CommitQueueStory()
    commits.table.given_files("all", a=1)
    late = claim(commits, "late", "a")
    commits.table.when_claimed("first", "all", "a")
    head, other = commits.table.another_head(), commits.table.another_head()

    def meanwhile() -> None:
        commits.table.when_given_up("first")
        assert isinstance(other.commit(late), int)

    commits.table.log.appends = [meanwhile]
    (answer,) = answers_of(head, [late])
    assert answer == other.commit(late)


def test_a_refused_position_is_refused_for_good() -> None:
    commits = CommitQueueStory()
    story = commits.table
    first = next_position("source", None, 10)
    second = next_position("source", first.value, 20)
    story.head.commit(story.transaction(positions=[first]))
    third = next_position("source", second.value, 30)
    late = story.transaction(id_="late", positions=[third])
    (answer,) = answers_of(story.another_head(), [late])
    assert isinstance(answer, ConflictError)
    story.head.commit(story.transaction(positions=[second]))
    (again,) = answers_of(story.another_head(), [late])
    assert isinstance(again, JobIdReusedError)


def test_a_position_that_was_passed_needs_no_entry_to_stay_refused() -> None:
    commits = CommitQueueStory()
    story = commits.table
    first = next_position("source", None, 10)
    story.head.commit(story.transaction(positions=[first]))
    late = story.transaction(id_="late", positions=[next_position("source", None, 20)])
    appended = story.log.appended
    (answer,) = answers_of(story.another_head(), [late])
    assert isinstance(answer, PositionMovedError)
    assert story.log.appended == appended


def test_a_stalled_committer_wakes_after_snapshot_truncation_and_floor(tmp_path: Path) -> None:
    """It had read the head; meanwhile its entry's number was taken, and the log emptied of it."""
    commits = CommitQueueStory()
    story = commits.table
    a = commits.adding("a", user=True)
    stalled = story.another_head(snapshots=story_snapshots(commits, tmp_path))
    stalled.follow()
    commits.given_sent(a)
    second = commits.another_committer()

    def meanwhile() -> None:
        commits.when_messages_come_again()
        second.step()
        commits.clock.advance(3 * 86_400)
        for _ in range(2):
            head = story.state.head()
            floor = RaiseFloor(head.number)
            story.head.commit(story.transaction(floor))
            snapshots = story_snapshots(commits, tmp_path)
            with story.head.reading() as state:
                snapshots.write(state)
            snapshots.truncate(story.log)

    story.log.appends = [meanwhile]
    commits.another_committer(stalled).step()
    assert commits.report_of("a").event == "committed"
    assert commits.report_of("a").number == 2
    assert story.summary() == "all\n  a  1 rows"


def story_snapshots(commits: CommitQueueStory, scratch: Path) -> Snapshots:
    return Snapshots(TABLE, commits.table.objects, scratch=scratch)


class DeafTracker(MemoryJobTracker):
    """Hears nothing the first time."""

    deaf = True

    def report_many(self, reports: Sequence[JobReport]) -> None:
        if self.deaf:
            self.deaf = False
            raise UnavailableError("busy")
        super().report_many(reports)


def test_who_could_not_be_told_is_told_when_the_message_comes_back() -> None:
    commits = CommitQueueStory()
    commits.tracker = DeafTracker()
    committer = commits.another_committer()
    commits.given_sent(commits.adding("a"), commits.adding("b"))
    assert committer.step() == 0
    commits.when_messages_come_again()
    assert committer.step() == 2
    assert [commits.report_of(job).number for job in "ab"] == [2, 2]


def test_commits_of_an_id_that_was_used_for_another_request_are_rejected() -> None:
    commits = CommitQueueStory()
    a = commits.adding("a")
    commits.given_sent(a)
    commits.committer.step()
    other = msgspec.structs.replace(commits.adding("b"), id=a.id)
    commits.given_sent(other)
    commits.committer.step()
    assert commits.report_of("a").event == "rejected"
    assert commits.table.head.commit(a) == 2


def beside_a_bad_table(error: Exception) -> tuple[CommitQueueStory, Committer]:
    """Return a queue with a message of a table whose state raises an error, and one of another."""
    commits = CommitQueueStory()
    stores = {"objects": commits.objects, "tracker": commits.tracker, "clock": commits.clock}

    def heads(table: TableId) -> TableHead:
        if table == "bad":
            raise error
        return commits.table.another_head()

    committer = Committer(queue=commits.queue, heads=heads, **stores)
    commits.send.run(TableId("bad"), [queued(commits.table.transaction(AddFiles(()), id_="x"))])
    commits.given_sent(commits.adding("a"))
    return commits, committer


def test_one_table_s_damage_does_not_hold_up_the_others() -> None:
    commits, committer = beside_a_bad_table(UnavailableError("its state cannot be opened"))
    assert committer.step() == 1
    assert commits.queue.depth() == (1, 0)


def test_a_bug_of_one_table_is_raised_when_the_others_are_answered() -> None:
    commits, committer = beside_a_bad_table(TypeError("a bug"))
    with pytest.raises(TypeError, match="a bug"):
        committer.step()
    assert commits.queue.depth() == (1, 0)
    assert commits.report_of("a").event == "committed"


class CountingTracker(DeafTracker):
    """Remembers how many reports came together."""

    def __init__(self, *, deaf: bool) -> None:
        super().__init__()
        self.deaf = deaf
        self.together: list[int] = []

    def report_many(self, reports: Sequence[JobReport]) -> None:
        self.together.append(len(reports))
        super().report_many(reports)


def two_tables(tracker: CountingTracker) -> tuple[CommitQueueStory, Committer]:
    """Return a queue with messages of two tables, and a committer of both."""
    commits, other = CommitQueueStory(), CommitQueueStory()
    own = {TABLE: commits.table.another_head(), TableId("t2"): other.table.another_head()}
    committer = Committer(
        queue=commits.queue,
        objects=commits.objects,
        heads=own.__getitem__,
        tracker=tracker,
        clock=commits.clock,
    )
    commits.tracker = tracker
    commits.given_sent(commits.adding("a"))
    commits.send.run(TableId("t2"), [queued(other.adding("b"))])
    commits.given_sent(commits.adding("c"))
    return commits, committer


def test_answers_of_all_tables_of_a_batch_are_told_together() -> None:
    tracker = CountingTracker(deaf=False)
    commits, committer = two_tables(tracker)
    assert committer.step() == 3
    assert tracker.together == [3]
    assert commits.events("a", "c") == ["committed", "committed"]
    told = tracker.last(TableId("t2"), JobId("b"))
    assert told is not None
    assert (told.event, told.number) == ("committed", 2)
    assert commits.queue.depth() == (0, 0)


def test_no_message_of_any_table_is_deleted_before_its_answers_are_told() -> None:
    tracker = CountingTracker(deaf=True)
    commits, committer = two_tables(tracker)
    assert committer.step() == 0
    assert commits.queue.depth() == (3, 0)
    commits.clock.advance(RETRY_SECONDS + 1)
    assert committer.step() == 3
    assert commits.queue.depth() == (0, 0)
    assert [commits.report_of(job).number for job in ("a", "c")] == [2, 2]


def test_why_a_message_comes_back_is_told(caplog: pytest.LogCaptureFixture) -> None:
    commits = CommitQueueStory()
    quick = commits.table.another_head(retry=Retry(seconds_max=0.0))
    commits.given_sent(commits.adding("a"))
    commits.table.log.appends = ["throttled"] * 2
    with caplog.at_level("INFO", logger="lakebed"):
        assert commits.another_committer(quick).step() == 0
    assert "code=unavailable" in caplog.text
    assert commits.queue.depth() == (1, 0)
