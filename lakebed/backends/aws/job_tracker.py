"""Reports of jobs and tasks in one table of DynamoDB, which forgets them by itself.

| pk | sk | what |
|---|---|---|
| `job#TABLE#JOB` | `at#MICROS#DIGEST` | one report |
| `job#TABLE#JOB` | `newest` | the newest report; in the index, under `TABLE#EVENT` |
| `task#TASK` | `newest` | the newest report of a task; in the index, under `tasks` |

A report of a job takes two puts. The first may be repeated; the second comes with the condition
that no newer report is there. Of many reports the first puts go 25 at once, the second ones 100 in
a transaction, which is half of the requests' cost in units and a fiftieth of their number; all
are on their way at the same time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.items import WRITES_AT_ONCE, Item, Items
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
    replaces,
    report_in,
    reports_in,
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
Condition = dict[str, Any]
"""As boto3 takes it."""

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
        self._items = Items(clients, table)

    def report(self, report: JobReport) -> None:
        """Remember it; it is the newest unless a newer one of the job is known."""
        history = partial(self._put, self._of_history(report))
        newest = self._newest(report), _unless_it_counts_more(report)
        self._clients.at_once.run(
            [partial(self._requests.run, _PUT, history), partial(self._put_newest, *newest)]
        )

    def report_many(self, reports: Sequence[JobReport]) -> None:
        """Remember them all; of each job the newest is the newest, unless a newer one is known."""
        if len(reports) == 1:  # two puts cost less than a transaction
            self.report(reports[0])
            return
        history = {
            (i[PARTITION_KEY]["S"], i[SORT_KEY]["S"]): i for i in map(self._of_history, reports)
        }
        newest: dict[tuple[TableId, JobId], JobReport] = {}
        for report in reports:
            known = newest.get((report.table, report.job))
            if known is None or replaces(report, known):
                newest[report.table, report.job] = report
        puts = [(self._newest(r), _unless_it_counts_more(r)) for r in newest.values()]
        batches = [puts[at : at + WRITES_AT_ONCE] for at in range(0, len(puts), WRITES_AT_ONCE)]
        updates = [partial(self._put_newest_of_many, batch) for batch in batches]
        self._clients.at_once.run([*self._items.puts(list(history.values())), *updates])

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
        if item is None:
            return None
        return report_in(_body(item)) or next(reversed(self.history(table, job)), None)

    def history(self, table: TableId, job: JobId) -> list[JobReport]:
        """Return all reports of a job, oldest first. Strongly consistent."""
        bodies = self._query(
            KeyConditionExpression="pk = :pk AND begins_with(sk, :at)",
            ExpressionAttributeValues={":pk": _text(_job_key(table, job)), ":at": _text("at#")},
            ConsistentRead=True,
        )
        return reports_in(bodies)

    def find(
        self,
        table: TableId,
        *,
        events: Collection[JobEvent] = JOB_EVENTS,
        since: Micros = BEGINNING,
        until: Micros | None = None,
        reports_max: int,
    ) -> list[JobReport]:
        """Return the newest report of each job whose event is one of `events`, newest first.

        Through the index, which lags by less than a second.
        """
        end = _END_OF_TIME if until is None else until
        found = reports_in(
            body
            for event in events
            for body in self._listed(f"{table}#{event}", since, end, reports_max)
        )
        return sorted(found, key=lambda r: -r.at)[:reports_max]

    def report_task(self, report: TaskReport) -> None:
        """Remember how far a task has come."""
        key = f"task#{report.task}"
        item = self._item(key, _NEWEST, report.at, _encode(report)) | _in_index(_TASKS, report.at)
        self._put_newest(item, _unless_newer(report.at))

    def tasks(self, *, reports_max: int) -> list[TaskReport]:
        """Return the newest report of each task, newest first."""
        bodies = self._listed(_TASKS, 0, _END_OF_TIME, reports_max)
        return [_decode_task(body) for body in bodies]

    def forget(self, *, before: Micros) -> None:
        """Do nothing: DynamoDB removes what has expired, within days."""

    def _of_history(self, report: JobReport) -> Item:
        """Return an item under the keys of that which the report renews, if it renews any."""
        first = msgspec.structs.replace(report, renewed=BEGINNING)
        sort_key = f"at#{report.at:020d}#{digest_of(_encode(first)).hex()[:8]}"
        key = _job_key(report.table, report.job)
        return self._item(key, sort_key, report.kept_from, _encode(report))

    def _newest(self, report: JobReport) -> Item:
        key = _job_key(report.table, report.job)
        listed = _in_index(f"{report.table}#{report.event}", report.at)
        return self._item(key, _NEWEST, report.kept_from, _encode(report)) | listed

    def _item(self, key: str, sort_key: str, kept_from: Micros, body: bytes) -> Item:
        return {
            PARTITION_KEY: _text(key),
            SORT_KEY: _text(sort_key),
            _EXPIRY: _number(kept_from // MICROS_PER_SECOND + self._kept_seconds),
            "body": {"B": body},
        }

    def _put_newest(self, item: Item, condition: Condition) -> None:
        with suppress(ConditionError):  # a newer one is there, or this one, by an earlier try
            self._requests.run(_PUT, partial(self._put, item, **condition))

    def _put_newest_of_many(self, items: Sequence[tuple[Item, Condition]]) -> None:
        puts = [{"Put": {"Item": item, **condition}} for item, condition in items]
        try:
            self._items.transact(puts)
        except ConditionError:  # it does not say of which a newer one is there
            for item, condition in items:
                self._put_newest(item, condition)

    def _put(self, item: Item, **condition: Any) -> None:  # noqa: ANN401 - boto3's arguments
        self._clients.dynamodb.put_item(TableName=self._table, Item=item, **condition)

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


def _in_index(under: str, at: Micros) -> Item:
    """Return what puts an item into the index."""
    return {_INDEX.partition_key: _text(under), _INDEX.sort_key: _number(at)}


def _unless_newer(at: Micros) -> Condition:
    """Return the condition, as boto3 takes it, that no newer item is under an item's keys."""
    return {
        "ConditionExpression": "attribute_not_exists(pk) OR #at <= :at",
        "ExpressionAttributeNames": {"#at": _INDEX.sort_key},
        "ExpressionAttributeValues": {":at": _number(at)},
    }


def _unless_it_counts_more(report: JobReport) -> Condition:
    """Return the condition that a report `replaces` the one under its keys."""
    condition = _unless_newer(report.at)
    if report.event == "rejected":
        return condition
    names, values = condition["ExpressionAttributeNames"], condition["ExpressionAttributeValues"]
    names["#listed"] = _INDEX.partition_key
    values[":committed"] = _text(f"{report.table}#committed")
    if report.event == "committed":
        values[":rejected"] = _text(f"{report.table}#rejected")
        other = "NOT (#listed IN (:committed, :rejected))"
        condition["ConditionExpression"] += f" OR {other}"
    else:
        condition["ConditionExpression"] = (
            "attribute_not_exists(pk) OR (#at <= :at AND #listed <> :committed)"
        )
    return condition


def _job_key(table: TableId, job: JobId) -> str:
    return f"job#{table}#{job}"


def _text(value: str) -> AttributeValueTypeDef:
    return {"S": value}


def _number(value: int) -> AttributeValueTypeDef:
    return {"N": str(value)}


def _body(item: Any) -> bytes:  # noqa: ANN401 - an item as boto3 gives it
    return bytes(item["body"]["B"])
