"""Rows become row groups that are bounded by bytes and by rows."""

import pyarrow as pa
import pytest

from lakebed.query.parquet_objects import ROW_GROUP_ROWS, row_groups_of

BATCH_ROWS = 1 << 16


@pytest.mark.parametrize("is_wide", [False, True])
def test_a_row_group_ends_at_its_bytes_or_its_rows(is_wide: bool) -> None:
    """A bit a row: 40 batches have 330 KB. Wide rows end at their bytes, long before."""
    ids = pa.array(range(BATCH_ROWS), pa.int64())
    column = ids if is_wide else pa.array([True, False] * (BATCH_ROWS // 2))
    batch = pa.record_batch({"a": column})
    found = list(row_groups_of([batch] * 40, bytes_max=4 * ids.nbytes))
    assert pa.concat_tables(found).equals(pa.Table.from_batches([batch] * 40))
    rows = [group.num_rows for group in found]
    if is_wide:
        assert rows == [4 * BATCH_ROWS] * 10
    else:
        assert rows == [ROW_GROUP_ROWS, ROW_GROUP_ROWS, 8 * BATCH_ROWS]
        assert rows[0] <= 1_100_000
