"""Split leaves that hold too many rows, or too many bytes. Reads only tails of files: their
samples give the points."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from lakebed.config.settings import TableSettings
from lakebed.errors import ConflictError, CorruptError, LakebedError, ObjectMissingError
from lakebed.model.files import FilePart
from lakebed.model.names import PartitionId
from lakebed.model.samples import Sample, shares_of, split_points
from lakebed.model.schema import Schema
from lakebed.observe import events
from lakebed.ports.sorted_files import FilesWithSamples
from lakebed.statestore.log_entries.table_changes import MarkUnsplittable, Split
from lakebed.statestore.open_table import OpenTable, start_of
from lakebed.statestore.table_state.file_parts import bytes_of
from lakebed.statestore.table_state.placing import own_key_range
from lakebed.statestore.table_state.state import LeafFigures, TableState

PARTS_MAX = 64
"""Leaves that one split makes at the most."""


class SplitLeaves:
    """Splits the leaves of a table that need it. Safe to kill anywhere, and to run twice at
    once."""

    def __init__(self, *, files: FilesWithSamples) -> None:
        self._files = files

    def run(self, table: OpenTable) -> int:
        """Split each leaf above a threshold once. Returns how many were split.

        Raises:
            CorruptError: a file of a leaf is damaged; all other leaves were split.
        """
        with table.head.reading() as state:
            start = start_of(state)
            settings = state.settings()
            parts = _parts_due(table, state, settings)
            if not parts:
                return 0
            schema = state.schema()
        changes, damage = list[Split | MarkUnsplittable](), None
        for leaf, own in parts.items():
            try:
                change = self._plan(schema, leaf, own, settings)
            except ObjectMissingError:
                continue  # compacted and collected meanwhile: the next tick looks again
            except CorruptError as error:  # raised when the other leaves are split
                damage = damage or error
                continue
            if change is not None:
                changes.append(change)
        answers = table.head.commit_group([table.own(start, change) for change in changes])
        split = 0
        for change, answer in zip(changes, answers, strict=True):
            if not isinstance(answer, LakebedError):
                split += isinstance(change, Split)
            elif not isinstance(answer, ConflictError):
                raise answer
        if split:
            events.emit(events.PARTITIONS_SPLIT, table=table.name, partitions_count=split)
        if damage is not None:
            raise damage
        return split

    def preview(self, table: OpenTable) -> dict[PartitionId, tuple[bytes, ...]]:
        """Return where each leaf would be split now, by its number: encodings of leading key
        fields. Changes nothing. A leaf whose files cannot be read is left out."""
        with table.head.reading() as state:
            settings, schema = state.settings(), state.schema()
            parts = _parts_due(table, state, settings)
        found: dict[PartitionId, tuple[bytes, ...]] = {}
        for leaf, own in parts.items():
            with suppress(ObjectMissingError, CorruptError):
                change = self._plan(schema, leaf, own, settings)
                if isinstance(change, Split):
                    found[leaf.partition] = tuple(change.points)
        return found

    def _plan(
        self,
        schema: Schema,
        leaf: LeafFigures,
        parts: Sequence[FilePart],
        settings: TableSettings,
    ) -> Split | MarkUnsplittable | None:
        """Return what becomes of a leaf; None: its samples show that it is not too large."""
        samples = {part.file.name: self._files.sample(schema, part) for part in parts}
        rows = sum(rows_of(part, samples[part.file.name]) for part in parts)
        size = sum(part.file.size * samples[part.file.name].share for part in parts)
        rows_max = rows_with_room(rows, size, settings)
        if rows <= rows_max:
            return None
        wanted = min(PARTS_MAX, max(2, -(-2 * rows // rows_max) - 1))
        points = split_points(list(samples.values()), wanted, schema.row_keys)
        if not points:
            return MarkUnsplittable(leaf.partition, leaf.rows)
        shares = tuple((name, shares_of(sample, points)) for name, sample in samples.items())
        return Split(leaf.partition, points, tuple(s for s in shares if s[1]))


def _parts_due(
    table: OpenTable, state: TableState, settings: TableSettings
) -> dict[LeafFigures, list[FilePart]]:
    """Return the files of each leaf that is to be split."""
    return {
        leaf: [
            table.part(reference, own_key_range(state, leaf.partition))
            for reference, _ in state.references(leaf.partition)
        ]
        for leaf in state.leaf_figures()
        if is_due(state, leaf, settings)
    }


def is_due(state: TableState, leaf: LeafFigures, settings: TableSettings) -> bool:
    """Return whether a leaf is to be split, by what the state knows; one without a split point is
    asked again when it has doubled (H22)."""
    has_grown = leaf.rows >= 2 * leaf.rows_unsplittable
    if not has_grown or leaf.rows > settings.leaf_rows_max:
        return has_grown
    # The figure counts whole objects, also where the leaf has a part of them.
    if leaf.size <= settings.leaf_bytes_max:
        return False
    references = [reference for reference, _ in state.references(leaf.partition)]
    return bytes_of(state, references) > settings.leaf_bytes_max


def rows_with_room(rows: int, size: float, settings: TableSettings) -> int:
    """Return how many rows a leaf may hold, if so many take so many bytes."""
    if size <= settings.leaf_bytes_max:
        return settings.leaf_rows_max
    return max(1, min(settings.leaf_rows_max, int(rows * settings.leaf_bytes_max / size)))


def rows_of(part: FilePart, sample: Sample) -> int:
    """Return how many rows of a file lie in its part, by its sample: exact for a whole file, else
    to a stride. The state's figure is a share by the sample of a larger part, or an even one."""
    return sample.rows if sample.keys else min(part.rows, sample.stride)
