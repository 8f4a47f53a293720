"""Runs a lambda's handler in a process that sees nothing but its bundle and the standard library.

Run by `shifted_time`, with the bundle's folder, the handler's dotted path, and how far ahead the
clock is. It answers with one line of JSON when the handler is loaded, then takes events as lines on
its standard input and answers each with one line; whatever the handler prints goes to its log. When
its input ends, it ends.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, TextIO


class InvocationContext:
    """The context that AWS hands to a handler beside the event."""

    def __init__(self, request_id: str, arn: str, end: float) -> None:
        self._end = end
        self.aws_request_id = request_id
        self.invoked_function_arn = arn
        self.function_name = os.environ["AWS_LAMBDA_FUNCTION_NAME"]
        self.function_version = os.environ["AWS_LAMBDA_FUNCTION_VERSION"]
        self.memory_limit_in_mb = os.environ["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"]
        self.log_group_name = os.environ["AWS_LAMBDA_LOG_GROUP_NAME"]
        self.log_stream_name = os.environ["AWS_LAMBDA_LOG_STREAM_NAME"]
        self.identity = SimpleNamespace(cognito_identity_id=None, cognito_identity_pool_id=None)
        self.client_context = None

    def get_remaining_time_in_millis(self) -> int:
        """Return how long the handler may still run."""
        return max(0, int((self._end - time.monotonic()) * 1_000))


def main() -> None:
    """Serve until the standard input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    bundle, path, ahead = sys.argv[1:]
    clock = sys.modules["shifted_time"]
    clock.shift(float(ahead))
    sys.path.insert(0, bundle)
    found: list[Any] = []
    _answer(answers, lambda: found.append(_handler(path)))
    for line in sys.stdin if found else ():
        given = json.loads(line)
        clock.shift(given["ahead"])
        context = InvocationContext(given["id"], given["arn"], given["end"])
        _answer(answers, partial(found[0], given["event"], context))


def _handler(path: str) -> Any:  # noqa: ANN401 - whatever the module has by that name
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module.replace("/", ".")), name)


def _answer(answers: TextIO, call: Callable[[], object]) -> None:
    """Tell what a call returns or raises, as Lambda does."""
    try:
        text = json.dumps({"value": call()})
    except BaseException as error:  # noqa: BLE001 - the caller gets it
        traceback.print_exception(error)
        details = {
            "errorType": "Runtime.ExitError"
            if isinstance(error, SystemExit)
            else type(error).__name__,
            "errorMessage": str(error),
            "stackTrace": traceback.format_tb(error.__traceback__),
        }
        text = json.dumps({"error": details})
    sys.stdout.flush()
    answers.write(text + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
