"""Objects in a bucket of S3, or of a server that speaks its language.

PREFIX/objects/<path>        an object, put if absent
PREFIX/unfinished/<digits>   what earlier releases left of large objects; they are swept
"""

from __future__ import annotations

import random
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import anycrc
import obstore
from obstore.store import S3Store

from lakebed.backends.aws.costs.object_requests import (
    COALESCE_BYTES,
    DELETING,
    LISTING,
    reading,
    requests_for,
)
from lakebed.backends.aws.object_writer import CHECKSUM_KEY, S3ObjectWriter
from lakebed.backends.aws.requests import Patience, Requests
from lakebed.backends.aws.s3_answers import OBSTORE_ERRORS, S3, answer_of
from lakebed.errors import CorruptError, InvalidError, ObjectMissingError
from lakebed.model.names import MICROS_PER_SECOND
from lakebed.model.paths import check_path
from lakebed.observe import usage
from lakebed.observe.usage import carried
from lakebed.ports.clock import Clock
from lakebed.ports.object_store import ObjectFacts, ObjectRanges

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ClientConfig, RetryConfig, S3Config, S3CredentialProvider

    from lakebed.backends.aws.clients import AmazonClients
    from lakebed.backends.aws.large_objects import LargeObjects, PartUpload

OBJECTS, UNFINISHED = "objects", "unfinished"
PAGE_KEYS = 1_000
"""Most keys that S3 lists, or deletes, with one request."""
REQUESTS_AT_ONCE = 10
"""Ranges that one call of obstore reads at the same time; more are read by more calls."""
READERS, FACTS_MAX = 32, 1_024
"""Threads, made when needed: so many files' ranges, or tens of ranges of one, come at once."""
STREAM_BYTES = 4 << 20
_CRC64 = anycrc.Model("CRC64-NVME")


class UploadSizes(NamedTuple):
    """Up to `single_bytes_max` an object is held in memory and put at once, above it goes in parts
    of at least `part_bytes_min`. S3 takes parts of 5 MiB or more, and so many bytes in all.

    Each part is a request that is paid for: in parts of 8 MiB a TB would cost 0.60 dollars, each
    time that it is rewritten.
    """

    single_bytes_max: int = 32 << 20
    part_bytes_min: int = 32 << 20
    object_bytes_max: int = 5 << 40


class S3ObjectStore:
    """Objects of a lake in a bucket. May be used by many threads.

    prefix: "" or folders inside the bucket. config: obstore's names; what it leaves out comes from
    the environment (AWS_REGION, AWS_ACCESS_KEY_ID, ...) or the machine's role. clients: boto3's,
    which have credentials instead of both, and upload large objects; where none are given, they
    are made of `config` when a large object comes. rng: for waits. sizes: of what is sent.
    """

    folder: ClassVar[str] = OBJECTS
    """The folder below which objects lie."""

    def __init__(
        self,
        bucket: str,
        prefix: str = "",
        *,
        clock: Clock,
        rng: random.Random,
        config: Mapping[str, str] | None = None,
        clients: AmazonClients | None = None,
        patience: Patience | None = None,
        sizes: UploadSizes | None = None,
    ) -> None:
        self.sizes = sizes or UploadSizes()
        self._clock = clock
        self._rng = rng
        self._root = f"{check_path(prefix)}/" if prefix else ""
        self.location = f"s3://{bucket}/{prefix}" if prefix else f"s3://{bucket}"
        self._bucket = bucket
        self._config = dict(config or {})
        self._clients = clients
        self._patience = patience = patience or Patience()
        self._large: LargeObjects | None = None
        credentials = clients.credentials_for_objects() if clients else None
        open_ = partial(open_bucket, bucket, config=self._config, credentials=credentials)
        self.objects = open_((self._root + self.folder).rstrip("/") or None)
        self._unfinished = open_(self._root + UNFINISHED)
        self.requests = Requests(S3, bucket, clock=clock, rng=rng, patience=patience)
        once = Patience(tries_max=1)
        self._once = Requests(S3, bucket, clock=clock, rng=rng, patience=once)
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="lakebed-read")
        self._lock = threading.Lock()
        self._sums: OrderedDict[tuple[str, str], int] = OrderedDict()

    def create(self, path: str) -> S3ObjectWriter:
        """Begin an object. Nothing is sent yet."""
        return S3ObjectWriter(self, check_path(path))

    def begin_upload(self, path: str) -> PartUpload:
        """Begin to upload an object in parts."""
        key, least = self.object_key(path), self.sizes.part_bytes_min
        return self._large_objects().begin_upload(key, path=path, part_bytes_min=least)

    def look(self, path: str) -> ObjectFacts | None:
        """Return what is at `path`, or None.

        The checksum is the one that the writer put beside the bytes when the store compared it; of
        a large object the one that S3 itself has. Where a server has none, the bytes are read,
        once for each process.
        """
        check_path(path)
        try:
            found = self._head(path)
            if found is None:
                return None
            meta, stated = found
            checksum = _parsed(stated) if stated else self._sum(path, meta)
        except ObjectMissingError:
            return None
        return ObjectFacts(path, meta["size"], checksum)

    def size_of(self, path: str) -> int | None:
        """Return how many bytes are at `path`, or None: one request, whatever the size."""
        check_path(path)
        found = self._head(path)
        return None if found is None else int(found[0]["size"])

    def read(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of each range, all of them read at the same time."""
        return self.read_many([(path, ranges)])[0]

    def read_many(self, wanted: Sequence[ObjectRanges]) -> list[list[bytes]]:
        """Return the bytes of each range of several objects, all of them read at the same time."""
        batches: list[ObjectRanges] = []
        for path, ranges in wanted:
            check_path(path)
            for start, end in ranges:
                if not 0 <= start <= end:
                    raise AssertionError(f"a range runs forwards, got {start} to {end}")
            full = [span for span in ranges if span[0] < span[1]]
            if ranges and not full and self._head(path) is None:
                raise ObjectMissingError(path)
            starts = range(0, len(full), REQUESTS_AT_ONCE)
            batches += [(path, full[at : at + REQUESTS_AT_ONCE]) for at in starts]
        pieces = chain.from_iterable(self._batches(batches))
        return [
            [next(pieces) if start < end else b"" for start, end in ranges] for _, ranges in wanted
        ]

    def _batches(self, batches: Sequence[ObjectRanges]) -> list[Sequence[bytes]]:
        """Return the bytes of each batch, read at the same time, the last one in this thread: to
        wake a thread costs as much as a request's own work."""
        others = [self._readers.submit(carried(self._ranges), batch) for batch in batches[:-1]]
        try:
            last = [self._ranges(batch) for batch in batches[-1:]]
            return [other.result() for other in others] + last
        finally:
            for other in others:
                other.cancel()

    def list(self, prefix: str, *, below: str | None = None) -> Iterator[str]:
        """Yield paths with the prefix, ascending. Asks for the folder's keys, a page at a time.

        Raises:
            InvalidError: the server does not list in order, so it cannot be trusted to list all.
        """
        folder = prefix.rpartition("/")[0]
        if folder:
            try:
                check_path(folder)
            except InvalidError:
                return  # nothing can lie there
        last = ""
        for page in self._pages(self.objects, folder):
            for meta in page:
                path = meta["path"]
                if path <= last:
                    hint = "sweeping needs a server that lists by code points, as S3 does"
                    raise InvalidError("keys are not listed in order", key=path, hint=hint)
                last = path
                if (below is not None and path >= below) or path[: len(prefix)] > prefix:
                    return
                if path.startswith(prefix):
                    yield path

    def delete(self, paths: Iterable[str]) -> None:
        """Delete objects, up to 1,000 with one request."""
        remaining = iter(dict.fromkeys(check_path(path) for path in paths))
        while batch := list(islice(remaining, PAGE_KEYS)):
            self._delete(self.objects, batch)

    def abort_unfinished(self, *, older_than_seconds: float) -> int:
        """Remove large objects that an earlier release uploaded and that never got their path.

        Uploads that were never completed are not counted: the bucket's lifecycle aborts them
        (AbortIncompleteMultipartUpload, protocol H25).
        """
        end = self._clock.now() / MICROS_PER_SECOND - older_than_seconds
        removed = 0
        for page in self._pages(self._unfinished, ""):
            old = [meta["path"] for meta in page if meta["last_modified"].timestamp() <= end]
            if old:
                self._delete(self._unfinished, old)
            removed += len(old)
        return removed

    def probe(self) -> None:
        """Ask for one page of keys, once.

        Raises:
            InvalidError: no such bucket. DeniedError: the credentials do not permit it.
            UnavailableError: no answer, or no credentials.
        """
        self._once.run(LISTING, lambda: _page(self._unfinished, "", None))

    def url_of(self, path: str) -> str:
        """Return the URL by which other programs read an object: `s3://BUCKET/KEY`."""
        return f"s3://{self._bucket}/{self.object_key(path)}"

    def object_key(self, path: str) -> str:
        """Return the key of an object in the bucket."""
        return f"{self._root}{self.folder}/{path}" if self.folder else f"{self._root}{path}"

    def _large_objects(self) -> LargeObjects:
        from lakebed.backends.aws import (  # noqa: PLC0415  boto3, 0.4 s, of no use to small ones
            large_objects,
        )

        with self._lock:
            if self._large is None:
                clients = self._clients or large_objects.clients_of(
                    self._config, clock=self._clock, rng=self._rng, patience=self._patience
                )
                self._large = large_objects.LargeObjects(
                    clients, self._bucket, patience=self._patience
                )
            return self._large

    def _delete(self, store: S3Store, paths: Sequence[str]) -> None:
        self.requests.run(DELETING, lambda: obstore.delete(store, paths))

    def _head(self, path: str) -> tuple[ObjectMeta, str | None] | None:
        """Return what the store says of an object, and the checksum beside it."""
        request = reading(path, "looking at an object")

        def head() -> tuple[ObjectMeta, str | None]:
            result = obstore.get(self.objects, path, options={"head": True})
            return result.meta, result.attributes.get(CHECKSUM_KEY)

        try:
            return self.requests.run(request, head)
        except ObjectMissingError:
            pass
        # The answer to a HEAD has no body. The answer to a GET says which is missing, this object
        # or the whole bucket.
        try:
            self.requests.run(
                request, lambda: obstore.get_range(self.objects, path, start=0, end=1)
            )
        except ObjectMissingError:
            return None
        except CorruptError:
            pass  # it came meanwhile, and is empty
        return self.requests.run(request, head)

    def _sum(self, path: str, meta: ObjectMeta) -> int:
        """Return the checksum of an object's bytes, which are read unless its ETag is known."""
        key = path, meta["e_tag"] or ""
        with self._lock:
            if key in self._sums:
                self._sums.move_to_end(key)
                return self._sums[key]
        stated = self._large_objects().checksum(self.object_key(path), path=path)
        if stated is not None:
            return stated
        size, checksum = self.requests.run(reading(path), lambda: _summed(self.objects, path))
        usage.count("s3_get_bytes", size)
        if size != meta["size"]:
            raise CorruptError("object is shorter", path=path, size=size, end=meta["size"])
        if meta["e_tag"]:
            with self._lock:
                self._sums[key] = checksum
                while len(self._sums) > FACTS_MAX:
                    self._sums.popitem(last=False)
        return checksum

    def _ranges(self, wanted: ObjectRanges) -> Sequence[bytes]:
        path, ranges = wanted
        starts, ends = [start for start, _ in ranges], [end for _, end in ranges]
        pieces = self.requests.run(
            reading(path, sent=requests_for(ranges)),
            lambda: obstore.get_ranges(
                self.objects, path, starts=starts, ends=ends, coalesce=COALESCE_BYTES
            ),
        )
        found = [bytes(piece) for piece in pieces]
        usage.count("s3_get_bytes", sum(map(len, found)))
        for (start, end), piece in zip(ranges, found, strict=True):
            if len(piece) != end - start:
                raise CorruptError("object is shorter", path=path, size=start + len(piece), end=end)
        return found

    def _pages(self, store: S3Store, folder: str) -> Iterator[Sequence[ObjectMeta]]:
        return pages_of(store, folder, partial(self.requests.run, LISTING))


def open_bucket(
    bucket: str,
    prefix: str | None,
    *,
    config: Mapping[str, str],
    credentials: S3CredentialProvider | None,
    seconds: int = 120,
) -> S3Store:
    """Return a client that puts with checksums, and sends each request once.

    seconds: for a request with all its bytes.
    """
    options: S3Config = {
        **config,  # type: ignore[typeddict-item]  # obstore checks the names
        "checksum_algorithm": "CRC64NVME",
        "conditional_put": "etag",
    }
    client: ClientConfig = {
        "connect_timeout": "5s",
        "timeout": f"{seconds}s",
        # TLS unless the endpoint says otherwise in so many words.
        "allow_http": config.get("endpoint", "").startswith("http://"),
    }
    retries: RetryConfig = {"max_retries": 0}
    try:
        return S3Store(
            bucket,
            prefix=prefix,
            config=options,
            client_options=client,
            retry_config=retries,
            credential_provider=credentials,
        )
    except OBSTORE_ERRORS as error:
        why, hint = answer_of(error).why, "see the variables AWS_... of the environment"
        raise InvalidError("cannot open S3", bucket=bucket, why=why, hint=hint) from None


def pages_of(
    store: S3Store,
    folder: str,
    run: Callable[[Callable[[], Sequence[ObjectMeta]]], Sequence[ObjectMeta]],
    *,
    after: str | None = None,
) -> Iterator[Sequence[ObjectMeta]]:
    """Yield pages of keys, ascending, from the first behind `after`. Each is one request."""
    last = after
    while True:
        page = run(partial(_page, store, folder, last))
        yield page
        if len(page) < PAGE_KEYS:
            return
        last = page[-1]["path"]


def _page(store: S3Store, folder: str, after: str | None) -> Sequence[ObjectMeta]:
    return next(obstore.list(store, folder or None, offset=after, chunk_size=PAGE_KEYS), ())


def _parsed(checksum: str) -> int:
    try:
        return int(checksum, 16)
    except ValueError as error:
        raise CorruptError("an object's checksum is no number", checksum=checksum) from error


def _summed(store: S3Store, path: str) -> tuple[int, int]:
    """Return size and CRC-64/NVME of what is stored."""
    size, checksum = 0, _CRC64.calc(b"")
    for piece in obstore.get(store, path).stream(min_chunk_size=STREAM_BYTES):
        checksum = _CRC64.calc(piece, checksum)
        size += len(piece)
    return size, checksum
