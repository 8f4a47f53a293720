"""Decides where the rows of a bulk import go: to leaves as they are now, and to those that its
commit makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from typing import NamedTuple

from lakebed.bulk_import.plan_leaves import (
    FilledLeaf,
    Load,
    RowTarget,
    WeightedKeys,
    allowed_cuts,
    chosen_cuts,
    inside,
    parts_wanted,
    rows_of,
    targets_of,
    weights_by_key_range,
)
from lakebed.bulk_import.work import BegunImport
from lakebed.errors import CorruptError, GenerationError, ObjectMissingError
from lakebed.model.files import FilePart, FileReference, KeyBounds, StoredFile
from lakebed.model.names import FileName, Generation, PartitionId
from lakebed.model.ranges import EVERYTHING, KeyRange
from lakebed.model.samples import Sample, shares_of
from lakebed.model.schema import Schema
from lakebed.ports.sorted_files import FilesWithSamples, RowsWritten
from lakebed.sorted_files.sorting.stored_runs import StoredRun
from lakebed.statestore.log_entries.table_changes import Split
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.leaves import Leaves, refuse_if_busy
from lakebed.statestore.table_state.placing import own_key_range, reached_leaves
from lakebed.statestore.table_state.state import LeafFigures, TableState


class PlacedFile(NamedTuple):
    """Rows of a file that lie in a target.

    key_range: all rows of the file lie in it.
    """

    target: RowTarget
    file: StoredFile
    written: RowsWritten
    key_range: KeyRange


class Placement(NamedTuple):
    """The splits that the commit of an import makes in the tree, and where its files go then."""

    splits: tuple[Split, ...]
    references: tuple[FileReference, ...]


class PlaceRows:
    """Decides which leaves are split, before files are written and again when they are committed.

    files: of leaves that hold rows already, of which only samples are read.
    """

    def __init__(self, files: FilesWithSamples) -> None:
        self._files = files

    def targets(
        self, table: OpenTable, begun: BegunImport, sorted_runs: Sequence[StoredRun]
    ) -> list[RowTarget]:
        """Return where the rows of runs should go, in key order: a target for each leaf that gets
        rows, several for one that is to be split. A leaf that holds more than twice as many rows
        as it gets is left to the schedule.

        Raises:
            TableBusyError: compaction must catch up first.
            GenerationError, TableMissingError: the table was cleared or dropped.
        """
        weights = weights_by_key_range(sorted_runs, len(begun.leaves.ids))
        with table.head.reading() as state:
            _check_generation(state, begun.run.start.generation)
            figures = _figures(state)
            filled = _filled(state, begun.leaves, weights, figures)
            leaves = Leaves(
                tuple(leaf.partition for leaf in filled), tuple(leaf.key_range for leaf in filled)
            )
            refuse_if_busy(state, leaves, [1] * len(filled))
            changed = [leaf for leaf in filled if 2 * leaf.load.brought >= leaf.load.held]
            parts = _parts(state, [leaf.load for leaf in changed], leaves=len(figures))
            wanted = {leaf.partition: n for leaf, n in zip(changed, parts, strict=True)}
            held = {id_: _held(table, state, id_) for id_, n in wanted.items() if n > 1}
            schema = state.schema()
        targets: list[RowTarget] = []
        for leaf in filled:
            mine = inside(weights[leaf.range_index], leaf.key_range)
            samples = self._samples(schema, held.get(leaf.partition, ())).values()
            theirs = [(key, sample.stride) for sample in samples for key in sample.keys]
            count = wanted.get(leaf.partition, 1)
            targets += targets_of(leaf, mine, theirs, count, schema.row_keys)
        return targets

    def placement(
        self, table: OpenTable, begun: BegunImport, files: Sequence[PlacedFile], *, may_split: bool
    ) -> Placement:
        """Return the changes that make files visible, for the tree as it is now. files: in key
        order.

        Splits come first in the transaction, so that the references to a leaf that is split enter
        the new ones. Each file lies in one of them, for leaves are only cut where files begin.

        Raises:
            GenerationError, TableMissingError: the table was cleared or dropped.
        """
        with table.head.reading() as state:
            _check_generation(state, begun.run.start.generation)
            planned = _cuts(state, files) if may_split else {}
            held = {id_: _held(table, state, id_) for id_ in planned}
            schema = state.schema()
            new = {one.target.leaf.partition for one in files if one.target.is_new}
            cut = {id_ for id_ in new if id_ in planned or not is_leaf(state, id_)}
        splits = [
            Split(id_, cuts, self._shares(schema, held[id_], cuts)) for id_, cuts in planned.items()
        ]
        references = [_reference(one, is_cut=one.target.leaf.partition in cut) for one in files]
        return Placement(tuple(splits), tuple(references))

    def _shares(
        self, schema: Schema, parts: Sequence[FilePart], cuts: Sequence[bytes]
    ) -> tuple[tuple[FileName, tuple[int, ...]], ...]:
        samples = self._samples(schema, parts)
        shares = ((name, shares_of(sample, cuts)) for name, sample in samples.items())
        return tuple((name, weights) for name, weights in shares if weights)

    def _samples(self, schema: Schema, parts: Iterable[FilePart]) -> Mapping[FileName, Sample]:
        """Return samples of files; of those that cannot be had, none: they only estimate rows."""
        samples: dict[FileName, Sample] = {}
        for part in parts:
            with suppress(ObjectMissingError, CorruptError):
                samples[part.file.name] = self._files.sample(schema, part)
        return samples


def is_leaf(state: TableState, partition: PartitionId) -> bool:
    """Return whether a partition is there and was not split."""
    node = state.partition(partition)
    return node is not None and node.is_leaf


def _check_generation(state: TableState, generation: Generation) -> None:
    state.require_table()
    if state.head().generation != generation:
        raise GenerationError("the table was cleared", hint="plan again")


def _figures(state: TableState) -> dict[PartitionId, LeafFigures]:
    return {figures.partition: figures for figures in state.leaf_figures()}


def _held(table: OpenTable, state: TableState, partition: PartitionId) -> list[FilePart]:
    key_range = own_key_range(state, partition)
    return [table.part(reference, key_range) for reference, _ in state.references(partition)]


def _parts(state: TableState, loads: Sequence[Load], *, leaves: int) -> list[int]:
    return parts_wanted(loads, leaves=leaves, settings=state.settings())


def _filled(
    state: TableState,
    begun: Leaves,
    weights: Sequence[WeightedKeys],
    figures: Mapping[PartitionId, LeafFigures],
) -> list[FilledLeaf]:
    """Return the leaves that get rows. Of one that was split since runs were cut, all leaves that
    came of it: a block may reach into each."""
    filled: list[FilledLeaf] = []
    for index, (before, keys) in enumerate(zip(begun.ids, weights, strict=True)):
        if not keys:
            continue
        now = reached_leaves(state, before, (EVERYTHING,))
        for leaf, key_range in now:
            brought = rows_of(keys if len(now) == 1 else inside(keys, key_range))
            load = Load(figures[leaf].rows, brought)
            filled.append(FilledLeaf(leaf, key_range, index, load))
    return filled


def _cuts(state: TableState, files: Sequence[PlacedFile]) -> dict[PartitionId, tuple[bytes, ...]]:
    """Return where leaves are to be split that still need it, each with its cuts."""
    figures = _figures(state)
    filled: list[tuple[FilledLeaf, list[PlacedFile]]] = []
    new = [one for one in files if one.target.is_new]
    for before, files_of_leaf in groupby(new, key=lambda one: one.target.leaf):
        mine = list(files_of_leaf)
        for reached, key_range in reached_leaves(state, before.partition, (EVERYTHING,)):
            inner = [one for one in mine if key_range.contains(one.key_range.min)]
            load = Load(figures[reached].rows, sum(one.written.rows for one in inner))
            filled.append((FilledLeaf(reached, key_range, before.range_index, load), inner))
    parts = _parts(state, [leaf.load for leaf, _ in filled], leaves=len(figures))
    fields = state.schema().row_keys
    planned: dict[PartitionId, tuple[bytes, ...]] = {}
    for (one, inner), count in zip(filled, parts, strict=True):
        candidates = _candidates(inner, one.key_range)
        cuts = chosen_cuts(candidates, one.load.brought, count)
        if cuts := allowed_cuts(cuts, one.key_range, fields):
            planned[one.partition] = cuts
    return planned


def _candidates(files: Iterable[PlacedFile], key_range: KeyRange) -> WeightedKeys:
    """Return where targets begin inside of a leaf, each with the rows of all files below it."""
    found: list[tuple[bytes, int]] = []
    below = 0
    for one in files:
        begin = one.target.key_range.min
        if one.key_range.min == begin > key_range.min:
            found.append((begin, below))
        below += one.written.rows
    return found


def _reference(one: PlacedFile, *, is_cut: bool) -> FileReference:
    """Return a reference to the leaf that a file was written for.

    is_cut: that leaf has become several, or does so before the reference enters: then its bounds
    are not rounded, for keys that begin alike would reach a neighbour. What enters a leaf is.
    """
    bounds = one.written.bounds
    if is_cut:
        exact = bounds.as_range().meets(one.key_range)
        bounds = KeyBounds(exact.min, exact.max)
    return FileReference(one.file, one.target.leaf.partition, one.written.rows, bounds)
