"""The list of breaks fits the tree: `make mutate` runs it, which takes minutes."""

import re

import pytest

from tests.mutations.breaks import Break, breaks
from tests.tidy.source import ROOT
from tests.tidy.test_map import FEED_ROWS, ROWS

BREAKS = breaks()
PROVEN: set[int | str] = {
    *(30, 31, 41, 43, 58, 59, 82, 84, 103, 104, 105, 113, 124, 125, 154, 156, 164),
    *("F38", "F39", "F99"),
}
"""Rows of docs/map.md whose proofs were too weak once."""


@pytest.mark.parametrize("one", BREAKS, ids=lambda one: one.says.replace(" ", "_"))
def test_a_break_fits_its_file_and_its_tests_are_there(one: Break) -> None:
    assert one.applied((ROOT / one.file).read_text("utf-8"))
    assert one.new != one.old
    assert one.names
    assert one.test_ids
    for test in one.test_ids:
        file, _, name = test.partition("::")
        assert re.search(rf"^def {name}\(", (ROOT / file).read_text("utf-8"), re.MULTILINE), test


def test_each_row_that_was_weakly_proven_has_a_break_and_names_a_test_of_it() -> None:
    assert {row for one in BREAKS for row in one.rows} >= PROVEN
    where: dict[int | str, str] = {int(number): told for number, _, _, told in ROWS}
    where |= {f"F{number}": told for number, _, _, told in FEED_ROWS}
    for row in PROVEN:
        files = {file for one in BREAKS if row in one.rows for file in one.tests}
        assert any(file in where[row] for file in files), f"row {row} names none of {files}"
