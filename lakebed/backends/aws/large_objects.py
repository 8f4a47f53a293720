"""Large objects on their way into S3: in parts, under their own key.

Nothing is visible before the upload is completed, and completing it fails where the key is taken.
boto3 sends these requests, because obstore completes an upload without a condition.
"""

from __future__ import annotations

import base64
import random
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

import anycrc

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.requests import Patience, Request, Requests
from lakebed.backends.aws.service_answers import AMAZON_BUCKET
from lakebed.errors import CorruptError, LakebedError, ObjectMissingError, UnavailableError
from lakebed.observe.usage import carried
from lakebed.ports.clock import Clock

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client
    from types_boto3_s3.type_defs import (
        CompletedPartTypeDef,
        CompleteMultipartUploadRequestTypeDef,
    )

T = TypeVar("T")

PARTS_MAX = 10_000
"""Most parts that S3 takes of one object."""

PARTS_AT_ONCE, BYTES_AT_ONCE = 3, 256 << 20
"""Parts on their way at the same time: so many, of so many bytes. One may always be."""

SHARE_OF_SENT = 1_250
"""A part has at least this share of what was sent before it. Were the first 1,250 parts of 8 MiB,
10 GiB, the other 8,750 would multiply that by e to the 7th: 10 TiB, twice what an object may have.
Larger ones reach further."""

WHOLE: Final = "FULL_OBJECT"
"""S3's name for a checksum of all bytes. The other kind is a checksum of the parts' checksums."""

BOTO_NAMES = {
    "endpoint": "endpoint_url",
    "region": "region_name",
    "access_key_id": "aws_access_key_id",
    "secret_access_key": "aws_secret_access_key",
    "session_token": "aws_session_token",
}
"""boto3's names for the keys of obstore's configuration."""

_CRC64 = anycrc.Model("CRC64-NVME")


class LargeObjects:
    """Large objects of a bucket."""

    def __init__(self, clients: AmazonClients, bucket: str, *, patience: Patience) -> None:
        self._clients = clients
        self._bucket = bucket
        self._requests = clients.requests(AMAZON_BUCKET, bucket, patience=patience)

    def begin_upload(self, key: str, *, path: str, part_bytes_min: int) -> PartUpload:
        """Begin to upload an object.

        path: for errors.
        part_bytes_min: of all parts but the last.

        Raises:
            UnavailableError, DeniedError, InvalidError: as the store says.
        """
        return PartUpload(
            self._clients.large_objects,
            self._requests,
            at=(self._bucket, key),
            path=path,
            part_bytes_min=part_bytes_min,
        )

    def checksum(self, key: str, *, path: str) -> int | None:
        """Return the checksum that S3 keeps of an object's bytes; None: this server keeps none."""
        request = Request(what="looking at an object", needs="s3:GetObject", path=path)
        answer = self._requests.run(
            request,
            lambda: self._clients.large_objects.head_object(
                Bucket=self._bucket, Key=key, ChecksumMode="ENABLED"
            ),
        )
        text = answer.get("ChecksumCRC64NVME", "")
        if not text or answer.get("ChecksumType") != WHOLE:
            return None
        try:
            return int.from_bytes(base64.b64decode(text, validate=True), "big")
        except ValueError as error:
            raise CorruptError("an object's checksum is no number", checksum=text) from error


class PartUpload:
    """One upload. Used by one thread; parts are sent by threads of its own.

    at: bucket and key. path: of the object, for errors. part_bytes_min: of all parts but the last.
    """

    def __init__(
        self,
        client: S3Client,
        requests: Requests,
        *,
        at: tuple[str, str],
        path: str,
        part_bytes_min: int,
    ) -> None:
        self._client = client
        self._requests = requests
        self._bucket, self._key = at
        self._path = path
        self._part_bytes_min = part_bytes_min
        self._sent_bytes = 0
        answer = self._run(
            "beginning an upload",
            lambda: client.create_multipart_upload(
                Bucket=self._bucket,
                Key=self._key,
                ChecksumAlgorithm="CRC64NVME",
                ChecksumType=WHOLE,
            ),
        )
        self._id = answer["UploadId"]
        # A server that knows no checksum of whole objects says so here.
        self._is_summed = answer.get("ChecksumType") == WHOLE
        self._threads = ThreadPoolExecutor(PARTS_AT_ONCE, thread_name_prefix="lakebed-part")
        self._under_way: deque[Future[CompletedPartTypeDef]] = deque()
        self._parts: list[CompletedPartTypeDef] = []
        self._is_given_up = threading.Event()

    @property
    def next_part_bytes(self) -> int:
        """Return the size of the next part, in bytes; the last part may be smaller."""
        return part_bytes(self._sent_bytes, self._part_bytes_min)

    def send(self, part: bytearray) -> None:
        """Send the next part, which belongs to the upload from now on. Waits while many are on
        their way.

        Raises:
            UnavailableError: the store is busy, or the upload was removed.
            DeniedError, InvalidError: as the store says, of this part or of one before it.
        """
        at_once = max(1, min(PARTS_AT_ONCE, BYTES_AT_ONCE // len(part)))
        while len(self._under_way) >= at_once:
            self._parts.append(self._under_way.popleft().result())
        self._sent_bytes += len(part)
        number = len(self._parts) + len(self._under_way) + 1
        if number > PARTS_MAX:
            raise AssertionError("parts grow, so that an object has few enough")
        self._under_way.append(self._threads.submit(carried(self._send), number, part))

    def complete(self, size: int, checksum: int) -> None:
        """Give the object its key, if that is free, once all parts are there.

        Raises:
            ObjectExistsError: the key is taken, perhaps by an earlier try of this call.
            ObjectMissingError: there is no such upload: it was completed, or removed.
            UnavailableError: nothing became visible.
            UnknownOutcomeError: it may be visible, now or later.
        """
        while self._under_way:
            self._parts.append(self._under_way.popleft().result())
        asked: CompleteMultipartUploadRequestTypeDef = {
            "Bucket": self._bucket,
            "Key": self._key,
            "UploadId": self._id,
            "MultipartUpload": {"Parts": self._parts},
            "MpuObjectSize": size,
            "IfNoneMatch": "*",
        }
        if self._is_summed:
            asked["ChecksumType"] = WHOLE
            asked["ChecksumCRC64NVME"] = _text(checksum)
        self._requests.run(
            self._request("finishing an object", writes=True),
            lambda: self._client.complete_multipart_upload(**asked),
        )
        self._threads.shutdown()

    def abort(self) -> None:
        """Let the store forget the parts, as far as it answers; else the bucket's lifecycle does.

        Parts under way are waited for: one that came later would lie there.
        """
        self._is_given_up.set()
        self._threads.shutdown(cancel_futures=True)
        request = Request(what="giving up an upload", needs="s3:AbortMultipartUpload")
        with suppress(LakebedError):
            self._requests.run(
                request,
                lambda: self._client.abort_multipart_upload(
                    Bucket=self._bucket, Key=self._key, UploadId=self._id
                ),
            )

    def removed(self) -> UnavailableError:
        """Return the error for a writer whose upload is gone, and which nothing can complete."""
        hint = "write it again: the bucket's lifecycle removes an upload that takes days"
        return UnavailableError("the upload was removed", path=self._path, hint=hint)

    def _send(self, number: int, part: bytearray) -> CompletedPartTypeDef:
        checksum = _text(_CRC64.calc(part))

        def send() -> str:
            if self._is_given_up.is_set():
                raise UnavailableError("the upload is given up", path=self._path)
            answer = self._client.upload_part(
                Bucket=self._bucket,
                Key=self._key,
                UploadId=self._id,
                PartNumber=number,
                Body=part,  # type: ignore[arg-type]  # boto3 sends a bytearray as it is
                ChecksumCRC64NVME=checksum,
            )
            return answer["ETag"]

        tag = self._run("uploading a part", send)
        return {"PartNumber": number, "ETag": tag, "ChecksumCRC64NVME": checksum}

    def _run(self, what: str, call: Callable[[], T]) -> T:
        try:
            return self._requests.run(self._request(what), call)
        except ObjectMissingError:
            raise self.removed() from None

    def _request(self, what: str, *, writes: bool = False) -> Request:
        return Request(what=what, needs="s3:PutObject", path=self._path, writes=writes)


def part_bytes(sent: int, least: int) -> int:
    """Return how large the next part is, behind so many bytes that were sent."""
    return max(least, -(-sent // SHARE_OF_SENT))


def clients_of(
    config: Mapping[str, str], *, clock: Clock, rng: random.Random, patience: Patience
) -> AmazonClients:
    """Return boto3's clients for what obstore's configuration says."""
    named = {BOTO_NAMES[name]: value for name, value in config.items()}
    return AmazonClients(clock=clock, rng=rng, patience=patience, **named)


def _text(checksum: int) -> str:
    """Return a checksum as S3 takes it: eight bytes in base64."""
    return base64.b64encode(checksum.to_bytes(8, "big")).decode()
