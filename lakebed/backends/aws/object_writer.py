"""An object on its way into S3.

Small ones are put at once. Larger ones are uploaded in parts under a name that no listing of
objects shows, and given their path by a copy inside the store that fails when the path is taken:
obstore's multipart uploads cannot be made to fail, its copies can.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import anycrc
import obstore

from lakebed.backends.aws.requests import Request
from lakebed.backends.aws.s3_answers import OBSTORE_ERRORS
from lakebed.errors import InvalidError, LakebedError, ObjectMissingError, UnavailableError
from lakebed.ports.object_store import ObjectFacts

if TYPE_CHECKING:
    from lakebed.backends.aws.object_store import S3ObjectStore

CHECKSUM_KEY = "lakebed-crc64nvme"
"""The metadata that holds the checksum, 16 hex digits."""

COPY_BYTES_MAX = 5 << 30
"""What S3 copies as one part."""

PARTS_AT_ONCE = 4
_CRC64 = anycrc.Model("CRC64-NVME")


class S3ObjectWriter:
    """An object on its way. Holds at most `sizes.single_bytes_max`, later a few parts."""

    def __init__(self, store: S3ObjectStore, path: str, staged: str) -> None:
        self._store = store
        self._path = path
        self._staged = staged
        self._pieces: list[bytes] = []
        self._upload: obstore.WritableFile | None = None
        self._size = 0
        self._checksum: int = _CRC64.calc(b"")
        self._is_open = True

    def write(self, data: bytes | memoryview) -> int:
        """Add bytes. After an error what was written is given up."""
        assert self._is_open, "the object is finished or given up"
        piece = bytes(data)
        self._size += len(piece)
        if self._size > COPY_BYTES_MAX:
            self.abort()
            hint = "let jobs write smaller files"
            raise InvalidError("an object is too large", path=self._path, hint=hint)
        self._checksum = _CRC64.calc(piece, self._checksum)
        if self._upload is None:
            self._pieces.append(piece)
            if self._size > self._store.sizes.single_bytes_max:
                self._begin_upload()
        else:
            self._send([piece])
        return len(piece)

    def finish(self) -> ObjectFacts:
        """Make the object visible."""
        assert self._is_open, "the object is finished or given up"
        facts = ObjectFacts(self._path, self._size, self._checksum)
        try:
            if self._upload is None:
                self._put()
            else:
                self._close_upload()
                self._copy()
        finally:
            self.abort()
        return facts

    def abort(self) -> None:
        """Forget what was written."""
        if not self._is_open:
            return
        self._is_open = False
        self._pieces = []
        if self._upload is None:
            return
        # Only a completed upload can be removed: obstore does not abort one. What this leaves,
        # `abort_unfinished` and the bucket's lifecycle remove.
        with suppress(*OBSTORE_ERRORS):
            self._upload.close()
        self._upload = None
        with suppress(LakebedError):
            self._store.delete_staged([self._staged])

    def _put(self) -> None:
        request = Request(
            what="putting an object", needs="s3:PutObject", path=self._path, writes=True
        )
        pieces = self._pieces or [b""]
        self._store.requests.run(
            request,
            lambda: obstore.put(
                self._store.objects,
                self._path,
                pieces if len(pieces) > 1 else pieces[0],
                mode="create",
                use_multipart=False,
                attributes={CHECKSUM_KEY: f"{self._checksum:016x}"},
            ),
        )

    def _begin_upload(self) -> None:
        self._upload = obstore.open_writer(
            self._store.uploads,
            self._staged,
            buffer_size=self._store.sizes.part_bytes,
            max_concurrency=PARTS_AT_ONCE,
        )
        pieces, self._pieces = self._pieces, []
        self._send(pieces)

    def _send(self, pieces: list[bytes]) -> None:
        upload = self._upload
        assert upload is not None, "the upload began"
        try:
            for piece in pieces:
                self._store.once.run(self._uploading(), partial(upload.write, piece))
        except LakebedError:
            self.abort()
            raise

    def _close_upload(self) -> None:
        assert self._upload is not None, "the upload began"
        upload, self._upload = self._upload, None
        try:
            self._store.once.run(self._uploading(), upload.close)
        finally:
            self._upload = None

    def _uploading(self) -> Request:
        """Return the request to upload: obstore repeats parts itself, which are invisible."""
        return Request(what="uploading an object", needs="s3:PutObject", path=self._path)

    def _copy(self) -> None:
        needs = "s3:PutObject and s3:GetObject"
        request = Request(what="finishing an object", needs=needs, path=self._path, writes=True)
        source = self._store.staged_key(self._staged)
        target = self._store.object_key(self._path)
        try:
            self._store.requests.run(
                request,
                lambda: obstore.copy(self._store.bucket_root, source, target, overwrite=False),
            )
        except ObjectMissingError:
            raise UnavailableError("the unfinished object was removed", path=self._path) from None
        finally:
            with suppress(LakebedError):
                self._store.delete_staged([self._staged])
