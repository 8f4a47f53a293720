"""The async twin of `lakebed.face.scanned_table`.

Made by `make docs` from `lakebed/face/scanned_table.py`; change it there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from lakebed.aio.batches import Batches
from lakebed.aio.read_table import ReadTable
from lakebed.face.scanned_table import ScannedTable as SyncScannedTable
from lakebed.model.predicates.language import Predicate
from lakebed.model.versions import AsOf

if TYPE_CHECKING:
    from lakebed.query.datasets import TableDataset


class ScannedTable(ReadTable):
    """A table that is read as a whole: by engines, and by who needs no order."""

    _sync: SyncScannedTable

    def scan(
        self,
        *,
        keys: Sequence[object] | None = None,
        ranges: Sequence[Mapping[str, object]] | Mapping[str, object] | None = None,
        columns: Sequence[str] | str | None = None,
        where: Predicate | pc.Expression | str | None = None,
        limit: int | None = None,
        scan_bytes_max: int | None = None,
        as_of: AsOf | None = None,
    ) -> Batches:
        """Return the rows of one version in any order, another one each time: several times as
        fast as `query`, where the table's processing makes no row of several.

        Takes what `query` takes, but no iterator, and raises the same.
        """
        return Batches(
            self._calls,
            lambda: self._sync.scan(
                keys=keys,
                ranges=ranges,
                columns=columns,
                where=where,
                limit=limit,
                scan_bytes_max=scan_bytes_max,
                as_of=as_of,
            ),
        )

    async def dataset(self, *, as_of: AsOf | None = None) -> TableDataset:
        """Return one version as a data set of Arrow, which engines read in parallel and with
        their filters: `duckdb.sql("from trips")` where `trips` is one, DataFusion, Polars. It stays
        at that version.

        as_of: as in `query`; None for the newest.

        Raises:
            InvalidError: a version that lies ahead, an unknown tag.
            VersionExpiredError: an older version is not kept any more. While reading: the version
                was collected; make a new data set.
        """
        return await self._calls.run(lambda: self._sync.dataset(as_of=as_of))
