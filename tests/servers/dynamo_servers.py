"""Other servers of DynamoDB: one that is exact, where somebody built it, and one that is not."""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from lakebed.backends.aws.at_once import AtOnce
from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.items import Items
from lakebed.backends.system import SystemClock, system_random
from lakebed.config.dynamo_tables import DynamoTable
from lakebed.ports.clock import Clock
from tests.servers.dynamo import create_arguments
from tests.servers.running import free_ports, running
from tests.servers.s3 import S3Server, http_status
from tests.tidy.source import ROOT

DYNOXIDE = ROOT / ".cache" / "dynoxide" / "bin"
"""Where `make test-all` builds it."""


@contextmanager
def dynoxide_server(folder: Path, ports: Sequence[int] = ()) -> Iterator[S3Server]:
    """Run dynoxide: exact under races, its queries cost the same in a large partition. Its database
    is a file of the folder, which the next server there goes on with. It has tables only, no
    objects. ports: one, if not any."""
    command = shutil.which("dynoxide", path=f"{DYNOXIDE}{os.pathsep}{os.environ['PATH']}")
    if command is None:
        pytest.skip("no dynoxide: `make test-all` builds it, where cargo is")
    (port,) = ports or free_ports(1)
    arguments = ["--host", "127.0.0.1", "--port", str(port), "--db-path", str(folder / "tables")]
    with running([command, *arguments], folder, is_ready=lambda: http_status(port, "GET", "/") > 0):
        yield S3Server("dynoxide", f"http://127.0.0.1:{port}")


FILLERS = 2_000
"""Items of nobody. moto copies a table for each transaction and puts the copy back when it is
cancelled: the larger the table, the more is lost of what was written meanwhile."""


class OneByOne(AtOnce):
    """No threads: requests go one after the other."""

    def run(self, calls: Sequence[Callable[[], None]]) -> None:
        """Call all."""
        for call in calls:
            call()


@dataclass(frozen=True)
class MotoServer:
    """A stand-in of DynamoDB in this process: for one thread, and known to lose acknowledged writes
    beside cancelled transactions of others. fillers: items of nobody in each table."""

    fillers: int = 0

    def clients(self, *, clock: Clock | None = None) -> AmazonClients:
        """Return clients; only while moto is on."""
        clients = AmazonClients(
            clock=clock or SystemClock(), rng=system_random(), region_name="us-east-1"
        )
        clients.at_once = OneByOne()
        return clients

    def new_table(self, table: DynamoTable) -> str:
        """Make a table. Returns its name."""
        fillers = [{"pk": {"S": "filler"}, "sk": {"S": f"{n}"}} for n in range(self.fillers)]
        with closing(self.clients()) as clients:
            clients.dynamodb.create_table(**create_arguments("moto", table))
            Items(clients, "moto").put_many(fillers)
        return "moto"
