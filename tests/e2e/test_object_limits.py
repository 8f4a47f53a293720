"""A lake over an S3 that keeps no object of more than 1 MiB: a merge beyond that ends, once."""

import logging
from pathlib import Path

import pytest

from lakebed.backends.memory.clock import VirtualClock
from lakebed.bootstrap.local import open_local
from lakebed.errors import LakebedError
from lakebed.lake import Lake
from lakebed.tasks.work_done import WorkDone
from tests.servers.fixtures import ministack  # noqa: F401 - it is a fixture
from tests.servers.s3 import S3Server
from tests.unit.compaction.test_rejected_jobs import DAYS, MIB, filled, rejections, told

PUT_AT_ONCE_MAX = MIB // 8
"""Files of the table are above it: they are uploaded in parts."""


def test_a_merge_whose_output_s3_does_not_take_is_told_once_and_smaller_leaves_lift_it(
    ministack: S3Server,  # noqa: F811 - the fixture
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    clock = VirtualClock()
    objects = ministack.store(
        ministack.new_prefix(),
        clock=clock,
        single_bytes_max=PUT_AT_ONCE_MAX,
        part_bytes_min=PUT_AT_ONCE_MAX,
        object_bytes_max=MIB,
    )
    with Lake(open_local(tmp_path / "lake", clock=clock, objects=objects)) as lake:
        table = filled(lake)
        before = list(objects.list(""))
        assert len(before) == 3
        with pytest.raises(LakebedError, match=r"an object is too large.*bytes_max=1048576"):
            lake.run()
        assert told(lake) == [("rejected", "object-too-large")]
        for _ in range(3):
            clock.advance(DAYS)
            assert lake.run() == WorkDone()
        assert rejections(caplog) == 1
        assert list(objects.list("")) == before
        assert table.query().read_all().num_rows == 180
        table.change_settings(leaf_bytes_max=MIB)
        for _ in range(5):
            clock.advance(1_000)
            lake.run()
        assert told(lake) == []
        found = lake.status("t")[0]
        assert found.leaves == found.files == 3
        assert table.query().read_all().num_rows == 180
