"""Requests for bulk imports that were sent to a platform, kept until their ends are known.

Each is an object. It is there before the run is started, so that no run is unknown, and its driver
reads there what is asked of it: a message is too large for a command line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

import msgspec

from lakebed.errors import (
    CorruptError,
    InvalidError,
    NewerFormatError,
    ObjectExistsError,
    ObjectMissingError,
)
from lakebed.model.json_fields import check_fields_once
from lakebed.model.names import JobId, Micros, TableId, digest_of, job_id, table_id
from lakebed.model.needs import refuse_newer
from lakebed.ports.file_batches import SubmittedFile
from lakebed.ports.job_tracker import NO_TABLE, JobReport
from lakebed.ports.object_store import ObjectStore
from lakebed.ports.spark_runs import RunAsked
from lakebed.sorted_files.format.object_sink import ObjectSink, finish_object

FOLDER, UNREADABLE = "requests/", "unreadable/"
REQUEST_BYTES_MAX = 1 << 20
_OWNER = re.compile(rb'"table":"([0-9a-f]+)","job":("(?:[^"\\\\]|\\\\.)*")')
"""Pattern of the part of a request that names its table and job, before all that is long."""


class ImportRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A bulk import that is asked for.

    name: of its run.
    table: which the message names, by id.
    body: the message, or the files of a batch.
    digest: what stands for the request in the log, as hex.
    at: when it was put, just before its run is started.
    """

    name: str
    table: TableId
    job: JobId
    body: str
    digest: str
    at: Micros


class BatchBody(msgspec.Struct, frozen=True):
    """The body of a request that is the job of a batch, in place of a user's message.

    batch: files as they were submitted.
    """

    batch: tuple[SubmittedFile, ...]


def body_of_batch(files: Sequence[SubmittedFile]) -> str:
    """Return what a request for these files says."""
    return msgspec.json.encode(BatchBody(tuple(files))).decode()


def batch_in(body: str) -> tuple[SubmittedFile, ...] | None:
    """Return the files of a batch that a request is for; None: it is a user's message."""
    if not body.startswith('{"batch":'):
        return None
    try:
        return msgspec.json.decode(body, type=BatchBody).batch
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None


class UnreadableRequest(msgspec.Struct, frozen=True, kw_only=True):
    """An object that is no request, or one of a newer release.

    name: of its run.
    table, job: whose it seems to be; NO_TABLE and the name where it does not say so.
    """

    name: str
    table: TableId
    job: JobId
    error: CorruptError | NewerFormatError


def name_of(job: JobId, body: bytes, sent_at: Micros) -> str:
    """Return the name of a run: the same for each receipt of a message, another one when it is
    sent again, so that what failed may be tried again."""
    return digest_of(job.encode(), body, b"%d" % sent_at).hex()


def asked_of(request: ImportRequest) -> RunAsked:
    """Return what the message of a request asks of its platform. It was checked when it came."""
    return msgspec.json.decode(request.body, type=RunAsked)


def newest_accepted(reports: Sequence[JobReport]) -> str | None:
    """Return the name of the run that was accepted last. reports: of one job, oldest first."""
    return next((report.run for report in reversed(reports) if report.event == "accepted"), None)


class ImportRequests:
    """The requests whose ends were not looked up yet. objects: of their own, not the lake's."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def put(self, request: ImportRequest) -> None:
        """Keep a request. Again does nothing.

        Raises:
            UnavailableError, UnknownOutcomeError: put it again.
        """
        with suppress(ObjectExistsError):  # of another receipt of the message
            self._write(_path(request.name), [msgspec.json.encode(request)])

    def get(self, name: str) -> ImportRequest:
        """Return a request.

        Raises:
            ObjectMissingError: its end is known. CorruptError: it is none. NewerFormatError: of a
                newer release. UnavailableError: ask again.
        """
        return _request_in(self._body(name), _path(name))

    def open(self) -> Iterator[ImportRequest | UnreadableRequest]:
        """Yield all requests that are kept, and what is none.

        Raises:
            UnavailableError: ask again.
        """
        for path in self._objects.list(FOLDER):
            name = path.removeprefix(FOLDER).removesuffix(".json")
            try:
                body = self._body(name)
            except ObjectMissingError:
                continue
            try:
                request: ImportRequest | UnreadableRequest = _request_in(body, path)
            except (CorruptError, NewerFormatError) as error:
                table, job = _owner_in(body) or (NO_TABLE, JobId(name))
                request = UnreadableRequest(name=name, table=table, job=job, error=error)
            yield request

    def forget(self, request: ImportRequest) -> None:
        """Its end is known. Raises: UnavailableError, UnknownOutcomeError: do it again."""
        self._objects.delete([_path(request.name)])

    def put_aside(self, request: UnreadableRequest) -> str:
        """Move it out of the folder of requests, as it is. Again does nothing. Returns where.

        Raises:
            UnavailableError, UnknownOutcomeError: do it again. ObjectExistsError: another one of
                its name is there already.
        """
        path, aside = _path(request.name), f"{UNREADABLE}{request.name}.json"
        size = self._objects.size_of(path) or 0
        spans = [
            (at, min(at + REQUEST_BYTES_MAX, size)) for at in range(0, size, REQUEST_BYTES_MAX)
        ]
        self._write(aside, (self._objects.read(path, [span])[0] for span in spans))
        self._objects.delete([path])
        return aside

    def _body(self, name: str) -> bytes:
        path = _path(name)
        size = self._objects.size_of(path)
        if size is None:
            raise ObjectMissingError(path)
        return self._objects.read(path, [(0, min(size, REQUEST_BYTES_MAX))])[0] if size else b""

    def _write(self, path: str, pieces: Iterable[bytes]) -> None:
        writer = self._objects.create(path)
        sink = ObjectSink(writer)
        try:
            for piece in pieces:
                sink.write([piece])
            finish_object(self._objects, writer, path=path, size=sink.size, checksum=sink.checksum)
        finally:
            writer.abort()


def _path(name: str) -> str:
    return f"{FOLDER}{name}.json"


def _request_in(body: bytes, path: str) -> ImportRequest:
    """Return the request that bytes are. Raises: CorruptError, NewerFormatError."""
    refuse_newer(body, "a request for an import")
    try:
        check_fields_once(body)
        return msgspec.json.decode(body, type=ImportRequest)
    except (InvalidError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CorruptError("not a request for an import", path=path, reason=error) from None


def _owner_in(body: bytes) -> tuple[TableId, JobId] | None:
    """Return whose a damaged request seems to be; None: it does not say so any more."""
    found = _OWNER.search(body)
    if found is None:
        return None
    try:
        return table_id(found[1].decode()), job_id(msgspec.json.decode(found[2]))
    except (InvalidError, msgspec.DecodeError, UnicodeDecodeError):
        return None
