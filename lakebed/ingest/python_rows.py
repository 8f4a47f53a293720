"""Rows as programs hold them that are not Arrow's: lists of dicts, plans of Polars and Spark, open
files. They become Arrow, or files, at the door."""

from __future__ import annotations

import hashlib
import re
import shutil
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, BinaryIO

import pyarrow as pa

from lakebed.errors import InvalidError
from lakebed.model.names import RequestDigest
from lakebed.model.schema import Schema
from lakebed.sorted_files.format.arrow_schema import arrow_schema

PIECE_BYTES = 1 << 20
_PANDAS_COLUMN = re.compile(r"Conversion failed for column (?P<name>.*) with type (?P<type>.*)")


def is_dicts(rows: object) -> bool:
    """Return whether rows are a list or tuple that is not empty, each row a mapping."""
    return (
        isinstance(rows, (list, tuple)) and bool(rows) and all(isinstance(r, Mapping) for r in rows)
    )


def table_of_dicts(rows: Sequence[Mapping[str, Any]], schema: Schema) -> pa.Table:
    """Return rows as a table: a column for each name in any of them, null where a row has none.

    Columns of the schema get its types, so that numbers are not guessed; times keep what they have
    of a zone.

    Raises:
        InvalidError: a name that is no text; a value that its column cannot hold.
    """
    wanted = {
        c.name: None if pa.types.is_timestamp(c.type) else c.type for c in arrow_schema(schema)
    }
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {}
    for name in names:
        if not isinstance(name, str):
            raise InvalidError("a name of a column is text", name=name, hint="write it in quotes")
        values = [row.get(name) for row in rows]
        try:
            columns[name] = pa.array(values, wanted.get(name))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise _odd(name, values, wanted.get(name), error) from None
    return pa.table(columns)


def _odd(
    name: str, values: list[Any], wanted: pa.DataType | None, error: Exception
) -> InvalidError:
    """Return what is wrong with the first value that cannot be held."""
    row = next((n for n, value in enumerate(values) if not _fits(value, wanted)), 0)
    hint = f"give a {wanted} or None" if wanted else "give values of one type"
    return InvalidError(
        "a value does not fit its column",
        field=name,
        row=row,
        got=type(values[row]).__name__,
        problem=str(error).splitlines()[0],
        hint=hint,
    )


def _fits(value: object, wanted: pa.DataType | None) -> bool:
    try:
        pa.array([value], wanted)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    return True


def collected(rows: Any) -> Any:  # noqa: ANN401 - what other libraries make
    """Return the rows of a plan of Polars or Spark; anything else as it is."""
    kind = type(rows)
    library = kind.__module__.partition(".")[0]
    if library == "polars" and kind.__name__ == "LazyFrame":
        return rows.collect()
    if library == "pyspark" and hasattr(rows, "toArrow"):
        return rows.toArrow()
    return rows


def not_arrow(rows: object, error: Exception) -> InvalidError:
    """Return why rows of another library, as pandas, cannot become Arrow: which column, and how it
    can."""
    message = " ".join(str(arg) for arg in error.args)
    column = _PANDAS_COLUMN.search(message)
    problem = str(error.args[0] if error.args else error).splitlines()[0]
    if column is None:
        hint = "give each column one name and values of one type"
        return InvalidError(
            "the rows are not a table", got=type(rows).__name__, problem=problem, hint=hint
        )
    name = column["name"]
    hint = f"give it one type first, for instance df[{name!r}] = df[{name!r}].astype('string')"
    if column["type"] != "object":
        hint = f"no type holds {column['type']}: give the column another, or leave it out"
    return InvalidError(
        "a column cannot be converted to Arrow",
        field=name,
        type=column["type"],
        problem=problem,
        hint=hint,
    )


class Spooled:
    """The bytes of an open file, in a file of this machine while this object lives.

    digest: stands for them. suffix: of the file's name.
    """

    def __init__(self, source: BinaryIO, suffix: str) -> None:
        folder = mkdtemp(prefix="lakebed-input-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.path = Path(folder) / f"rows{suffix}"
        digest = hashlib.blake2b(digest_size=16)
        with self.path.open("wb") as out:
            shutil.copyfileobj(_Watched(source, digest.update), out, PIECE_BYTES)
        self.digest = RequestDigest(digest.digest())


class _Watched:
    def __init__(self, source: BinaryIO, seen: Any) -> None:  # noqa: ANN401 - hashlib's, untyped
        self._source = source
        self._seen = seen

    def read(self, size: int = -1) -> bytes:
        piece: object = self._source.read(size)
        if not isinstance(piece, bytes):
            hint = "open it in binary, as open(path, 'rb') does"
            raise InvalidError("an open file gives text", hint=hint)
        self._seen(piece)
        return piece
