"""Lines of JSON for CloudWatch: one for each event, and in it the metrics that the event is."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any, TextIO

from lakebed.observe import usage
from lakebed.observe.metric import Metric
from lakebed.observe.metrics import METRICS, NAMESPACE


class JsonLines(logging.Formatter):
    """Makes a line of each record. always: fields of every line; `instance` is one of them.

    table_metrics: `true` keeps metrics for each table as well; those of the whole instance are
    kept in any case. Facts that are no numbers become texts. Lines with metrics follow CloudWatch's
    embedded metric format.
    """

    def __init__(self, always: dict[str, str], *, table_metrics: str = "false") -> None:
        super().__init__()
        self.always = always
        self._table_metrics = table_metrics == "true"

    def format(self, record: logging.LogRecord) -> str:
        """Return a line, without its end."""
        milliseconds = int(record.created * 1_000)
        line: dict[str, Any] = {"at": milliseconds, "level": record.levelname, **self.always}
        event = getattr(record, "event", None)
        if event is None:
            line["message"] = record.getMessage()
        else:
            facts: dict[str, object] = getattr(record, "facts", {})
            line |= {"event": event, **facts}
            by_table = self._table_metrics and "table" in facts
            line |= _embedded(event, facts, milliseconds, by_table=by_table)
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        text = json.dumps(line, default=str, ensure_ascii=True)
        usage.count("log_bytes", len(text))
        return text


def write_json_lines(stream: TextIO, always: dict[str, str], *, table_metrics: str) -> JsonLines:
    """Write all that is logged to a stream as lines of JSON. Returns what makes the lines."""
    lines = JsonLines(always, table_metrics=table_metrics)
    handler = logging.StreamHandler(stream)
    handler.setFormatter(lines)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("lakebed").setLevel(logging.INFO)
    return lines


def _embedded(
    event: str, facts: dict[str, object], milliseconds: int, *, by_table: bool
) -> dict[str, Any]:
    """Return what makes CloudWatch keep metrics of a line; {}: it is none."""
    found = [(m, value) for m in METRICS if (value := m.value(event, facts)) is not None]
    if not found:
        return {}
    directives = list(_directives([metric for metric, _ in found], by_table=by_table))
    values = {metric.name: value for metric, value in found}
    return {**values, "_aws": {"Timestamp": milliseconds, "CloudWatchMetrics": directives}}


def _directives(metrics: list[Metric], *, by_table: bool) -> Iterator[dict[str, Any]]:
    for wanted, dimensions in (
        (False, [["instance"]]),
        (True, [["instance"], ["instance", "table"]]),
    ):
        some = [m for m in metrics if (m.by_table and by_table) == wanted]
        if some:
            units = [{"Name": m.name, "Unit": m.unit} for m in some]
            yield {"Namespace": NAMESPACE, "Dimensions": dimensions, "Metrics": units}
