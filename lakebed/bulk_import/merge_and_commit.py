"""The second stage of a bulk import, and its one commit: files for leaves, and the leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from lakebed.bulk_import.place_rows import PlacedFile, Placement, PlaceRows, is_leaf
from lakebed.bulk_import.plan import file_rows, plan_merges
from lakebed.bulk_import.work import (
    BegunImport,
    Cluster,
    FileMerged,
    answers_in,
    check_numbers,
    encode,
)
from lakebed.errors import ConflictError
from lakebed.model.names import CommitId, TransactionNumber
from lakebed.observe import events
from lakebed.sorted_files.sorting.stored_runs import StoredRun
from lakebed.statestore.log_entries.file_changes import AddFiles
from lakebed.statestore.log_entries.transactions import Change
from lakebed.statestore.open_table import OpenTable

SPLIT_TRIES = 5
"""Commits with splits that meet other splits of the same leaves. Then rows come in without:
the schedule splits leaves, too."""


class Committed(NamedTuple):
    """An import's commit: its number in the log, and what it did."""

    number: TransactionNumber
    placement: Placement


class MergeAndCommit:
    """Makes files of sorted runs, and commits them together with the leaves that they are for."""

    def __init__(self, placing: PlaceRows) -> None:
        self._placing = placing

    def merge(
        self,
        table: OpenTable,
        begun: BegunImport,
        sorted_runs: Sequence[StoredRun],
        cluster: Cluster,
        on_progress: Callable[[str], None],
    ) -> list[PlacedFile]:
        """Do the second stage. Returns what its files hold, in key order.

        Raises:
            As `PlaceRows.targets`, and what a task or the cluster answers.
        """
        targets = self._placing.targets(table, begun, sorted_runs)
        rows = sum(block.rows for sorted_run in sorted_runs for block in sorted_run.blocks)
        planned = plan_merges(
            sorted_runs,
            targets,
            shared_file_rows_max=table.settings().shared_file_rows_max,
            rows_each=file_rows(rows, cluster.tasks_at_once),
        )
        if new := sum(target.is_new for target in targets):
            on_progress(f"cutting leaves into {new:,} new ones")
        on_progress(f"merging {rows:,} rows into {len(planned):,} files")
        bodies = cluster.merge(encode(begun.job), [encode(work) for _, work in planned])
        answers, error = answers_in(bodies, FileMerged)
        if error is not None:
            raise error
        check_numbers([answer.number for answer in answers], len(planned))
        placed: list[PlacedFile] = []
        for answer in sorted(answers, key=lambda answer: answer.number):
            if answer.written is None:  # processing left no rows
                continue
            indices, work = planned[answer.number]
            for index, part in zip(indices, answer.written.key_ranges, strict=True):
                if part is not None:
                    one = PlacedFile(targets[index], answer.written.file, part, work.key_range)
                    placed.append(one)
        if not begun.job.table_text.processing and sum(one.written.rows for one in placed) != rows:
            raise AssertionError("no row is lost on the way")
        return placed

    def commit(
        self, table: OpenTable, begun: BegunImport, files: Sequence[PlacedFile]
    ) -> Committed:
        """Make the rows of files visible, and split leaves in the same transaction.

        When another has split one of these leaves meanwhile, it is planned anew, for the tree as it
        is then: files stay what they are.

        Raises:
            As `TableHead.commit` and `PlaceRows.placement`; nothing became visible.
        """
        run = begun.run
        for tries in range(SPLIT_TRIES + 1):
            placement = self._placing.placement(table, begun, files, may_split=tries < SPLIT_TRIES)
            changes: tuple[Change, ...] = (*placement.splits, AddFiles(placement.references))
            commit = table.of_user(run.start, CommitId(run.job), begun.digest, *changes)
            try:
                number = table.head.commit(commit)
            except ConflictError:
                if not _split_by_others(table, placement):
                    raise
                continue
            if placement.splits:
                count = len(placement.splits)
                events.emit(events.PARTITIONS_SPLIT, table=table.name, partitions_count=count)
            return Committed(number, placement)
        raise AssertionError("a commit without splits meets none")


def _split_by_others(table: OpenTable, placement: Placement) -> bool:
    """Return whether some leaf that was to be split is no leaf any more."""
    with table.head.reading() as state:
        return not all(is_leaf(state, split.partition) for split in placement.splits)
