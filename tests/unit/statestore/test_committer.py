"""Commits that are queued: packed, answered by id, done once, refused for good (H1, H7, H30)."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from lakebed.backends.memory import (
    MemoryJobTracker,
)
from lakebed.errors import ConflictError, JobIdReusedError, UnavailableError
from lakebed.model.names import JobId, TableId
from lakebed.ports.job_queue import Message
from lakebed.ports.job_tracker import JobReport
from lakebed.statestore.answers import Retry
from lakebed.statestore.committer import Committer, answers_of
from lakebed.statestore.head import TableHead
from lakebed.statestore.log_entries.file_changes import AddFiles, ClaimFiles, RaiseFloor
from lakebed.statestore.log_entries.transactions import PositionChange, Transaction
from lakebed.statestore.snapshots import Snapshots
from tests.dsl.commit_office import TABLE, Office, queued


def test_commits_that_wait_go_into_one_entry_and_each_job_is_told() -> None:
    office = Office()
    appended = office.story.log.appended
    office.given_sent(office.adding("a"), office.adding("b"))
    office.given_sent(office.adding("c"))
    assert office.committer.run(batches_max=10) == 3
    assert office.story.log.appended == appended + 1
    report = office.told("b")
    assert (report.event, report.number, report.run) == ("committed", 2, "run-1")
    assert report.rows_per_second == 10
    assert office.events("a", "c") == ["committed", "committed"]
    assert office.queue.depth() == (0, 0)
    assert office.story.picture() == "all\n  a  1 rows\n  b  1 rows\n  c  1 rows"


def test_a_refused_commit_does_no_harm_to_its_neighbours() -> None:
    office = Office()
    bad = office.story.transaction(AddFiles(()), id_="bad", generation=7)
    office.given_sent(office.adding("a"), bad, office.adding("b"))
    office.committer.run(batches_max=1)
    assert office.events("a", "bad", "b") == ["committed", "failed", "committed"]
    assert office.told("bad").reason.startswith("generation")
    assert office.told("bad").number == 0


def test_a_refusal_is_told_with_its_facts() -> None:
    office = Office()
    a = office.adding("a")
    office.given_sent(a, office.story.transaction(a.changes[0], id_="again"))
    office.committer.run(batches_max=1)
    assert "file=" in office.told("again").reason


def test_a_message_that_comes_again_is_done_once_and_answered_the_same() -> None:
    office = Office()
    a = office.adding("a")
    for _ in range(2):
        office.given_sent(a)
    other = office.another_committer()
    office.committer.step()
    first = office.told("a")
    office.given_sent(a, office.adding("b"))
    other.step()
    assert office.told("a").number == first.number == 2
    assert office.story.picture() == "all\n  a  1 rows\n  b  1 rows"


def test_a_committer_that_dies_before_it_deletes_harms_nobody() -> None:
    office = Office()
    office.given_sent(office.adding("a"))
    (message,) = office.queue.receive(messages_max=1, hidden_seconds=1)
    office.queue.extend(message.receipt, hidden_seconds=0)
    office.committer.step()
    office.queue.send([Message(message.body)])
    assert office.committer.step() == 1
    assert office.story.picture() == "all\n  a  1 rows"


def test_two_committers_of_one_table_hold_the_same_message_at_once() -> None:
    office = Office()
    a, b = office.adding("a"), office.adding("b")
    office.given_sent(a, b)
    second = office.another_committer()

    def meanwhile() -> None:
        office.when_messages_come_again()
        office.given_sent(office.adding("c"), a)
        assert second.run(batches_max=5) == 4

    office.story.log.appends = [meanwhile]
    assert office.committer.step() == 2
    assert [office.told(job).number for job in ("a", "b", "c")] == [2, 2, 2]
    assert office.story.picture() == "all\n  a  1 rows\n  b  1 rows\n  c  1 rows"


def test_direct_commits_go_on_beside_the_committer() -> None:
    office = Office()
    office.given_sent(office.adding("a"))
    direct = office.adding("b")
    office.story.log.appends = [lambda: office.story.head.commit(direct)]
    office.committer.step()
    assert office.told("a").number == 3
    assert office.story.picture() == "all\n  a  1 rows\n  b  1 rows"


def test_nobody_is_told_before_the_entry_is_in_the_log() -> None:
    office = Office()
    office.given_sent(office.adding("a"))
    seen = []
    office.story.log.appends = [lambda: seen.append(office.tracker.last(TABLE, JobId("a")))]
    office.committer.step()
    assert seen == [None]
    assert office.events("a") == ["committed"]


def test_without_an_answer_nobody_is_told_and_the_message_comes_back() -> None:
    office = Office()
    quick = office.story.another_head(retry=Retry(seconds_max=0.0))
    office.given_sent(office.adding("a"))
    office.story.log.appends = ["late"] * 2
    assert office.another_committer(quick).step() == 0
    assert office.tracker.last(TABLE, JobId("a")) is None
    assert office.queue.depth() == (1, 0)
    office.story.log.deliver()
    office.when_messages_come_again()
    assert office.committer.step() == 1
    assert office.told("a").number == 2
    assert office.story.picture() == "all\n  a  1 rows"


def test_a_commit_behind_an_entry_of_time_without_an_answer_comes_back() -> None:
    """Log time is told first, in an entry of its own: what becomes of that refuses nobody."""
    office = Office()
    office.clock.advance(3 * 86_400)
    clock, retry = office.clock.machine(0), Retry(seconds_max=0.0)
    head = office.story.another_head(clock=clock, retry=retry)
    office.given_sent(office.adding("a"))
    office.story.log.appends = ["late"]
    assert office.another_committer(head).step() == 0
    assert office.tracker.last(TABLE, JobId("a")) is None
    office.story.log.deliver()
    office.when_messages_come_again()
    assert office.another_committer(head).step() == 1
    assert office.events("a") == ["committed"]
    assert office.story.picture() == "all\n  a  1 rows"


def claim(office: Office, job: str, *files: str) -> Transaction:
    names = tuple(map(office.story.file, files))
    change = ClaimFiles(JobId(job), office.story.partitions["all"], names)
    return office.story.transaction(change, id_=job)


def test_a_refusal_stays_a_refusal_when_what_refused_it_is_gone() -> None:
    """The files are free again when the message is delivered a second time."""
    office = Office()
    office.story.given_files("all", a=1, b=1)
    late = claim(office, "late", "a", "b")
    office.story.when_claimed("first", "all", "a", "b")
    office.given_sent(late)
    office.given_sent(late)
    (one,) = office.queue.receive(messages_max=1, hidden_seconds=5)
    office.queue.delete(one.receipt)
    office.committer.step()
    assert office.events("late") == ["failed"]
    office.story.when_given_up("first")
    office.queue.send([Message(one.body)])
    office.committer.step()
    assert office.events("late") == ["rejected"]
    with pytest.raises(JobIdReusedError):
        office.story.head.commit(late)
    assert office.story.picture() == "all\n  a  1 rows\n  b  1 rows"


def test_a_refusal_that_another_committer_turned_into_a_success_is_none() -> None:
    """Both hold the message; the files were free for the second, a moment later."""
    office = Office()
    office.story.given_files("all", a=1)
    late = claim(office, "late", "a")
    office.story.when_claimed("first", "all", "a")
    head, other = office.story.another_head(), office.story.another_head()

    def meanwhile() -> None:
        office.story.when_given_up("first")
        assert isinstance(other.commit(late), int)

    office.story.log.appends = [meanwhile]
    (answer,) = answers_of(head, [late])
    assert answer == other.commit(late)


def test_a_refused_position_is_refused_for_good() -> None:
    office = Office()
    story = office.story
    moved = PositionChange("source", None, b"1")
    story.head.commit(story.transaction(positions=[moved]))
    late = story.transaction(id_="late", positions=[PositionChange("source", b"2", b"3")])
    (answer,) = answers_of(story.another_head(), [late])
    assert isinstance(answer, ConflictError)
    story.head.commit(story.transaction(positions=[PositionChange("source", b"1", b"2")]))
    (again,) = answers_of(story.another_head(), [late])
    assert isinstance(again, JobIdReusedError)


def test_a_stalled_committer_wakes_after_snapshot_truncation_and_floor(tmp_path: Path) -> None:
    """It had read the head; meanwhile its entry's number was taken, and the log emptied of it."""
    office = Office()
    story = office.story
    a = office.adding("a", user=True)
    stalled = story.another_head(snapshots=story_snapshots(office, tmp_path))
    stalled.follow()
    office.given_sent(a)
    second = office.another_committer()

    def meanwhile() -> None:
        office.when_messages_come_again()
        second.step()
        office.clock.advance(3 * 86_400)
        for _ in range(2):
            head = story.state.head()
            floor = RaiseFloor(head.number)
            story.head.commit(story.transaction(floor))
            snapshots = story_snapshots(office, tmp_path)
            with story.head.reading() as state:
                snapshots.write(state)
            snapshots.truncate(story.log)

    story.log.appends = [meanwhile]
    office.another_committer(stalled).step()
    assert office.told("a").event == "committed"
    assert office.told("a").number == 2
    assert story.picture() == "all\n  a  1 rows"


def story_snapshots(office: Office, scratch: Path) -> Snapshots:
    return Snapshots(TABLE, office.story.objects, scratch=scratch)


class DeafTracker(MemoryJobTracker):
    """Hears nothing the first time."""

    deaf = True

    def report_many(self, reports: Sequence[JobReport]) -> None:
        if self.deaf:
            self.deaf = False
            raise UnavailableError("busy")
        super().report_many(reports)


def test_who_could_not_be_told_is_told_when_the_message_comes_back() -> None:
    office = Office()
    office.tracker = DeafTracker()
    committer = office.another_committer()
    office.given_sent(office.adding("a"), office.adding("b"))
    assert committer.step() == 0
    office.when_messages_come_again()
    assert committer.step() == 2
    assert [office.told(job).number for job in "ab"] == [2, 2]


def test_commits_of_an_id_that_was_used_for_another_request_are_rejected() -> None:
    office = Office()
    a = office.adding("a")
    office.given_sent(a)
    office.committer.step()
    other = msgspec.structs.replace(office.adding("b"), id=a.id)
    office.given_sent(other)
    office.committer.step()
    assert office.told("a").event == "rejected"
    assert office.story.head.commit(a) == 2


def test_one_table_s_damage_does_not_hold_up_the_others() -> None:
    office = Office()
    good = office.story.another_head()

    def heads(table: TableId) -> TableHead:
        if table == "bad":
            raise UnavailableError("its state cannot be opened")
        return good

    committer = Committer(
        queue=office.queue,
        objects=office.objects,
        heads=heads,
        tracker=office.tracker,
        clock=office.clock,
    )
    office.send.run(TableId("bad"), [queued(office.story.transaction(AddFiles(()), id_="x"))])
    office.given_sent(office.adding("a"))
    assert committer.step() == 1
    assert office.queue.depth() == (1, 0)
