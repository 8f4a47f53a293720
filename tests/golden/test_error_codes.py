"""Errors keep the code, kind and exit code that programs of users look at."""

from lakebed.cli.error_explanations import explanations
from tests.golden import FOLDER


def test_every_error_keeps_its_code_kind_and_exit_code() -> None:
    """Each line of the file is a code, its kind and its exit code."""
    kept = set((FOLDER / "error_codes.txt").read_text(encoding="utf-8").splitlines())
    today = {f"{error.code} {error.kind} {error.exit_code}" for error in explanations()}
    assert kept - today == set(), (
        "users' programs know these: a code is never changed or taken away"
    )
    assert today - kept == set(), "add these lines to tests/golden/error_codes.txt"
