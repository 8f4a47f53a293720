"""Keys of rows that are tuples, encoded fast: the simulation encodes millions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lakebed.feed_errors import InvalidKeyError
from lakebed.model.keys import KEY_BYTES_MAX, encode_field, key_value
from lakebed.model.ranges import EVERYTHING
from lakebed.model.schema import Field, Schema
from lakebed.ports.sorted_files import Selection

Row = tuple[Any, ...]
_WIDTHS = {"int32": 4, "date32": 4, "int64": 8, "timestamp[us, UTC]": 8}
_LAYOUTS_MAX = 64


class RowLayout:
    """The conversion of a schema's rows to keys: the same bytes as `model.keys.encode_key`."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._row_encoders = [_encoder(field) for field in schema.row_keys]
        self._encoders = self._row_encoders + [_encoder(field) for field in schema.sort_keys]
        self.row_keys_count = len(self._row_encoders)
        self.width = len(schema.fields)

    def key(self, row: Row) -> bytes:
        """Return row keys and sort keys, encoded: the order of rows."""
        return b"".join([encode(v) for encode, v in zip(self._encoders, row, strict=False)])

    def row_key(self, row: Row) -> bytes:
        """Return the row keys, encoded: where in the table the row lies."""
        return b"".join([encode(v) for encode, v in zip(self._row_encoders, row, strict=False)])

    def checked(self, row: Row) -> tuple[bytes, Row]:
        """Return the key of a given row, and the row with key values as its keys.

        Raises:
            InvalidError: a key is null or of the wrong type. InvalidKeyError: it is too long.
        """
        assert len(row) == self.width, f"a row has {self.width} values, got {len(row)}"
        try:
            key = b"" if bool in map(type, row[: len(self._encoders)]) else self.key(row)
        except (AttributeError, TypeError, OverflowError, UnicodeEncodeError):
            key = b""
        if not key:
            # A date instead of a number, or something that cannot be a key: this finds out which.
            fields = self.schema.key_fields
            values = [key_value(field, v) for field, v in zip(fields, row, strict=False)]
            row = (*values, *row[len(fields) :])
            key = self.key(row)
        if len(key) > KEY_BYTES_MAX:
            raise InvalidKeyError(
                "a key is too long",
                bytes=len(key),
                bytes_max=KEY_BYTES_MAX,
                hint="use a shorter key, such as a digest, and keep the long text as a value",
            )
        return key, row

    def indices(self, columns: Sequence[str]) -> list[int]:
        """Return where in a row the columns are. Raises: InvalidError for an unknown one."""
        fields = self.schema.fields
        return [fields.index(self.schema.field(name)) for name in columns]

    def test(self, condition: Selection) -> Callable[[Row], bool]:
        """Return a test whether a row lies in one of the boxes."""
        boxes = [
            [
                (index, self._row_encoders[index], range_)
                for index, range_ in enumerate(box)
                if range_ != EVERYTHING
            ]
            for box in condition.boxes
        ]

        def fits(row: Row) -> bool:
            return any(
                all(range_.contains(encode(row[index])) for index, encode, range_ in box)
                for box in boxes
            )

        return fits


class RowLayouts:
    """Layouts by the identity of their schema: its value would take longer to compare."""

    def __init__(self) -> None:
        self._layouts: dict[int, RowLayout] = {}

    def of(self, schema: Schema) -> RowLayout:
        """Return the layout of a schema."""
        layout = self._layouts.get(id(schema))
        if layout is None or layout.schema is not schema:
            if len(self._layouts) >= _LAYOUTS_MAX:
                self._layouts.clear()
            layout = self._layouts[id(schema)] = RowLayout(schema)
        return layout


def _encoder(field: Field) -> Callable[[Any], bytes]:
    name = str(field.type)
    width = _WIDTHS.get(name)
    if width is not None:
        bias = 1 << (8 * width - 1)
        return lambda value: (value + bias).to_bytes(width, "big")
    if name == "string":
        return lambda value: _text(value.encode())
    if name == "binary":
        return lambda value: _text(value + b"")
    return lambda value: encode_field(field.type, value)


def _text(raw: bytes) -> bytes:
    return raw.replace(b"\x00", b"\x00\xff") + b"\x00\x00"
