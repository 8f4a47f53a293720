"""Guards of data stay where `python -O` drops every `assert`."""

import json
import subprocess
import sys
from pathlib import Path


def test_guards_of_data_stay_without_asserts(tmp_path: Path) -> None:
    (tmp_path / "order").mkdir()
    done = subprocess.run(
        [sys.executable, "-O", "-m", "tests.unit.optimised", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told.pop("debug") == "False"
    assert told.pop("day") == "[1, 1, 2, 2]"
    assert {name: said.partition(":")[0] for name, said in told.items()} == {
        "base": "AssertionError",
        "log": "CorruptError",
        "order": "AssertionError",
        "sequence": "AssertionError",
        "tree": "AssertionError",
    }
