"""The manifest of an export: what its files are, and the table that they are of.

It holds a digest of itself: one that was changed by hand, or cut, is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from lakebed.errors import CorruptError, InvalidError, NewerFormatError
from lakebed.exports.target import MANIFEST, ExportTarget
from lakebed.model.names import RequestDigest, digest_of

FORMAT = 1
NOT_AN_EXPORT = "name the folder that `lakebed export` wrote, or its _manifest.json"


class ExportedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of rows in key order, which go on in the next one.

    path: in the folder of the export.
    checksum: CRC-64/NVME of its bytes, in hex digits.
    first, last: row keys as text; None: there are no rows, or a key was not exported.
    """

    path: str
    rows: int
    bytes: int
    checksum: str
    first: tuple[str, ...] | None = None
    last: tuple[str, ...] | None = None


class ExportManifest(msgspec.Struct, frozen=True, kw_only=True):
    """A whole export.

    table, name: id and name of the table.
    number: of the log entry up to which it was read.
    request: stands for which rows and columns were asked for, in hex digits.
    columns: name and type of each, as Arrow calls it.
    conditions: which rows were asked for; None: all.
    definition: what makes an empty table like it, as `Table.definition` gives it.
    """

    format: int = FORMAT
    table: str
    name: str
    number: int
    request: str
    rows: int
    columns: dict[str, str]
    conditions: dict[str, Any] | None
    definition: dict[str, Any]
    files: tuple[ExportedFile, ...]

    @property
    def digest(self) -> RequestDigest:
        """Stands for all of it."""
        return _digest_of(msgspec.to_builtins(self))


def manifest_bytes(manifest: ExportManifest) -> bytes:
    """Return a manifest as it is stored."""
    value = msgspec.to_builtins(manifest) | {"digest": manifest.digest.hex()}
    return msgspec.json.format(msgspec.json.encode(value), indent=1)


def manifest_in(target: ExportTarget) -> ExportManifest | None:
    """Return the manifest of an export; None: there is none.

    Raises:
        CorruptError: it was changed, or is none. NewerFormatError: a newer Lakebed wrote it.
    """
    body = target.body(MANIFEST)
    return None if body is None else _decoded(body, target.address(MANIFEST))


def required_manifest(target: ExportTarget) -> ExportManifest:
    """Return the manifest of an export. Raises: as `manifest_in`; InvalidError: there is none."""
    manifest = manifest_in(target)
    if manifest is None:
        raise InvalidError("no export lies there", path=target.location, hint=NOT_AN_EXPORT)
    return manifest


def _decoded(body: bytes, path: str) -> ExportManifest:
    try:
        value = msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise _not_one(path, error) from None
    if not isinstance(value, dict):
        raise _not_one(path, "it is no JSON object")
    check_format(value, FORMAT, path)
    stated = value.pop("digest", None)
    if stated != _digest_of(value).hex():
        hint = "take it from a copy, or export the table again"
        raise CorruptError("the manifest was changed since it was written", path=path, hint=hint)
    try:
        return msgspec.convert(value, ExportManifest)
    except msgspec.ValidationError as error:
        raise _not_one(path, error) from None


def check_format(value: Mapping[str, Any], newest: int, path: str) -> None:
    """Refuse what a newer Lakebed wrote. Raises: NewerFormatError."""
    number = value.get("format")
    if isinstance(number, int) and number > newest:
        raise NewerFormatError("unknown format of an export", path=path, format=number)


def _digest_of(value: object) -> RequestDigest:
    return digest_of(msgspec.json.encode(value, order="deterministic"))


def _not_one(path: str, problem: object) -> CorruptError:
    hint = "take it from a copy, or export the table again"
    return CorruptError("not the manifest of an export", path=path, problem=problem, hint=hint)
