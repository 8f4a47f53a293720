"""Functions of an instance: how fast one starts, how large bundles are, how long a synthesis takes.

A start is a process of its own that sees nothing but the bundle, as on AWS. Times of imports are of
the processor; those of a first event, of a first answer and of a synthesis are by the clock.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow as pa

import lakebed
from benchmarks.figures import Figure, medians
from lakebed.backends.system.clock import SystemClock
from localcloud.cloud import LocalCloud
from stacks.constructs.python_bundle import ROWS, STATE, PythonBundle, target_of
from tests.cloud.instance import INSTANCE, RunningInstance

ROOT = Path(__file__).resolve().parents[1]
STARTS = 5
IMPORT_SECONDS_MAX = 0.4
QUERY_COLD_SECONDS_MAX = 1.0
BUNDLE_MIB_MAX = 250

START = """
import sys, time
sys.path.insert(0, {folder!r})
begun = time.process_time()
import lambdas.scheduled_work.{verb} as function
import lakebed.splitting.split_leaves
imported = time.process_time() - begun
print(imported, file=sys.stderr)
if {verb!r} == "trigger":
    class Run:
        aws_request_id = function_name = "bench"
        def get_remaining_time_in_millis(self):
            return 60_000
    begun = time.perf_counter()
    function.handler({{"time": "2026-01-01T00:00:00Z"}}, Run())
    print(time.perf_counter() - begun, file=sys.stderr)
"""


QUERY = """
import sys, time
sys.path.insert(0, {folder!r})
class Run:
    aws_request_id = function_name = "bench"
    def get_remaining_time_in_millis(self):
        return 60_000
begun, worked = time.perf_counter(), time.process_time()
import lambdas.query.answer as function
answer = function.handler({{"table": "trips", "keys": ["k7"]}}, Run())
told = time.perf_counter() - begun, time.process_time() - worked
assert answer["rows"] == 1, answer
print(*told, file=sys.stderr)
"""


class _NoTables(BaseHTTPRequestHandler):
    """Answers every query of DynamoDB: there is nothing."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = b'{"Items":[],"Count":0,"ScannedCount":0}'
        self.send_response(200)
        self.send_header("Content-Type", "application/x-amz-json-1.0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def run() -> list[Figure]:
    """Return the figures."""
    here = target_of("machine")
    folder = PythonBundle(STATE, here).folder
    server = ThreadingHTTPServer(("127.0.0.1", 0), _NoTables)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    imports = [_started(folder, "handle", endpoint)[0] for _ in range(STARTS)]
    events = [_started(folder, "trigger", endpoint)[1] for _ in range(STARTS)]
    server.shutdown()
    with tempfile.TemporaryDirectory() as name:
        assembly = Path(name) / "assembly"
        synthesized = _synthesis_seconds(assembly)
        cold, cold_cpu = _first_answer_seconds(assembly, Path(name) / "cloud")
    figures = [
        Figure("lambda.import_seconds", statistics.median(imports), "s", IMPORT_SECONDS_MAX),
        Figure("lambda.first_event_seconds", statistics.median(events), "s"),
        Figure("lambda.query_cold_seconds", cold, "s", QUERY_COLD_SECONDS_MAX),
        Figure("lambda.query_cold_cpu_seconds", cold_cpu, "s"),
        Figure("synth.seconds", synthesized, "s"),
    ]
    there = target_of("arm64")
    for bundle in (STATE, ROWS):
        files = PythonBundle(bundle, there).folder.rglob("*")
        mib = sum(path.stat().st_size for path in files if path.is_file()) / (1 << 20)
        figures.append(Figure(f"bundle.{bundle.name}.mib", mib, "MiB", BUNDLE_MIB_MAX))
    return figures


def _started(folder: Path, verb: str, endpoint: str) -> list[float]:
    """Return what a fresh process tells: seconds to import, and to answer a first event."""
    variables = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "bench",
        "AWS_SECRET_ACCESS_KEY": "bench",
        "LAKEBED_INSTANCE": "bench",
        "LAKEBED_WORK": "splitting",
        "LAKEBED_REGISTRY_TABLE": "registry",
        "LAKEBED_QUEUE_URL": f"{endpoint}/queue.fifo",
    }
    return _told(START.format(folder=str(folder), verb=verb), variables)


def _told(program: str, variables: Mapping[str, str]) -> list[float]:
    """Return the numbers that a fresh process tells."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-c", program],
        env={"PATH": os.environ["PATH"], **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return [float(word) for word in done.stderr.split()]


def _first_answer_seconds(assembly: Path, folder: Path) -> tuple[float, float]:
    """Return how long a fresh process takes to import what answers queries, to build it, and to
    look up a key in a small table, by the clock and of the processor."""
    with LocalCloud(assembly, folder, clock=SystemClock()) as cloud:
        instance = RunningInstance(cloud, folder / "cache")
        with instance.led_here(), instance.lake() as lake:
            schema = lakebed.schema_of(row_keys={"id": "string"}, values={"n": "int64"})
            rows = pa.table({"id": [f"k{n}" for n in range(1_000)], "n": range(1_000)})
            lake.create_table("trips", schema).ingest(rows)
        function = cloud.deployment.running.functions[f"lakebed-{INSTANCE}-query-answer"]
        program = QUERY.format(folder=str(function.code))
        variables = {**cloud.environment(), **function.environment}
        starts = [_told(program, variables) for _ in range(STARTS)]
    cold, cpu = medians(starts)
    return cold, cpu


def _synthesis_seconds(folder: Path) -> float:
    """Return how long `app.py` takes by the clock when the packages of bundles are there. folder:
    gets what it makes."""
    context = json.loads((ROOT / "cdk.json").read_text("utf-8"))["context"]
    told = json.dumps({**context, "instance": INSTANCE, "architecture": "machine"})
    begun = time.perf_counter()
    subprocess.run(
        [sys.executable, "app.py"],
        cwd=ROOT,
        env={**os.environ, "CDK_OUTDIR": str(folder), "CDK_CONTEXT_JSON": told},
        capture_output=True,
        check=True,
    )
    return time.perf_counter() - begun


if __name__ == "__main__":
    from benchmarks.figures import table

    print(table(run()))
