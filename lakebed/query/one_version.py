"""One version of a table, in which several queries are planned, whatever is committed meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, TypeVar

from lakebed.model.names import TransactionNumber
from lakebed.model.schema import Schema
from lakebed.model.versions import AsOf
from lakebed.observe import usage
from lakebed.ports.sorted_files import Selection
from lakebed.query.asked_files import AskedKeys, LeafFiles, leaves_of
from lakebed.query.conditions import everything_of
from lakebed.query.run_query import QueryPlan, RunQuery, plan_of
from lakebed.query.scan_caps import scan_cap
from lakebed.statestore.open_table import OpenTable, again_if_damaged
from lakebed.statestore.table_state.state import TableState

BatchT = TypeVar("BatchT")


class OneVersion(Generic[BatchT]):
    """The newest version when this was made, or an older one. Of its leaves and files it reads
    those that a query reaches, when that is planned: from the newest state while that is of this
    version, afterwards from the past one of its number.

    as_of: the version; None: the newest.

    Raises:
        TableMissingError: the table was dropped. As `PastVersions.reading`.
    """

    def __init__(
        self, query: RunQuery[BatchT], table: OpenTable, *, as_of: AsOf | None = None
    ) -> None:
        self.query = query
        self.table = table
        self._as_of = as_of
        with usage.work("query", table.id):
            usage.count("queries")
            again_if_damaged(self._read)

    def _read(self) -> None:
        with self.query.version(self.table, self._as_of) as state:
            self.number: TransactionNumber = state.head().number
            self.schema: Schema = state.schema()
            self._settings = state.settings()
            self.scan_bytes_max = self._settings.scan_bytes_max
            at = None if self._as_of is None else state.head().at
            self._processing = self.table.processing(state, "query", at=at)

    def cap(self, asked: object) -> None:
        """Let queries read less than the table allows. Raises: InvalidError, as `scan_cap`."""
        self.scan_bytes_max = scan_cap(self.scan_bytes_max, asked)

    def leaves(self, asked: AskedKeys) -> Sequence[LeafFiles]:
        """Return the leaves that may hold what is asked for, in key order.

        Raises:
            VersionExpiredError: the version is not known any more. TableMissingError: the table
                was dropped.
        """
        return again_if_damaged(lambda: self._leaves(asked))

    def _leaves(self, asked: AskedKeys) -> Sequence[LeafFiles]:
        with self._state() as state:
            return leaves_of(state, asked)

    @contextmanager
    def _state(self) -> Iterator[TableState]:
        with self.table.head.reading(at_least=self.number) as newest:
            if newest.head().number == self.number:
                yield newest
                return
        with self.query.version(self.table, self.number) as past:
            yield past

    def plan(self, condition: Selection, leaves: Sequence[LeafFiles] | None = None) -> QueryPlan:
        """Return which files answer a query. leaves: of which; None: of all.

        Raises:
            VersionExpiredError: an older version is not kept any more. As `leaves`.
            InvalidError: the table's budget of this month has no more for it.
        """
        asked = AskedKeys(self.schema, condition.reached)
        if leaves is None:
            reached = self.leaves(asked)
        else:
            reached = [leaf for leaf in leaves if asked.may_be_in(leaf.key_range)]
        bare = QueryPlan(
            self.number,
            self.schema,
            (),
            condition,
            processing=self._processing,
            scan_bytes_max=self.scan_bytes_max,
            settings=self._settings,
        )
        plan = plan_of(self.table, asked, reached, bare)
        self.query.check_budget(self.table, plan)
        return plan if self._as_of is None else self.query.check_kept(self.table, plan)

    def narrows(self, condition: Selection | None) -> bool:
        """Return whether a condition leaves out keys."""
        return condition is not None and condition.reached != (everything_of(self.schema),)
