"""Writes and reads files of TOML that declare tables, in a folder."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from lakebed.config.definitions.toml_text import toml_text
from lakebed.config.settings import TableSettings
from lakebed.errors import CorruptError, InvalidError, UnreadableInputError
from lakebed.model.partitions import split_points_in
from lakebed.model.schema import Field
from lakebed.model.types import type_json
from lakebed.ports.table_registry import TableEntry
from lakebed.statestore.table_state.state import TableState
from lakebed.tables.declarations import POINTS_SUFFIX, SUFFIX, declarations_of, naming
from lakebed.tables.declared_changes import declared_processing
from lakebed.tables.definition import point_json

FILES_MAX = 20_000
FILE_BYTES_MAX = 128 << 20
"""65,536 split points of 1,024 bytes each, as JSON, fit in."""
PACKED_BYTES_MAX = 256 << 20
"""Most bytes of all files that a deployment brings."""
DEPTH_MAX = 50
"""Greatest depth of an iterator's configuration; a deeper one is written as a text of JSON."""
TableFiles = str | os.PathLike[str] | Mapping[str, str]
"""A folder with a file of TOML for each table, or texts by file name."""


class WrittenFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of writing a folder of files of tables.

    written, unchanged: names of files.
    not_there: files of the folder whose tables the lake does not have; they stay.
    """

    written: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    not_there: tuple[str, ...] = ()


def table_texts(entry: TableEntry, state: TableState) -> dict[str, str]:
    """Return the file that declares a table as it is, and one with its split points where it has
    some, by file name. Raises: TableMissingError: it was dropped."""
    name = entry.name
    schema = state.schema()
    points = split_points_in(state.tree(), schema)
    beside = f"{name}.split_points{POINTS_SUFFIX}"
    settings, usual = msgspec.to_builtins(state.settings()), msgspec.to_builtins(TableSettings())
    said: dict[str, Any] = {"name": name, "adopt": True}
    said |= {} if entry.online else {"online": False}
    said |= {"watch": entry.watched} if entry.watched else {}
    said |= {"split_points": beside} if points else {}
    sections: dict[str, Mapping[str, Any]] = {
        "row_keys": _fields(schema.row_keys),
        "sort_keys": _fields(schema.sort_keys),
        "values": _fields(schema.values),
        "settings": {k: v for k, v in settings.items() if v != usual[k]},
    }
    sections["processing"] = _processing(declared_processing(state.processing(), schema) or {})
    parts = [said, *({section: values} for section, values in sections.items() if values)]
    texts = {f"{name}{SUFFIX}": toml_text(parts)}
    if points:
        lines = [json.dumps(point_json(schema, point)) + "\n" for point in points]
        texts[beside] = "".join(lines)
    return texts


def read_table_texts(folder: str | os.PathLike[str]) -> dict[str, str]:
    """Return the files of a folder that declare tables, and those beside them, by name.

    Raises:
        UnreadableInputError: it is no folder, or a file cannot be read as text, is a pipe or a
            device, or too large.
    """
    path = Path(folder)
    found: dict[str, str] = {}
    try:
        names = sorted(entry.name for entry in path.iterdir())
    except OSError as error:
        hint = "give the folder with the files of tables"
        raise UnreadableInputError("not a folder", path=path, problem=error, hint=hint) from None
    names = [name for name in names if _declares(name)]
    if not names and (path / "tables").is_dir():
        hint = f"did you mean {path / 'tables'}?"
        raise InvalidError("no file declares a table", path=path, hint=hint)
    if len(names) > FILES_MAX:
        hint = f"keep at most {FILES_MAX}"
        raise InvalidError("too many files in a folder", path=path, files=len(names), hint=hint)
    for name in names:
        found[name] = _text_in(path / name)
    return found


def packed_table_texts(archive: Path) -> dict[str, str]:
    """Return the files in a zip archive of such a folder, by name.

    Raises:
        CorruptError: it is none, or one that no deployment made.
    """
    texts: dict[str, str] = {}
    try:
        with zipfile.ZipFile(archive) as packed:
            members = [one for one in packed.infolist() if _declares(one.filename)]
            if len(members) > FILES_MAX or sum(one.file_size for one in members) > PACKED_BYTES_MAX:
                raise CorruptError("an archive of tables is too large", files=len(members))
            for member in members:
                texts[member.filename] = packed.read(member).decode("utf-8")
    except (zipfile.BadZipFile, UnicodeDecodeError, zlib.error) as error:
        hint = "files of tables are text in UTF-8; deploy again"
        raise CorruptError("not an archive of tables", problem=error, hint=hint) from None
    return texts


def _declares(name: str) -> bool:
    """Return whether a file of a folder is read: not one that is hidden, or in a folder below."""
    hidden = name.startswith(".") or "/" in name
    return not hidden and name.endswith((SUFFIX, POINTS_SUFFIX))


def write_table_texts(
    folder: str | os.PathLike[str], texts: Mapping[str, str], *, replace: bool = False
) -> WrittenFiles:
    """Write files into a folder, which is made if there is none. replace: files of the same names
    that say something else; else they are refused.

    Raises:
        InvalidError: a file that is there says something else, or another one declares a table of
            these; nothing was written. UnreadableInputError: the folder cannot be read or written.
    """
    path = Path(folder)
    before = read_table_texts(path) if path.exists() else {}
    other = [name for name, text in texts.items() if before.get(name, text) != text]
    if other and not replace:
        hint = "`lakebed config diff` compares; --replace writes over it"
        names = ", ".join(other[:5])
        raise InvalidError("a file that is there says something else", files=names, hint=hint)
    not_there = {name: text for name, text in before.items() if name not in texts}
    if any(name.endswith(SUFFIX) for name in before):
        with naming(folder=path):
            declarations_of({**before, **texts})  # two files for one table are refused
    new = {name: text for name, text in texts.items() if before.get(name) != text}
    for name, text in new.items():
        write_whole(path / name, text)
    return WrittenFiles(
        written=tuple(new),
        unchanged=tuple(name for name in texts if name not in new),
        not_there=tuple(name for name in not_there if name.endswith(SUFFIX)),
    )


def write_whole(path: Path, text: str) -> None:
    """Write a file, and its folder if there is none. It is there whole, or as it was.

    Raises:
        UnreadableInputError: it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_name(f".{path.name}.part")
        scratch.write_text(text, "utf-8")
        scratch.replace(path)
    except OSError as error:
        raise UnreadableInputError("a file cannot be written", problem=error) from None


def _text_in(path: Path) -> str:
    try:
        if not path.is_file():  # opening a pipe would wait
            raise OSError("it is no file")
        if path.stat().st_size > FILE_BYTES_MAX:
            hint = f"a file has at most {FILE_BYTES_MAX >> 20} MiB"
            raise InvalidError("a file is too large", path=path, hint=hint)
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        hint = "files of tables are text in UTF-8"
        raise UnreadableInputError(
            "cannot read a file of a table", path=path, problem=error, hint=hint
        ) from None


def _processing(form: Mapping[str, Any]) -> dict[str, Any]:
    """Return a processing without what is not said. A configuration that TOML cannot hold is a text
    of JSON."""
    parts = {
        name: {key: value for key, value in part.items() if value is not None}
        for name, part in form.items()
        if part is not None
    }
    iterator = parts.get("iterator")
    if iterator is not None and not _fits_toml(iterator["config"]):
        iterator["config"] = json.dumps(iterator["config"])
    return parts


def _fields(fields: tuple[Field, ...]) -> dict[str, Any]:
    return {field.name: _field(field) for field in fields}


def _field(field: Field) -> object:
    form = type_json(field.type, numbered=False)
    if isinstance(form, str):
        return f"{form}?" if field.nullable else form
    return {"type": form, "nullable": True} if field.nullable else form


def _fits_toml(value: object, depth: int = DEPTH_MAX) -> bool:
    match value:
        case None:
            return False
        case {}:
            parts = list(value.values())
        case [*parts]:
            pass
        case _:
            return True
    return depth > 0 and all(_fits_toml(part, depth - 1) for part in parts)
