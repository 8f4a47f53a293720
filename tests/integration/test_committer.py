import pytest

from lakebed.backends.aws.job_queues import received_record
from lakebed.errors import UnavailableError
from lakebed.statestore.queued_commits import COMMIT_QUEUE
from lambdas.committer.commit import commit
from lambdas.shape import batch_handler
from tests.dsl.memory_instance import MemoryInstance, once


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


def test_a_message_whose_time_of_sending_is_none_has_the_time_of_sqs() -> None:
    message = {
        "body": "{}",
        "receiptHandle": "r",
        "attributes": {"SentTimestamp": "7"},
        "messageAttributes": {"sent": {"stringValue": "yesterday"}},
    }
    assert received_record(message).sent_at == 7_000
