"""Users' files by URL: which places are allowed, and what is said of files that are not there."""

from collections.abc import Iterator
from pathlib import Path

import obstore
import pytest
from obstore.exceptions import PermissionDeniedError

from lakebed.backends.aws import source_files
from lakebed.backends.aws.source_files import S3SourceFiles
from lakebed.backends.memory import VirtualClock
from lakebed.backends.system import system_random
from lakebed.errors import InvalidError
from lakebed.ingest.allowed_files import AllowedSources
from lakebed.ports.source_files import SourceFile, is_denied


@pytest.mark.parametrize("name", ["s3://b/in", "s3://b/in/", "s3://b/in/a.csv", "s3://c"])
def test_a_place_and_what_is_below_it_are_allowed(name: str) -> None:
    AllowedSources(["s3://b/in", "s3://c"]).check(name)


@pytest.mark.parametrize("name", ["s3://b", "s3://b/input", "s3://b/i", "s3://cc", "s3://"])
def test_what_only_begins_like_a_place_is_not(name: str) -> None:
    with pytest.raises(InvalidError, match="outside the allowed sources"):
        AllowedSources(["s3://b/in", "s3://c"]).check(name)


def denied(*_: object, **__: object) -> None:
    raise PermissionDeniedError("403 Forbidden")


def files_of(folder: Path) -> S3SourceFiles:
    return S3SourceFiles(
        folder,
        clock=VirtualClock(),
        rng=system_random(),
        config={"region": "eu-central-1", "access_key_id": "a", "secret_access_key": "b"},
    )


def test_a_file_that_s3_tells_nothing_of_is_named_as_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S3 answers 403, not 404, to who may not list the whole bucket."""

    monkeypatch.setattr(obstore, "head", denied)
    monkeypatch.setattr(source_files, "pages_of", lambda *_, **__: iter([]))
    with pytest.raises(InvalidError, match="no such file") as caught:
        files_of(tmp_path).find("s3://b/in/a.csv")
    assert "s3://b/in/a.csv" in str(caught.value)
    assert "that it may be read" in str(caught.value)
    assert not is_denied(caught.value)


@pytest.mark.parametrize(
    ("key", "folder"), [("in/a.csv", "in"), ("a.csv", ""), (".in/a.csv", ".in")]
)
def test_a_file_that_is_there_and_may_not_be_read_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, folder: str
) -> None:
    """As one that is encrypted by a key which these credentials may not use."""

    def pages_of(_: object, below: str, *__: object, after: str | None) -> Iterator[list[object]]:
        if below == folder:
            assert after == key[:-1], "a folder may have a million files before it"
            yield [{"path": key}, {"path": f"{key}.gz"}]

    monkeypatch.setattr(obstore, "head", denied)
    monkeypatch.setattr(source_files, "pages_of", pages_of)
    with pytest.raises(InvalidError, match="a file may not be read") as caught:
        files_of(tmp_path).find(f"s3://b/{key}")
    assert is_denied(caught.value)


def test_files_that_may_not_be_read_are_their_senders_to_mend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another try of the same message would not help: it is refused, and says what lacks."""
    for name in ("head", "list", "get"):
        monkeypatch.setattr(obstore, name, denied)
    files = files_of(tmp_path)
    with pytest.raises(InvalidError, match=r"may not be read.*s3://b/in.*s3:ListBucket"):
        files.find("s3://b/in/")
    seen = SourceFile("s3://b/in/a.csv", 3, "v")
    with (
        pytest.raises(InvalidError, match=r"may not be read.*s3://b/in/a.csv.*s3:GetObject"),
        files.on_disk(seen),
    ):
        pass
