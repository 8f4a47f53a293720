import pytest

from lakebed.backends.aws.job_queues import received_record
from lakebed.bootstrap.functions import dead_letters
from lakebed.errors import UnavailableError
from lakebed.model.jobs import COMPACTION_QUEUE
from lakebed.statestore.queued_commits import COMMIT_QUEUE
from lambdas.committer.commit import commit
from lambdas.dead_letters.give_up import give_up
from lambdas.shape import batch_handler, scheduled_handler
from tests.dsl.memory_instance import MemoryInstance, Run, once


def test_queued_commits_of_many_go_into_one_entry(instance: MemoryInstance) -> None:
    instance.given_table("trips")
    for name in ("a", "b", "c"):
        instance.given_rows("trips", 10, job=name, queued=True)
    before = instance.number("trips")
    assert instance.when_worked(COMMIT_QUEUE, instance.committer()) == []
    assert instance.number("trips") == before + 1
    assert instance.rows("trips") == 30
    assert instance.queues.open(COMMIT_QUEUE).depth() == (0, 0)


def test_what_cannot_be_answered_now_comes_again(
    instance: MemoryInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("busy", "free"):
        instance.given_table(name)
        instance.given_rows(name, 10, job=name, queued=True)
    busy = instance.lake.catalog.find("busy").id
    heads = instance.stores.heads

    class SomeHeads:
        def __call__(self, table: str) -> object:
            if table == busy:
                raise UnavailableError("the store is busy")
            return heads(table)

    app = instance.committer_app()
    monkeypatch.setattr(app._committer, "_heads", SomeHeads())
    left = instance.when_worked(COMMIT_QUEUE, batch_handler(once(app), commit))
    assert len(left) == 1
    assert instance.rows("free") == 10
    assert instance.rows("busy") == 0
    instance.clock.advance(31)
    assert instance.when_worked(COMMIT_QUEUE, instance.committer()) == []
    assert instance.rows("busy") == 10


def test_dead_compaction_jobs_free_their_files(instance: MemoryInstance) -> None:
    instance.given_table("trips", job_files_max=4)
    for n in range(4):
        instance.given_rows("trips", 10, job=f"job{n}")
    table = instance.lake.catalog.find("trips")
    assert instance.lake.create_jobs.run(table) == 1
    queue = instance.queues.open(COMPACTION_QUEUE)
    for _ in range(10):  # until it was received too often
        queue.receive(messages_max=1, hidden_seconds=1)
        instance.clock.advance(2)
    assert queue.depth() == (0, 1)
    app = dead_letters.app_over(
        instance.stores,
        jobs=queue,
        commits=instance.queues.open(COMMIT_QUEUE),
        tracker=instance.tracker,
    )
    scheduled_handler(once(app), give_up)({"time": "now"}, Run())
    assert queue.depth() == (0, 0)
    with table.head.reading() as state:
        assert state.jobs() == []


def test_a_message_whose_time_of_sending_is_none_has_the_time_of_sqs() -> None:
    message = {
        "body": "{}",
        "receiptHandle": "r",
        "attributes": {"SentTimestamp": "7"},
        "messageAttributes": {"sent": {"stringValue": "yesterday"}},
    }
    assert received_record(message).sent_at == 7_000
