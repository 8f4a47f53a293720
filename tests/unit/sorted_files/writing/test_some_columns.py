"""Files with some of a table's columns, in any order, for other programs: encoded as all are."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.model.schema import schema_of
from tests.unit.sorted_files.writing.test_encoding_row_groups import (
    FLAT,
    are_alike,
    file_of,
    read,
    row_groups,
    rows_of,
)


@settings(max_examples=20, deadline=None)
@given(row_groups(), st.data())
def test_some_columns_in_any_order_are_written_as_all_are(
    rows: pa.Table, data: st.DataObject
) -> None:
    """Without the first key, a second one is not sorted: its bounds are those of all its values."""
    names = data.draw(st.permutations(rows.column_names))
    columns = names[: data.draw(st.integers(1, len(names)))]
    some = rows.select(columns)
    ours, theirs = (
        file_of(FLAT, [some], compiled=compiled, columns=columns) for compiled in (True, False)
    )
    assert read(ours).equals(some)
    assert read(theirs).equals(some)
    are_alike(ours, theirs)


def test_a_second_key_without_the_first_is_not_taken_for_sorted() -> None:
    schema = schema_of(row_keys={"k": "string", "j": "string"}, values={"n": "int64"})
    rows = rows_of(schema, {"k": ["a", "b", "c"], "j": ["y", "x", "z"], "n": [1, 2, 3]})
    some = rows.select(["n", "j"])
    ours, theirs = (
        file_of(schema, [some], compiled=compiled, columns=["n", "j"]) for compiled in (True, False)
    )
    are_alike(ours, theirs)
    bounds = pq.read_metadata(io.BytesIO(ours)).row_group(0).column(1).statistics
    assert (bounds.min, bounds.max) == ("x", "z")
