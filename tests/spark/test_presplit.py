"""A first bulk import by real Spark makes leaves; a killed driver leaves the tree as it was."""

import os
import random
import signal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakebed
from tests.spark.shell import SparkShell, wait_for

pytestmark = pytest.mark.timeout(1800)

ROWS, FILES = 240_000, 4
SCHEMA = lakebed.schema_of(row_keys={"k": "string"}, values={"v": "binary"})


def skewed_files(folder: Path, *, width: int = 1) -> list[str]:
    """Write files with rows in no order, most of which have keys that begin alike; return all
    keys."""
    folder.mkdir()
    numbers = list(range(ROWS))
    random.Random(1).shuffle(numbers)
    keys = [f"https://example.org/{(n & -n).bit_length():02}/{n:08}" for n in numbers]
    for file in range(FILES):
        mine = keys[file::FILES]
        values = [os.urandom(width) for _ in mine]
        pq.write_table(pa.table({"k": mine, "v": values}), folder / f"{file}.parquet")
    return sorted(keys)


def leaves_of(lake: lakebed.Lake) -> list[int]:
    (table,) = lake.status("t")
    assert table.rows_exact
    return [node.rows for node in table.nodes if node.left is None]


@pytest.fixture
def shell(tmp_path: Path) -> SparkShell:
    shell = SparkShell("4", str(tmp_path / "lake"), tmp_path)
    with lakebed.connect(tmp_path / "lake") as lake:
        lake.create_table("t", SCHEMA, settings={"leaf_rows_max": 60_000})
    return shell


def test_a_first_import_of_skewed_keys_makes_even_leaves(shell: SparkShell, tmp_path: Path) -> None:
    keys = skewed_files(tmp_path / "input")
    run = shell.imported("t", str(tmp_path / "input"), "--job", "j")
    assert run.returncode == 0, run.stderr
    with lakebed.connect(tmp_path / "lake") as lake:
        assert lake.table("t").query().read_all().column("k").to_pylist() == keys
        leaves = leaves_of(lake)
        assert sum(leaves) == ROWS
        assert len(leaves) == 7
        assert max(leaves) <= 2 * ROWS / len(leaves)
        assert not lake.fsck(deep=True).findings


@pytest.mark.slow
def test_a_driver_that_is_killed_between_the_stages_has_split_nothing(
    shell: SparkShell, tmp_path: Path
) -> None:
    keys = skewed_files(tmp_path / "input", width=100)
    objects = tmp_path / "lake" / "objects"
    with shell.importing("t", str(tmp_path / "input"), "--job", "j") as process:
        wait_for(lambda: list(objects.rglob("files/*")), process)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    with lakebed.connect(tmp_path / "lake") as lake:
        assert leaves_of(lake) == [0]
    run = shell.imported("t", str(tmp_path / "input"), "--job", "j")
    assert run.returncode == 0, run.stderr
    with lakebed.connect(tmp_path / "lake") as lake:
        assert lake.table("t").query().read_all().column("k").to_pylist() == keys
        assert len(leaves_of(lake)) == 7
