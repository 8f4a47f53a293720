"""What people get who invoke the query function, or send it a message."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakebed
from lakebed.backends.local import LocalObjectStore
from lakebed.backends.system import SystemClock
from lakebed.bootstrap.local import LocalApp
from lakebed.bootstrap.query_answers import App, answers_over
from lakebed.lake import Lake
from lambdas.query.answer import answer
from lambdas.query.handle import keep
from lambdas.shape import invoked_handler, sent_handler
from tests.integration.instance import Run, once

ASKED = {"id": "q", "table": "trips", "ranges": [{}]}


@pytest.fixture
def build(tmp_path: Path) -> Iterator[Callable[[], App]]:
    app = LocalApp(tmp_path / "lake")
    schema = lakebed.schema_of(row_keys={"id": "string"})
    Lake(app).create_table("trips", schema).ingest(pa.table({"id": ["a", "b"]}))
    (tmp_path / "results").mkdir()
    results = LocalObjectStore(tmp_path / "results", SystemClock())
    yield once(answers_over(app, results, place="place"))
    app.close()


def record(name: str, body: str) -> dict[str, Any]:
    attributes = {"MessageGroupId": name, "SentTimestamp": "7", "ApproximateReceiveCount": "1"}
    return {"messageId": name, "body": body, "attributes": attributes}


def test_who_invokes_it_gets_rows_or_a_reason(build: Callable[[], App]) -> None:
    handler = invoked_handler(build, answer)
    found = handler(ASKED, Run())
    assert found is not None
    assert found["data"].splitlines() == ['{"id":"a"}', '{"id":"b"}']
    refused = handler(ASKED | {"limit": "many"}, Run())
    assert refused is not None
    assert refused["error"] == "invalid"
    assert "limit" in refused["reason"]


def test_of_a_batch_only_what_failed_comes_back(build: Callable[[], App], tmp_path: Path) -> None:
    handler = sent_handler(build, keep)
    records = [record("good", json.dumps(ASKED)), record("bad", "{")]
    assert handler({"Records": records}, Run()) == {
        "batchItemFailures": [{"itemIdentifier": "bad"}]
    }
    (manifest,) = (tmp_path / "results").rglob("manifest.json")
    assert json.loads(manifest.read_text())["rows"] == 2
