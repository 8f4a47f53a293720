"""Metrics for Prometheus: read off the same events as those of CloudWatch."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import pytest

import lakebed
from lakebed.errors import InvalidError
from lakebed.observe import events, prometheus
from lakebed.observe.metrics import METRICS
from lakebed.observe.prometheus import MetricsOfEvents, serving_metrics

SECONDS_MAX = 60


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


@pytest.fixture
def port() -> Iterator[int]:
    chosen = free_port()
    with serving_metrics(chosen):
        yield chosen


def page(port: int) -> list[str]:
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return [line for line in answer.read().decode().splitlines() if line[:1] != "#"]


def test_sums_are_counters_and_maxima_the_newest_value(port: int) -> None:
    events.emit(events.FEED_PROGRESSED, table="orders", read_count=3, stored_count=2)
    events.emit(events.FEED_PROGRESSED, table="orders", read_count=4, stored_count=4)
    events.emit(events.FEED_MEASURED, feed="web", behind_count=9, waiting_bytes=5)
    events.emit(events.FEED_MEASURED, feed="web", behind_count=7, waiting_bytes=6)
    found = page(port)
    assert 'lakebed_feed_records_read_total{feed="",table="orders"} 7.0' in found
    assert 'lakebed_feed_records_stored_total{feed="",table="orders"} 6.0' in found
    assert 'lakebed_feed_records_behind{feed="web",table=""} 7.0' in found
    assert 'lakebed_feed_bytes_waiting{feed="web",table=""} 6.0' in found


def test_each_metric_of_the_list_has_a_line_once_its_event_came() -> None:
    handler = MetricsOfEvents()
    for metric in METRICS:
        facts = {**dict(metric.where), metric.fact: 1}
        record = events._LOGGER.makeRecord(
            "lakebed",
            20,
            "",
            0,
            "",
            (),
            None,
            extra={
                "event": metric.event,
                "facts": facts,
            },
        )
        handler.emit(record)
    names = {family.name for family in handler.collect()}
    assert names == {f"lakebed_{metric.name}" for metric in METRICS}


def test_labels_are_bounded(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    monkeypatch.setattr(prometheus, "SERIES_MAX", 4)
    for number in range(50):
        events.emit(events.INGEST_COMMITTED, table=f"t{number}", rows_count=2)
    found = [line for line in page(port) if line.startswith("lakebed_rows_ingested")]
    assert len(found) <= 4
    assert sum(float(line.split()[-1]) for line in found) == 100


def test_a_port_that_is_taken_is_refused_and_one_that_was_let_go_is_free(port: int) -> None:
    with pytest.raises(InvalidError, match="no port for metrics"), serving_metrics(port):
        pass
    before = threading.active_count()
    other = free_port()
    for _ in range(2):
        with serving_metrics(other):
            pass
    assert threading.active_count() == before


def test_values_that_hold_what_a_page_may_not_are_escaped(port: int) -> None:
    events.emit(events.INGEST_COMMITTED, table='a"b\nc', rows_count=1)
    assert any(r'table="a\"b\nc"' in line for line in page(port))


def test_a_worker_serves_what_it_does(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("one\ntwo\n")
    with lakebed.connect(tmp_path / "lake", create=True) as lake:
        definitions = lakebed.FeedDefinitions(lake)
        definitions.define("feed", "web", {"files": f"{tmp_path}/*.log"})
        definitions.start("web")
    chosen = free_port()
    words = ["--lake", str(tmp_path / "lake"), "feed", "run", "--metrics-port", str(chosen)]
    call = "from lakebed.cli.main import main; main()"
    worker = subprocess.Popen([sys.executable, "-c", call, *words])
    try:
        wanted = {
            'lakebed_feed_records_stored_total{feed="",table="web_landing"} 2.0',
            'lakebed_feed_records_behind{feed="web",table=""} 0.0',
        }
        end = time.monotonic() + SECONDS_MAX
        while time.monotonic() < end:
            with suppress(OSError):
                if wanted <= set(page(chosen)):
                    return
            time.sleep(0.2)
        pytest.fail(f"{wanted} are not among {page(chosen)}")
    finally:
        worker.terminate()
        worker.wait(SECONDS_MAX)
