"""Arrow columns that end a process which trusts them: each is taken in or refused, in a process of
its own, so that a crash fails a test."""

import json
import subprocess
import sys

import pytest

from tests.unit.hostile_arrow import BROKEN, OTHER, WHOLE

Told = dict[str, dict[str, list[str]]]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    folder = tmp_path_factory.mktemp("hostile") / "lake"
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.hostile_arrow", str(folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["name"] for line in lines] == [*BROKEN, *OTHER, *WHOLE]
    return {line["name"]: line for line in lines}


@pytest.mark.parametrize("name", BROKEN)
def test_a_column_whose_bytes_lead_elsewhere_is_refused_whole_or_cut(told: Told, name: str) -> None:
    said = "a column's bytes are not what its type says (field=v "
    assert [text.startswith(said) for text in told[name]["refused"]] == [True] * 3
    assert told[name]["rows"] == []


@pytest.mark.parametrize("name", OTHER)
def test_a_layout_that_no_field_takes_is_refused(told: Told, name: str) -> None:
    assert len(told[name]["refused"]) == 3
    assert told[name]["rows"] == []


@pytest.mark.parametrize("name", WHOLE)
def test_unusual_layouts_are_taken_in_slices_of_them_too(told: Told, name: str) -> None:
    rows = WHOLE[name][1]().to_pylist()
    assert told[name]["refused"] == []
    assert sorted(told[name]["rows"]) == sorted(map(str, rows + rows[1:] + rows[1:2]))
