"""Reports of jobs and tasks in one table of DynamoDB, which forgets them by itself.

| pk | sk | what |
|---|---|---|
| `job#TABLE#JOB` | `at#MICROS#DIGEST` | one report |
| `job#TABLE#JOB` | `newest` | the newest report; in the index, under `TABLE#EVENT` |
| `task#TASK` | `newest` | the newest report of a task; in the index, under `tasks` |

A report of a job takes two puts. The first may be repeated; the second comes with the condition
that no newer report is there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.requests import ConditionError, Request
from lakebed.backends.aws.service_answers import AMAZON_TABLE
from lakebed.config.dynamo_tables import PARTITION_KEY, SORT_KEY, TRACKER_TABLE
from lakebed.model.names import MICROS_PER_SECOND, JobId, Micros, TableId, digest_of
from lakebed.ports.job_tracker import (
    BEGINNING,
    JOB_EVENTS,
    KEPT_SECONDS,
    JobEvent,
    JobReport,
    TaskReport,
)

if TYPE_CHECKING:
    from types_boto3_dynamodb.type_defs import AttributeValueTypeDef

_PUT = Request(what="reporting a job", needs="dynamodb:PutItem")
_GET = Request(what="reading a report", needs="dynamodb:GetItem")
_QUERY = Request(what="reading reports", needs="dynamodb:Query")
_NEWEST = "newest"
_TASKS = "tasks"
_END_OF_TIME = 1 << 62
assert TRACKER_TABLE.index is not None, "the tracker's table has an index"
assert TRACKER_TABLE.expiry is not None, "the tracker's items expire"
_INDEX, _EXPIRY = TRACKER_TABLE.index, TRACKER_TABLE.expiry

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(JobReport).decode
_decode_task = msgspec.msgpack.Decoder(TaskReport).decode


class DynamoDbJobTracker:
    """Reports in a table of the shape `TRACKER_TABLE`. kept_seconds: until they are forgotten."""

    def __init__(
        self, clients: AmazonClients, table: str, *, kept_seconds: int = KEPT_SECONDS
    ) -> None:
        self._clients = clients
        self._table = table
        self._kept_seconds = kept_seconds
        self._requests = clients.requests(AMAZON_TABLE, table)

    def report(self, report: JobReport) -> None:
        """Remember it; it is the newest unless a newer one of the job is known."""
        key, body = _job_key(report.table, report.job), _encode(report)
        place = f"at#{report.at:020d}#{digest_of(body).hex()[:8]}"
        self._put(key, place, report.at, body)
        self._put_newest(key, f"{report.table}#{report.event}", report.at, body)

    def last(self, table: TableId, job: JobId) -> JobReport | None:
        """Return the newest report of a job. Strongly consistent."""
        key = {PARTITION_KEY: _text(_job_key(table, job)), SORT_KEY: _text(_NEWEST)}
        answer = self._requests.run(
            _GET,
            lambda: self._clients.dynamodb.get_item(
                TableName=self._table, Key=key, ConsistentRead=True
            ),
        )
        item = answer.get("Item")
        return None if item is None else _decode(_body(item))

    def history(self, table: TableId, job: JobId) -> list[JobReport]:
        """Return all reports of a job, oldest first. Strongly consistent."""
        bodies = self._query(
            KeyConditionExpression="pk = :pk AND begins_with(sk, :at)",
            ExpressionAttributeValues={":pk": _text(_job_key(table, job)), ":at": _text("at#")},
            ConsistentRead=True,
        )
        return [_decode(body) for body in bodies]

    def find(
        self,
        table: TableId,
        *,
        events: Collection[JobEvent] = JOB_EVENTS,
        since: Micros = BEGINNING,
        until: Micros | None = None,
        reports_max: int,
    ) -> list[JobReport]:
        """Return the newest report of each job that tells of one of `events`, newest first.

        Through the index, which lags by less than a second.
        """
        end = _END_OF_TIME if until is None else until
        found = [
            _decode(body)
            for event in events
            for body in self._listed(f"{table}#{event}", since, end, reports_max)
        ]
        return sorted(found, key=lambda r: -r.at)[:reports_max]

    def report_task(self, report: TaskReport) -> None:
        """Remember how far a task has come."""
        self._put_newest(f"task#{report.task}", _TASKS, report.at, _encode(report))

    def tasks(self, *, reports_max: int) -> list[TaskReport]:
        """Return the newest report of each task, newest first."""
        bodies = self._listed(_TASKS, 0, _END_OF_TIME, reports_max)
        return [_decode_task(body) for body in bodies]

    def forget(self, *, before: Micros) -> None:
        """Do nothing: DynamoDB removes what has expired, within days."""

    def _put_newest(self, key: str, listed: str, at: Micros, body: bytes) -> None:
        more = {_INDEX.partition_key: _text(listed), _INDEX.sort_key: _number(at)}
        with suppress(ConditionError):  # a newer one is there, or this one, by an earlier try
            self._put(key, _NEWEST, at, body, more)

    def _put(
        self,
        key: str,
        place: str,
        at: Micros,
        body: bytes,
        listed: Mapping[str, AttributeValueTypeDef] | None = None,
    ) -> None:
        """Put an item. listed: what it is found by in the index; then only over an older one."""
        item: dict[str, Any] = {
            PARTITION_KEY: _text(key),
            SORT_KEY: _text(place),
            _EXPIRY: _number(at // MICROS_PER_SECOND + self._kept_seconds),
            "body": {"B": body},
            **(listed or {}),
        }
        named: dict[str, Any] = {}
        if listed:
            named = {
                "ConditionExpression": "attribute_not_exists(pk) OR #at <= :at",
                "ExpressionAttributeNames": {"#at": _INDEX.sort_key},
                "ExpressionAttributeValues": {":at": _number(at)},
            }
        self._requests.run(
            _PUT,
            lambda: self._clients.dynamodb.put_item(TableName=self._table, Item=item, **named),
        )

    def _listed(self, listed: str, since: int, end: int, reports_max: int) -> Iterator[bytes]:
        bodies = self._query(
            IndexName=_INDEX.name,
            KeyConditionExpression="#listed = :listed AND #at BETWEEN :since AND :last",
            ExpressionAttributeNames={"#listed": _INDEX.partition_key, "#at": _INDEX.sort_key},
            ExpressionAttributeValues={
                ":listed": _text(listed),
                ":since": _number(since),
                ":last": _number(end - 1),
            },
            ScanIndexForward=False,
            Limit=reports_max,
        )
        return islice(bodies, reports_max)

    def _query(self, **query: Any) -> Iterator[bytes]:  # noqa: ANN401 - boto3's arguments
        """Yield bodies, page by page."""
        ask: Any = self._clients.dynamodb.query
        asked = {"TableName": self._table, **query}
        while True:
            answer = self._requests.run(_QUERY, lambda: ask(**asked))
            yield from map(_body, answer["Items"])
            last = answer.get("LastEvaluatedKey")
            if not last:
                return
            asked["ExclusiveStartKey"] = last


def _job_key(table: TableId, job: JobId) -> str:
    return f"job#{table}#{job}"


def _text(value: str) -> AttributeValueTypeDef:
    return {"S": value}


def _number(value: int) -> AttributeValueTypeDef:
    return {"N": str(value)}


def _body(item: Any) -> bytes:  # noqa: ANN401 - an item as boto3 gives it
    return bytes(item["body"]["B"])
