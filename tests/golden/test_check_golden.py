"""A golden file that no longer fits says which of its lines changed; one that is kept stays."""

import re
from pathlib import Path

import pytest

from tests import golden
from tests.golden import KEPT, check_golden


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a folder of golden files, of which `old.txt` is kept."""
    (tmp_path / "old.txt").write_text("old\n", encoding="utf-8")
    (tmp_path / KEPT).write_text(f"{'0' * 64}  old.txt\n", encoding="utf-8")
    monkeypatch.setattr(golden, "FOLDER", tmp_path)
    return tmp_path


def test_a_failure_lists_the_lines_that_changed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEBED_GOLDEN", "rewrite")
    check_golden("three.txt", "one\ntwo\nthree\n")
    monkeypatch.delenv("LAKEBED_GOLDEN")
    check_golden("three.txt", "one\ntwo\nthree\n")
    changed = "do this\n--- three.txt\n+++ three.txt\n@@ -2 +2 @@\n-two\n+2"
    with pytest.raises(AssertionError, match=re.escape(changed)):
        check_golden("three.txt", "one\n2\nthree\n", advice="do this")
    with pytest.raises(AssertionError, match="see `make golden`"):
        check_golden("three.txt", "one\n")
    assert (folder / "three.txt").read_text(encoding="utf-8") == "one\ntwo\nthree\n"


def test_a_kept_file_is_not_rewritten(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEBED_GOLDEN", "rewrite")
    with pytest.raises(AssertionError, match="the file stays as it is"):
        check_golden("old.txt", "new\n")
    assert (folder / "old.txt").read_text(encoding="utf-8") == "old\n"
    check_golden("old.txt", "old\n")
