"""The shapes of functions: one that a queue runs, a message or a batch at a time, and one that a
schedule runs.

A function is a sentence, `(app, message) -> None`, and the line that builds its handler. Here are
parsing, partial failures, logs and metrics. The app is built at the first event, not at import.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import msgspec

from lakebed.bootstrap.functions.counted_function import function_usage, work_of_function
from lakebed.bootstrap.functions.reported_function import function_reports
from lakebed.errors import (
    CorruptError,
    InvalidError,
    LakebedError,
    NewerFormatError,
    UnavailableError,
)
from lakebed.model.names import Micros
from lakebed.observe import events, metrics, usage
from lakebed.observe.json_lines import JsonLines, write_json_lines
from lakebed.upgrades.release_reports import ReleaseReports

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

    from lakebed.bootstrap.functions.counted_function import FunctionUsage

AppT = TypeVar("AppT")
SentAppT = TypeVar("SentAppT", bound="SentApp")
MessageT = TypeVar("MessageT")

Event = Mapping[str, Any]
Handler = Callable[[Event, "Context"], dict[str, Any] | None]

Records = Sequence[Mapping[str, Any]]
"""Messages as a queue hands them to a function."""

REASON_CHARACTERS_MAX = 1_000
"""CloudFormation takes 4 KiB of an answer."""
ANSWER_SECONDS = 20
POLLS = 2
"""Requests of a queue for one batch: one receives it, and one deletes what was done."""
TIME_KEPT = 1 / 3
"""The share of a run's time that must be left to begin with another message."""


class Context(Protocol):
    """Lambda's description of a run."""

    aws_request_id: str
    function_name: str

    def get_remaining_time_in_millis(self) -> int:
        """Return how long the run may go on."""
        ...


class Tick(msgspec.Struct, frozen=True):
    """A schedule went off.

    time: for which it did, as it says; a second try has the same.
    """

    time: str


class SentMessage(Protocol):
    """A message as its sender wrote it."""

    @property
    def body(self) -> bytes:
        """Return what the message says."""
        ...

    @property
    def sent_at(self) -> Micros:
        """Return when it was sent: the same whenever it comes, also when it was given up and sent
        again."""
        ...

    @property
    def receipt(self) -> str:
        """Stands for this receipt of it, in its queue."""
        ...


class SentApp(Protocol):
    """An app that works on messages of users, and knows the queue that they came from."""

    def received(self, record: Mapping[str, Any]) -> SentMessage:
        """Return what a record says."""
        ...

    def refused(self, record: Mapping[str, Any]) -> None:
        """Put a message that can never work among the dead letters, now."""
        ...

    def failed(self, record: Mapping[str, Any], error: Exception) -> None:
        """Let a message come back: soon, or when this installation may be upgraded."""
        ...


class _Once(Generic[AppT]):
    """The app of a process, built when it is first wanted. A failure is not remembered. reported:
    whether the process reports its release, now and then."""

    def __init__(self, build: Callable[[], AppT], *, reported: bool = True) -> None:
        self._build = build
        self._built: list[AppT] = []
        self._reported = reported
        self._reports: ReleaseReports | None = None
        self._usage: FunctionUsage | None = None
        self._lines: JsonLines | None = None

    @contextmanager
    def run(self, context: Context, *, polled: bool = False) -> Iterator[AppT]:
        """Give the app to a run of the function, and keep in the end what that used. polled: Lambda
        received its messages for it, and deletes them."""
        try:
            with usage.work(work_of_function(context.function_name)):
                usage.count("lambda_runs")
                usage.count("sqs_polls", POLLS if polled else 0)
                yield self._begin(context)
        finally:
            if self._usage is not None:
                self._usage.keep()

    def _begin(self, context: Context) -> AppT:
        """Return the app; lines that are logged from now on name this run."""
        if self._lines is None:
            always = {"instance": os.environ.get("LAKEBED_INSTANCE", "")}
            table_metrics = os.environ.get("LAKEBED_TABLE_METRICS", "false")
            self._lines = write_json_lines(sys.stdout, always, table_metrics=table_metrics)
        self._lines.always |= {"function": context.function_name, "run": context.aws_request_id}
        if not self._built:
            self._built.append(self._build())
            if self._reported:
                self._reports = function_reports(context.function_name)
                self._usage = function_usage()
        if self._reports is not None:
            self._reports.report_if_due()
        return self._built[0]


def scheduled_handler(build: Callable[[], AppT], work: Callable[[AppT, Tick], None]) -> Handler:
    """Return the handler of a function that a schedule runs. An error is one of the run."""
    once = _Once(build)

    def handler(event: Event, context: Context) -> None:
        with once.run(context) as app:
            try:
                work(app, _tick_of(event))
            except Exception as error:
                log_failed(error)
                raise

    return handler


def queue_handler(
    build: Callable[[], AppT],
    decode: Callable[[bytes], MessageT],
    work: Callable[[AppT, MessageT], None],
) -> Handler:
    """Return the handler of a function that a FIFO queue runs.

    A message that fails, and later ones of its group, are given back and come again; others go on.
    Nothing is an error of the run but an app that cannot be built.
    """

    def one(app: AppT, record: SQSRecord) -> None:
        try:
            work(app, decode(record.body.encode()))
        except Exception as error:
            _log_failed_message(error, record)
            raise

    return _queue_handler(build, one)


def sent_handler(
    build: Callable[[], SentAppT], work: Callable[[SentAppT, SentMessage], None]
) -> Handler:
    """Return the same for messages of users, which the work itself reads. One that can never work
    is a dead letter at once; others that fail come back soon."""

    def one(app: SentAppT, record: SQSRecord) -> None:
        try:
            work(app, app.received(record.raw_event))
        except InvalidError as error:
            _log_failed_message(error, record)
            app.refused(record.raw_event)
        except Exception as error:
            _log_failed_message(error, record)
            app.failed(record.raw_event, error)
            raise

    return _queue_handler(build, one)


def invoked_handler(build: Callable[[], AppT], work: Callable[[AppT, bytes], object]) -> Handler:
    """Return the handler of a function that people invoke with a message, and wait.

    What can never work is an answer, too: `{"error": CODE, "reason": ...}`. Other errors are of the
    run.
    """
    once = _Once(build)

    def handler(event: Event, context: Context) -> dict[str, Any]:
        with once.run(context) as app:
            try:
                found: dict[str, Any] = msgspec.to_builtins(work(app, msgspec.json.encode(event)))
            except InvalidError as error:
                return {"error": error.code(), "reason": str(error)}
            except Exception as error:
                log_failed(error)
                raise
            return found

    return handler


def requested_handler(
    build: Callable[[], AppT], work: Callable[[AppT, Event], dict[str, Any]]
) -> Handler:
    """Return the handler of a function behind a URL: requests in, responses out, both as Lambda
    writes them. An error is one of the run, and who asked hears 502."""
    once = _Once(build)

    def handler(event: Event, context: Context) -> dict[str, Any]:
        with once.run(context) as app:
            try:
                return work(app, event)
            except Exception as error:
                log_failed(error)
                raise

    return handler


def deployed_handler(
    build: Callable[[], AppT],
    work: Callable[[AppT], None],
    *,
    answer: Callable[[str, bytes], None] | None = None,
) -> Handler:
    """Return the handler of a function that a deployment waits for: an error refuses it, with the
    reason in what the deployment says. Nothing is done when a stack is taken down. A run fails only
    if it could not answer: Lambda repeats it then, and none whose answer was taken.

    answer: sends bytes to the address that CloudFormation names. None: by HTTP.
    """
    once = _Once(build, reported=False)  # it ends with the deployment

    def handler(event: Event, context: Context) -> None:
        identity = {name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")}
        identity |= {"PhysicalResourceId": context.function_name}

        def respond(**how: str) -> None:
            (answer or _put)(event["ResponseURL"], msgspec.json.encode(identity | how))

        try:
            if event["RequestType"] != "Delete":
                with once.run(context) as app:
                    work(app)
        except Exception as error:  # noqa: BLE001 - whatever it is, the answer is the reason
            log_failed(error)
            respond(Status="FAILED", Reason=str(error)[:REASON_CHARACTERS_MAX])
        else:
            respond(Status="SUCCESS")

    return handler


def _put(url: str, body: bytes) -> None:
    """Send bytes to an address that CloudFormation signed."""
    import urllib.request  # noqa: PLC0415 - it takes 30 ms, of which others need none

    request = urllib.request.Request(  # noqa: S310 - the address is CloudFormation's
        url, data=body, method="PUT", headers={"Content-Type": ""}
    )
    with urllib.request.urlopen(request, timeout=ANSWER_SECONDS):  # noqa: S310 - the same
        pass


def _queue_handler(build: Callable[[], AppT], work: Callable[[AppT, SQSRecord], None]) -> Handler:
    from aws_lambda_powertools.utilities import batch  # noqa: PLC0415 - who is invoked does without

    once = _Once(build)

    def handler(event: Event, context: Context) -> dict[str, Any]:
        with once.run(context, polled=True) as app:
            enough = context.get_remaining_time_in_millis() * TIME_KEPT

            def one(record: SQSRecord) -> None:
                if context.get_remaining_time_in_millis() < enough:
                    error = UnavailableError("no time is left in this run")
                    _log_failed_message(error, record)
                    raise error
                work(app, record)

            processor = batch.SqsFifoPartialProcessor(skip_group_on_error=True)
            processor.raise_on_entire_batch_failure = False  # each message reports its own failure
            with processor(records=event["Records"], handler=one):
                processor.process()
            return dict(processor.response())

    return handler


def batch_handler(build: Callable[[], AppT], work: Callable[[AppT, Records], set[str]]) -> Handler:
    """Return the handler of a function that works on all messages of a batch together.

    work: returns the ids of messages that are to come again. An error of it gives all back.
    """
    once = _Once(build)

    def handler(event: Event, context: Context) -> dict[str, Any]:
        with once.run(context, polled=True) as app:
            try:
                failed = work(app, event["Records"])
            except Exception as error:
                log_failed(error)
                raise
        return {"batchItemFailures": [{"itemIdentifier": id_} for id_ in sorted(failed)]}

    return handler


def _log_failed_message(error: Exception, record: SQSRecord) -> None:
    log_failed(error, receives=record.attributes.approximate_receive_count)


def log_failed(error: Exception, **facts: object) -> None:
    """Log a failure, once, as its kind asks for: house words are in docs/design/lambdas.md."""
    match error:
        case CorruptError():
            kind, level = metrics.WORK_CORRUPT, logging.ERROR
        case InvalidError():
            kind, level = metrics.WORK_REFUSED, logging.ERROR
        case NewerFormatError():
            kind, level = metrics.WORK_RETRIED, logging.ERROR
        case LakebedError():
            kind, level = metrics.WORK_RETRIED, logging.WARNING
        case _:
            kind, level = metrics.WORK_BUG, logging.ERROR
    code = error.code() if isinstance(error, LakebedError) else type(error).__name__
    if kind == metrics.WORK_BUG:
        logging.getLogger("lakebed").error("an unexpected error", exc_info=error)
    events.emit(events.WORK_FAILED, level=level, kind=kind, code=code, reason=error, **facts)


def _tick_of(event: Event) -> Tick:
    try:
        return msgspec.convert(event, Tick)
    except msgspec.ValidationError as error:
        raise InvalidError(
            "the event is not an event of a schedule",
            reason=error,
            hint="let only its schedule run this function",
        ) from None
