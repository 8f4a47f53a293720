"""Dead letters are counted, shown and sent again, unless they could be done twice."""

import json
from collections.abc import Sequence
from itertools import islice

import pytest
from msgspec.structs import replace

from lakebed.backends.memory import MemoryJobQueue, VirtualClock
from lakebed.errors import InvalidError, UnavailableError
from lakebed.inspection.dead_letters import QueueLetters, TableLetters
from lakebed.inspection.redrive import Redriven
from lakebed.model.jobs import (
    INGEST_QUEUE,
    QUERY_QUEUE,
    SPLITTING,
    SUBMISSIONS_QUEUE,
    TableMessage,
)
from lakebed.model.jobs import encode_table_message as tick
from lakebed.model.names import MICROS_PER_SECOND, JobId, Micros, TableId, TableName
from lakebed.ports.job_queue import (
    LETTER_HIDDEN_SECONDS,
    MESSAGES_AT_ONCE_MAX,
    Message,
    Received,
)
from lakebed.ports.job_tracker import NO_TABLE, JobReport
from lakebed.statestore.log_entries.table_changes import ChangeSettings
from lakebed.statestore.queued_commits import CommitsMessage, encode_commits
from tests.dsl.commit_queue_story import TABLE
from tests.unit.inspection.dead_letters_story import NAME, DeadLettersStory, asked

DAY = 86_400


def test_commits_that_were_given_up_are_sent_again_and_done() -> None:
    story = DeadLettersStory()
    story.given_sent(story.adding("a", user=True))
    story.given_dead()
    assert story.queue.depth() == (0, 1)
    assert story.redrive() == Redriven(sent=1)
    assert story.queue.depth() == (1, 0)
    story.committer.run(batches_max=5)
    assert story.events("a") == ["committed"]


def test_what_is_older_than_ids_are_remembered_stays() -> None:
    story = DeadLettersStory()
    story.table.when_committed(ChangeSettings({"job_id_seconds_min": 2 * DAY}))
    story.given_sent(story.adding("a", user=True))
    story.given_dead()
    story.clock.advance(DAY)
    story.given_sent(story.adding("b", user=True))
    story.given_dead()
    story.clock.advance(DAY)
    done = story.redrive()
    assert done.sent == 1
    (refused,) = done.refused
    assert refused.startswith("commits: too old")
    assert story.queue.depth() == (1, 1)
    story.committer.run(batches_max=5)
    assert story.events("b") == ["committed"]


def test_a_clock_that_is_behind_makes_nothing_young_enough() -> None:
    story = DeadLettersStory()
    story.table.when_committed(ChangeSettings({"job_id_seconds_min": 2 * DAY}))
    story.given_sent(story.adding("a", user=True))
    story.given_dead()
    for _ in range(3):
        story.clock.advance(DAY)
        story.table.given_files("all", **{f"f{story.clock.now()}": 1})
    story.service._clock = story.clock.machine(-3 * DAY * MICROS_PER_SECOND)
    assert story.redrive().sent == 0


def test_a_second_death_does_not_make_a_commit_young_again() -> None:
    story = DeadLettersStory()
    story.table.when_committed(ChangeSettings({"job_id_seconds_min": 2 * DAY}))
    story.given_sent(story.adding("a"))
    story.given_dead()
    story.clock.advance(DAY)
    assert story.redrive().sent == 1
    story.given_dead()
    story.clock.advance(DAY)
    assert story.redrive().sent == 0


def test_what_cannot_be_read_or_has_no_state_stays() -> None:
    story = DeadLettersStory()
    story.queue.send([Message(b"\x01nonsense")])
    story.queue.send([Message(encode_commits(CommitsMessage(TABLE)))])
    story.given_dead()
    story.heads_fail = UnavailableError("its state cannot be opened", table=TABLE)
    reasons = story.redrive().refused
    assert [reason.split(":")[1] for reason in reasons] == [" invalid", " unavailable"]
    assert story.queue.depth() == (0, 2)


def test_letters_are_counted_by_queue_and_table() -> None:
    story = DeadLettersStory()
    story.given_up(SPLITTING, tick(TableMessage(TABLE)))
    story.given_up(INGEST_QUEUE, asked(table="tripz", files=["a.csv"]))
    story.given_up(INGEST_QUEUE, b"{")
    story.clock.advance(600)
    counted = {queue.queue: queue for queue in story.letters.count()}
    assert list(counted) == ["commits", "compaction", "ingest", "splitting"]
    assert counted["commits"] == QueueLetters(queue="commits", waiting=0, dead=0)
    (split,) = counted["splitting"].tables
    assert (split.table, split.letters) == (NAME, 1)
    assert split.oldest_seconds > 600
    assert [(of.table, of.letters) for of in counted["ingest"].tables] == [("", 1), ("tripz", 1)]
    assert isinstance(split, TableLetters)


def test_a_queue_that_there_is_not_is_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidError, match="commits"):
        DeadLettersStory().letters.count(["comits"])


def test_letters_are_shown_with_the_last_that_was_told_of_their_job() -> None:
    story = DeadLettersStory()
    story.given_up(INGEST_QUEUE, asked(id="monday", table=NAME, files=["gone.csv"]))
    story.given_up(INGEST_QUEUE, b"[1]")
    report = JobReport(
        table=NO_TABLE,
        job=JobId("monday"),
        kind="ingest",
        event="rejected",
        at=Micros(1),
        reason="invalid: no such file",
    )
    story.tracker.report(report)
    named, nameless = story.letters.show([INGEST_QUEUE], None, letters_max=10)
    assert (named.table, named.job, named.reason) == (NAME, "monday", "invalid: no such file")
    assert json.loads(named.body)["files"] == ["gone.csv"]
    assert named.receives == 3
    assert nameless.reason.startswith("invalid: the message is not one that users send")
    assert story.letters.show([], NAME, letters_max=10) == [named]
    assert story.queues.open(INGEST_QUEUE).depth() == (0, 2)


@pytest.mark.parametrize(("table", "jobs", "taken"), [(None, "012", 3), (NAME, "678", 10)])
def test_no_more_letters_are_taken_out_of_sight_than_are_to_be_shown(
    monkeypatch: pytest.MonkeyPatch, table: str | None, jobs: str, taken: int
) -> None:
    story = DeadLettersStory()
    queue = story.queues.open(INGEST_QUEUE)
    names = ["other"] * 6 + [NAME] * 14
    bodies = [asked(id=str(n), table=name, files=["a.csv"]) for n, name in enumerate(names)]
    queue.send([Message(body, message_group=str(n)) for n, body in enumerate(bodies)])
    for _ in range(2):
        story.given_dead(INGEST_QUEUE)
    every = queue.dead_letters(messages_max=100)
    left = iter(every)

    def by_tens(*, messages_max: int) -> list[Received]:  # and each once: as SQS does
        return list(islice(left, min(messages_max, MESSAGES_AT_ONCE_MAX)))

    monkeypatch.setattr(queue, "dead_letters", by_tens)
    shown = story.letters.show([INGEST_QUEUE], table, letters_max=3)
    assert [letter.job for letter in shown] == list(jobs)
    assert len(every) - len(list(left)) == taken


def test_messages_of_users_are_sent_again_as_old_as_they_are() -> None:
    story = DeadLettersStory()
    sent_at = story.clock.now()
    story.given_up(INGEST_QUEUE, asked(id="monday", table=NAME, files=["a.csv"]))
    story.given_up(INGEST_QUEUE, asked(id="monday", table="tripz", files=["a.csv"]))
    story.given_up(QUERY_QUEUE, asked(table=NAME, ranges=[{}]))
    done = story.redrive()
    assert done.sent == 2
    assert done.refused == ("ingest: there is no such table (table tripz, monday)",)
    (again,) = story.queues.open(INGEST_QUEUE).receive(messages_max=10, hidden_seconds=1)
    assert again.sent_at == sent_at


def arrived(key: str) -> bytes:
    detail = {"bucket": {"name": "landing"}, "object": {"key": key}}
    return asked(source="aws.s3", detail=detail, **{"detail-type": "Object Created"})


def test_submissions_are_sent_again_while_their_files_are_remembered() -> None:
    story = DeadLettersStory()
    story.table.when_committed(ChangeSettings({"job_id_seconds_min": 2 * DAY}))
    story.registry.watch(TableName(NAME), TABLE, "s3://landing/trips/")
    story.given_up(SUBMISSIONS_QUEUE, arrived("trips/old.csv"))
    story.clock.advance(2 * DAY)
    for body in (
        arrived("trips/new.csv"),
        arrived("nobodys.csv"),
        asked(table=NAME, files=["s3://landing/a.csv"]),
        asked(table=NAME, files=[]),
    ):
        story.given_up(SUBMISSIONS_QUEUE, body)
    told = story.letters.show([SUBMISSIONS_QUEUE], None, letters_max=9)
    assert [letter.table for letter in told] == [NAME, NAME, "", NAME, NAME]
    done = story.redrive(SUBMISSIONS_QUEUE)
    assert done.sent == 2
    old, nobodys, wrong = done.refused
    assert old.startswith("submissions: too old")
    assert nobodys.startswith("submissions: there is no such table")
    assert wrong.startswith("submissions: it can never work: not a submission message")


def test_one_table_of_one_queue_is_sent_again() -> None:
    story = DeadLettersStory()
    story.given_up(SPLITTING, tick(TableMessage(TABLE)))
    story.given_up(SPLITTING, tick(TableMessage(TableId("dropped"))))
    story.given_up("garbage", tick(TableMessage(TABLE)))
    assert story.redrive(SPLITTING, table=NAME) == Redriven(sent=1)
    assert story.queues.open(SPLITTING).depth() == (1, 1)
    assert story.queues.open("garbage").depth() == (0, 1)
    assert story.redrive() == Redriven(sent=2)


def test_what_a_queue_moved_is_as_old_as_it_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    story = DeadLettersStory()
    story.table.when_committed(ChangeSettings({"job_id_seconds_min": 20 * DAY}))
    story.given_up(INGEST_QUEUE, asked(id="monday", table=NAME, files=["a.csv"]))
    story.given_up(INGEST_QUEUE, asked(table=NAME, files=["a.csv"]))
    queue = story.queues.open(INGEST_QUEUE)
    letters = queue.dead_letters

    def moved(*, messages_max: int) -> list[Received]:
        """Return letters as SQS does that put them there itself: it forgets when they were sent."""
        return [replace(m, moved=True) for m in letters(messages_max=messages_max)]

    monkeypatch.setattr(queue, "dead_letters", moved)
    story.clock.advance(5 * DAY)
    done = story.redrive()
    assert done.sent == 1
    assert "it has no id" in done.refused[0]
    (again,) = queue.receive(messages_max=10, hidden_seconds=1)
    assert again.sent_at < story.clock.now() - 19 * DAY * 1_000_000
    queue.delete(again.receipt)
    story.given_up(INGEST_QUEUE, asked(id="tuesday", table=NAME, files=["a.csv"]))
    story.clock.advance(6 * DAY)
    assert [r.partition(" (")[0][:15] for r in story.redrive().refused] == [
        "ingest: it has ",
        "ingest: too old",
    ]


def test_a_letter_that_was_sent_and_not_deleted_is_a_double_and_done_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    story = DeadLettersStory()
    story.given_sent(story.adding("a", user=True))
    story.given_dead()

    def killed(*_: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(story.queue, "delete", killed)
        with pytest.raises(KeyboardInterrupt):
            story.redrive()
    assert story.queue.depth() == (1, 1)
    assert story.redrive() == Redriven(sent=1)
    story.committer.run(batches_max=5)
    assert story.queue.depth() == (0, 0)
    assert story.events("a") == ["committed"]


class SlowQueue(MemoryJobQueue):
    """As SQS: ten letters at most with a request, out of sight for a while, and then a receipt is
    worth nothing. A request takes `seconds`."""

    def __init__(self, clock: VirtualClock, *, seconds: float) -> None:
        super().__init__(clock, receives_max=3)
        self.time, self.seconds = clock, seconds
        self.until: dict[str, float] = {}
        """Of letters out of sight, by their receipts of the last look."""
        self.looks = self.requests = 0
        self.dies_again = False

    def _asked(self) -> None:
        self.requests += 1
        self.time.advance(self.seconds)

    def out_of_sight(self) -> set[str]:
        now = self.time.monotonic()
        return {receipt.partition("@")[0] for receipt, end in self.until.items() if end > now}

    def send(self, messages: Sequence[Message]) -> None:
        self._asked()
        super().send(messages)
        if self.dies_again:
            for message in self.receive(messages_max=10, hidden_seconds=1):
                self.give_up(message)

    def dead_letters(self, *, messages_max: int) -> list[Received]:
        self._asked()
        self.looks += 1
        hidden, now = self.out_of_sight(), self.time.monotonic()
        letters = super().dead_letters(messages_max=10_000)
        seen = [letter for letter in letters if letter.receipt not in hidden]
        some = [
            replace(letter, receipt=f"{letter.receipt}@{self.looks}")
            for letter in seen[: min(messages_max, MESSAGES_AT_ONCE_MAX)]
        ]
        self.until |= {letter.receipt: now + LETTER_HIDDEN_SECONDS for letter in some}
        return some

    def delete(self, *receipts: str) -> None:
        self._asked()
        now = self.time.monotonic()
        for receipt in receipts:
            if self.until.pop(receipt, now) > now:
                super().delete(receipt.partition("@")[0])

    def extend(self, receipt: str, *, hidden_seconds: float) -> None:
        self._asked()
        if self.until.get(receipt, 0.0) > self.time.monotonic():
            self.until[receipt] = self.time.monotonic() + hidden_seconds


def slow_story(
    letters: int, *, seconds: float, **fields: object
) -> tuple[DeadLettersStory, SlowQueue]:
    """Return a story with so many dead letters of users, each with an id, in a slow queue."""
    story = DeadLettersStory()
    queue = SlowQueue(story.clock, seconds=0)
    story.queues._queues[INGEST_QUEUE] = queue
    for n in range(letters):
        body = asked(**({"id": f"job-{n}", "table": NAME, "files": ["a.csv"]} | fields))
        queue.send([Message(body)])
        (message,) = queue.receive(messages_max=1, hidden_seconds=1)
        queue.give_up(message)
    queue.seconds, queue.requests = seconds, 0
    return story, queue


@pytest.mark.parametrize("seconds", [0.05, 4.0])
def test_many_letters_are_sent_while_they_can_be_deleted(seconds: float) -> None:
    story, queue = slow_story(300, seconds=seconds)
    assert story.service.run([INGEST_QUEUE], None, letters_max=1_000) == Redriven(sent=300)
    assert queue.depth() == (300, 0)
    assert not queue.out_of_sight()
    assert seconds > 1 or queue.requests == 30 + 300 + 300 + 1, "what is gone is not put back"


def test_letters_that_stay_are_looked_at_once_and_are_in_sight_again() -> None:
    story, queue = slow_story(120, seconds=1.0, table="tripz")
    done = story.service.run([INGEST_QUEUE], None, letters_max=1_000)
    assert (done.sent, len(done.refused)) == (0, 120)
    assert queue.depth() == (0, 120)
    assert not queue.out_of_sight()


def test_letters_that_are_slow_to_look_at_are_counted_once() -> None:
    story, _ = slow_story(100, seconds=5.0)
    (counted,) = story.letters.count([INGEST_QUEUE])
    assert counted.dead == 100
    assert sum(of.letters for of in counted.tables) <= 100


def test_a_letter_that_dies_again_at_once_is_not_sent_for_ever() -> None:
    story, queue = slow_story(5, seconds=0.05)
    queue.dies_again = True
    done = story.service.run([INGEST_QUEUE], None, letters_max=1_000)
    assert done.sent == 5
    assert all("a moment ago" in reason for reason in done.refused)
    assert queue.depth() == (0, 5)


@pytest.mark.parametrize(
    ("kind", "fields", "says"),
    [
        (INGEST_QUEUE, {"files": ["s3://b/x.parquet"], "filez": 1}, "filez"),
        (INGEST_QUEUE, {}, "files"),
        (QUERY_QUEUE, {"where": "no predicate at all"}, "where"),
        (QUERY_QUEUE, {"limit": "many"}, "limit"),
    ],
)
def test_what_can_never_work_is_refused_and_stays(
    kind: str, fields: dict[str, object], says: str
) -> None:
    story = DeadLettersStory()
    story.given_up(kind, asked(id="a", table=NAME, **fields))
    for _ in range(3):
        (reason,) = story.redrive().refused
        assert reason.startswith(f"{kind}: it can never work: ")
        assert says in reason
        assert story.queues.open(kind).depth() == (0, 1)


def test_a_question_to_a_table_that_is_not_there_is_refused() -> None:
    story = DeadLettersStory()
    story.given_up(QUERY_QUEUE, asked(id="a", table="tripps"))
    assert story.redrive() == Redriven(refused=("query: there is no such table (table tripps, a)",))
    assert story.queues.open(QUERY_QUEUE).depth() == (0, 1)
