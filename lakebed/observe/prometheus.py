"""Metrics as text for Prometheus: the same list as CloudWatch gets, read off the same events.

The page is served by `prometheus-client`, of the extra `feeds`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from lakebed.errors import InvalidError
from lakebed.observe.metric import Metric
from lakebed.observe.metrics import METRICS

if TYPE_CHECKING:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

ADDRESS = "127.0.0.1"
LABELS = ("table", "feed")
SERIES_MAX = 10_000
"""Most combinations of labels: what comes beyond is counted under empty ones."""


class MetricsOfEvents(logging.Handler):
    """Adds up what events say. A sum becomes a counter, a maximum the newest value.

    Safe to use from several threads: the page is asked for while work goes on.
    """

    def __init__(self) -> None:
        super().__init__()
        self._values: dict[tuple[str, str, str], float] = {}
        self._guard = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:
        """Add what one event says."""
        event = getattr(record, "event", None)
        if event is None:
            return
        facts: dict[str, object] = getattr(record, "facts", {})
        table, feed = (str(facts.get(name, "")) for name in LABELS)
        with self._guard:
            for metric in METRICS:
                value = metric.value(event, facts)
                if value is not None:
                    self._add(metric, (metric.name, table, feed), value)

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """Yield all metrics that have a value, as prometheus-client wants them."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        with self._guard:
            values = dict(self._values)
        for metric in METRICS:
            is_sum = metric.statistic == "Sum"
            family = (CounterMetricFamily if is_sum else GaugeMetricFamily)(
                f"lakebed_{metric.name}", metric.meaning, labels=LABELS
            )
            for (name, table, feed), value in sorted(values.items()):
                if name == metric.name:
                    family.add_metric([table, feed], value)
            if family.samples:
                yield family

    def _add(self, metric: Metric, key: tuple[str, str, str], value: float) -> None:
        if key not in self._values and len(self._values) >= SERIES_MAX:
            key = (metric.name, "", "")
        before = self._values.get(key, 0.0)
        self._values[key] = before + value if metric.statistic == "Sum" else value


class ThreadingWSGIServer(ThreadingMixIn, WSGIServer):
    """Answers several at once; none of them keeps the process alive."""

    daemon_threads = True


class SilentHandler(WSGIRequestHandler):
    """A request handler that does not log who asks for metrics."""

    timeout = 10
    """Seconds for a request to come."""

    def log_message(self, format: str, *args: object) -> None:
        """Do nothing."""


@contextmanager
def serving_metrics(port: int | None) -> Iterator[None]:
    """Serve the metrics of this process at a port of this machine meanwhile, from a thread. port:
    None: do not.

    Raises:
        InvalidError: the port is taken; the package is not installed.
    """
    if port is None:
        yield
        return
    handler = MetricsOfEvents()
    server = _server(port, handler)
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    logger = logging.getLogger("lakebed")
    before = logger.level
    logger.addHandler(handler)
    if not logger.isEnabledFor(logging.INFO):
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
        server.shutdown()
        server.server_close()
        thread.join()


def _server(port: int, handler: MetricsOfEvents) -> WSGIServer:
    try:
        from prometheus_client import CollectorRegistry, make_wsgi_app
    except ModuleNotFoundError:
        hint = "pip install 'lakebed[feeds]'"
        raise InvalidError("metrics need a package that is not installed", hint=hint) from None
    registry = CollectorRegistry()
    registry.register(handler)
    pages = make_wsgi_app(registry)
    try:
        return make_server(ADDRESS, port, pages, ThreadingWSGIServer, handler_class=SilentHandler)
    except OSError as error:
        hint = "choose another one"
        raise InvalidError("no port for metrics", port=port, reason=error, hint=hint) from None
