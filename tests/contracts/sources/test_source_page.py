"""The adaptor that the page shows is short, and passes the kit."""

import re
from pathlib import Path
from typing import Any

import pytest

from lakebed.source_kit import CHECKS, Check, checks
from tests.tidy.source import ROOT

PAGE = ROOT / "docs" / "change" / "source.md"
ADAPTOR, TRIAL = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
LINES_MAX = 50
SKIPPED = {
    checks.a_lost_connection_passes_no_record_over,
    checks.a_position_that_is_gone_is_an_error_with_both_ends,
    checks.what_is_made_anew_is_another_source_split,
}


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    held: dict[str, Any] = {"__name__": "page"}
    exec(compile(ADAPTOR + TRIAL, str(PAGE), "exec"), held)
    return held


def test_an_adaptor_is_short() -> None:
    lines = [line for line in ADAPTOR.splitlines() if line.strip()]
    assert len(lines) <= LINES_MAX


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_adaptor_of_the_page_passes_the_kit(
    page: dict[str, Any], check: Check, tmp_path: Path
) -> None:
    if check in SKIPPED:
        with pytest.raises(pytest.skip.Exception):
            page["test_the_outbox_keeps_its_promises"](check, tmp_path)
    else:
        page["test_the_outbox_keeps_its_promises"](check, tmp_path)
