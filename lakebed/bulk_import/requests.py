"""Requests for bulk imports that were sent to a platform, kept until their ends are known.

Each is an object. It is there before the run is started, so that no run is unknown, and its driver
reads there what is asked of it: a message is too large for a command line.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import msgspec

from lakebed.errors import CorruptError, ObjectExistsError, ObjectMissingError
from lakebed.model.names import JobId, Micros, TableId, digest_of
from lakebed.observe import events, metrics
from lakebed.ports.job_tracker import JobReport
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


def newest_accepted(told: Sequence[JobReport]) -> str | None:
    """Return the name of the run that was accepted last. told: of one job, oldest first."""
    return next((report.run for report in reversed(told) if report.event == "accepted"), None)


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
        writer = self._objects.create(path)
        sink = ObjectSink(writer)
        try:
            sink.write([msgspec.json.encode(request)])
            finish_object(self._objects, writer, path=path, size=sink.size, checksum=sink.checksum)
        except ObjectExistsError:  # of another receipt of the message
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
        """Yield all requests that are kept, but what is none: that is told to an operator.

        Raises:
            UnavailableError: ask again.
        """
        for path in self._objects.list(FOLDER):
            try:
                yield self.get(path.removeprefix(FOLDER).removesuffix(".json"))
            except ObjectMissingError:
                continue
            except CorruptError as error:
                what = {"kind": metrics.WORK_CORRUPT, "code": error.code(), "reason": error}
                events.tell(events.WORK_FAILED, level=logging.ERROR, **what)

    def forget(self, request: ImportRequest) -> None:
        """Its end is known. Raises: UnavailableError, UnknownOutcomeError: do it again."""
        self._objects.delete([_path(request.name)])


def _path(name: str) -> str:
    return f"{FOLDER}{name}.json"
