"""Deleted objects of a versioned bucket: a delete is a mark, and can be taken back."""

from __future__ import annotations

from functools import partial

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.object_store import OBJECTS
from lakebed.backends.aws.requests import Request
from lakebed.backends.aws.service_answers import AMAZON_BUCKET
from lakebed.model.paths import check_path

VERSIONS_MAX = 1_000
"""Versions that one request lists. A name is used once, so an object has one version, and a mark
for each time it was deleted."""


class DeletedObjects:
    """The deleted objects under a prefix of a bucket."""

    def __init__(self, clients: AmazonClients, bucket: str, prefix: str) -> None:
        self._clients = clients
        self._bucket = bucket
        self._root = f"{prefix}/{OBJECTS}/" if prefix else f"{OBJECTS}/"
        self._requests = clients.requests(AMAZON_BUCKET, bucket)

    def bring_back(self, path: str) -> bool:
        """Take the marks of a deleted object away; False: no version of it is left. Safe to repeat.

        Raises:
            DeniedError: no permission. UnavailableError, UnknownOutcomeError: call again.
        """
        key = self._root + check_path(path)
        look = Request(what="looking for versions", needs="s3:ListBucketVersions")
        found = self._requests.run(
            look,
            lambda: self._clients.s3.list_object_versions(
                Bucket=self._bucket, Prefix=key, MaxKeys=VERSIONS_MAX
            ),
        )
        if not any(version.get("Key") == key for version in found.get("Versions", ())):
            return False
        take = Request(what="taking a delete back", needs="s3:DeleteObjectVersion", writes=True)
        for mark in found.get("DeleteMarkers", ()):
            if mark.get("Key") == key:
                self._requests.run(take, partial(self._remove, key, mark["VersionId"]))
        return True

    def _remove(self, key: str, version: str) -> None:
        self._clients.s3.delete_object(Bucket=self._bucket, Key=key, VersionId=version)
