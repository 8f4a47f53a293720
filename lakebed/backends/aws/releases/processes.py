"""Reports of processes, in the table of DynamoDB that holds reports of jobs.

pk: `process#NAME`. sk: `newest`. body: the report. In the index under `processes`; forgotten after
a day. Functions write such items and no others: their roles name the beginning of the key.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.items import IS_NEW, Items, WriteCondition
from lakebed.backends.aws.requests import ConditionError, Patience, Request
from lakebed.backends.aws.service_answers import AMAZON_TABLE
from lakebed.config.dynamo_tables import PARTITION_KEY, PROCESS_PREFIX, SORT_KEY, TRACKER_TABLE
from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.ports.processes import SILENT_SECONDS, ProcessReport, encode_process, process_in

KEPT_SECONDS = 86_400
REPORT_PATIENCE = Patience(tries_max=2, seconds_max=2.0)
"""The next report comes soon: none holds up a function's work for long."""

_LISTED = "processes"
_NEWEST = "newest"
_QUERY = Request(what="reading reports of processes", needs="dynamodb:Query")
assert TRACKER_TABLE.index is not None, "the tracker's table has an index"
assert TRACKER_TABLE.expiry is not None, "the tracker's items expire"
_INDEX, _EXPIRY = TRACKER_TABLE.index, TRACKER_TABLE.expiry


class DynamoProcessReports:
    """Reports of processes, in a table of the shape `TRACKER_TABLE`."""

    def __init__(self, clients: AmazonClients, table: str) -> None:
        self._clients = clients
        self._table = table
        self._items = Items(clients, table, patience=REPORT_PATIENCE)
        self._requests = clients.requests(AMAZON_TABLE, table)

    def report(self, report: ProcessReport) -> None:
        """Remember it, in place of an older one."""
        item = {
            PARTITION_KEY: {"S": f"{PROCESS_PREFIX}{report.process}"},
            SORT_KEY: {"S": _NEWEST},
            _EXPIRY: {"N": str(report.at // MICROS_PER_SECOND + KEPT_SECONDS)},
            _INDEX.partition_key: {"S": _LISTED},
            _INDEX.sort_key: {"N": str(report.at)},
            "body": {"B": encode_process(report)},
        }
        is_newest = WriteCondition(
            f"{IS_NEW} OR #at <= :at",
            {":at": {"N": str(report.at)}},
            {"#at": _INDEX.sort_key},
        )
        with suppress(ConditionError):  # a newer one is there, or this one, by an earlier try
            self._items.put(item, is_newest)

    def living(self, now: Micros) -> list[ProcessReport]:
        """Return the processes that may live, through the index, which lags by less than a
        second."""
        since = now - SILENT_SECONDS * MICROS_PER_SECOND
        reports = [process_in(body) for body in self._bodies(since)]
        found = [one for one in reports if one is not None and not one.ended]
        return sorted(found, key=lambda one: one.process)

    def _bodies(self, since: int) -> Iterator[bytes]:
        ask: Any = self._clients.dynamodb.query
        asked: dict[str, Any] = {
            "TableName": self._table,
            "IndexName": _INDEX.name,
            "KeyConditionExpression": "#listed = :listed AND #at >= :since",
            "ExpressionAttributeNames": {"#listed": _INDEX.partition_key, "#at": _INDEX.sort_key},
            "ExpressionAttributeValues": {
                ":listed": {"S": _LISTED},
                ":since": {"N": str(since)},
            },
        }
        while True:
            answer = self._requests.run(_QUERY, lambda: ask(**asked))
            yield from (bytes(item["body"]["B"]) for item in answer["Items"])
            last = answer.get("LastEvaluatedKey")
            if not last:
                return
            asked["ExclusiveStartKey"] = last
