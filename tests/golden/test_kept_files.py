"""What older programs wrote keeps its bytes (H14)."""

from hashlib import sha256

import pytest

from lakebed.model.releases import THIS
from tests.golden import FOLDER, KEPT, kept_files

OF_TODAY = {KEPT, "deployment.txt", "every_change.txt", "log_listing.txt"}
"""What `make golden` may rewrite, and the list itself."""
MAY_BE_MADE_AGAIN = f"releases/{THIS.name}/"
"""The stored forms of a release that is in the making."""
MAY_GROW = {"error_codes.txt"}
"""What has lines added by hand; its own test holds those that are there."""


@pytest.mark.parametrize(("path", "digest"), kept_files().items())
def test_a_kept_file_has_its_bytes(path: str, digest: str) -> None:
    changed = f"tests/golden/{path} changed: take it back, `git checkout COMMIT -- PATH`"
    assert sha256((FOLDER / path).read_bytes()).hexdigest() == digest, changed


def test_every_file_that_is_not_rewritten_is_kept() -> None:
    paths = {
        path.relative_to(FOLDER).as_posix()
        for path in FOLDER.rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc")
    }
    old = {path for path in paths - OF_TODAY - MAY_GROW if not path.startswith(MAY_BE_MADE_AGAIN)}
    add = f"add what `sha256sum FILE` says in tests/golden to {KEPT}"
    assert old == set(kept_files()), add
