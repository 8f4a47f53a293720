"""Folders whose files become rows as they arrive: which a table may watch, and whose a file is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lakebed.errors import InvalidError
from lakebed.model.names import TableId
from lakebed.ports.source_files import is_skipped
from lakebed.ports.table_registry import TableEntry

SCHEME = "s3://"
FOLDER_BYTES_MAX = 1_024
"""Most bytes of a folder's name: as S3 takes for a key."""


def watched_folder(text: object) -> str:
    """Return a folder of S3 as tables keep it, with a slash at its end; "": none.

    Raises:
        InvalidError: it is not `s3://BUCKET/` or `s3://BUCKET/FOLDER/`.
    """
    if text == "":
        return ""
    hint = "write s3://BUCKET/FOLDER/, or s3://BUCKET/ for all of a bucket"
    if not isinstance(text, str) or not text.startswith(SCHEME):
        raise InvalidError("not a folder of S3", folder=ascii(text)[:80], hint=hint)
    bucket, *folders = text.removeprefix(SCHEME).removesuffix("/").split("/")
    if not bucket or not all(folders) or not text.isprintable():
        raise InvalidError("not a folder of S3", folder=ascii(text)[:80], hint=hint)
    if len(text.encode()) > FOLDER_BYTES_MAX:
        raise InvalidError("a folder's name is too long", bytes_max=FOLDER_BYTES_MAX, hint=hint)
    return f"{SCHEME}{'/'.join((bucket, *folders))}/"


def bucket_of(folder: str) -> str:
    """Return the bucket of a folder of S3."""
    return folder.removeprefix(SCHEME).partition("/")[0]


class WatchableFolders:
    """The locations of the folders that tables may watch.

    sources: of the instance, by whose rules files are told. None: nothing tells of files there, and
        `refusal` says why, and what to do.
    """

    def __init__(self, sources: Iterable[str] | None, refusal: tuple[str, str] = ("", "")) -> None:
        self._sources = None if sources is None else [f"{one.rstrip('/')}/" for one in sources]
        self._refusal = refusal

    def check(self, folder: str) -> None:
        """Raise InvalidError if no file of a folder would be told, or taken in. "" may always be
        watched: it is none."""
        if not folder:
            return
        if self._sources is None:
            problem, hint = self._refusal
            raise InvalidError(problem, folder=folder, hint=hint)
        if not any(map(folder.startswith, self._sources)):
            raise InvalidError(
                "the folder is outside the allowed sources",
                folder=folder,
                allowed=", ".join(self._sources) or "none",
                hint="watch one of them or one below, or deploy the instance with its location"
                " among `-c sources=...`",
            )


IN_A_DIRECTORY = WatchableFolders(
    None,
    (
        "a lake in a directory is not told of files",
        "define a feed that reads the folder: `lakebed explain feed-settings`",
    ),
)
NOT_BATCHED = WatchableFolders(
    None,
    (
        "this instance is not told of files",
        "deploy it again with this release, and with its stack `batching`",
    ),
)


def watchable_folders(sources: Iterable[str] | None) -> WatchableFolders:
    """Return where tables of an instance may watch folders. sources: of the instance; None: it is
    not told of files that arrive."""
    return NOT_BATCHED if sources is None else WatchableFolders(sources)


def check_alone(folder: str, table: TableId | None, entries: Iterable[TableEntry]) -> None:
    """Raise InvalidError if another table watches the same folder. table: None: a new one."""
    for entry in entries:
        if folder and entry.watched == folder and entry.id != table:
            raise InvalidError(
                "another table watches this folder",
                folder=folder,
                table=entry.name,
                hint=f"watch a folder below it, or end that: `lakebed table watch {entry.name}"
                " --none`",
            )


def watching_table(file: str, entries: Sequence[TableEntry]) -> TableEntry | None:
    """Return the table whose file it is: the folder nearest to it counts. None: no table's, as
    are files that folders pass over, and names that end as a folder's."""
    watching = [entry for entry in entries if entry.watched and file.startswith(entry.watched)]
    if not watching:
        return None
    nearest = max(watching, key=lambda entry: len(entry.watched))
    below = file.removeprefix(nearest.watched)
    return None if not below or below.endswith("/") or is_skipped(below) else nearest
