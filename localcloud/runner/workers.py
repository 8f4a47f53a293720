"""Processes that run functions: warm ones are used again, as Lambda does."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from localcloud.programs import checked_requests, function_process, shifted_time
from localcloud.services.amazon import Amazon, RoleSession
from localcloud.services.cloud_clock import CloudClock
from localcloud.services.emulator import REGION
from localcloud.templates.running import MIB, FunctionSpec

LOOK_SECONDS = 0.1
"""Seconds between looks at memory while a function runs."""
PRIVATE_FOLDER = "/tmp"  # noqa: S108 - the folder that Lambda's documentation promises
INHERITED = ("PATH", "LD_LIBRARY_PATH")
LOAD_SECONDS_MAX = 60.0
READ_BYTES = 1 << 16


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of one call.

    value: what the handler returned.
    error: as Lambda reports it, if it failed.
    """

    value: Any = None
    error: dict[str, Any] | None = None


class FunctionWorker:
    """One process of one function, in which one call runs at a time.

    folder: for its log and its private folder. on_log: gets what it printed, after each call.
    """

    def __init__(
        self,
        function: FunctionSpec,
        folder: Path,
        *,
        number: int,
        environment: dict[str, str],
        session: RoleSession,
        clock: CloudClock,
        on_log: Callable[[bytes], None],
    ) -> None:
        self.function = function
        self.session = session
        self._clock = clock
        self._on_log = on_log
        self._rest = b""
        self._loaded = False
        private = folder / "private" / f"{function.name}-{number}"
        private.mkdir(parents=True, exist_ok=True)
        logs = folder / "logs"
        logs.mkdir(exist_ok=True)
        self._log = (logs / f"{function.name}-{number}.log").open("ab+", buffering=0)
        self._log_read = self._log.seek(0, os.SEEK_END)
        cache = folder / "compiled"
        self._process = subprocess.Popen(  # noqa: S603 - the user's own bundle
            [
                *(sys.executable, "-I", "-S", "-X", f"pycache_prefix={cache}"),
                *(
                    shifted_time.__file__,
                    checked_requests.__file__,
                    function_process.__file__,
                    str(function.code),
                    function.handler,
                ),
                str(clock.ahead_seconds),
            ],
            cwd=function.code,
            env=_environment(function, private, environment | session.variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,
        )

    @property
    def alive(self) -> bool:
        """Return whether it can take another call."""
        return self._process.poll() is None

    def call(self, event: object, request_id: str) -> Outcome:
        """Run the handler; a worker that takes too long or too much is gone afterwards.

        Loading the handler has its own time, as Lambda gives it.
        """
        if not self._loaded:
            outcome = self._answer(self._clock.monotonic() + LOAD_SECONDS_MAX)
            if outcome.error is not None:
                self._end()
                self._pass_log_on()
                return outcome
            self._loaded = True
        end = self._clock.monotonic() + self.function.timeout_seconds
        request = {
            "event": event,
            "id": request_id,
            "arn": self.function.arn,
            "end": end,
            "ahead": self._clock.ahead_seconds,
        }
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(json.dumps(request).encode() + b"\n")
            stdin.flush()
            outcome = self._answer(end)
        except BrokenPipeError:
            outcome = self._gone()
        self._pass_log_on()
        return outcome

    def kill(self) -> None:
        """End the process at once."""
        self._end()
        self._pass_log_on()
        for pipe in (self._process.stdin, self._process.stdout, self._log):
            assert pipe is not None
            pipe.close()

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()

    def _answer(self, end: float) -> Outcome:
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        while b"\n" not in self._rest:
            left = end - self._clock.monotonic()
            if left <= 0:
                self._end()
                seconds = self.function.timeout_seconds
                return _failed("Sandbox.Timedout", f"Task timed out after {seconds} seconds")
            ready, _, _ = select.select([pipe], [], [], min(left, LOOK_SECONDS))
            if ready:
                some = os.read(pipe, READ_BYTES)
                if not some:
                    return self._gone()
                self._rest += some
            if self._resident_bytes() > self.function.memory_bytes:
                self._end()
                mib = self.function.memory_bytes // MIB
                return _failed("Runtime.ExitError", f"more than {mib} MiB: signal: killed")
        line, _, self._rest = self._rest.partition(b"\n")
        answer = json.loads(line)
        return Outcome(answer.get("value"), answer.get("error"))

    def _gone(self) -> Outcome:
        code = self._process.wait()
        return _failed("Runtime.ExitError", f"the process ended with {code}")

    def _resident_bytes(self) -> int:
        """Return the memory that the process has; nothing where the system does not say."""
        try:
            text = Path(f"/proc/{self._process.pid}/statm").read_text("ascii")
        except OSError:
            return 0
        return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def _pass_log_on(self) -> None:
        self._log.seek(self._log_read)
        said = self._log.read()
        self._log_read += len(said)
        if said:
            self._on_log(said)


class Workers:
    """The workers of all functions.

    said: gets what functions print. called: gets how each call ended.
    """

    def __init__(
        self,
        amazon: Amazon,
        folder: Path,
        *,
        clock: CloudClock,
        said: Callable[[bytes], None],
        called: Callable[[str, Outcome], None],
    ) -> None:
        self._amazon = amazon
        self._folder = folder
        self._clock = clock
        self._said = said
        self._called = called
        self._lock = threading.Lock()
        self._idle: dict[str, list[FunctionWorker]] = {}
        self._numbers = count(1)
        self._requests = count(1)

    def call(self, function: FunctionSpec, event: object, *, dies: bool = False) -> Outcome:
        """Run a function once. dies: its process is killed after its work, before it answers."""
        worker = self._taken(function)
        outcome = worker.call(event, f"request-{next(self._requests):08}")
        if dies:
            worker.kill()
            outcome = _failed("Runtime.ExitError", "killed by a test")
        else:
            self._put_back(worker)
        self._called(function.name, outcome)
        return outcome

    def _taken(self, function: FunctionSpec) -> FunctionWorker:
        """Return a worker for one call, warm or new."""
        session = self._amazon.session_of(function.role)
        with self._lock:
            idle = self._idle.setdefault(function.name, [])
            while idle:
                worker = idle.pop()
                if worker.alive and worker.session is session:
                    return worker
                worker.kill()
            number = next(self._numbers)
        return FunctionWorker(
            function,
            self._folder,
            number=number,
            environment=self._amazon.environment(),
            session=session,
            clock=self._clock,
            on_log=self._said,
        )

    def _put_back(self, worker: FunctionWorker) -> None:
        """Keep a worker warm, if it lives."""
        if not worker.alive:
            worker.kill()
            return
        with self._lock:
            self._idle[worker.function.name].append(worker)

    def close(self) -> None:
        """End all that are idle."""
        with self._lock:
            for worker in (worker for idle in self._idle.values() for worker in idle):
                worker.kill()
            self._idle.clear()


def _environment(function: FunctionSpec, private: Path, given: dict[str, str]) -> dict[str, str]:
    """Return exactly what the template says, and what Lambda itself sets. Each process has a
    private folder where Lambda has /tmp."""
    own = {
        name: str(private) + value.removeprefix(PRIVATE_FOLDER)
        if value == PRIVATE_FOLDER or value.startswith(f"{PRIVATE_FOLDER}/")
        else value
        for name, value in function.environment.items()
    }
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return {
        **inherited,
        **given,
        "AWS_EXECUTION_ENV": f"AWS_Lambda_python{sys.version_info.major}.{sys.version_info.minor}",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory_bytes // MIB),
        "AWS_LAMBDA_FUNCTION_NAME": function.name,
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{function.name}",
        "AWS_LAMBDA_LOG_STREAM_NAME": private.name,
        "AWS_REGION": REGION,
        "HOME": str(private),
        "LAMBDA_TASK_ROOT": str(function.code),
        "LANG": "en_US.UTF-8",
        "TMPDIR": str(private),
        "TZ": ":UTC",
        "_HANDLER": function.handler,
        **own,
    }


def _failed(type_: str, message: str) -> Outcome:
    return Outcome(error={"errorType": type_, "errorMessage": message})
