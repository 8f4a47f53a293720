"""Answers queries that came as messages. A small result is the answer; a large one is written
down, and the answer says where. What can never work is refused with the reason, also under the
query's id."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from itertools import chain

import msgspec
import pyarrow as pa

from lakebed.config.messages import QueryMessage, named_in, query_message
from lakebed.errors import InvalidError, LakebedError
from lakebed.model.names import JobId, Micros, RequestDigest, digest_of, run_name
from lakebed.observe import events, usage
from lakebed.ports.clock import Clock
from lakebed.ports.job_queue import message_job
from lakebed.ports.job_tracker import NO_TABLE, JobEvent, JobTracker
from lakebed.query.query_message import condition_in
from lakebed.query.results import Manifest, ResultOf, Results
from lakebed.query.run_query import QueryPlan, RunQuery
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.statestore.open_table import OpenTable
from lakebed.tasks.job_reports import JobReports
from lakebed.user_files.json_text import json_lines

SMALL_BYTES_MAX = 1 << 20
"""Most bytes of a result in memory that is handed over."""
TEXT_BYTES_MAX = 4 << 20
"""Most bytes of the same as text: Lambda hands over 6 MB at the most."""


class QueryAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of a query.

    rows: how many.
    data: lines of JSON, or an Arrow stream as base64.
    manifest: where a result was written down; then there is no data.
    """

    id: str
    table: str
    rows: int
    format: str = ""
    data: str = ""
    manifest: str = ""


class AnswerMessages:
    """Runs queries of messages. find_table: by name. Safe to run twice, and to kill anywhere."""

    def __init__(
        self,
        *,
        query: RunQuery[pa.RecordBatch],
        find_table: Callable[[str], OpenTable],
        results: Results,
        tracker: JobTracker,
        clock: Clock,
    ) -> None:
        self._query = query
        self._find_table = find_table
        self._results = results
        self._clock = clock
        self._reports = JobReports("query", tracker=tracker, clock=clock)

    def answer(self, body: bytes) -> QueryAnswer:
        """Return the answer to a caller that waits for it.

        Raises:
            InvalidError: it can never work; under its id, if it has one, the tracker has the
                reason. Errors of `RunQuery.run`: ask again.
        """
        named = named_in(body).job
        return self._reported(body, named, kept=False)

    def keep(self, body: bytes, *, sent_at: Micros) -> QueryAnswer:
        """Write the result of a queued query down, once by its id. sent_at: of its message.

        Raises:
            As `answer`. Every end is told to the tracker.
        """
        job = named_in(body).job or message_job(body, sent_at)
        return self._reported(body, job, kept=True)

    def _reported(self, body: bytes, job: JobId | None, *, kept: bool) -> QueryAnswer:
        began = self._clock.monotonic()
        table: OpenTable | None = None
        try:
            asked = query_message(body)
            table = self._find_table(asked.table)
            with usage.work("query", table.id):
                answer = self._answer(table, asked, job, _request_of(body), kept=kept)
        except LakebedError as error:
            if job is not None:
                event: JobEvent = "rejected" if isinstance(error, InvalidError) else "failed"
                id_ = NO_TABLE if table is None else table.id
                self._reports.report(id_, job, event, reason=f"{error.code()}: {error}")
            raise
        seconds = self._clock.monotonic() - began
        if job is not None:
            self._reports.report(table.id, job, "finished", rows=answer.rows, seconds=seconds)
        events.emit(
            events.QUERY_ANSWERED,
            table=table.name,
            rows_count=answer.rows,
            kept=bool(answer.manifest),
            seconds=round(seconds, 3),
        )
        return answer

    def _answer(
        self,
        table: OpenTable,
        asked: QueryMessage,
        job: JobId | None,
        request: RequestDigest,
        *,
        kept: bool,
    ) -> QueryAnswer:
        id_ = job or JobId(table.fresh_id())
        if job is not None:
            found = self._results.find(table.id, job, request)
            if found is not None:
                return self._written(table, id_, found)
        plan = self._query.plan(
            table,
            lambda schema: condition_in(asked, schema),
            scan_bytes_max=asked.scan_bytes_max,
            as_of=asked.as_of,
        )
        self._query.check_budget(table, plan)
        columns = _columns(plan, asked)
        batches = self._query.read(table, plan, limit=asked.limit)
        held: list[pa.RecordBatch] = []
        if not kept:
            held, all_held = _small(batches)
            small = _handed_over(id_, asked, held, columns) if all_held else None
            if small is not None:
                return small
        of = ResultOf(table=table.id, name=table.name, job=id_, request=request, number=plan.number)
        run = run_name(table.fresh_run())
        written = self._results.write(chain(held, batches), columns, of, run)
        return self._written(table, id_, written)

    def _written(self, table: OpenTable, job: JobId, manifest: Manifest) -> QueryAnswer:
        address = self._results.address(table.id, job)
        return QueryAnswer(id=job, table=table.name, rows=manifest.rows, manifest=address)


def _request_of(body: bytes) -> RequestDigest:
    """Return what stands for a message, however its sender spaces and orders it."""
    decoded = msgspec.json.decode(body)
    return digest_of(msgspec.json.encode(decoded, order="deterministic"))


def _columns(plan: QueryPlan, asked: QueryMessage) -> pa.Schema:
    whole = arrow_schema(plan.schema)
    return whole if asked.columns is None else pa.schema([whole.field(n) for n in asked.columns])


def _small(batches: Iterator[pa.RecordBatch]) -> tuple[list[pa.RecordBatch], bool]:
    """Return the first rows, and whether these are all."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size > SMALL_BYTES_MAX:
            return held, False
    return held, True


def _handed_over(
    job: JobId, asked: QueryMessage, batches: list[pa.RecordBatch], columns: pa.Schema
) -> QueryAnswer | None:
    """Return an answer with its rows; None: as text they are too many."""
    if asked.format == "arrow":
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, columns) as out:
            for batch in batches:
                out.write_batch(batch)
        text = base64.b64encode(sink.getvalue()).decode()
    else:
        text = b"".join(bytes(json_lines(batch)) for batch in batches).decode()
    if len(text) > TEXT_BYTES_MAX:
        return None
    rows = sum(batch.num_rows for batch in batches)
    return QueryAnswer(id=job, table=asked.table, rows=rows, format=asked.format, data=text)
