"""Messages of users that name files, and S3's events about files that arrived."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lakebed.backends.memory import VirtualClock
from lakebed.backends.memory.file_batches import MemoryFileBatches
from lakebed.backends.memory.table_registry import MemoryTableRegistry
from lakebed.config.sent.arrived_files import arrived_file
from lakebed.errors import InvalidError, TableMissingError
from lakebed.ingest.submit_files import SubmitFiles
from lakebed.ingest.take_submissions import FILES_MAX, TakeSubmissions
from lakebed.model.names import TableId, TableName
from lakebed.ports.source_files import SourceFile
from lakebed.tables.catalog import entry_named

FOLDER = "s3://landing/trips/"
TRIPS, LATE = TableId("1"), TableId("2")


class Bucket:
    """Files with their sizes, by URL; of one that is denied, None."""

    def __init__(self, files: Mapping[str, int | None]) -> None:
        self.files = dict(files)

    def find(self, name: str) -> list[SourceFile]:
        """Return a file, or those below a folder."""
        if name in self.files and self.files[name] is None:
            raise InvalidError("a file may not be read", file=name, permission="s3:GetObject")
        below = f"{name.rstrip('/')}/"
        named = {one: n for one, n in self.files.items() if one == name or one.startswith(below)}
        if not named:
            raise InvalidError("no such file, or nothing in the folder", file=name)
        return [SourceFile(one, size or 0, f"v{size}") for one, size in named.items()]

    def on_disk(
        self, file: SourceFile, spans: Sequence[tuple[int, int]] | None = None
    ) -> AbstractContextManager[Path]:
        """A file of S3 is not opened when it is submitted."""
        raise AssertionError(file.name)


class Story:
    """Two tables of which each watches a folder, and a bucket."""

    def __init__(self, **files: int | None) -> None:
        self.bucket = Bucket({f"{FOLDER}{name.replace('__', '.')}": n for name, n in files.items()})
        self.batches = MemoryFileBatches()
        self.registry = MemoryTableRegistry()
        for name, id_, folder in (("trips", TRIPS, ""), ("late", LATE, "late/")):
            self.registry.claim(TableName(name), id_)
            self.registry.watch(TableName(name), id_, f"{FOLDER}{folder}")
        submit = SubmitFiles(batches=self.batches, files=self.bucket, clock=VirtualClock())
        self.service = TakeSubmissions(
            submit=submit, registry=self.registry, find=partial(entry_named, self.registry)
        )

    def arrives(self, name: str, bucket: str = "landing", **changed: object) -> None:
        self.service.run(event(f"trips/{name}", bucket, **changed))

    def send(self, **message: Any) -> None:  # noqa: ANN401 - as users write
        self.service.run(json.dumps(message).encode())

    def waiting(self, table: TableId = TRIPS) -> list[str]:
        found = self.batches.pending(table, files_max=100)
        return sorted(file.name.removeprefix(FOLDER) for file in found)


def event(key: str, bucket: str = "landing", **changed: object) -> bytes:
    """As Amazon S3 sends it to EventBridge, and that to a queue."""
    return json.dumps(
        {
            "version": "0",
            "id": "17793124-05d4-b198-2fde-7ededc63b103",
            "detail-type": "Object Created",
            "source": "aws.s3",
            "account": "111122223333",
            "time": "2021-11-12T00:00:00Z",
            "region": "ca-central-1",
            "resources": [f"arn:aws:s3:::{bucket}"],
            "detail": {
                "version": "0",
                "bucket": {"name": bucket},
                "object": {"key": key, "size": 5, "etag": "b1946ac92492d2347c6235b4d2611184"},
                "request-id": "N4N7GDK58NMKJ12R",
                "reason": "PutObject",
            },
            **changed,
        }
    ).encode()


def test_a_file_that_arrives_waits_for_the_table_that_watches_its_folder() -> None:
    story = Story(a__csv=5, late=5)
    story.bucket.files[f"{FOLDER}late/b.csv"] = 7
    story.arrives("a.csv")
    story.arrives("late/b.csv")
    assert (story.waiting(), story.waiting(LATE)) == (["a.csv"], ["late/b.csv"])
    story.arrives("a.csv", id="another event about it")
    assert story.waiting() == ["a.csv"]


def test_names_are_taken_as_they_are() -> None:
    story = Story()
    for name in ("a b.csv", "a+b.csv", "a%20b.csv", "ä.csv"):
        story.bucket.files[f"{FOLDER}{name}"] = 5
        story.arrives(name)
    assert story.waiting() == sorted(["a b.csv", "a+b.csv", "a%20b.csv", "ä.csv"])


def test_another_content_is_another_file() -> None:
    story = Story(a__csv=5)
    story.arrives("a.csv")
    story.bucket.files[f"{FOLDER}a.csv"] = 6
    story.arrives("a.csv")
    assert story.waiting() == ["a.csv", "a.csv"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("gone.csv", "no such file"),
        ("folder.csv", "it is gone"),
        ("empty.csv", "is empty"),
        ("notes.pdf", "format"),
    ],
)
def test_a_file_that_cannot_be_taken_in_is_passed_over_and_told(
    name: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    story = Story(empty__csv=0, notes__pdf=5)
    story.bucket.files[f"{FOLDER}folder.csv/inside.csv"] = 5
    with caplog.at_level(logging.INFO, logger="lakebed"):
        story.arrives(name)
    assert story.waiting() == []
    (told,) = [line for line in caplog.messages if line.startswith("file_passed_over")]
    assert f"table=trips file={FOLDER}{name}" in told
    assert reason in told


def test_a_file_that_may_not_be_read_is_told_loudly() -> None:
    with pytest.raises(InvalidError, match="may not be read"):
        Story(secret__csv=None).arrives("secret.csv")


@pytest.mark.parametrize("name", ["_SUCCESS", "_temporary/a.csv", ".a.csv", "folder/"])
def test_what_folders_pass_over_is_not_looked_at(name: str) -> None:
    story = Story()
    story.arrives(name)
    assert (story.waiting(), story.waiting(LATE)) == ([], [])


def test_a_file_of_nobodys_folder_is_not_looked_at() -> None:
    story = Story(a__csv=5)
    story.arrives("a.csv", bucket="other")
    story.registry.watch(TableName("trips"), TRIPS, "")
    story.arrives("a.csv")
    assert story.waiting() == []


def test_a_table_in_quarantine_keeps_what_arrives() -> None:
    story = Story(a__csv=5)
    story.registry.quarantine(TableName("trips"), TRIPS)
    story.arrives("a.csv")
    assert story.waiting() == ["a.csv"]


def test_a_users_message_names_files_and_folders() -> None:
    story = Story(a__csv=5, b__csv=6)
    story.send(table="trips", files=[f"{FOLDER}a.csv"])
    assert story.waiting() == ["a.csv"]
    story.send(table="trips", files=[FOLDER])
    assert story.waiting() == ["a.csv", "b.csv"]


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ({"table": "trips", "files": []}, "not a submission message"),
        ({"table": "trips", "files": [FOLDER], "id": "x"}, "there is no such field"),
        ({"table": "trips", "files": [f"{FOLDER}gone.csv"]}, "no such file"),
        ({"table": "trips", "files": [f"{FOLDER}empty.csv", f"{FOLDER}a.csv"]}, "is empty"),
        ({"table": "trips", "files": [f"{FOLDER}secret.csv"]}, "may not be read"),
        ({"detail-type": "Object Deleted", "source": "aws.s3"}, "not a submission message"),
    ],
)
def test_a_users_message_that_can_never_work_is_refused_whole(
    message: dict[str, object], problem: str
) -> None:
    story = Story(a__csv=5, empty__csv=0, secret__csv=None)
    with pytest.raises(InvalidError, match=problem):
        story.send(**message)
    assert story.waiting() == []


def test_a_folder_with_more_files_than_there_is_time_for_is_refused_whole() -> None:
    story = Story()
    story.bucket.files = {f"{FOLDER}{n:05}.csv": 5 for n in range(FILES_MAX + 1)}
    with pytest.raises(InvalidError, match=r"too many files at once.*`lakebed submit`"):
        story.send(table="trips", files=[FOLDER])
    assert story.waiting() == []
    del story.bucket.files[f"{FOLDER}00000.csv"]
    story.send(table="trips", files=[FOLDER])
    assert len(story.batches.pending(TRIPS, files_max=FILES_MAX + 1)) == FILES_MAX


def test_a_table_that_there_is_not_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(TableMissingError, match="did you mean 'trips'"):
        Story(a__csv=5).send(table="tripz", files=[FOLDER])


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b'"s3://landing/a.csv"',
        b"\xff",
        event("a", source="aws.ec2"),
        event("a", **{"detail-type": "Object Deleted"}),
        event("a", detail={"bucket": {"name": "landing"}}),
        event("a", detail={"bucket": {"name": "landing"}, "object": {"key": 7}}),
    ],
)
def test_what_is_no_event_of_a_new_file_is_not_taken_for_one(body: bytes) -> None:
    assert arrived_file(body) is None
    assert arrived_file(event("trips/a b.csv")) == f"{FOLDER}a b.csv"
