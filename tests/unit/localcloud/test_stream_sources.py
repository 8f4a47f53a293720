"""A stream calls its function in order, from where it stood, until each batch is done."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lakebed.backends.memory.clock import VirtualClock
from localcloud.runner.event_sources import Failure, InjectedFaults
from localcloud.runner.stream_sources import AGAIN_SECONDS, StreamSource
from localcloud.runner.workers import Outcome
from localcloud.services.cloud_clock import CloudClock
from localcloud.templates.running import FunctionSpec, StreamSourceSpec

STREAM = "arn:aws:dynamodb:r:1:table/t/stream/s"
FUNCTION = FunctionSpec(
    name="publish",
    arn="arn:aws:lambda:r:1:function:publish",
    handler="app.handler",
    code=Path(),
    role="arn:aws:iam::1:role/publish",
    environment={},
    timeout_seconds=3,
    memory_bytes=1,
    concurrency_max=None,
)
SPEC = StreamSourceSpec(
    stream=STREAM,
    function="publish",
    batch_records_max=2,
    filters=({"eventName": ["INSERT"]},),
)


class TrimmedError(Exception):
    pass


class Stream:
    """The records of a shard, as boto3 gives them. trimmed: so many are gone."""

    exceptions: Any = type("Exceptions", (), {"TrimmedDataAccessException": TrimmedError})

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.trimmed = 0

    def put(self, *names: str) -> None:
        for name in names:
            number = len(self.records)
            changed = {
                "ApproximateCreationDateTime": datetime(2026, 1, 1, tzinfo=UTC),
                "NewImage": {"body": {"B": b"\x00\xff"}},
                "SequenceNumber": str(number),
            }
            self.records.append({"eventID": f"{number}", "eventName": name, "dynamodb": changed})

    def describe_stream(self, StreamArn: str) -> dict[str, Any]:  # noqa: N803 - AWS's name
        assert StreamArn == STREAM
        return {"StreamDescription": {"Shards": [{"ShardId": "one"}]}}

    def get_shard_iterator(self, **given: str) -> dict[str, str]:
        after = int(given.get("SequenceNumber", self.trimmed - 1))
        if after < self.trimmed - 1:
            raise TrimmedError
        return {"ShardIterator": str(after + 1)}

    def get_records(self, **given: Any) -> dict[str, Any]:  # noqa: ANN401 - as boto3 takes it
        start = int(given["ShardIterator"])
        return {"Records": self.records[start : start + given["Limit"]]}


class Cloud:
    """What a source asks: clients of a role, and workers. outcomes: of the next calls."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.called: list[list[str]] = []
        self.events: list[dict[str, Any]] = []
        self.outcomes: list[Outcome] = []

    def client_of(self, service: str, role: str) -> Stream:
        assert (service, role) == ("dynamodbstreams", FUNCTION.role)
        return self.stream

    def call(self, _: FunctionSpec, event: dict[str, Any], *, dies: bool) -> Outcome:
        assert not dies
        self.events.append(event)
        self.called.append([record["eventID"] for record in event["Records"]])
        return self.outcomes.pop(0) if self.outcomes else Outcome({"batchItemFailures": []}, None)


class Source(StreamSource):
    def __init__(self, cloud: Cloud, clock: CloudClock) -> None:
        self.failures: list[Failure] = []
        parts: Any = cloud
        super().__init__(
            SPEC,
            FUNCTION,
            parts,
            parts,
            clock=clock,
            faults=InjectedFaults(),
            failed=self.failures.append,
        )

    def settle(self) -> None:
        while batch := self.receive():
            self.run(batch)


@pytest.fixture
def clock() -> CloudClock:
    return CloudClock(VirtualClock())


@pytest.fixture
def cloud() -> Cloud:
    stream = Stream()
    stream.put("INSERT")
    return Cloud(stream)


def test_records_that_are_wanted_come_in_order_and_those_from_before_do_not(
    cloud: Cloud, clock: CloudClock
) -> None:
    source = Source(cloud, clock)
    cloud.stream.put("INSERT", "MODIFY", "REMOVE", "MODIFY", "INSERT", "INSERT")
    source.settle()
    assert cloud.called == [["1"], ["5", "6"]]
    record = cloud.events[0]["Records"][0]
    assert record["eventSourceARN"] == STREAM
    assert record["dynamodb"]["NewImage"] == {"body": {"B": "AP8="}}
    assert record["dynamodb"]["ApproximateCreationDateTime"] == 1_767_225_600


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(None, {"errorType": "AccessDenied"}),
        Outcome({"batchItemFailures": [{"itemIdentifier": "1"}]}, None),
    ],
)
def test_a_batch_that_failed_comes_again_later_and_holds_up_the_rest(
    cloud: Cloud, clock: CloudClock, outcome: Outcome
) -> None:
    source = Source(cloud, clock)
    cloud.outcomes.append(outcome)
    cloud.stream.put("INSERT", "INSERT", "INSERT")
    source.settle()
    assert cloud.called == [["1", "2"]]
    assert [failure.function for failure in source.failures] == ["publish"]
    assert source.again_at == clock.seconds() + AGAIN_SECONDS
    clock.jump_to(source.again_at)
    source.settle()
    assert cloud.called == [["1", "2"], ["1", "2"], ["3"]]
    assert source.again_at == 0


def test_nothing_is_received_while_a_batch_is_in_hand(cloud: Cloud, clock: CloudClock) -> None:
    source = Source(cloud, clock)
    cloud.stream.put("INSERT", "INSERT", "INSERT")
    batch = source.receive()
    assert source.receive() == []
    source.run(batch)
    assert [record["eventID"] for record in source.receive()] == ["3"]


def test_what_left_the_stream_is_passed_over(cloud: Cloud, clock: CloudClock) -> None:
    source = Source(cloud, clock)
    cloud.stream.put("INSERT", "INSERT", "INSERT")
    cloud.stream.trimmed = 3
    source.settle()
    assert cloud.called == [["3"]]
