"""Changes of items of a table call a function, as Lambda's mappings of streams of DynamoDB do."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from localcloud.runner.event_sources import Failure, InjectedFaults
from localcloud.runner.workers import Outcome, Workers
from localcloud.services.amazon import Amazon, Client
from localcloud.services.cloud_clock import CloudClock
from localcloud.templates.running import FunctionSpec, StreamSourceSpec
from localcloud.templates.stream_filters import matches

AGAIN_SECONDS = 60
"""Seconds after which a batch that failed calls its function again. Lambda waits less, and longer
each time."""

Batch = list[Any]
"""Records as a function gets them."""


class StreamSource:
    """One stream that calls one function: in order, a batch at a time, until it succeeds. Records
    that were there before are not among them. It reads with the function's permissions."""

    def __init__(
        self,
        spec: StreamSourceSpec,
        function: FunctionSpec,
        amazon: Amazon,
        workers: Workers,
        *,
        clock: CloudClock,
        faults: InjectedFaults,
        failed: Callable[[Failure], None],
    ) -> None:
        self.function = function
        self._spec = spec
        self._amazon = amazon
        self._workers = workers
        self._clock = clock
        self._faults = faults
        self._failed = failed
        self._lock = threading.Lock()
        self._busy = False
        self._again = 0.0
        self._last = ""
        described = self._streams().describe_stream(StreamArn=spec.stream)["StreamDescription"]
        self._part = described["Shards"][0]["ShardId"]
        self._after = ""
        while records := self._read():
            self._after = _sequence(records[-1])

    @property
    def again_at(self) -> float:
        """Return when a batch that failed is due, in seconds of the cloud's clock since 1970; 0:
        none is."""
        return self._again

    def receive(self) -> Batch:
        """Return a batch, or nothing. What is received must be handed to `run`."""
        with self._lock:
            if self._busy or self._clock.seconds() < self._again:
                return []
            while records := self._read():
                batch = [r for r in map(_as_event, records) if self._is_wanted(r)]
                if batch:
                    self._busy, self._last = True, _sequence(records[-1])
                    return [one | {"eventSourceARN": self._spec.stream} for one in batch]
                self._after = _sequence(records[-1])
            return []

    def run(self, batch: Batch) -> None:
        """Call the function with a batch; go on behind it if that succeeds."""
        outcome = self._call(batch)
        if outcome.error is None and self._faults.delivers_twice(self.function.name, batch):
            outcome = self._call(batch)
        failures = (outcome.value or {}).get("batchItemFailures") if not outcome.error else None
        with self._lock:
            self._busy = False
            if outcome.error is None and not failures:
                self._after, self._again = self._last, 0.0
                return
            self._again = self._clock.seconds() + AGAIN_SECONDS
        error = outcome.error or {"errorType": "batchItemFailures"}
        self._failed(Failure(self.function.name, error, tuple(r["eventID"] for r in batch)))

    def _call(self, batch: Batch) -> Outcome:
        dies = self._faults.dies_before_delete(self.function.name, batch)
        return self._workers.call(self.function, {"Records": batch}, dies=dies)

    def _read(self) -> Batch:
        """Return records behind the last that was done. What was trimmed meanwhile is passed
        over."""
        streams = self._streams()
        where: dict[str, str] = {"ShardIteratorType": "TRIM_HORIZON"}
        if self._after:
            where = {
                "ShardIteratorType": "AFTER_SEQUENCE_NUMBER",
                "SequenceNumber": self._after,
            }
        try:
            iterator = streams.get_shard_iterator(
                StreamArn=self._spec.stream, ShardId=self._part, **where
            )["ShardIterator"]
        except streams.exceptions.TrimmedDataAccessException:
            self._after = ""
            return self._read()
        found = streams.get_records(ShardIterator=iterator, Limit=self._spec.batch_records_max)
        records: Batch = found["Records"]
        return records

    def _is_wanted(self, record: Mapping[str, Any]) -> bool:
        patterns = self._spec.filters
        return not patterns or any(matches(pattern, record) for pattern in patterns)

    def _streams(self) -> Client:
        return self._amazon.client_of("dynamodbstreams", self.function.role)


def _sequence(record: Mapping[str, Any]) -> str:
    return str(record["dynamodb"]["SequenceNumber"])


def _as_event(value: Any) -> Any:  # noqa: ANN401 - what boto3 makes of any JSON
    """Return a record as Lambda writes it: bytes in base64, times as numbers."""
    if isinstance(value, dict):
        return {name: _as_event(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_as_event(member) for member in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.timestamp() if isinstance(value, datetime) else value
