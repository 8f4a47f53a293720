"""The real `cdk` brings files of tables, on the emulator: its CloudFormation calls the function and
waits for the answer."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lakebed.backends.aws.table_registry import DynamoTableRegistry
from lakebed.ports.table_registry import TableEntry
from tests.servers.cdk import Cdk, named_network
from tests.servers.s3 import S3Server
from tests.stacks.conftest import Synthesize

TRIPS = 'name = "trips"\n[row_keys]\nid = "string"\n[values]\nn = "int64?"\n'
RIDES = 'name = "rides"\n[row_keys]\nid = "string"\n'


@pytest.fixture
def registry(ministack: S3Server) -> Iterator[DynamoTableRegistry]:
    with closing(ministack.clients()) as clients:
        yield DynamoTableRegistry(clients, "lakebed-declares-registry")


def named(entries: list[TableEntry]) -> dict[str, tuple[bool, bool]]:
    return {entry.name: (entry.declared, entry.online) for entry in entries}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_deployment_makes_tables_and_a_wrong_file_fails_it(
    ministack: S3Server, synthesize: Synthesize, registry: DynamoTableRegistry, tmp_path: Path
) -> None:
    cdk, folder = Cdk(ministack, tmp_path / "out"), tmp_path / "tables"
    cdk.bootstrap()
    settings = {**named_network(ministack), "tables": str(folder)}
    folder.mkdir()

    def deploy(name: str, **files: str) -> tuple[int, str]:
        for file in folder.iterdir():
            file.unlink()
        for file_name, text in files.items():
            (folder / f"{file_name}.toml").write_text(text)
        out = tmp_path / name
        synthesize(out, instance="declares", **settings)
        wanted = ("declares/Tables", "--require-approval", "never", "--app", str(out))
        done = cdk.try_("deploy", *wanted)
        return done.returncode, done.stdout

    code, said = deploy("first", trips=TRIPS)
    assert code == 0, said
    assert named(registry.list()) == {"trips": (True, True)}

    code, said = deploy("wrong", trips=TRIPS.replace('"string"', '"int64"'), rides=RIDES)
    assert code != 0
    assert "the keys of a table cannot change" in said
    assert named(registry.list()) == {"trips": (True, True)}

    code, said = deploy("mended", rides=RIDES)
    assert code == 0, said
    assert named(registry.list()) == {"rides": (True, True), "trips": (True, False)}
