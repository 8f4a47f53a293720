"""What several of these tests want."""

import pytest

from lakebed.sorted_files.format import row_groups
from lakebed.sorted_files.merging import file_merge, parallel_merge, stretches
from lakebed.sorted_files.sorting import engines
from lakebed.sorted_files.writing import writer_options


@pytest.fixture
def small_pages_and_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "COMPILED_ROWS_MIN", 0)
    monkeypatch.setattr(writer_options, "PAGE_ROWS_MIN", 8)
    monkeypatch.setattr(writer_options, "PAGE_ROWS_MAX", 8)
    monkeypatch.setattr(file_merge, "HELPED_ROW_GROUPS_MIN", 2)
    monkeypatch.setattr(parallel_merge, "RANGE_ROW_GROUPS_MAX", 2)
    monkeypatch.setattr(row_groups, "ROW_GROUP_ROWS_MAX", 200)
    monkeypatch.setattr(stretches, "ROW_GROUP_ROWS_MAX", 200)
