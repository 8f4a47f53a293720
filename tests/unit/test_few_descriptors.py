"""A process that may open no more files is told so; nothing is half made, and the same again
works when there is room."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.few_descriptors import FREE, ROWS


@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors in /proc")
def test_without_descriptors_work_is_unavailable_and_done_once_when_there_are_some(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.few_descriptors", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    raised = {(t["work"], t["raised"]) for t in told if t.get("raised")}
    assert {error for _, error in raised} == {"UnavailableError"}
    assert {"connect", "create", "ingest", "query"} <= {name for name, _ in raised}
    assert [t["rows"] for t in told if "rows" in t] == [2 * ROWS] * len(FREE)
