"""Decides whether an expression of Arrow may keep a row of a group, from the bounds of its columns.

The expression stays opaque to us: Arrow itself simplifies it by what is known of a row
group, as it does with the parts of a data set, and shows whether it can still be true.
"""

from __future__ import annotations

from functools import reduce
from operator import and_

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.model.predicates.bounds import BoundsOf, FieldBounds


def expression_may_keep(expression: pc.Expression, columns: pa.Schema, bounds: BoundsOf) -> bool:
    """Return whether an expression may be true for some row. columns: those that it looks at."""
    known = [_known(column, bounds(column.name)) for column in columns]
    clauses = [clause for clause in known if clause is not None]
    if not clauses:
        return True
    from pyarrow import dataset, fs  # noqa: PLC0415  40 ms, of no use to a lookup

    parquet, nowhere = dataset.ParquetFileFormat(), fs.LocalFileSystem()
    row_group = parquet.make_fragment(
        "never opened", filesystem=nowhere, partition_expression=reduce(and_, clauses)
    )
    row_groups = dataset.FileSystemDataset([row_group], columns, parquet, nowhere)
    try:
        return bool(list(row_groups.get_fragments(filter=expression)))
    except (pa.ArrowException, TypeError, ValueError):
        return True  # computing it for the rows raises the error


def _known(column: pa.Field, bounds: FieldBounds) -> pc.Expression | None:
    """Return what holds for every row, in the one form that Arrow understands; None: nothing.

    Of floats nothing: their bounds leave NaN out, which an expression may keep.
    """
    own = pc.field(column.name)
    if not bounds.may_have_values:
        return own.is_null()
    if bounds.least is None or bounds.most is None or pa.types.is_floating(column.type):
        return None
    try:
        least, most = (pa.scalar(end, column.type) for end in (bounds.least, bounds.most))
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
    ends = [own >= pc.scalar(least), own <= pc.scalar(most)]
    if bounds.may_be_null:
        ends = [end | own.is_null() for end in ends]
    return reduce(and_, ends)
