"""A share of the plantings; `python -m benchmarks corruptions` plants 10,000."""

from pathlib import Path

import pytest

from tests.adversary.corrupted_lake import Whole, kind_of
from tests.adversary.corruptions import bad, plant, table_of

EACH = 50


@pytest.mark.parametrize("first", [1, 1_001, 2_001])
def test_damage_is_found_or_harmless_or_mended(first: int, tmp_path: Path) -> None:
    whole = Whole.made(tmp_path)
    planted = [plant(whole, tmp_path, seed) for seed in range(first, first + EACH)]
    assert not bad(planted), "\n" + table_of(planted)


def test_files_of_every_kind_are_damaged(tmp_path: Path) -> None:
    whole = Whole.made(tmp_path)
    kinds = {
        kind_of(path.relative_to(whole.crashed).as_posix())
        for path in whole.crashed.rglob("*")
        if path.is_file()
    }
    databases = {"log", "state", "queues", "jobs", "registry", "batches", "leases", "usage"}
    databases.add("definitions")
    assert kinds >= databases | {f"{one}-wal" for one in databases} | {"mark", "rows", "snapshot"}
