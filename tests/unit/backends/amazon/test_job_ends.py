"""Ends of jobs on their way: out of the tracker's stream, onto a bus that refuses some of them."""

import base64
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from botocore.stub import ANY, Stubber

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.job_ends.event_bus import EVENTS_AT_ONCE, EventBridgeBus
from lakebed.backends.aws.job_ends.tracker_stream import reports_in_stream
from lakebed.errors import DeniedError, UnavailableError
from lakebed.model.names import JobId, Micros, TableId, TableName
from lakebed.ports.job_end_bus import JobEnd
from lakebed.ports.job_tracker import JobReport, TaskReport
from tests.unit.backends.amazon_clients import made_up_clients

TABLE = TableId("a" * 32)
TAKEN: dict[str, Any] = {"EventId": "1"}
REFUSED: dict[str, Any] = {"ErrorCode": "ThrottlingException", "ErrorMessage": "later"}


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> Iterator[AmazonClients]:
    with made_up_clients(monkeypatch, tries_max=3) as made:
        yield made


@pytest.fixture
def bus(clients: AmazonClients) -> Iterator[Stubber]:
    with Stubber(clients.events) as stub:
        yield stub
        stub.assert_no_pending_responses()


def ends(count: int) -> list[JobEnd]:
    return [
        JobEnd(
            id=f"{number:032x}",
            instance="dev",
            table=TableName("trips"),
            table_id=TABLE,
            job=JobId(f"job-{number}"),
            kind="ingest",
            event="committed",
            rows=number,
            filtered=0,
            number=number + 1,
            reason="",
            at=Micros(1_700_000_000_000_000),
        )
        for number in range(count)
    ]


def entry(end: JobEnd) -> dict[str, Any]:
    detail = msgspec.json.encode(end).decode()
    return {"Source": "lakebed.job", "DetailType": "Job ended", "Time": ANY, "Detail": detail}


def test_ends_are_put_ten_at_a_time(clients: AmazonClients, bus: Stubber) -> None:
    some = ends(EVENTS_AT_ONCE + 1)
    for batch in (some[:-1], some[-1:]):
        answer = {"FailedEntryCount": 0, "Entries": [TAKEN] * len(batch)}
        bus.add_response("put_events", answer, {"Entries": [entry(end) for end in batch]})
    EventBridgeBus(clients).put(some)


def test_what_the_bus_refuses_is_sent_again_and_nothing_else(
    clients: AmazonClients, bus: Stubber
) -> None:
    first, second, third = ends(3)
    bus.add_response(
        "put_events",
        {"FailedEntryCount": 1, "Entries": [TAKEN, REFUSED, TAKEN]},
        {"Entries": [entry(first), entry(second), entry(third)]},
    )
    bus.add_response(
        "put_events", {"FailedEntryCount": 0, "Entries": [TAKEN]}, {"Entries": [entry(second)]}
    )
    EventBridgeBus(clients).put([first, second, third])


def test_a_bus_that_refuses_for_long_is_an_error(clients: AmazonClients, bus: Stubber) -> None:
    for _ in range(3):
        bus.add_response("put_events", {"FailedEntryCount": 1, "Entries": [REFUSED]})
    with pytest.raises(UnavailableError):
        EventBridgeBus(clients).put(ends(1))


def test_a_bus_without_permission_says_which(clients: AmazonClients, bus: Stubber) -> None:
    message = "User is not authorized to perform: events:PutEvents on resource: x"
    bus.add_client_error("put_events", "AccessDeniedException", message, http_status_code=400)
    with pytest.raises(DeniedError, match="events:PutEvents"):
        EventBridgeBus(clients).put(ends(1))


def record(body: bytes | None) -> dict[str, Any]:
    image = {} if body is None else {"body": {"B": base64.b64encode(body).decode()}}
    return {"eventName": "MODIFY", "dynamodb": {"NewImage": image}}


def test_a_stream_gives_reports_of_jobs_and_passes_over_what_is_none() -> None:
    report = JobReport(table=TABLE, job=JobId("j"), kind="query", event="finished", at=Micros(1))
    task = TaskReport(task="t", kind="ingest", started=Micros(1), at=Micros(1))
    newer = msgspec.msgpack.encode({**msgspec.to_builtins(report), "event": "resurrected"})
    bodies = [msgspec.msgpack.encode(report), None, msgspec.msgpack.encode(task), newer, b"\xc1"]
    found = reports_in_stream([record(body) for body in bodies] + [{"eventName": "REMOVE"}])
    assert found == [report]
