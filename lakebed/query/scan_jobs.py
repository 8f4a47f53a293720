"""Parts of a plan for processes that have the lake's objects, and no state.

Driver and tasks run the same release, so these forms have no format number; nothing stores them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import msgspec
import pyarrow as pa

from lakebed.errors import CorruptError, InvalidError, ObjectMissingError, VersionExpiredError
from lakebed.model.files import FilePart
from lakebed.model.names import Micros, TransactionNumber
from lakebed.model.predicates.language import (
    checked_predicate,
    predicate_from_json,
    predicate_json,
)
from lakebed.model.processing import ProcessingPass
from lakebed.model.ranges import Box
from lakebed.model.schema import Schema
from lakebed.model.table_text import TableText, table_text
from lakebed.ports.sorted_files import Selection, SortedFiles
from lakebed.query.run_query import QueryPlan
from lakebed.sorted_files.reading.row_tests import PredicateTest


class ScanJob(msgspec.Struct, frozen=True, kw_only=True):
    """The description of a scan that all its tasks share.

    number: of the version.
    at: the instant by which old rows are left out.
    boxes, columns: as a `Selection` has them.
    where: a predicate as JSON; None: all rows.
    """

    table: str
    number: TransactionNumber
    table_text: TableText
    at: Micros
    boxes: tuple[Box, ...]
    columns: tuple[str, ...] | None
    where: str | None

    def schema(self) -> Schema:
        """Return the table's schema, as the version has it."""
        return self.table_text.schema()

    def condition(self) -> Selection:
        """Return which rows and columns are read."""
        test = None
        if self.where is not None:
            found = predicate_from_json(json.loads(self.where))
            test = PredicateTest(checked_predicate(found, self.schema()))
        return Selection(self.boxes, self.columns, test)

    def processing(self) -> ProcessingPass | None:
        """Return what is done with rows."""
        found = self.table_text.row_processing()
        return None if found is None else ProcessingPass(found, self.at, "query")


def scan_job(table: str, plan: QueryPlan) -> ScanJob:
    """Return a plan without its leaves. table: its name, for errors.

    Raises:
        InvalidError: the plan's predicate is an expression of Arrow, which cannot be sent.
    """
    condition, processing = plan.condition, plan.processing
    assert condition is not None, "a user's plan has one"
    return ScanJob(
        table=table,
        number=plan.number,
        table_text=table_text(plan.schema, None if processing is None else processing.processing),
        at=Micros(0) if processing is None else processing.at,
        boxes=condition.boxes,
        columns=condition.columns,
        where=where_text(condition, plan.schema),
    )


def where_text(condition: Selection, schema: Schema) -> str | None:
    """Return the predicate of a condition as JSON; None: there is none.

    Raises:
        InvalidError: it is an expression of Arrow, which cannot be sent.
    """
    if condition.where is None:
        return None
    if not isinstance(condition.where, PredicateTest):
        hint = 'write it as a predicate, for instance lakebed.field("fare") >= 4'
        raise InvalidError("an expression of Arrow cannot be sent to tasks", hint=hint)
    return json.dumps(predicate_json(condition.where.predicate, schema))


def read_leaves(
    files: SortedFiles[pa.RecordBatch], job: ScanJob, leaves: Sequence[Sequence[FilePart]]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of some leaves of a plan, in key order.

    Raises:
        VersionExpiredError: a file is gone. CorruptError: one is damaged. As processing does.
    """
    try:
        yield from files.read(job.schema(), leaves, job.condition(), processing=job.processing())
    except ObjectMissingError as error:
        hint = f"read the table again; if that fails too, run `lakebed fsck {job.table}`"
        facts = {"table": job.table, "number": job.number, **error.facts}
        raise VersionExpiredError("a file of the version is gone", hint=hint, **facts) from error
    except CorruptError as error:
        hint = f"`lakebed fsck --deep {job.table}` finds it; restore the object from a copy"
        facts = {"table": job.table, **error.facts}
        raise CorruptError(error.message, hint=hint, **facts) from error
