import io
import json
import logging
import runpy
from typing import Any

import pytest

from lakebed.observe import events
from lakebed.observe.json_lines import JsonLines
from lakebed.observe.metric import Metric
from lakebed.observe.metrics import METRICS
from tests.tidy.source import ROOT


@pytest.fixture(scope="module")
def facts_of() -> dict[str, list[str]]:
    """The facts that the source gives each event."""
    return runpy.run_path(str(ROOT / "docs" / "generate.py"))["facts_emitted"]()


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_metric_is_found_in_an_event_and_has_an_alarm_or_a_reason(
    metric: Metric, facts_of: dict[str, list[str]]
) -> None:
    told = {*facts_of[metric.event], "table"}
    assert not metric.fact or metric.fact in told
    assert {name for name, _ in metric.where} <= told
    assert not metric.by_table or "table" in facts_of[metric.event]
    assert (metric.alarm is None) == bool(metric.without_alarm)
    if metric.alarm is not None:
        assert (ROOT / metric.alarm.page).exists()


def test_names_are_given_once() -> None:
    assert len({metric.name for metric in METRICS}) == len(METRICS)


def line(event: str, *, table_metrics: str = "true", **facts: object) -> dict[str, Any]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines({"instance": "dev"}, table_metrics=table_metrics))
    logger = logging.getLogger("lakebed")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        events.emit(event, **facts)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
    found: dict[str, Any] = json.loads(stream.getvalue())
    return found


def directives(told: dict[str, Any]) -> dict[str, list[list[str]]]:
    return {
        metric["Name"]: directive["Dimensions"]
        for directive in told["_aws"]["CloudWatchMetrics"]
        for metric in directive["Metrics"]
    }


def test_an_event_is_its_metrics_too() -> None:
    told = line(events.INGEST_COMMITTED, table="trips", job="a", rows_count=7)
    assert told["rows_ingested"] == 7
    assert told["jobs_ingested"] == 1
    assert told["rows_count"] == 7
    assert directives(told) == {
        "jobs_ingested": [["instance"]],
        "rows_ingested": [["instance"], ["instance", "table"]],
    }
    assert {"instance", "table"} <= set(told)


def test_metrics_of_tables_are_kept_only_where_they_are_asked_for() -> None:
    told = line(events.INGEST_COMMITTED, table_metrics="false", table="trips", rows_count=7)
    assert directives(told) == {
        "jobs_ingested": [["instance"]],
        "rows_ingested": [["instance"]],
    }
    assert told["table"] == "trips"


def test_a_kind_of_failure_is_one_metric() -> None:
    told = line(events.WORK_FAILED, kind="retried", code="conflict", reason="busy")
    assert list(directives(told)) == ["work_retried"]


def test_other_events_are_lines_and_no_metrics() -> None:
    told = line(events.TABLE_CREATED, table="trips", id="x")
    assert "_aws" not in told
    assert told["event"] == "table_created"
