"""Processing gives the same rows in whatever order rows are taken in, compacted and asked for."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.model.names import Micros
from lakebed.model.processing import ProcessingPass, Stage
from lakebed.processing.row_work import RowWork
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from tests.properties.processings import (
    TIMES,
    Made,
    bag,
    expected,
    tables,
    to_arrow,
    to_rows,
)

File = list[pa.RecordBatch]


def work(made: Made, stage: Stage, at: int, files: Sequence[File], cuts: Sequence[int]) -> File:
    """Do what ingest, compaction and query do: select, sort, merge. cuts: of the sorted stream."""
    given_ = RowWork(made.schema, ProcessingPass(made.processing, Micros(at), stage))
    selected = [given_.selected(batch) for file in files for batch in file]
    keys = [(field.name, "ascending") for field in made.schema.key_fields]
    table = pa.Table.from_batches(selected, arrow_schema(made.schema)).sort_by(keys)

    def windows() -> Iterator[pa.RecordBatch]:
        start = 0
        for rows in (*cuts, len(table)):
            yield from table.combine_chunks().slice(start, rows).to_batches()
            start += rows

    return list(given_.merged(windows()))


@settings(max_examples=100)
@given(made=tables(), data=st.data())
def test_rows_are_the_same_whatever_was_compacted_when(made: Made, data: st.DataObject) -> None:
    times = sorted(data.draw(st.lists(st.sampled_from(TIMES), min_size=3, max_size=6)))
    cuts = st.lists(st.integers(0, 4), max_size=4)
    files: list[File] = []
    rows = []
    for at in times[:-1]:
        if data.draw(st.booleans()) or not files:
            some = data.draw(st.lists(made.rows, min_size=1, max_size=12))
            rows += some
            given_ = [to_arrow(made.schema, some)]
            files.append(work(made, "ingest", at, [given_], data.draw(cuts)))
        else:
            size = data.draw(st.integers(1, len(files)))
            chosen = data.draw(st.permutations(files))
            files = [work(made, "compaction", at, chosen[:size], data.draw(cuts)), *chosen[size:]]
    found = work(made, "query", times[-1], files, data.draw(cuts))
    wanted = expected(made, rows, times[-1])
    assert bag(to_rows(found)) == bag(wanted)
