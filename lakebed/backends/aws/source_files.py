"""Users' files in any bucket that our credentials may read: `s3://BUCKET/KEY`; and folders there
that we write for users."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, ClassVar

import obstore
from obstore.store import S3Store

from lakebed.backends.aws.object_store import (
    STREAM_BYTES,
    S3ObjectStore,
    open_bucket,
    pages_of,
)
from lakebed.backends.aws.requests import Patience, Request, Requests
from lakebed.backends.aws.s3_answers import S3
from lakebed.errors import (
    DeniedError,
    InvalidError,
    ObjectExistsError,
    ObjectMissingError,
    StorageFullError,
    UnreadableInputError,
)
from lakebed.observe import usage
from lakebed.ports.clock import Clock
from lakebed.ports.source_files import SourceFile, is_skipped

if TYPE_CHECKING:
    from obstore import GetOptions, ObjectMeta
    from obstore.store import S3CredentialProvider

SCHEME = "s3://"
GET_SECONDS = 3_600
"""Most seconds that reading one file, with all its bytes, may take."""
READ_HINT = "let these credentials read it, an instance's role; then send it again"
FILES_MAX = 1_000_000
"""Most files below one folder: more are a bulk import's, or a mistake."""


class PlainS3Objects(S3ObjectStore):
    """Objects of a user's folder in a bucket under just their names: PREFIX/<path>."""

    folder: ClassVar[str] = ""


class S3SourceFiles:
    """Files by URL. folder: of this machine, for files while they are read, one at a time.

    config, credentials: as `S3ObjectStore` takes them.
    """

    def __init__(
        self,
        folder: Path,
        *,
        clock: Clock,
        rng: random.Random,
        config: Mapping[str, str] | None = None,
        credentials: S3CredentialProvider | None = None,
        patience: Patience | None = None,
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._rng = rng
        self._open = partial(open_bucket, config=dict(config or {}), credentials=credentials)
        self._patience = patience or Patience()
        self._stores: dict[str, S3Store] = {}

    def find(self, name: str) -> list[SourceFile]:
        """Return the file of a URL, or those below it."""
        bucket, _, key = name.removeprefix(SCHEME).partition("/")
        found, denied = self._one(bucket, key) if key and not key.endswith("/") else ([], None)
        if not found:
            found = self._below(bucket, key.rstrip("/"))
        if not found and denied is not None and self._is_listed(bucket, key):
            raise InvalidError(
                "a file may not be read", file=name, hint=READ_HINT, **_denied(denied)
            )
        if not found:
            hint = (
                "check the name, and that it may be read; names in folders that begin with '_' or "
                "'.' are skipped"
            )
            raise InvalidError("no such file, or nothing in the folder", file=name, hint=hint)
        return found

    @contextmanager
    def on_disk(
        self, file: SourceFile, spans: Sequence[tuple[int, int]] | None = None
    ) -> Iterator[Path]:
        """Have a copy of a file, with its suffix. What is not wanted of it takes no room."""
        bucket, _, key = file.name.removeprefix(SCHEME).partition("/")
        with TemporaryDirectory(prefix="source-", dir=self._folder) as folder:
            path = Path(folder) / f"rows{PurePosixPath(key).suffix}"
            request = Request(
                what="reading a file", needs="s3:GetObject", path=file.name, counter="s3_get"
            )
            try:
                for span in [None] if spans is None else spans:
                    copy = partial(self._copy, bucket, key, file, path, span)
                    self._requests(bucket).run(request, copy)
            except (ObjectMissingError, ObjectExistsError):
                hint = "wait until the file is no longer written, then send the request again"
                raise UnreadableInputError(
                    "a file was changed meanwhile, or is gone", file=file.name, hint=hint
                ) from None
            except DeniedError as error:
                raise UnreadableInputError(
                    "a file may not be read", file=file.name, hint=READ_HINT, **_denied(error)
                ) from None
            yield path

    def _copy(
        self, bucket: str, key: str, file: SourceFile, path: Path, span: tuple[int, int] | None
    ) -> None:
        """Copy bytes of an object to the same offsets of a file as large. span: None: all."""
        options: GetOptions = {"if_match": file.version}
        if span is not None:
            options["range"] = span
        answer = obstore.get(self._store(bucket), key, options=options)
        path.touch()
        with path.open("r+b") as out:
            out.truncate(file.size)
            out.seek(0 if span is None else span[0])
            for piece in answer.stream(min_chunk_size=STREAM_BYTES):
                usage.count("s3_get_bytes", len(piece))
                try:
                    out.write(piece)
                except OSError as error:
                    hint = "give tasks more disk, or send smaller files"
                    raise StorageFullError(
                        "no room for a file", file=file.name, bytes=file.size, hint=hint
                    ) from error

    def _one(self, bucket: str, key: str) -> tuple[list[SourceFile], DeniedError | None]:
        """Return the file, or none: it is missing, or may not be read, as the error says. S3 tells
        these not apart to those who may list a folder only. Listing shows which it is, and what
        else could be wrong."""
        request = Request(
            what="looking at a file", needs="s3:GetObject", path=key, counter="s3_get"
        )
        try:
            meta = self._requests(bucket).run(
                request, lambda: obstore.head(self._store(bucket), key)
            )
        except (ObjectMissingError, InvalidError):
            return [], None
        except DeniedError as error:
            return [], error
        return [_seen(bucket, meta)], None

    def _is_listed(self, bucket: str, key: str) -> bool:
        """Return whether a file is in its folder. Its format ends its name, so hardly another lies
        between the name without its last letter and the whole one."""
        folder = key.rpartition("/")[0]
        url = f"{SCHEME}{bucket}/{folder}"
        page = next(self._listed(bucket, folder, url, after=key[:-1]), ())
        return any(meta["path"] == key for meta in page)

    def _below(self, bucket: str, folder: str) -> list[SourceFile]:
        found: list[SourceFile] = []
        url = f"{SCHEME}{bucket}/{folder}"
        for page in self._listed(bucket, folder, url):
            for meta in page:
                below = meta["path"].removeprefix(folder).lstrip("/")
                if below and not is_skipped(below):
                    found.append(_seen(bucket, meta))
            if len(found) > FILES_MAX:
                hint = "name folders below it"
                raise InvalidError(
                    "a folder with too many files", file=f"{url}/", files_max=FILES_MAX, hint=hint
                )
        return found

    def _listed(
        self, bucket: str, folder: str, url: str, *, after: str | None = None
    ) -> Iterator[Sequence[ObjectMeta]]:
        request = Request(
            what="listing files", needs="s3:ListBucket", path=folder, counter="s3_list"
        )
        run = partial(self._requests(bucket).run, request)
        try:
            yield from pages_of(self._store(bucket), folder, run, after=after)
        except DeniedError as error:
            hint = "let these credentials list it, an instance's role; then send it again"
            raise InvalidError(
                "a file or folder may not be read", file=url, hint=hint, **_denied(error)
            ) from None

    def _requests(self, bucket: str) -> Requests:
        return Requests(S3, bucket, clock=self._clock, rng=self._rng, patience=self._patience)

    def _store(self, bucket: str) -> S3Store:
        if bucket not in self._stores:
            self._stores[bucket] = self._open(bucket, None, seconds=GET_SECONDS)
        return self._stores[bucket]


def _denied(error: DeniedError) -> dict[str, object]:
    """Return what a user's message is refused with for missing permissions."""
    return {name: error.facts[name] for name in ("permission", "why")}


def _seen(bucket: str, meta: ObjectMeta) -> SourceFile:
    modified = int(meta["last_modified"].timestamp() * 1_000_000)
    name = f"{SCHEME}{bucket}/{meta['path']}"
    return SourceFile(name, meta["size"], meta["e_tag"] or "", modified)
