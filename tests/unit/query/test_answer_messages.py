"""Queries by message: small answers, large results, what is told of them, and what is refused."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakebed
from lakebed.backends.local import LocalObjectStore
from lakebed.backends.system import SystemClock
from lakebed.bootstrap.functions.query_answers import answers_over
from lakebed.bootstrap.local import open_local
from lakebed.config.messages import QUERY
from lakebed.errors import (
    InvalidError,
    JobIdReusedError,
    QueryTooLargeError,
    TableMissingError,
    VersionExpiredError,
)
from lakebed.lake import Lake
from lakebed.model.names import JobId, Micros, RequestDigest, TableId
from lakebed.model.versions import time_of
from lakebed.ports.job_queue import message_job
from lakebed.query import answer_messages, results

SCHEMA = lakebed.schema_of(
    row_keys={"id": "string", "day": "date32"}, values={"fare": "float64?", "raw": "binary?"}
)
DAYS = 3
SENT_AT = Micros(7)


class AnswersStory:
    """A lake with a table `trips` of ten ids on three days, and who answers messages."""

    def __init__(self, folder: Path) -> None:
        self.app = open_local(folder / "lake")
        self.table = Lake(self.app).create_table("trips", SCHEMA)
        self.table.ingest(
            pa.table(
                {
                    "id": [f"{n:02d}" for n in range(10) for _ in range(DAYS)],
                    "day": pa.array([day for _ in range(10) for day in range(DAYS)], pa.date32()),
                    "fare": [float(n) for n in range(10 * DAYS)],
                    "raw": [b"\x00\xff"] * 10 * DAYS,
                }
            )
        )
        self.folder = folder / "results"
        self.folder.mkdir()
        objects = LocalObjectStore(self.folder, SystemClock())
        self.answers = answers_over(
            query=self.app.query,
            find_table=self.app.catalog.find,
            tracker=self.app.tracker,
            clock=self.app.clock,
            results=objects,
            location="location",
        )

    def rows(self, **asked: object) -> list[dict[str, Any]]:
        answer = self.answers.answer(body(**asked))
        found = [json.loads(line) for line in answer.data.splitlines()]
        assert len(found) == answer.rows
        return found

    def keep(self, **asked: object) -> answer_messages.QueryAnswer:
        return self.answers.keep(body(**asked), sent_at=SENT_AT)

    def told(self, job: str) -> list[tuple[str, int]]:
        reports = self.app.tracker.history(self.table._opened.id, JobId(job))
        return [(report.event, report.rows) for report in reports]

    def result(self, address: str) -> pa.Table:
        """Read all files of a manifest."""
        manifest = json.loads(self.file(address).read_bytes())
        return pa.concat_tables(pq.read_table(self.file(f["path"])) for f in manifest["files"])

    def file(self, address: str) -> Path:
        (found,) = self.folder.rglob(address.rpartition("/")[2])
        return found


def body(**asked: object) -> bytes:
    return json.dumps({"table": "trips"} | asked).encode()


@pytest.fixture
def story(tmp_path: Path) -> Iterator[AnswersStory]:
    story = AnswersStory(tmp_path)
    yield story
    story.app.close()


@pytest.mark.parametrize(
    "asked",
    [
        {"keys": [["04", "1970-01-02"]]},
        {"keys": [{"id": "04", "day": 1}]},
        {"ranges": [{"id": {"min": "04", "max": "05"}, "day": {"min": "1970-01-02", "max": 2}}]},
        {"ranges": [{}], "where": "fare = 13"},
        {"ranges": [{}], "where": "id like '_4' and day == date '1970-01-02'"},
        {"ranges": [{}], "where": "id like '%4' and fare between 13 and 13"},
        {"ranges": [{}], "where": {"test": "compare", "field": "fare", "is": "=", "value": 13}},
        {"ranges": [{"id": {"min": "04", "max": "04", "max_inclusive": True}}], "where": "fare=13"},
    ],
)
def test_keys_ranges_and_tests_mean_what_the_library_means(
    story: AnswersStory, asked: dict[str, object]
) -> None:
    assert story.rows(**asked) == [{"id": "04", "day": "1970-01-02", "fare": 13.0, "raw": "AP8="}]


def test_a_message_has_a_cap_of_its_own(story: AnswersStory) -> None:
    assert len(story.rows(ranges=[{}], scan_bytes_max=1 << 20)) == 10 * DAYS
    with pytest.raises(QueryTooLargeError):
        story.rows(ranges=[{}], scan_bytes_max=100)
    with pytest.raises(QueryTooLargeError, match="would read") as raised:
        story.rows(ranges=[{}], columns=["fare"], scan_bytes_max=10)
    assert raised.value.facts["estimate"] == "by the share of its columns"
    with pytest.raises(InvalidError, match="scan_bytes_max"):
        story.rows(ranges=[{}], scan_bytes_max=-1)


def test_a_message_may_ask_for_an_older_version(story: AnswersStory) -> None:
    wanted = story.rows(ranges=[{}])
    old = story.table.query().read_all()
    number = story.table.explain(keys=[]).number
    story.table.tag("then")
    at = time_of(story.app.clock.now()).isoformat()
    story.table.ingest(pa.table({"id": ["zz"], "day": pa.array([9], pa.date32())}))
    for as_of in (number, str(number), at, "then"):
        assert story.rows(ranges=[{}], as_of=as_of) == wanted
    assert story.rows(keys=["zz"], as_of="then") == []
    assert len(story.rows(ranges=[{}])) == len(wanted) + 1
    kept = story.keep(ranges=[{}], as_of="then")
    assert story.result(kept.manifest).equals(old)
    for as_of, says in ((10**6, "lies ahead"), ("thn", "no such tag"), ("2026-01-01", "offset")):
        with pytest.raises(InvalidError, match=says):
            story.rows(ranges=[{}], as_of=as_of)


def test_a_message_of_a_collected_version_is_refused(story: AnswersStory) -> None:
    number = story.table.explain(keys=[]).number
    story.table.change_settings(garbage_seconds_min=0)
    story.table.ingest(pa.table({"id": ["zz"], "day": pa.array([9], pa.date32())}))
    story.table.compact()
    Lake(story.app).run()
    with pytest.raises(VersionExpiredError, match="the oldest that can still be read"):
        story.rows(ranges=[{}], as_of=number, id="q")
    assert story.told("q") == [("failed", 0)]


def test_a_pattern_may_be_json(story: AnswersStory) -> None:
    like = {"test": "like", "field": "id", "pattern": "0!%", "escape": "!"}
    assert story.rows(ranges=[{}], where=like) == []
    assert len(story.rows(ranges=[{}], where=like | {"pattern": "%4"})) == DAYS


def test_a_part_of_a_key_columns_and_a_limit(story: AnswersStory) -> None:
    assert story.rows(keys=["04", "07"], columns=["fare"], limit=4) == [
        {"fare": 12.0},
        {"fare": 13.0},
        {"fare": 14.0},
        {"fare": 21.0},
    ]


def test_the_example_of_the_page_is_answered(tmp_path: Path) -> None:
    story = AnswersStory(tmp_path)
    assert story.answers.answer(QUERY.example.encode()).rows == 0
    story.app.close()


def test_an_answer_may_be_an_arrow_stream(story: AnswersStory) -> None:
    answer = story.answers.answer(body(ranges=[{}], format="arrow"))
    found = pa.ipc.open_stream(base64.b64decode(answer.data)).read_all()
    assert found.equals(story.table.query().read_all())


def test_what_is_asked_for_without_an_id_is_told_to_nobody(story: AnswersStory) -> None:
    story.rows(keys=["04"])
    assert {report.kind for report in story.table.jobs()} == {"ingest"}
    story.rows(keys=["04"], id="q")
    assert story.told("q") == [("finished", 3)]


@pytest.mark.parametrize("limit_of", ["SMALL_BYTES_MAX", "TEXT_BYTES_MAX"])
def test_a_large_result_is_files_and_a_manifest(
    story: AnswersStory, monkeypatch: pytest.MonkeyPatch, limit_of: str
) -> None:
    monkeypatch.setattr(answer_messages, limit_of, 10)
    monkeypatch.setattr(results, "ROW_GROUP_BYTES", 1)
    monkeypatch.setattr(results, "FILE_BYTES", 1)
    answer = story.answers.answer(body(ranges=[{}], columns=["id", "fare"], id="q"))
    assert (answer.rows, answer.data) == (30, "")
    assert answer.manifest.startswith("location/results/")
    wanted = story.table.query(columns=["id", "fare"]).read_all()
    assert story.result(answer.manifest).equals(wanted)
    manifest = json.loads(story.file(answer.manifest).read_bytes())
    assert manifest["columns"] == {"id": "string", "fare": "double"}
    assert sum(file["rows"] for file in manifest["files"]) == manifest["rows"] == 30


def test_a_queued_query_is_kept_once_however_often_it_comes(story: AnswersStory) -> None:
    first = story.keep(keys=["04"])
    story.table.ingest(pa.table({"id": ["04"], "day": pa.array([9], pa.date32())}))
    again = story.keep(keys=["04"])
    assert first == again
    assert (first.rows, story.result(first.manifest).num_rows) == (3, 3)
    assert len(list(story.folder.rglob("*.parquet"))) == 1
    assert story.told(message_job(body(keys=["04"]), SENT_AT))[0] == ("finished", 3)


def test_no_rows_are_a_result_too(story: AnswersStory) -> None:
    kept = story.keep(keys=["none"], id="q")
    assert story.result(kept.manifest).num_rows == 0
    assert story.rows(keys=["none"]) == []


def test_a_request_is_the_same_however_it_is_written(story: AnswersStory) -> None:
    sent = {"id": "q", "table": "trips", "keys": ["04"]}
    kept = story.answers.keep(json.dumps(sent, indent=2).encode(), sent_at=SENT_AT)
    turned = dict(reversed(sent.items()))
    assert story.answers.answer(json.dumps(turned).encode()) == kept


def test_an_id_that_stands_for_another_query_is_refused(story: AnswersStory) -> None:
    story.keep(keys=["04"], id="q")
    with pytest.raises(JobIdReusedError):
        story.answers.answer(body(keys=["05"], id="q"))
    assert story.told("q")[-1][0] == "rejected"


def test_a_run_that_is_late_gives_what_is_there(
    story: AnswersStory, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = story.keep(keys=["04"], id="q")
    find, seen = results.Results.find, list[JobId]()

    def blind(
        self: results.Results, table: TableId, job: JobId, request: RequestDigest
    ) -> results.Manifest | None:  # as if the first had not finished yet
        seen.append(job)
        return find(self, table, job, request) if len(seen) > 1 else None

    monkeypatch.setattr(results.Results, "find", blind)
    story.table.ingest(pa.table({"id": ["04"], "day": pa.array([9], pa.date32())}))
    assert story.keep(keys=["04"], id="q") == first


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"keys": [["04", "1970-01-02", 3]]}, "one value per row key"),
        ({"keys": [5]}, "wrong type"),
        ({"keys": [{"fare": 1}]}, "not a row key"),
        ({"keys": [["04", "tomorrow"]]}, "not a key value"),
        ({"ranges": [{"idd": {}}]}, "did you mean 'id'?"),
        ({"ranges": [{"id": {"min": "b", "max": "a"}}]}, "reversed"),
        ({"ranges": [{}], "where": "fair > 1"}, "did you mean 'fare'?"),
        ({"ranges": [{}], "columns": ["id", "id"]}, "twice"),
        ({"ranges": [{}], "limits": 1}, "did you mean 'limit'?"),
    ],
)
def test_what_the_table_cannot_answer_is_refused_and_told(
    story: AnswersStory, asked: dict[str, object], says: str
) -> None:
    with pytest.raises(InvalidError) as caught:
        story.answers.answer(body(**asked, id="q"))
    assert says in str(caught.value)
    reports = Lake(story.app).nameless_jobs(job="q") + story.table.jobs(job="q")
    assert [report.event for report in reports] == ["rejected"]
    assert says in reports[0].reason
    assert not list(story.folder.rglob("*.parquet"))


def test_a_table_that_is_not_there_is_named(story: AnswersStory) -> None:
    with pytest.raises(TableMissingError, match="did you mean 'trips'"):
        story.answers.answer(b'{"table": "tripz", "ranges": [{}]}')
