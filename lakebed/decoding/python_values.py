"""Values that a library gives as Python objects, block by block: checked one by one, exactly, and
then columns again. Only formats that Arrow does not read come this way."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal, InvalidOperation
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lakebed.config.decoders import TimeOf
from lakebed.decoding.decoder import Verdicts
from lakebed.decoding.values import DROPPED, ReadValues, count_names
from lakebed.decoding.wanted import Raw, Value, tree_of
from lakebed.model import types
from lakebed.model.feeds.verdicts import Verdict
from lakebed.model.types import ListOf, MapOf, Primitive, StructOf
from lakebed.sorted_files.format.arrow_schema import arrow_type

_EXACT: Final = Context(prec=60)
_FRACTION: Final = types.Decimal(38, 9)
_BITS: Final = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
_UNSIGNED: Final = {"uint8": 8, "uint16": 16, "uint32": 32}
_FLOAT32_MAX: Final = 3.4028235677973366e38
"""Smallest number that is nearer to infinity than to the largest float32."""
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICRO: Final = datetime.timedelta(microseconds=1)
_PER_UNIT: Final = {"s": 1_000_000, "ms": 1_000, "us": 1, "auto": 1}
"""Microseconds. A nanosecond is a thousandth of one."""

Opened = Mapping[str, Any]
Open = Callable[[bytes], Opened]
"""Returns a payload's fields. Raises BadRecordError."""


class BadRecordError(Exception):
    """A record that is no row."""

    def __init__(self, verdict: Verdict, detail: str) -> None:
        super().__init__(verdict, detail)
        self.verdict = verdict
        self.detail = detail


class PythonValues:
    """Reads values of payloads that a library opens.

    open_: returns a payload's fields, by name. refuses_unknown, counts_unknown: as of JSON.
    """

    def __init__(
        self,
        values: Sequence[Value],
        open_: Open,
        *,
        refuses_unknown: bool,
        counts_unknown: bool,
    ) -> None:
        self._values = values
        self._open = open_
        self._refuses = refuses_unknown
        self._counts = counts_unknown or refuses_unknown
        self._names = set(tree_of(tuple(values)))

    def read(self, payloads: pa.BinaryArray, verdicts: Verdicts) -> ReadValues:
        """Return the values of payloads: see `ValueReader`. One payload is opened at a time."""
        found: list[list[object]] = [[] for _ in self._values]
        records = []
        unknown: Counter[str] = Counter()
        dropped: dict[int, list[int]] = {}
        for index, payload in enumerate(payloads):
            try:
                opened = self._open(payload.as_py())  # bounded: one at a time
                self._count_unknown(opened, unknown)
                row, left_out = self._row(opened)
            except BadRecordError as error:
                verdicts.mark(index, error.verdict, error.detail)
                continue
            records.append(index)
            for value in left_out:
                dropped.setdefault(value, []).append(index)
            for column, one in zip(found, row, strict=True):
                column.append(one)
        columns = [
            pa.array(column, _type_of(value.raw))
            for column, value in zip(found, self._values, strict=True)
        ]
        left = {value: np.array(indices, np.int64) for value, indices in dropped.items()}
        return ReadValues(np.array(records, np.int64), columns, unknown, left)

    def _row(self, opened: Opened) -> tuple[list[object], list[int]]:
        """Return a payload's values, and which of them are left out. Raises: BadRecordError."""
        row, left_out = list[object](), list[int]()
        for index, value in enumerate(self._values):
            try:
                row.append(value_of(opened, value))
            except BadRecordError as error:
                if not value.drops or error.verdict not in DROPPED:
                    raise
                row.append(None)
                left_out.append(index)
        return row, left_out

    def why_null(self, payload: bytes, value: int) -> Verdict:
        """Return whether a required value is missing or null."""
        node: Any = self._open(payload)
        for name in self._values[value].path:
            if not isinstance(node, Mapping) or name not in node:
                return Verdict.MISSING_FIELD
            node = node[name]
        return Verdict.NULL_IN_REQUIRED

    def _count_unknown(self, opened: Opened, counts: Counter[str]) -> None:
        if not self._counts:
            return
        unknown = [str(name) for name in opened if name not in self._names]
        count_names(counts, unknown)
        if unknown and self._refuses:
            raise BadRecordError(Verdict.UNKNOWN_FIELD, f"{len(unknown)} in the record")


def value_of(opened: Opened, value: Value) -> object:
    """Return a value as Arrow takes it. None: it is missing or null.

    Raises:
        BadRecordError: it is not what is wanted.
    """
    node: object = opened
    for depth, name in enumerate(value.path):
        if node is None:
            return None
        if not isinstance(node, Mapping):
            at = ".".join(value.path[:depth])
            raise BadRecordError(Verdict.TYPE_MISMATCH, f"{at}: not an object")
        node = node.get(name)
    at = ".".join(value.path)
    if value.time is None:
        return fitted(node, value.raw, at)
    try:
        return fitted(_as_written(node, value.time, at), value.raw, at)
    except BadRecordError as error:
        raise BadRecordError(Verdict.TIME_UNREADABLE, error.detail) from None


def _type_of(raw: Raw) -> pa.DataType:
    return arrow_type(_FRACTION if raw == "number" else raw)


def _as_written(value: object, time: TimeOf, at: str) -> object:
    """Return what is a time already as it would be written."""
    if not isinstance(value, datetime.datetime):
        return value
    if time.as_ == "iso":
        return value.isoformat()
    micros = (_aware(value, at) - _EPOCH) // _MICRO
    if time.as_ == "ns":
        return micros * 1_000
    if time.as_ not in _PER_UNIT:
        raise BadRecordError(Verdict.TIME_UNREADABLE, f"{at}: a time, not a text")
    return Decimal(micros) / _PER_UNIT[time.as_]


def _aware(value: datetime.datetime, at: str) -> datetime.datetime:
    if value.tzinfo is None:
        raise BadRecordError(Verdict.TIME_UNREADABLE, f"{at}: a time without an offset")
    return value


def fitted(value: object, raw: Raw, at: str) -> object:
    """Return a value as Arrow takes it for a type, without any loss.

    Raises:
        BadRecordError: it has another type, or is out of its range.
    """
    if value is None:
        return None
    match raw:
        case "number":
            return _decimal(value, _FRACTION, at)
        case types.Decimal():
            return _decimal(value, raw, at)
        case ListOf(element):
            if not isinstance(value, list | tuple):
                raise _mismatch(value, raw, at)
            return [fitted(item, element, f"{at}[]") for item in value]
        case MapOf(key, item):
            if not isinstance(value, Mapping):
                raise _mismatch(value, raw, at)
            return [(_key(k, key, at), fitted(v, item, f"{at}{{}}")) for k, v in value.items()]
        case StructOf(members):
            if not isinstance(value, Mapping):
                raise _mismatch(value, raw, at)
            return {m.name: fitted(value.get(m.name), m.type, f"{at}.{m.name}") for m in members}
        case Primitive(name):
            return _primitive(value, name, at)


def _key(key: object, type_: Primitive, at: str) -> object:
    if key is None:
        raise BadRecordError(Verdict.TYPE_MISMATCH, f"{at}: a key is null")
    return fitted(key, type_, at)


def _primitive(value: object, name: str, at: str) -> object:
    if "int" in name:
        if type(value) is not int:
            raise _mismatch(value, name, at)
        least = -(1 << _BITS[name]) if name in _BITS else 0
        if not least <= value < 1 << (_BITS.get(name) or _UNSIGNED[name]):
            raise BadRecordError(Verdict.OUT_OF_RANGE, f"{at}: no {name}")
        return value
    if name.startswith("float"):
        return _float(value, name, at)
    return _other(value, name, at)


def _other(value: object, name: str, at: str) -> object:
    match name, value:
        case "bool", bool():
            return value
        case "string", str():
            return value
        case "binary", bytes() | bytearray() | memoryview():
            return bytes(value)
        case "date32", datetime.date() if not isinstance(value, datetime.datetime):
            return value
        case "time64[us]", datetime.time():
            return value
        case "timestamp[us]", datetime.datetime() if value.tzinfo is None:
            return value
        case "timestamp[us, UTC]", datetime.datetime():
            return _aware(value, at)
        case (("date32" | "time64[us]" | "timestamp[us]"), str()):
            return _from_text(value, name, at)
        case _:
            raise _mismatch(value, name, at)


def _from_text(value: str, name: str, at: str) -> object:
    forms: dict[str, Callable[[str], object]] = {
        "date32": datetime.date.fromisoformat,
        "time64[us]": datetime.time.fromisoformat,
        "timestamp[us]": datetime.datetime.fromisoformat,
    }
    try:
        found = forms[name](value)
    except ValueError:
        raise _mismatch(value, name, at) from None
    if getattr(found, "tzinfo", None) is not None:
        raise _mismatch(value, name, at)
    return found


def _float(value: object, name: str, at: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _mismatch(value, name, at)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    most = _FLOAT32_MAX if name == "float32" else math.inf
    if not (isinstance(value, float) and not math.isfinite(value)) and abs(number) >= most:
        raise BadRecordError(Verdict.OUT_OF_RANGE, f"{at}: no {name}")
    return number


def _decimal(value: object, type_: types.Decimal, at: str) -> Decimal:
    """Return a number as a decimal. A float is what its shortest text says."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise _mismatch(value, type_, at)
    try:
        exact = Decimal(repr(value) if isinstance(value, float) else value)
        if not exact.is_finite():
            raise _mismatch(value, type_, at)
        if exact.adjusted() >= type_.precision - type_.scale:
            raise BadRecordError(Verdict.OUT_OF_RANGE, f"{at}: too large")
        rounded = exact.quantize(Decimal(1).scaleb(-type_.scale), context=_EXACT)
    except (InvalidOperation, OverflowError, ValueError):
        raise _mismatch(value, type_, at) from None
    if rounded != exact:
        detail = f"{at}: more than {type_.scale} digits after the point"
        raise BadRecordError(Verdict.OUT_OF_RANGE, detail)
    return rounded


def _mismatch(value: object, wanted: object, at: str) -> BadRecordError:
    return BadRecordError(Verdict.TYPE_MISMATCH, f"{at}: {type(value).__name__}, not {wanted}")
