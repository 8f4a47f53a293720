"""Tests of rows by their values: predicates, and expressions of Arrow that a user made."""

from __future__ import annotations

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import InvalidError
from lakebed.model.predicates.bounds import BoundsOf, may_keep
from lakebed.model.predicates.language import Predicate, checked_predicate, fields_of
from lakebed.model.predicates.text import predicate_from_text
from lakebed.model.schema import Schema
from lakebed.processing.predicate_masks import kept
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.sorted_files.reading.expressions.bounds import expression_may_keep
from lakebed.sorted_files.reading.expressions.implied import implied_by

HINT = 'write "fare >= 4", lakebed.field("fare") >= 4, or pyarrow.compute.field("fare") >= 4'


class PredicateTest(msgspec.Struct, frozen=True):
    """A predicate that was checked against the schema."""

    predicate: Predicate

    @property
    def fields(self) -> frozenset[str]:
        """Return the names of the fields that the test looks at."""
        return fields_of(self.predicate)

    @property
    def implied(self) -> Predicate:
        """Return what is true of every row that is kept."""
        return self.predicate

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that are kept, in order."""
        return kept(batch, self.predicate)

    def may_keep(self, bounds: BoundsOf) -> bool:
        """Return whether the test may keep some row of a group with these bounds."""
        return may_keep(self.predicate, bounds)


class ExpressionTest(msgspec.Struct, frozen=True):
    """An expression of Arrow.

    columns: those that it looks at, and perhaps others.
    implied: what is true of every row that is kept, and perhaps of others; None: nothing is known.
    """

    expression: pc.Expression
    columns: pa.Schema
    implied: Predicate | None

    @property
    def fields(self) -> frozenset[str]:
        """Return the names of its columns."""
        return frozenset(self.columns.names)

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that are kept, in order. Raises: InvalidError, where it fails."""
        return batch.filter(_computed(self.expression, batch))

    def may_keep(self, bounds: BoundsOf) -> bool:
        """Return whether it may keep some row of a group with these bounds, as far as Arrow can
        tell."""
        if self.implied is not None and not may_keep(self.implied, bounds):
            return False
        return expression_may_keep(self.expression, self.columns, bounds)


RowTest = PredicateTest | ExpressionTest


def row_test(where: object, schema: Schema) -> RowTest:
    """Return the test that a user's predicate, its text, or an expression stands for.

    Raises:
        InvalidError: an unknown field, a wrong type, text that is no predicate, something else.
    """
    if isinstance(where, pc.Expression):
        implied, is_all = implied_by(where, schema)
        if implied is not None and is_all:
            return PredicateTest(implied)
        return ExpressionTest(where, _columns_of_expression(where, schema), implied)
    if isinstance(where, str):
        where = predicate_from_text(where)
    if isinstance(where, Predicate):
        return PredicateTest(checked_predicate(where, schema))
    raise InvalidError("not a predicate", got=type(where).__name__, hint=HINT)


def _columns_of_expression(expression: pc.Expression, schema: Schema) -> pa.Schema:
    """Return columns from which it can be computed, all that it looks at and perhaps others: an
    expression does not tell them."""
    columns = arrow_schema(schema)
    try:
        text = str(expression)
    except UnicodeDecodeError:  # of a literal that is binary
        text = ""
    if "FieldPath(" in text:
        raise InvalidError("an expression names columns by position", hint="name the fields")
    _computed(expression, _no_rows(columns))
    if not text:
        return columns
    named = pa.schema([column for column in columns if column.name in text])
    try:
        _computed(expression, _no_rows(named))
    except InvalidError:
        return columns
    return named


def _no_rows(columns: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0, c.type) for c in columns], schema=columns)


def _computed(expression: pc.Expression, batch: pa.RecordBatch) -> pa.Array:
    """Return true, false or null for each row, in order."""
    from pyarrow import acero  # noqa: PLC0415  40 ms, of no use to a lookup

    rows = acero.TableSourceNodeOptions(pa.Table.from_batches([batch]))
    steps = [
        acero.Declaration("table_source", rows),
        acero.Declaration("project", acero.ProjectNodeOptions([expression], ["kept"])),
    ]
    try:
        found = acero.Declaration.from_sequence(steps).to_table(use_threads=False).column("kept")
    except (pa.ArrowException, TypeError, ValueError) as error:
        problem = str(error).splitlines()[0]
        raise InvalidError(
            "an expression cannot be computed", problem=problem, hint=HINT
        ) from error
    if not pa.types.is_boolean(found.type):
        hint = "compare it with a value"
        raise InvalidError("an expression is not true or false", type=found.type, hint=hint)
    return found.combine_chunks()
