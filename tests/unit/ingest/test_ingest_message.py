"""Messages that name files: what becomes rows, and what the sender of another one is told."""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebed.backends.local.source_files import LocalSourceFiles
from lakebed.backends.memory import MemoryJobQueue, VirtualClock
from lakebed.bootstrap.local import open_local
from lakebed.bootstrap.tasks.ingest_task import ingest_from
from lakebed.config.messages import INGEST
from lakebed.errors import (
    DeniedError,
    InvalidError,
    JobIdReusedError,
    TableMissingError,
    UnreadableInputError,
)
from lakebed.ingest.allowed_files import AllowedFiles
from lakebed.lake import Lake
from lakebed.model.names import JobId, Micros
from lakebed.ports.job_queue import Message, Received, message_job
from lakebed.ports.job_tracker import JobReport
from lakebed.tasks.user_jobs import Ingested
from lakebed.tasks.worker import FailurePolicy, Worker
from tests.unit.tables.lakes import SCHEMA, ids, rows


class IngestMessageStory:
    """A lake with a table `trips`, a folder where files may lie, and who reads messages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "landing"
        self.folder.mkdir()
        self.app = open_local(folder / "lake")
        self.table = Lake(self.app).create_table("trips", SCHEMA)
        files = AllowedFiles([str(self.folder)], objects=None, local=LocalSourceFiles())
        self.service = ingest_from(self.app, files)

    def given_file(self, name: str, *keys: str) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows(keys), path)
        return str(path)

    def when_sent(self, message: object, at: int = 1) -> Ingested:
        return self.service.run(received(message, at))

    def refusal(self, message: object, error: type[InvalidError] = InvalidError) -> str:
        with pytest.raises(error) as caught:
            self.when_sent(message)
        return str(caught.value)

    def reports(self, job: str) -> list[JobReport]:
        table = self.table._opened.id
        return self.app.tracker.history(table, JobId(job))


def received(message: object, at: int = 1) -> Received:
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return Received(body, "receipt", 1, sent_at=Micros(at))


def job_of(message: object, at: int) -> JobId:
    return message_job(received(message).body, Micros(at))


@pytest.fixture
def story(tmp_path: Path) -> Iterator[IngestMessageStory]:
    story = IngestMessageStory(tmp_path)
    yield story
    story.app.close()


def test_files_and_folders_become_rows_and_each_file_is_taken_once(
    story: IngestMessageStory,
) -> None:
    a = story.given_file("day/a.parquet", "a", "b")
    story.given_file("day/more/c.parquet", "c")
    for skipped in ("_SUCCESS", ".hidden.parquet", "_temporary/x.parquet"):
        path = story.folder / "day" / skipped
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"no rows")
    done = story.when_sent({"table": "trips", "files": [a, str(story.folder / "day")], "id": "j"})
    assert (done.rows, done.repeated) == (3, False)
    assert ids(story.table) == ["a", "b", "c"]
    assert [report.event for report in story.reports("j")] == ["started", "committed"]


def test_the_example_of_the_page_is_done_when_its_files_are_there(
    story: IngestMessageStory, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = json.loads(INGEST.example)
    names = {url: story.given_file(f"{n}.parquet", str(n)) for n, url in enumerate(asked["files"])}
    text = INGEST.example
    for url, path in names.items():
        text = text.replace(url, path)
    story.when_sent(text.encode())
    assert ids(story.table) == ["0", "1"]


def test_a_message_that_comes_again_is_done_once_also_without_an_id(
    story: IngestMessageStory,
) -> None:
    named = {"id": "j", "table": "trips", "files": [story.given_file("a.parquet", "a")]}
    nameless = {"table": "trips", "files": [story.given_file("b.parquet", "b")]}
    assert not story.when_sent(named, at=1).repeated
    assert story.when_sent(named, at=2).repeated
    assert not story.when_sent(nameless, at=1).repeated
    (story.folder / "b.parquet").unlink()
    assert story.when_sent(nameless, at=1).repeated, "whatever became of its files"
    assert ids(story.table) == ["a", "b"]
    assert job_of(nameless, 1) != job_of(nameless, 2)


def test_an_id_that_stands_for_another_request_is_refused_and_told(
    story: IngestMessageStory,
) -> None:
    a, b = story.given_file("a.parquet", "a"), story.given_file("b.parquet", "b")
    story.when_sent({"id": "j", "table": "trips", "files": [a]})
    story.refusal({"id": "j", "table": "trips", "files": [b]}, JobIdReusedError)
    assert ids(story.table) == ["a"]
    last = story.reports("j")[-1]
    assert last.event == "rejected"
    assert last.reason.startswith("job-id-reused: ")


def test_all_files_that_cannot_be_had_are_named(story: IngestMessageStory) -> None:
    good = story.given_file("good.parquet", "a")
    odd = story.folder / "notes.doc"
    odd.write_text("x")
    missing = str(story.folder / "missing.parquet")
    empty = story.folder / "empty"
    empty.mkdir()
    message = {"id": "j", "table": "trips", "files": [good, missing, str(odd), f"{empty}/"]}
    said = story.refusal(message)
    assert all(name in said for name in (missing, str(odd), str(empty)))
    assert ids(story.table) == []
    (*_, last) = story.reports("j")
    assert last.event == "rejected"
    assert missing in last.reason


def test_a_file_that_cannot_be_read_is_named_and_nothing_is_taken(
    story: IngestMessageStory,
) -> None:
    good = story.given_file("a.parquet", "a")
    bad = story.folder / "b.parquet"
    bad.write_bytes(b"PAR1 cut off")
    message = {"id": "j", "table": "trips", "files": [good, str(bad)]}
    assert str(bad) in story.refusal(message, UnreadableInputError)
    assert ids(story.table) == []
    assert str(bad) in story.reports("j")[-1].reason


def test_files_elsewhere_are_refused_whatever_way_leads_there(
    story: IngestMessageStory, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.parquet"
    pq.write_table(rows(["x"]), secret)
    link = story.folder / "link.parquet"
    link.symlink_to(secret)
    for name in (str(secret), f"{story.folder}/../secret.parquet", str(link), "s3://any/a.csv"):
        said = story.refusal({"table": "trips", "files": [name]})
        assert "elsewhere" in said
        assert str(story.folder) in said


def test_who_sends_what_is_no_message_is_told_as_far_as_it_says_who_it_is(
    story: IngestMessageStory,
) -> None:
    story.refusal({"id": "j", "table": "trips", "fils": ["a"]})
    assert "did you mean 'files'?" in story.reports("j")[-1].reason
    story.refusal({"id": "k", "table": "tripz", "files": ["a.csv"]}, TableMissingError)
    story.refusal(b"{")
    told = {r.job: r.reason for r in Lake(story.app).nameless_jobs(events=["rejected"])}
    assert "did you mean 'trips'?" in told[JobId("k")]
    assert "not an ingest message" in told[job_of(b"{", 1)]


def test_refused_messages_are_dead_letters_and_others_go_on(story: IngestMessageStory) -> None:
    queue = MemoryJobQueue(VirtualClock())
    good = {"table": "trips", "files": [story.given_file("a.parquet", "a")]}
    queue.send([Message(b"nonsense"), Message(json.dumps(good).encode())])
    refused = FailurePolicy(refused=(InvalidError,))
    Worker(queue=queue, handle=story.service.run, failures=refused).run(jobs_max=10)
    assert ids(story.table) == ["a"]
    assert queue.depth() == (0, 1)


@pytest.mark.parametrize("place", ["registry", "log", "objects"])
def test_a_lake_that_denies_us_leaves_the_message_for_another_try(
    story: IngestMessageStory, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    clock = VirtualClock()
    queue = MemoryJobQueue(clock)
    message = {"id": "j", "table": "trips", "files": [story.given_file("a.parquet", "a")]}
    queue.send([Message(json.dumps(message).encode())])
    failures = FailurePolicy(refused=(InvalidError,), retry_seconds=120)
    worker = Worker(queue=queue, handle=story.service.run, failures=failures)

    def denied(*_: object, **__: object) -> None:
        raise DeniedError("the store refuses the credentials", permission="s3:PutObject")

    with monkeypatch.context() as patch:
        if place == "registry":
            patch.setattr(story.app.registry, "find", denied)
        elif place == "log":
            patch.setattr(story.table._opened.head._log, "append", denied)
        else:
            patch.setattr(story.app.objects, "create", denied)
        assert worker.step() == "failed"
    assert queue.depth() == (1, 0)
    told = Lake(story.app).nameless_jobs(job="j") if place == "registry" else story.reports("j")
    last = told[-1]
    assert last.event == "failed"
    assert last.reason.startswith("denied: ")
    assert "s3:PutObject" in last.reason
    clock.sleep(120)
    assert worker.step() == "done"
    assert ids(story.table) == ["a"]


def test_a_table_of_other_columns_says_which(story: IngestMessageStory) -> None:
    path = story.folder / "other.parquet"
    pq.write_table(pa.table({"id": ["a"], "m": [1]}), path)
    said = story.refusal({"id": "j", "table": "trips", "files": [str(path)]})
    assert "m" in said
    assert str(path) in story.reports("j")[-1].reason
