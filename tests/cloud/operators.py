"""What operators of an instance see and do, and what happens to it, by AWS's own interfaces."""

from collections.abc import Iterator
from contextlib import contextmanager

from lakebed.table import Table
from localcloud.services.emulator import ACCOUNT, REGION
from tests.cloud.instance import INSTANCE, RunningInstance


def keys_in_bucket(instance: RunningInstance, under: str = "") -> list[str]:
    """Return the keys of all objects, or of those under a path of the lake."""
    bucket = f"lakebed-{INSTANCE}-data-{ACCOUNT}-{REGION}"
    prefix = f"lake/objects/{under}" if under else ""
    listed = instance.cloud.client("s3").get_paginator("list_objects_v2")
    pages = listed.paginate(Bucket=bucket, Prefix=prefix)
    return [item["Key"] for page in pages for item in page.get("Contents", [])]


@contextmanager
def spoiled(instance: RunningInstance, table: Table) -> Iterator[None]:
    """A table whose log ends with a damaged entry, until the block ends."""
    dynamodb, name = instance.cloud.client("dynamodb"), f"lakebed-{INSTANCE}-log"
    last = table.log().entries[-1].number
    key = {"pk": {"S": table._opened.id}, "sk": {"N": str(last + 1)}}
    dynamodb.put_item(TableName=name, Item={**key, "body": {"B": b"\x01\x00 damaged"}})
    try:
        yield
    finally:
        dynamodb.delete_item(TableName=name, Key=key)
