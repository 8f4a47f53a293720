"""Rows of a part of a file that are drawn by lot, from few of its row groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np
import pyarrow as pa

from lakebed.ports.object_store import ObjectReader
from lakebed.ports.sorted_files import ReadFigures
from lakebed.processing.value_order import Indices
from lakebed.sorted_files.reading.column_matching import matched
from lakebed.sorted_files.reading.part_reading import bytes_read, read_part, row_groups_wanted
from lakebed.sorted_files.reading.part_sources import PartRead
from lakebed.sorted_files.reading.tails import Tail


def drawn_rows(
    objects: ObjectReader,
    read: PartRead,
    tail: Tail,
    *,
    draws: int,
    each: int,
    rng: np.random.Generator,
    figures: ReadFigures,
) -> Iterator[pa.RecordBatch]:
    """Yield rows of a part, before processing. A row group is drawn `draws` times with a chance
    like its rows, and gives `each` other rows for each time, or all that it has.

    Reads the row groups that are drawn, and the first and last one where the part begins or ends
    inside of them: how many rows these have is not known else. figures: where that is counted.

    Raises:
        ObjectMissingError: the file is not there. CorruptError: it is damaged. QueryTooLargeError:
            it is more than `figures` allows.
    """
    match = matched(read.columns, tail.columns, path=read.part.path)
    cut: dict[int, list[pa.RecordBatch]] = {}
    rows: dict[int, int] = {}
    for row_group, is_whole in row_groups_wanted(tail, read.wanted, match).items():
        if is_whole:
            rows[row_group] = tail.rows_of(row_group)
        else:
            cut[row_group] = list(_rows_of(objects, read, tail, row_group, figures))
            rows[row_group] = sum(map(len, cut[row_group]))
    total = sum(rows.values())
    if not total:
        return
    times = rng.multinomial(draws, [count / total for count in rows.values()])
    for (row_group, count), drawn in zip(rows.items(), times, strict=True):
        if drawn:
            indices = np.sort(rng.choice(count, min(count, int(drawn) * each), replace=False))
            batches = cut.get(row_group) or _rows_of(objects, read, tail, row_group, figures)
            yield from _taken(batches, indices)


def _rows_of(
    objects: ObjectReader, read: PartRead, tail: Tail, row_group: int, figures: ReadFigures
) -> Iterator[pa.RecordBatch]:
    figures.asked(1, bytes_read(read.part, tail, read.columns, (row_group,)))
    return read_part(
        objects,
        read.part,
        tail,
        columns=read.columns,
        wanted=read.wanted,
        share=read.share,
        among=(row_group,),
    )


def _taken(batches: Iterable[pa.RecordBatch], indices: Indices) -> Iterator[pa.RecordBatch]:
    """Yield rows by their ascending indices among all rows of some batches."""
    first, begin = 0, 0
    for batch in chain(batches):
        end = int(np.searchsorted(indices, first + len(batch)))
        if end > begin:
            yield batch.take(pa.array(indices[begin:end] - first))
        first, begin = first + len(batch), end
