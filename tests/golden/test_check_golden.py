"""A golden file that no longer fits says which of its lines changed."""

import re
from pathlib import Path

import pytest

from tests import golden
from tests.golden import check_golden


def test_a_failure_lists_the_lines_that_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(golden, "FOLDER", tmp_path)
    monkeypatch.setenv("LAKEBED_GOLDEN", "rewrite")
    check_golden("three.txt", "one\ntwo\nthree\n")
    monkeypatch.delenv("LAKEBED_GOLDEN")
    check_golden("three.txt", "one\ntwo\nthree\n")
    changed = "do this\n--- three.txt\n+++ three.txt\n@@ -2 +2 @@\n-two\n+2"
    with pytest.raises(AssertionError, match=re.escape(changed)):
        check_golden("three.txt", "one\n2\nthree\n", advice="do this")
    with pytest.raises(AssertionError, match="see `make golden`"):
        check_golden("three.txt", "one\n")
