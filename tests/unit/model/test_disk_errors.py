import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from lakebed.errors import DeniedError, LakebedError, StorageFullError, UnavailableError
from lakebed.model.disk_errors import meaning_of, translated


@pytest.mark.parametrize(
    ("number", "kind", "says"),
    [
        (errno.ENOSPC, StorageFullError, "free space"),
        (errno.EDQUOT, StorageFullError, "free space"),
        (errno.EACCES, DeniedError, "path=/a/b why=Denied"),
        (errno.EPERM, DeniedError, "let the user who runs this"),
        (errno.EROFS, DeniedError, "let the user who runs this"),
        (errno.EMFILE, UnavailableError, "ulimit -n"),
        (errno.ENFILE, UnavailableError, "ulimit -n"),
        (errno.EIO, UnavailableError, "refused"),
    ],
)
def test_an_error_of_the_system_says_what_to_do(
    number: int, kind: type[LakebedError], says: str
) -> None:
    found = meaning_of(OSError(number, "Denied", "/a/b"), "spilling rows")
    assert type(found) is kind
    assert found.facts["doing"] == "spilling rows"
    assert found.facts["path"] == "/a/b"
    assert says in str(found)


def test_other_errors_go_through(tmp_path: Path) -> None:
    def fails(error: Exception) -> Callable[[], None]:
        def act() -> None:
            with translated("reading"):
                raise error

        return act

    with pytest.raises(UnavailableError, match=r"doing=reading path=.*gone"):
        fails(FileNotFoundError(errno.ENOENT, "gone", str(tmp_path / "gone")))()
    with pytest.raises(ValueError, match="no number"):
        fails(ValueError("no number"))()
