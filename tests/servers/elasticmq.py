"""ElasticMQ, a second server of SQS's language: artifacts of Maven's, each with its locked hash.

Ivy, which Spark's wheel brings, fetches them once. `elasticmq.sha256` tells what it fetched first.
"""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.servers.running import free_ports, running
from tests.servers.s3 import S3Server, http_status
from tests.tidy.source import ROOT

VERSION = "1.7.1"
LOCK = Path(__file__).with_name("elasticmq.sha256")
JARS = ROOT / ".cache" / f"elasticmq-{VERSION}"
FETCH_SECONDS_MAX = 600


@contextmanager
def elasticmq_server(folder: Path) -> Iterator[S3Server]:
    """Run ElasticMQ: strict about SQS's limits, messages in memory."""
    java = shutil.which("java")
    if java is None:
        _skip("no Java")
    fetch_jars(str(java))
    (port,) = free_ports(1)
    (folder / "elasticmq.conf").write_text(CONFIGURATION.format(port=port))
    command = [
        str(java),
        "-Xmx256m",
        "-Dconfig.file=elasticmq.conf",
        "-cp",
        f"{JARS}/*",
        "org.elasticmq.server.Main",
    ]
    with running(command, folder, is_ready=lambda: http_status(port, "GET", "/") > 0):
        yield S3Server("elasticmq", f"http://127.0.0.1:{port}")


def fetch_jars(java: str) -> None:
    """Have all jars in the cache, exactly as they are locked; else skip, or fail in CI."""
    locked = dict(reversed(line.split()) for line in LOCK.read_text().splitlines())
    if {path.name: _hash(path) for path in JARS.glob("*.jar")} == locked:
        return
    found = sorted((ROOT / ".venv").glob("spark-*/pyspark/jars/ivy-*.jar"))
    if not found:
        _skip("no Ivy, which the Spark of `make test-all` brings")
    JARS.parent.mkdir(exist_ok=True)
    with TemporaryDirectory(dir=JARS.parent) as new:
        command = [java, "-jar", str(found[-1]), "-m2compatible", "-cache", f"{new}/cache"]
        command += ["-confs", "default", "-dependency"]
        command += ["org.elasticmq", "elasticmq-server_2.13", VERSION]
        command += ["-retrieve", f"{new}/jars/[artifact]-[revision](-[classifier]).[ext]"]
        done = subprocess.run(command, capture_output=True, timeout=FETCH_SECONDS_MAX, check=False)
        if done.returncode:
            _skip("its jars could not be fetched")
        fetched = {path.name: _hash(path) for path in Path(new, "jars").glob("*.jar")}
        assert fetched == locked, "Maven gave other jars than those that are locked"
        shutil.rmtree(JARS, ignore_errors=True)
        Path(new, "jars").rename(JARS)


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _skip(why: str) -> None:
    assert not os.environ.get("CI"), f"ElasticMQ: {why}"
    pytest.skip(f"ElasticMQ: {why}")


CONFIGURATION = """
include classpath("application.conf")
node-address {{ protocol = http, host = "127.0.0.1", port = {port}, context-path = "" }}
rest-sqs {{ enabled = true, bind-port = {port}, bind-hostname = "127.0.0.1", sqs-limits = strict }}
rest-stats {{ enabled = false }}
generate-node-address = false
aws {{ region = us-east-1, accountId = 000000000000 }}
"""
