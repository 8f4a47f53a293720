"""`python -m localcloud`, as people type it in a checkout."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest

from localcloud.control import ask
from tests.cloud.assemblies import write_assembly
from tests.cloud.test_runner import CODE, stacks

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "localcloud"]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )


def told(*arguments: str) -> dict[str, Any]:
    done = run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@contextmanager
def up(folder: Path, *, interrupted: bool = True) -> Iterator[dict[str, Any]]:
    """A cloud that is interrupted when the block ends, or ends by itself."""
    where = ["--folder", str(folder), "--assembly", str(folder.parent / "assembly")]
    with subprocess.Popen(
        [*COMMAND, "up", "dev", *where, "--json"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())
        finally:
            if interrupted:
                process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


@pytest.mark.slow
def test_a_cloud_is_started_looked_at_driven_and_taken_down(tmp_path: Path) -> None:
    write_assembly(tmp_path / "assembly", stacks(), code=CODE)
    folder = tmp_path / "cloud"
    there = ["--folder", str(folder)]
    with up(folder) as first:
        assert first["functions"] == 5
        shown = told("env", *there)
        assert shown == first["environment"]
        assert shown["AWS_ENDPOINT_URL"].startswith("https://127.0.0.1:")
        told("fire", "each-hour", *there)
        assert items(shown) == {"a": 1, "b": 1, "c": 1}
        told("advance", "7200", *there)
        assert items(shown) == {"a": 3, "b": 3, "c": 3}
        answer = told("invoke", "look", *there)
        assert answer["own"].endswith("/states")
        status = run("status", *there).stdout
        assert "each-hour" in status
        assert "seconds ahead of this machine" in status
        refused = run("invoke", "lok", *there)
        assert refused.returncode == 2
        assert "did you mean 'look'" in refused.stderr
    with up(folder, interrupted=False) as second:
        assert items(second["environment"]) == {"a": 3, "b": 3, "c": 3}
        told("down", *there)
    assert run("status", *there).returncode == 2
    with up(folder) as third:
        assert items(third["environment"]) == {}


def items(environment: dict[str, str]) -> dict[str, int]:
    client = boto3.client(
        "dynamodb",
        endpoint_url=environment["AWS_ENDPOINT_URL"],
        verify=environment["AWS_CA_BUNDLE"],
        region_name=environment["AWS_REGION"],
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
    )
    found = client.scan(TableName="outcomes")["Items"]
    client.close()
    return {item["pk"]["S"]: int(item["times"]["N"]) for item in found}


def test_without_a_cloud_a_command_says_how_to_start_one(tmp_path: Path) -> None:
    done = run("status", "--folder", str(tmp_path))
    assert done.returncode == 2
    assert "no local cloud runs there" in done.stderr
    assert "python -m localcloud up INSTANCE" in done.stderr


def test_a_path_that_no_socket_can_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="too long for a socket"):
        ask(tmp_path / ("long" * 40), "status")
    assert not list(tmp_path.iterdir())
