"""Requests for bulk imports that were sent to a platform, kept until their ends are known.

Each is an object. It is there before the run is started, so that no run is unknown, and its driver
reads there what is asked of it: a message is too large for a command line.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from lakebed.errors import CorruptError, ObjectExistsError, ObjectMissingError
from lakebed.model.names import JobId, Micros, TableId, digest_of
from lakebed.ports.object_store import ObjectStore
from lakebed.sorted_files.object_sink import ObjectSink, finish_object

FOLDER = "requests/"
REQUEST_BYTES_MAX = 1 << 20


class ImportRequest(msgspec.Struct, frozen=True, kw_only=True):
    """name: of its run. table: which the message names, by id. body: the message. digest: what
    stands for the request in the log, as hex. at: when it was put, just before its run is started.
    """

    name: str
    table: TableId
    job: JobId
    body: str
    digest: str
    at: Micros


def name_of(job: JobId, body: bytes, sent_at: Micros) -> str:
    """Return the name of a run: the same for each receipt of a message, another one when it is
    sent again, so that what failed may be tried again."""
    return digest_of(job.encode(), body, b"%d" % sent_at).hex()


class ImportRequests:
    """The requests whose ends nobody has looked up yet. objects: of their own, not the lake's."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def put(self, request: ImportRequest) -> None:
        """Keep a request. Again does nothing.

        Raises:
            UnavailableError, UnknownOutcomeError: put it again.
        """
        path = _path(request.name)
        if self._objects.size_of(path) is not None:
            return
        writer = self._objects.create(path)
        sink = ObjectSink(writer)
        try:
            sink.write([msgspec.json.encode(request)])
            finish_object(self._objects, writer, path=path, size=sink.size, checksum=sink.checksum)
        except ObjectExistsError:  # another receipt of the message was faster
            return
        finally:
            writer.abort()

    def get(self, name: str) -> ImportRequest:
        """Return a request.

        Raises:
            ObjectMissingError: its end is known. CorruptError: it is none. UnavailableError: ask
                again.
        """
        path = _path(name)
        size = self._objects.size_of(path)
        if size is None:
            raise ObjectMissingError(path)
        (body,) = self._objects.read(path, [(0, min(size, REQUEST_BYTES_MAX))])
        try:
            return msgspec.json.decode(body, type=ImportRequest)
        except msgspec.DecodeError as error:
            raise CorruptError("not a request for an import", path=path, reason=error) from None

    def open(self) -> Iterator[ImportRequest]:
        """Yield all requests that are kept. Raises: as `get`, but for those that just went."""
        for path in self._objects.list(FOLDER):
            try:
                yield self.get(path.removeprefix(FOLDER).removesuffix(".json"))
            except ObjectMissingError:
                continue

    def forget(self, request: ImportRequest) -> None:
        """Its end is known. Raises: UnavailableError, UnknownOutcomeError: do it again."""
        self._objects.delete([_path(request.name)])


def _path(name: str) -> str:
    return f"{FOLDER}{name}.json"
