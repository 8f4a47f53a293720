"""Finds where the objects of a lake in a directory lie: in it, in a bucket, or where the caller
says."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from lakebed.errors import InvalidError
from lakebed.ports.clock import Clock
from lakebed.ports.object_store import ObjectStore

if TYPE_CHECKING:
    from lakebed.backends.aws.clients import AmazonClients
    from lakebed.backends.aws.object_store import S3ObjectStore


class ObjectsLocation(msgspec.Struct, frozen=True):
    """The location at which other processes find a lake's objects.

    objects: a directory, or s3://bucket/prefix.
    instance: whether they are reached as those of an instance on AWS are.
    """

    objects: str
    instance: bool = False


GIVEN = "given by the program"
SCHEME = "s3://"
ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")


def location_of(objects: ObjectStore) -> str:
    """Return what a lake remembers of its object store: an address, where it has one."""
    return str(getattr(objects, "location", GIVEN))


def urls_of(objects: ObjectStore) -> Callable[[str], str]:
    """Return what tells of an object's path where other programs read it.

    Raises:
        InvalidError: only the program that opened the lake knows its store.
    """
    url_of: Callable[[str], str] | None = getattr(objects, "url_of", None)
    if url_of is None:
        hint = "open the lake with its objects in a directory or in S3"
        raise InvalidError("the lake's objects have no address", objects=GIVEN, hint=hint)
    return url_of


def objects_at(location: str, *, clock: Clock, rng: random.Random) -> S3ObjectStore:
    """Return the object store at `s3://bucket/prefix`. Nothing is asked of it yet.

    Endpoint, region and credentials come from the variables AWS_... or the machine's role.

    Raises:
        InvalidError: no such address, or obstore is not installed.
    """
    bucket, prefix = bucket_and_prefix(location)
    with obstore_installed(location):
        from lakebed.backends.aws.object_store import S3ObjectStore
    return S3ObjectStore(bucket, prefix, clock=clock, rng=rng, config=endpoint_config())


def bucket_and_prefix(location: str) -> tuple[str, str]:
    """Return what `s3://bucket/prefix` names. Raises: InvalidError: it is no such address."""
    bucket, _, prefix = location.removeprefix(SCHEME).rstrip("/").partition("/")
    if not location.startswith(SCHEME) or not bucket:
        hint = "write s3://bucket/prefix"
        raise InvalidError("not a location for objects", objects=location, hint=hint)
    return bucket, prefix


@contextmanager
def obstore_installed(location: str) -> Iterator[None]:
    """Say what to install, where an import inside fails. Raises: InvalidError."""
    try:
        yield
    except ImportError as error:
        if error.name != "obstore":
            raise
        hint = "install it: pip install 'lakebed[aws]', or -r requirements/aws.txt"
        raise InvalidError("objects in S3 need obstore", objects=location, hint=hint) from None


def endpoint_config() -> dict[str, str]:
    """Return where the variables of this process say that S3 is."""
    endpoint = next((os.environ[name] for name in ENDPOINTS if os.environ.get(name)), None)
    return {"endpoint": endpoint} if endpoint else {}


def opened_objects(objects: str | ObjectStore, *, clock: Clock, rng: random.Random) -> ObjectStore:
    """Return the object store that a caller means by an address or by the store itself."""
    if isinstance(objects, str):
        return objects_at(objects, clock=clock, rng=rng)
    return objects


def objects_for_process(location: ObjectsLocation) -> tuple[ObjectStore, AmazonClients | None]:
    """Return the objects of another process's lake, and what an instance is asked with."""
    from lakebed.backends.local.object_store import LocalObjectStore
    from lakebed.backends.system.clock import SystemClock
    from lakebed.backends.system.random_source import system_random

    clock, rng = SystemClock(), system_random()
    if location.instance:
        from lakebed.backends.aws.clients import AmazonClients
        from lakebed.bootstrap.aws_stores import objects_of

        bucket, _, prefix = location.objects.removeprefix(SCHEME).partition("/")
        clients = AmazonClients(clock=clock, rng=rng)
        return objects_of(clients, bucket, prefix, rng), clients
    if location.objects.startswith(SCHEME):
        return objects_at(location.objects, clock=clock, rng=rng), None
    return LocalObjectStore(location.objects, clock), None
