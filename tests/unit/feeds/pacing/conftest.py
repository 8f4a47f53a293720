"""What tests of policies are given."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import lakebed
from tests.unit.feeds.pacing.fed_under_policy import SCHEMA, Fed, Making


@pytest.fixture
def fed(tmp_path: Path) -> Iterator[Making]:
    made: list[Fed] = []

    def make(policy: str, more: str = "", schema: lakebed.Schema = SCHEMA) -> Fed:
        made.append(Fed(tmp_path / str(len(made)), policy, more, schema))
        return made[-1]

    yield make
    for one in made:
        one.pipeline.close()
        one.lake.close()
