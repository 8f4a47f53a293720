"""An object on its way into S3: a small one is put at once, a larger one uploaded in parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anycrc
import obstore

from lakebed.backends.aws.requests import Request
from lakebed.errors import (
    LakebedError,
    ObjectExistsError,
    ObjectMissingError,
    ObjectTooLargeError,
)
from lakebed.observe import usage
from lakebed.ports.object_store import ObjectFacts

if TYPE_CHECKING:
    from lakebed.backends.aws.large_objects import PartUpload
    from lakebed.backends.aws.object_store import S3ObjectStore

CHECKSUM_KEY = "lakebed-crc64nvme"
"""The metadata that holds the checksum of an object that was put at once, 16 hex digits."""

_CRC64 = anycrc.Model("CRC64-NVME")


class S3ObjectWriter:
    """An object on its way. Holds at most `sizes.single_bytes_max`, later a few parts."""

    def __init__(self, store: S3ObjectStore, path: str) -> None:
        self._store = store
        self._path = path
        self._pieces: list[bytes] = []
        self._upload: PartUpload | None = None
        self._part = bytearray()
        self._size = 0
        self._checksum: int = _CRC64.calc(b"")
        self._is_open = True

    def write(self, data: bytes | memoryview) -> int:
        """Add bytes. After an error what was written is given up."""
        if not self._is_open:
            raise AssertionError("the object is finished or given up")
        added = len(data)
        if self._size + added > self._store.sizes.object_bytes_max:
            self.abort()
            raise ObjectTooLargeError(self._path, self._store.sizes.object_bytes_max)
        self._checksum = _CRC64.calc(data, self._checksum)
        self._size += added
        try:
            if self._upload is None:
                self._pieces.append(bytes(data))
                if self._size > self._store.sizes.single_bytes_max:
                    self._begin_upload()
            else:
                self._send(self._upload, data)
        except LakebedError:
            self.abort()
            raise
        return added

    def finish(self) -> ObjectFacts:
        """Make the object visible."""
        if not self._is_open:
            raise AssertionError("the object is finished or given up")
        facts = ObjectFacts(self._path, self._size, self._checksum)
        try:
            if self._upload is None:
                self._put()
            else:
                self._complete(self._upload)
                self._upload = None
        finally:
            self.abort()
        return facts

    def abort(self) -> None:
        """Forget what was written."""
        if not self._is_open:
            return
        self._is_open = False
        self._pieces, self._part = [], bytearray()
        upload, self._upload = self._upload, None
        if upload is not None:
            upload.abort()

    def _put(self) -> None:
        request = Request(
            what="putting an object",
            needs="s3:PutObject",
            path=self._path,
            writes=True,
            counter="s3_put",
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
        usage.count("s3_put_bytes", self._size)

    def _begin_upload(self) -> None:
        self._upload = self._store.begin_upload(self._path)
        pieces, self._pieces = self._pieces, []
        for piece in pieces:
            self._send(self._upload, piece)

    def _send(self, upload: PartUpload, data: bytes | memoryview) -> None:
        """Fill the part, and as often as it is full send it and begin the next."""
        view = memoryview(data)
        while view:
            room = upload.next_part_bytes - len(self._part)
            self._part += view[:room]
            view = view[room:]
            if len(self._part) == upload.next_part_bytes:
                self._send_part(upload)

    def _send_part(self, upload: PartUpload) -> None:
        part, self._part = self._part, bytearray()
        upload.send(part)

    def _complete(self, upload: PartUpload) -> None:
        if self._part:
            self._send_part(upload)
        try:
            upload.complete(self._size, self._checksum)
        except ObjectMissingError:
            # The upload is gone. Either it was completed, and the object is there, or nothing can
            # complete it any more.
            if self._store.size_of(self._path) is not None:
                raise ObjectExistsError(self._path) from None
            raise upload.removed() from None
