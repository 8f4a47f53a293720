"""Values of JSON payloads, each of which is exactly one object.

Arrow parses a block at once. Where it rejects one, payloads are judged one by one, and what is left
is parsed again. Whether a payload can be read depends on it alone, never on its neighbours: Arrow
has the last word on each.

Integers are read as such at first. A block that has one as text, or written with a point, is read
again with decimals in their stead: that takes all that the first way takes, to the same values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from lakebed.decoding import json_ordinals
from lakebed.decoding.decoder import Verdicts
from lakebed.decoding.json_guesses import guess_of
from lakebed.decoding.json_judging import TOO_DEEP, Judge
from lakebed.decoding.json_mending import Mender
from lakebed.decoding.json_shapes import columns_of, finite, has_float, has_map, types_of
from lakebed.decoding.masks import REFUSALS, bools, cast_or_null, not_utf8, raise_if_memory
from lakebed.decoding.values import DROPPED, Indices, ReadValues, count_names
from lakebed.decoding.wanted import Value, tree_of
from lakebed.model.feeds.verdicts import Verdict
from lakebed.user_files.json_rewriting import Rewriting

_NOT_JSON = r"[:,\[]\s*-?(?:NaN|Inf)"
"""Pattern of what Arrow takes for a number although it is no JSON, and of texts that look alike."""


class _RejectedError(Exception):
    """Arrow does not read a block, or reads other rows than payloads."""


@dataclass(frozen=True, slots=True)
class _Read:
    """The rows that were read of some payloads, and the indices of these payloads.

    dropped: by the index of a value, the payloads in which it was left out.
    """

    batch: pa.RecordBatch
    records: Indices
    dropped: dict[int, list[int]] = field(default_factory=dict)


class JsonValues:
    """Reads values of JSON.

    values: the wanted ones. refuses_unknown: payloads with others are no rows.
    counts_unknown: others are counted by name.
    """

    def __init__(
        self, values: Sequence[Value], *, refuses_unknown: bool, counts_unknown: bool
    ) -> None:
        self._values = tuple(values)
        self._refuses = refuses_unknown
        self._judge = Judge(values, refuses_unknown=refuses_unknown)
        self._mender = Mender(values) if any(value.drops for value in values) else None
        self._guess = guess_of(self._values)
        self._tree = tree_of(self._values)
        self._ways = [columns_of(self._tree, self._values, wide=wide) for wide in (False, True)]
        self._names = msgspec.json.Decoder(dict[str, msgspec.Raw])
        any_map = any(has_map(value.raw) for value in values)
        self._rewriting = Rewriting(types_of(self._tree, self._values)) if any_map else None
        self._counts = counts_unknown and not refuses_unknown
        self._had_unknown = False
        """Of the last block: where to begin with the next one. Answers do not depend on it."""

    def read(self, payloads: pa.BinaryArray, verdicts: Verdicts) -> ReadValues:
        """Return the values of payloads: see `ValueReader`."""
        likely = self._likely(payloads, verdicts)
        read, unknown = self._read_and_count(payloads, likely, verdicts)
        unknown.update(self._refused_names(payloads, verdicts))
        columns = self._flat(read.batch)
        dropped = {index: np.array(left, np.int64) for index, left in read.dropped.items()}
        for index, value in enumerate(self._values):
            if not has_float(value.raw):
                continue
            columns[index], wrong = cast_or_null(columns[index], finite, columns[index].type)
            if value.drops:
                before = dropped.get(index, read.records[:0])
                dropped[index] = np.concatenate([before, read.records[wrong]])
                continue
            detail = f"{'.'.join(value.path)}: too large for a float"
            verdicts.mark_all(read.records[wrong], Verdict.OUT_OF_RANGE, detail)
        return ReadValues(read.records, columns, unknown, dropped)

    def why_null(self, payload: bytes, value: int) -> Verdict:
        """Return whether a required value is missing or null."""
        return self._judge.why_null(payload, self._values[value])

    def _likely(self, payloads: pa.BinaryArray, verdicts: Verdicts) -> Indices:
        """Return payloads that may be read, and mark those that Arrow would take wrongly."""
        wrong = not_utf8(payloads) | ~json_ordinals.opens_object(payloads)
        _, _, data = json_ordinals.bounds_of(payloads)
        if b"NaN" in data or b"Inf" in data:
            suspects = np.flatnonzero(bools(pc.match_substring_regex(payloads, _NOT_JSON)))
            for index in suspects.tolist():  # bounded: payloads that look wrong
                if not wrong[index]:
                    payload = payloads[index].as_py()  # bounded: one that looks wrong
                    wrong[index] = not self._judge.is_strict(payload)
        for index in np.flatnonzero(wrong).tolist():  # bounded: bad payloads
            self._blame(payloads, index, verdicts)
        return np.flatnonzero(~wrong)

    def _read_and_count(
        self, payloads: pa.BinaryArray, likely: Indices, verdicts: Verdicts
    ) -> tuple[_Read, Counter[str]]:
        """Return what can be read of some payloads, and names that none wants."""
        if self._counts and not self._had_unknown:
            try:
                found = self._parse(json_ordinals.chosen(payloads, likely), refuses=True)
                return _Read(found, likely), Counter()
            except _RejectedError:
                pass
        read = self._read(payloads, likely, verdicts)
        unknown: Counter[str] = Counter()
        for index in read.records.tolist() if self._counts else ():
            try:  # names and spans: values are not decoded
                names = self._names.decode(payloads[index].as_py())  # bounded: one at a time
            except (msgspec.DecodeError, RecursionError):
                continue
            count_names(unknown, (name for name in names if name not in self._tree))
        self._had_unknown = bool(unknown)
        return read, unknown

    def _read(self, payloads: pa.BinaryArray, records: Indices, verdicts: Verdicts) -> _Read:
        """Return what can be read of some payloads."""
        try:
            return _Read(self._parse(json_ordinals.chosen(payloads, records)), records)
        except _RejectedError:
            pass
        guessed = np.zeros(len(records), np.bool_)
        for row, index in enumerate(records.tolist()):
            guessed[row] = self._guess(payloads[index].as_py())  # bounded: one at a time
        good = self._readable(payloads, records[guessed])
        unclear = [i for i in records[~guessed].tolist() if self._is_unclear(payloads, i, verdicts)]
        alone = [self._readable(payloads, np.array([index])) for index in unclear]
        good = np.sort(np.concatenate([good, *alone]))
        bad = np.setdiff1d(records, good)
        payloads, dropped = self._mended(payloads, bad[verdicts.codes[bad] == Verdict.ROW])
        mended = np.unique([index for some in dropped.values() for index in some]).astype(np.int64)
        good = np.union1d(good, self._readable(payloads, mended)) if len(mended) else good
        for index in np.setdiff1d(bad, good).tolist():  # bounded: bad payloads
            self._blame(payloads, index, verdicts)
        return _Read(self._parse(json_ordinals.chosen(payloads, good)), good, dropped)

    def _mended(
        self, payloads: pa.BinaryArray, bad: Indices
    ) -> tuple[pa.BinaryArray, dict[int, list[int]]]:
        """Return payloads, of which bad ones are without what does not fit, and by the index of a
        value in which it was left out."""
        dropped: dict[int, list[int]] = {}
        mended: dict[int, bytes] = {}
        if self._mender is None:
            return payloads, {}
        for index in bad.tolist():  # bounded: bad ones
            found = self._mender.mended(payloads[index].as_py())  # bounded: one of them
            if found is not None:
                mended[index], left_out = found
                for value in left_out:
                    dropped.setdefault(value, []).append(index)
        if not mended:
            return payloads, {}
        order = np.arange(len(payloads))
        order[list(mended)] = len(payloads) + np.arange(len(mended))
        both = pa.concat_arrays([payloads, pa.array(mended.values(), pa.binary())])
        return both.take(pa.array(order)), dropped

    def _is_unclear(self, payloads: pa.BinaryArray, index: int, verdicts: Verdicts) -> bool:
        """Return whether Arrow must be asked about a payload; mark one that is refused here. Arrow
        reads nothing that the judge refuses, but for what is nested deeper than Python goes."""
        reason = self._judge.reason(payloads[index].as_py())  # bounded: one that is likely bad
        if reason is None or reason == TOO_DEEP:
            return True
        if self._mender is not None and reason[0] in DROPPED:
            return False  # it may be a row without the value
        verdicts.mark(index, *reason)
        return False

    def _readable(self, payloads: pa.BinaryArray, records: Indices) -> Indices:
        """Return which payloads can be read, by halves: most of them can."""
        try:
            self._parse(json_ordinals.chosen(payloads, records))
        except _RejectedError:
            if len(records) <= 1:
                return records[:0]
        else:
            return records
        half = len(records) // 2
        return np.concatenate(
            [self._readable(payloads, records[:half]), self._readable(payloads, records[half:])]
        )

    def _blame(self, payloads: pa.BinaryArray, index: int, verdicts: Verdicts) -> None:
        if verdicts.codes[index]:
            return
        payload: bytes = payloads[index].as_py()  # bounded: a bad one
        reason = self._judge.reason(payload)
        verdict, detail = reason or (Verdict.UNPARSABLE, "it cannot be read as JSON")
        verdicts.mark(index, verdict, detail)

    def _parse(self, payloads: pa.BinaryArray, *, refuses: bool | None = None) -> pa.RecordBatch:
        """Return values of payloads, all of which open an object.

        refuses: payloads with a value that is not wanted; left out: as the reader does.

        Raises:
            _RejectedError: one of them cannot be read.
        """
        refuses = self._refuses if refuses is None else refuses
        first, second = self._ways
        try:
            return self._parse_as(payloads, first, refuses)
        except _RejectedError:
            if first == second:
                raise
        return self._parse_as(payloads, second, refuses)

    def _parse_as(
        self,
        payloads: pa.BinaryArray,
        columns: pa.Schema,
        refuses: bool,  # noqa: FBT001 - as `_parse` has it
    ) -> pa.RecordBatch:
        if not len(payloads):
            return pa.RecordBatch.from_pylist([], schema=columns)
        _, _, data = json_ordinals.bounds_of(payloads)
        code = json_ordinals.free_name(data, self._tree)
        if code is None:
            return self._parse_halves(payloads, columns, refuses)
        name = json_ordinals.name_of(code)
        text = json_ordinals.with_ordinals(payloads, code)
        try:
            if self._rewriting is not None:
                text = pa.py_buffer(self._rewriting.rewritten(text.to_pybytes()))
            table = pa.json.read_json(
                pa.BufferReader(text),
                pa.json.ReadOptions(use_threads=False, block_size=len(text) + 1),
                pa.json.ParseOptions(
                    explicit_schema=columns.insert(0, pa.field(name, pa.int64())),
                    newlines_in_values=False,
                    unexpected_field_behavior="error" if refuses else "ignore",
                ),
            )
        except REFUSALS as error:
            raise_if_memory(error)
            raise _RejectedError from None
        (batch,) = table.combine_chunks().to_batches() or [None]
        if batch is None or not json_ordinals.are_all(batch.column(name), len(payloads)):
            raise _RejectedError
        return batch.select(columns.names)

    def _parse_halves(
        self,
        payloads: pa.BinaryArray,
        columns: pa.Schema,
        refuses: bool,  # noqa: FBT001 - as `_parse` has it
    ) -> pa.RecordBatch:
        """Parse payloads that hold all the names that ordinals could have."""
        if len(payloads) == 1:  # it spells ten control characters: a text is no way to send them
            raise _RejectedError
        half = len(payloads) // 2
        parts = [payloads.slice(0, half), payloads.slice(half)]
        return pa.concat_batches([self._parse_as(part, columns, refuses) for part in parts])

    def _flat(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Return the column of each wanted value."""
        return [
            pc.struct_field(batch.column(value.path[0]), list(value.path[1:]))
            if len(value.path) > 1
            else batch.column(value.path[0])
            for value in self._values
        ]

    def _refused_names(self, payloads: pa.BinaryArray, verdicts: Verdicts) -> Counter[str]:
        counts: Counter[str] = Counter()
        if self._refuses:
            for index in np.flatnonzero(verdicts.codes == Verdict.UNKNOWN_FIELD).tolist():
                self._judge.reason(payloads[index].as_py())  # bounded: a bad one
                count_names(counts, sorted(set(self._judge.unknown)))
        return counts
