"""`lakebed send`: jobs go to an instance, and an instance is not a folder of its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakebed.config.messages import bulk_import_message, ingest_message
from lakebed.errors import UnavailableError
from lakebed.lake import Lake
from lakebed.model.jobs import BULK_IMPORT_QUEUE, INGEST_QUEUE
from lakebed.ports.job_queue import Received
from tests.dsl.memory_instance import MemoryInstance
from tests.unit.cli.programs import Shell

FILE, FOLDER = "s3://landing/trips/a.parquet", "s3://landing/trips/2013/"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemoryInstance:
    """Give the command an instance `dev` with a table."""
    instance = MemoryInstance(tmp_path)
    instance.given_table("trips")

    def connect(path: str, **_: object) -> Lake:
        assert path == "aws:dev"
        return Lake(instance.lake)

    monkeypatch.setattr("lakebed.lake.connect", connect)
    return instance


def sent(instance: MemoryInstance, queue: str) -> list[Received]:
    return instance.queues.open(queue).receive(messages_max=10, hidden_seconds=60)


def test_files_are_sent_as_one_job(instance: MemoryInstance, shell: Shell) -> None:
    assert shell.ok("--at", "dev", "send", "trips", FILE, FOLDER, "--job", "monday") == (
        "sent job monday\n"
    )
    (message,) = sent(instance, INGEST_QUEUE)
    asked = ingest_message(message.body)
    assert (asked.id, asked.table, asked.files) == ("monday", "trips", [FILE, FOLDER])


def test_spark_does_a_job_that_it_is_to_do(instance: MemoryInstance, shell: Shell) -> None:
    job = shell.json("--at", "dev", "send", "trips", FOLDER, "--bulk-import")["job"]
    assert sent(instance, INGEST_QUEUE) == []
    (message,) = sent(instance, BULK_IMPORT_QUEUE)
    assert bulk_import_message(message.body).id == job


@pytest.mark.usefixtures("instance")
def test_a_file_of_this_machine_is_refused_with_what_to_do(shell: Shell) -> None:
    code, error = shell.refused("--at", "dev", "send", "trips", "a.parquet")
    assert code == 2
    assert "copy it to a bucket" in error["hint"]


def test_a_lake_in_a_directory_takes_files_in_at_once(shell: Shell) -> None:
    shell.ok("table", "create", "trips", "--row-key", "id:int64")
    code, error = shell.refused("send", "trips", FILE)
    assert code == 2
    assert "`lakebed ingest`" in error["hint"]


def test_a_folder_with_the_name_of_an_instance_that_is_not_reached_is_named(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(path: str, **_: object) -> Lake:
        raise UnavailableError("AWS is away", path=path, hint="try again")

    monkeypatch.setattr("lakebed.lake.connect", away)
    monkeypatch.chdir(tmp_path)
    assert shell.refused("--at", "prod", "status")[1]["hint"] == "try again"
    (tmp_path / "prod").mkdir()
    assert shell.refused("--at", "prod", "status")[1]["hint"] == (
        "try again; a folder here has this name: `--lake prod` opens it"
    )
    assert shell.refused("--lake", "prod", "status")[1]["hint"] == "try again"
