"""A second server of DynamoDB, where somebody has built it: `docs/design/backends.md` says how."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.servers.running import free_ports, running
from tests.servers.s3 import S3Server, http_status


@contextmanager
def dynoxide_server(folder: Path) -> Iterator[S3Server]:
    """Run dynoxide: exact under races, its queries cost the same in a large partition. Its database
    is a file of the folder. It has tables only, no objects."""
    command = shutil.which("dynoxide")
    if command is None:
        pytest.skip("no dynoxide on PATH: cargo install --locked dynoxide-rs --version 3.2.0")
    (port,) = free_ports(1)
    arguments = ["--host", "127.0.0.1", "--port", str(port), "--db-path", str(folder / "tables")]
    with running([command, *arguments], folder, is_ready=lambda: http_status(port, "GET", "/") > 0):
        yield S3Server("dynoxide", f"http://127.0.0.1:{port}")
