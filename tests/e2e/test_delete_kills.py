"""A delete by values whose process is killed between leaves, or with a claim, is completed."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import lakebed

SCHEMA = lakebed.schema_of(row_keys={"id": "int64"}, values={"n": "int64"})
ROWS = 4_000
KILLED = """
import os, signal, sys
import lakebed
from lakebed.deletes.rewrite_leaves import RewriteLeaves

path, step, left = sys.argv[1], sys.argv[2], int(sys.argv[3])
act = getattr(RewriteLeaves, step)

def killed(*given, **named):
    global left
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    return act(*given, **named)

setattr(RewriteLeaves, step, killed)
with lakebed.connect(path) as lake:
    lake.table("numbers").delete(where=lakebed.field("n") == 3)
"""


@pytest.mark.parametrize("step", ["_run_claimed", "_run", "_written"])
@pytest.mark.parametrize("left", [0, 1, 2])
def test_a_delete_that_was_killed_is_completed_by_the_same_again(
    tmp_path: Path, step: str, left: int
) -> None:
    path = tmp_path / "lake"
    with lakebed.connect(path) as lake:
        points = list(range(1_000, ROWS, 1_000))
        table = lake.create_table("numbers", SCHEMA, split_points=points)
        for first in (0, 1):
            table.ingest([{"id": n, "n": n % 7} for n in range(first, ROWS, 2)])
    command = [sys.executable, "-c", KILLED, str(path), step, str(left)]
    died = subprocess.run(command, check=False, timeout=300)
    assert died.returncode == -signal.SIGKILL
    with lakebed.connect(path) as lake:
        table = lake.table("numbers")
        wanted = [n for n in range(ROWS) if n % 7 != 3]
        assert table.count() > len(wanted)
        table.delete(where=lakebed.field("n") == 3)
        assert table.to_arrow()["id"].to_pylist() == wanted
        assert not table.state().jobs
        table.compact()
        assert table.count() == len(wanted)
        left_over = {finding.code for finding in lake.fsck(deep=True).findings}
        assert left_over <= {"object-pending"}  # what the killed process wrote
