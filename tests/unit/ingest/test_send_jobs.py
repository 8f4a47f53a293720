"""The library sends jobs to an instance: each is a message that a task, or Spark, takes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

import lakebed
from lakebed.backends.aws.job_queues import SqsJobQueues
from lakebed.config.deployments.optional_stacks import left_out_of
from lakebed.config.messages import bulk_import_message, ingest_message
from lakebed.errors import InvalidError, UnknownOutcomeError
from lakebed.ingest.send_jobs import SendJobs
from lakebed.lake import Lake
from lakebed.model.addresses import NAME_LENGTH_MAX, NAMED_FILES_MAX
from lakebed.model.jobs import BULK_IMPORT_QUEUE, INGEST_QUEUE
from lakebed.model.names import table_name
from lakebed.ports.file_batches import BatchTarget
from lakebed.ports.job_queue import BODY_BYTES_MAX, Message, Received
from lakebed.table import Table
from tests.dsl.memory_instance import MemoryInstance

FILE = "s3://landing/trips/a.parquet"


@pytest.fixture
def instance(tmp_path: Path) -> MemoryInstance:
    instance = MemoryInstance(tmp_path)
    instance.given_table("trips")
    return instance


@pytest.fixture
def table(instance: MemoryInstance) -> Table:
    return Lake(instance.lake).table("trips")


def sent(instance: MemoryInstance, queue: str = INGEST_QUEUE) -> list[Received]:
    return instance.queues.open(queue).receive(messages_max=10, hidden_seconds=60)


def test_a_job_is_a_message_that_tasks_take(instance: MemoryInstance, table: Table) -> None:
    assert table.send([FILE, "s3://landing/trips/late/"], job="monday") == "monday"
    (message,) = sent(instance)
    asked = ingest_message(message.body)
    assert (asked.id, asked.table) == ("monday", "trips")
    assert asked.files == [FILE, "s3://landing/trips/late/"]
    assert message.message_group == "monday", "no other job waits for it"


def test_one_file_needs_no_list_and_spark_takes_a_job_of_its_queue(
    instance: MemoryInstance, table: Table
) -> None:
    table.send(FILE, job="year", target="bulk-import")
    assert sent(instance) == []
    (message,) = sent(instance, BULK_IMPORT_QUEUE)
    assert bulk_import_message(message.body).files == [FILE]


def test_jobs_without_a_name_are_requests_of_their_own(
    instance: MemoryInstance, table: Table
) -> None:
    ids = [table.send(FILE), table.send(FILE)]
    assert len(set(ids)) == 2
    assert [ingest_message(message.body).id for message in sent(instance)] == ids


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ([], "not a number of files"),
        ([FILE] * (NAMED_FILES_MAX + 1), "not a number of files"),
        (["landing/a.parquet"], "takes files in from S3"),
        ([Path("landing/a.parquet")], "takes files in from S3"),
        ("https://host/a.parquet", "takes files in from S3"),
        ("s3://A/b", "not the name of a file"),
        (f"{FILE}\n", "not the name of a file"),
        (f"s3://landing/{'a' * NAME_LENGTH_MAX}", "the name of a file is too long"),
        ([f"s3://landing/{'a' * 2_000}"] * (BODY_BYTES_MAX // 2_000), "do not fit in one message"),
    ],
)
def test_what_no_task_would_take_is_not_sent(
    instance: MemoryInstance, table: Table, files: list[str] | str, says: str
) -> None:
    with pytest.raises(InvalidError, match=says):
        table.send(files)
    assert sent(instance) == []


def test_names_of_jobs_and_of_what_does_them_are_checked(
    instance: MemoryInstance, table: Table
) -> None:
    with pytest.raises(InvalidError, match="not a job id"):
        table.send(FILE, job="")
    with pytest.raises(InvalidError, match="did you mean 'bulk-import'"):
        table.send(FILE, target=cast("Any", "bulk_import"))
    assert sent(instance) == []


def test_a_lake_in_a_directory_has_nobody_to_send_to(tmp_path: Path) -> None:
    with lakebed.connect(tmp_path / "lake") as lake:
        table = lake.create_table("trips", lakebed.schema_of(row_keys={"id": "string"}))
        with pytest.raises(InvalidError, match=r"`Table\.ingest` takes files in at once"):
            table.send(FILE)


@pytest.mark.parametrize(
    ("target", "instead"), [("ingest", "lakebed ingest"), ("bulk-import", "lakebed bulk-import")]
)
def test_an_instance_without_what_does_it_says_what_to_do(
    target: BatchTarget, instead: str
) -> None:
    refuse = left_out_of("dev", []).refuse_queue
    queues = SqsJobQueues(cast("Any", None), {}, rng=random.Random(1), refuse=refuse)
    with pytest.raises(InvalidError, match=instead) as refused:
        SendJobs(queues, rng=random.Random(1)).run(table_name("trips"), [FILE], target=target)
    assert refused.value.message == f"this instance was deployed without {target}"


def test_an_answer_that_did_not_come_has_the_id_to_send_it_again_with() -> None:
    class Silent:
        """Queues that take messages and do not answer."""

        def open(self, name: str) -> Silent:
            del name
            return self

        def send(self, messages: Sequence[Message]) -> None:
            del messages
            raise UnknownOutcomeError("no answer")

    with pytest.raises(UnknownOutcomeError) as unknown:
        SendJobs(cast("Any", Silent()), rng=random.Random(1)).run(table_name("trips"), [FILE])
    assert str(unknown.value.facts["job"]).startswith("sent-")
