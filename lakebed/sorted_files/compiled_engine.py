"""Rows put in order by `lakebed.kernels`: loops over addresses of Arrow buffers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from lakebed.kernels.sorting import sort_order
from lakebed.model.schema import Field
from lakebed.sorted_files.compiled_merge import CompiledMerge
from lakebed.sorted_files.engines import PLAIN
from lakebed.sorted_files.gathered_rows import (
    SEGMENTS_MAX,
    addresses_of,
    gathered,
    kind_of,
)
from lakebed.sorted_files.merging import Source
from lakebed.sorted_files.row_groups import GROUP_ROWS_MAX

_FOLDED_ROWS_MAX = 4 * GROUP_ROWS_MAX
"""Of rows that are folded together: fewer come out."""


class CompiledEngine:
    """Merges by a tree of losers, sorts by radix, gathers without a copy in between."""

    def merge(
        self,
        sources: Sequence[Source],
        fields: Sequence[Field],
        folds: Mapping[str, str] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        rows_max = GROUP_ROWS_MAX if folds is None else _FOLDED_ROWS_MAX
        return CompiledMerge(sources, fields, rows_max=rows_max, folds=folds).batches()

    def sort(
        self, batches: list[pa.RecordBatch], fields: Sequence[Field]
    ) -> Iterator[pa.RecordBatch]:
        if len(batches) >= SEGMENTS_MAX:
            return PLAIN.sort(batches, fields)
        filled = [batch for batch in batches if len(batch)]
        batches.clear()
        return self._sort(filled, fields)

    def _sort(
        self, batches: list[pa.RecordBatch], fields: Sequence[Field]
    ) -> Iterator[pa.RecordBatch]:
        kinds = [kind_of(batches[0].column(field.name).type) for field in fields]
        found = [
            [addresses_of(batch.column(field.name), kind) for batch in batches]
            for field, kind in zip(fields, kinds, strict=True)
            if kind is not None  # every key type has one
        ]
        places = np.array(found, np.int64)
        starts = np.cumsum([0, *map(len, batches)], dtype=np.int64)
        segments = np.empty(starts[-1], np.uint16)
        rows = np.empty(starts[-1], np.int32)
        sort_order(
            np.array(kinds, np.int64),
            np.ascontiguousarray(places[:, :, 0]),
            np.ascontiguousarray(places[:, :, 1]),
            starts,
            (max(map(len, batches)) - 1).bit_length(),
            segments,
            rows,
        )
        yield from gathered(batches, [(0, len(batch)) for batch in batches], segments, rows)


COMPILED = CompiledEngine()
