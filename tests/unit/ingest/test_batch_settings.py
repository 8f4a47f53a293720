"""Settings of batches: what is refused says what is allowed."""

import pytest

from lakebed.config.settings import check_batching, table_settings
from lakebed.errors import InvalidError


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("batch_seconds_max", -1),
        ("batch_seconds_max", 8 * 86_400),
        ("batch_files_min", 0),
        ("batch_files_max", 1_001),
        ("batch_bytes_min", -1),
        ("batch_bytes_max", 0),
        ("batch_target", "spark"),
    ],
)
def test_a_value_that_is_not_allowed_is_refused(name: str, value: object) -> None:
    with pytest.raises(InvalidError, match=name):
        table_settings({name: value})


@pytest.mark.parametrize(
    ("changes", "hint"),
    [
        ({"batch_files_min": 501}, "batch_files_min=500 or less"),
        ({"batch_files_max": 2, "batch_files_min": 3}, "batch_files_min=2 or less"),
        ({"batch_bytes_max": 5}, "batch_bytes_min=5 or less"),
    ],
)
def test_a_minimum_above_its_maximum_is_refused(changes: dict[str, object], hint: str) -> None:
    with pytest.raises(InvalidError, match=hint):
        check_batching(changes, table_settings(changes))


def test_other_changes_of_a_table_with_such_settings_are_allowed() -> None:
    before = table_settings({"batch_bytes_max": 5})
    check_batching({"leaf_rows_max": 10}, table_settings({"leaf_rows_max": 10}, before))
