"""A process that may open few files works on more tables than it can have open."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(120)

FILES_MAX, TABLES = 128, 40
WORK = """
import resource, sys
files_max = int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_NOFILE, (files_max, files_max))
import lakebed, pyarrow
schema = lakebed.schema_of(row_keys={"id": "int64"})
names = [f"t{number}" for number in range(int(sys.argv[2]))]
with lakebed.connect(sys.argv[1]) as lake:
    tables = [lake.create_table(name, schema) for name in names]
    for number, table in enumerate(tables):
        table.ingest(pyarrow.table({"id": [number]}))
    for number, table in enumerate(tables):
        assert table.query().read_all().column("id").to_pylist() == [number]
    assert len(lake.fsck().findings) == 0
print(len(names))
"""


def test_a_process_has_more_tables_than_it_may_open_files(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WORK, str(tmp_path / "lake"), str(TABLES), str(FILES_MAX)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.stderr, done.stdout) == ("", f"{TABLES}\n")
