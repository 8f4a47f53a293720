"""Wanted rows out of pages: keys first, then the other columns of the runs that have such rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
import pyarrow as pa

from lakebed.sorted_files.page_choosing import Choice, RowRun
from lakebed.sorted_files.page_decoding import PageFile, Stretch
from lakebed.sorted_files.page_index_parts import NotByPagesError
from lakebed.sorted_files.part_sources import PartRead
from lakebed.sorted_files.tails import Tail

RunKey = tuple[int, int]
"""A run: the place of its part, its own among the part's runs."""

Arrays = dict[int, pa.Array]
"""Columns of a run by their places."""


class PartChoice(msgspec.Struct, frozen=True):
    """What is to be read of a part."""

    read: PartRead
    tail: Tail
    choice: Choice


class _Piece(NamedTuple):
    """Columns of a run whose pages are of the same rows. places: theirs; keys, others: which of
    them are row keys, and which are not."""

    run: RunKey
    places: tuple[int, ...]
    keys: tuple[int, ...]
    others: tuple[int, ...]
    stretch: Stretch

    def rows_of(self, run: RowRun, columns: Sequence[int], arrays: Sequence[pa.Array]) -> Arrays:
        """Return a run's rows of some columns, by their places. arrays: all rows of the pages."""
        begin, rows = run.first - self.stretch.first, run.end - run.first
        return {
            self.places[column]: array.slice(begin, rows)
            for column, array in zip(columns, arrays, strict=True)
        }


class _File(NamedTuple):
    """Pieces of columns that are stored alike: each is a row group of the file."""

    pieces: Sequence[_Piece]
    pages: PageFile


class RowsOfPages:
    """The wanted rows of some parts, by the parts' places. What can be done before the pages are
    there is done when this is made."""

    def __init__(self, parts: Mapping[int, PartChoice]) -> None:
        self._parts = parts
        self._runs = {
            (place, number): run
            for place, part in parts.items()
            for number, run in enumerate(part.choice.runs)
        }
        self._broken: set[int] = set()
        self._files = list(self._opened())

    def rows(self, bodies: Mapping[int, Mapping[int, bytes]]) -> dict[int, list[pa.RecordBatch]]:
        """Return the wanted rows of parts, in order; of none that Arrow cannot decode.

        bodies: of each part whose pages are all verified, these by where they begin in its file.
        """
        self._broken |= self._parts.keys() - bodies.keys()
        runs = self._whole(self._runs)
        at_once = len(runs) == 1  # to read twice costs more than columns that nobody may want
        columns = self._decoded(runs, bodies, keys=True, others=at_once)
        spans = {run: self._spans(run, columns[run]) for run in self._whole(runs)}
        found = {run: own for run, own in spans.items() if own}
        if not at_once:
            for run, others in self._decoded(found, bodies, keys=False, others=True).items():
                columns[run] |= others
        rows: dict[int, list[pa.RecordBatch]] = {
            place: [] for place in bodies if place not in self._broken
        }
        for run in self._whole(found):
            rows[run[0]] += self._kept(run, columns[run], found[run])
        return rows

    def _whole(self, runs: Collection[RunKey]) -> dict[RunKey, RowRun]:
        """Return those of some runs, in order, whose parts are not broken."""
        return {
            run: own
            for run, own in self._runs.items()
            if run in runs and run[0] not in self._broken
        }

    def _opened(self) -> Iterator[_File]:
        """Yield files of all pieces, but of those whose parts are broken then."""
        together: dict[tuple[tuple[str, ...], tuple[bytes, ...]], list[_Piece]] = {}
        for key, run in self._runs.items():
            choice = self._parts[key[0]].choice
            for piece in _pieces(key, run, choice.keys):
                names = tuple([choice.match.names[place] for place in piece.places])
                elements = tuple([pages.column.element for pages in piece.stretch.columns])
                together.setdefault((names, elements), []).append(piece)
        for (names, elements), pieces in together.items():
            try:
                pages = PageFile(names, elements, [piece.stretch for piece in pieces])
            except NotByPagesError:
                self._broken |= {piece.run[0] for piece in pieces}
                continue
            for place in {piece.run[0] for piece in pieces}:
                stored = self._parts[place].tail.columns
                if [stored.field(name).type for name in names] != pages.types:
                    self._broken.add(place)
            yield _File(pieces, pages)

    def _decoded(
        self,
        runs: Collection[RunKey],
        bodies: Mapping[int, Mapping[int, bytes]],
        *,
        keys: bool,
        others: bool,
    ) -> dict[RunKey, Arrays]:
        """Return the row keys of some runs, or the other columns, or both."""
        found: dict[RunKey, Arrays] = {run: {} for run in runs}
        for file in self._files:
            alike: dict[tuple[int, ...], list[int]] = {}
            for number, piece in enumerate(file.pieces):
                columns = piece.keys * keys + piece.others * others
                if columns and piece.run in found:
                    alike.setdefault(columns, []).append(number)
            for columns, numbers in alike.items():
                own = [bodies[file.pieces[number].run[0]] for number in numbers]
                try:
                    arrays = file.pages.read(numbers, columns, own)
                except NotByPagesError:
                    self._broken |= {file.pieces[number].run[0] for number in numbers}
                    continue
                for number, some in zip(numbers, arrays, strict=True):
                    piece = file.pieces[number]
                    found[piece.run] |= piece.rows_of(self._runs[piece.run], columns, some)
        return found

    def _spans(self, run: RunKey, columns: Arrays) -> list[tuple[int, int]]:
        """Return the rows of a run whose keys are wanted."""
        part = self._parts[run[0]]
        wanted = part.read.wanted
        arrays = [columns[place] for place in part.choice.keys]
        names = [field.name for field in wanted.fields]
        return wanted.spans(pa.RecordBatch.from_arrays(arrays, names=names))

    def _kept(
        self, run: RunKey, columns: Arrays, spans: Sequence[tuple[int, int]]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the wanted rows of a run. spans: those whose keys are wanted."""
        part = self._parts[run[0]]
        match, wanted = part.choice.match, part.read.wanted
        stored = pa.schema([part.tail.columns.field(name) for name in match.names])
        for start, end in spans:
            arrays = [columns[place].slice(start, end - start) for place in range(len(stored))]
            batch = pa.RecordBatch.from_arrays(arrays, schema=stored)
            yield from wanted.kept(match.fitted(batch))


def _pieces(key: RunKey, run: RowRun, keys: Sequence[int]) -> Iterator[_Piece]:
    """Yield the columns of a run, together where their pages end alike. keys: the places of the row
    keys."""
    alike: dict[tuple[int, int], list[int]] = {}
    for place, pages in enumerate(run.columns):
        alike.setdefault((pages.first, pages.end), []).append(place)
    for (first, end), places in alike.items():
        own = [place in keys for place in places]
        yield _Piece(
            key,
            tuple(places),
            tuple([column for column, is_key in enumerate(own) if is_key]),
            tuple([column for column, is_key in enumerate(own) if not is_key]),
            Stretch(first, end, tuple([run.columns[place] for place in places])),
        )
