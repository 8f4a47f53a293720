import pytest

from lakebed.errors import InvalidError
from lakebed.model.names import TableId, TableName
from lakebed.ports.table_registry import TableEntry
from lakebed.tasks.watched_folders import (
    IN_A_DIRECTORY,
    WatchableFolders,
    check_alone,
    watchable_folders,
    watched_folder,
    watching_table,
)


def entry(name: str, watched: str = "") -> TableEntry:
    return TableEntry(id=TableId(f"id-{name}"), name=TableName(name), watched=watched)


ENTRIES = [
    entry("idle"),
    entry("all", "s3://landing/"),
    entry("trips", "s3://landing/trips/"),
    entry("late", "s3://landing/trips/late/"),
]


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        ("s3://landing", "s3://landing/"),
        ("s3://landing/", "s3://landing/"),
        ("s3://landing/trips", "s3://landing/trips/"),
        ("s3://landing/trips/2013/", "s3://landing/trips/2013/"),
        ("", ""),
    ],
)
def test_a_folder_is_kept_with_a_slash_at_its_end(text: str, folder: str) -> None:
    assert watched_folder(text) == folder


@pytest.mark.parametrize(
    "text",
    ["landing/trips", "/landing", "s3://", "s3:///trips/", "s3://landing//trips/", 7, None],
)
def test_what_is_no_folder_of_s3_is_refused_with_how_to_write_one(text: object) -> None:
    with pytest.raises(InvalidError, match=r"not a folder of S3.*s3://BUCKET/FOLDER/"):
        watched_folder(text)


def test_a_name_that_cannot_be_a_keys_is_refused() -> None:
    with pytest.raises(InvalidError, match="not a folder of S3"):
        watched_folder("s3://landing/a\nb/")
    with pytest.raises(InvalidError, match="too long"):
        watched_folder("s3://landing/" + "x" * 1_024)


@pytest.mark.parametrize(
    ("file", "table"),
    [
        ("s3://landing/a.csv", "all"),
        ("s3://landing/trips/a.csv", "trips"),
        ("s3://landing/trips-2013/a.csv", "all"),
        ("s3://landing/trips/late/a.csv", "late"),
        ("s3://landing/trips/late.csv", "trips"),
        ("s3://other/trips/a.csv", None),
        ("s3://landing/trips/", None),
        ("s3://landing/trips/2013/", None),
        ("s3://landing/trips/_SUCCESS", None),
        ("s3://landing/trips/_temporary/a.csv", None),
        ("s3://landing/trips/.a.csv.swp", None),
    ],
)
def test_a_file_is_that_of_the_nearest_folder(file: str, table: str | None) -> None:
    found = watching_table(file, ENTRIES)
    assert (None if found is None else found.name) == table


def test_a_folder_outside_the_sources_is_refused_with_where_it_may_lie() -> None:
    watchable = WatchableFolders(["s3://landing/trips", "s3://other"])
    for folder in ("", "s3://landing/trips/", "s3://landing/trips/late/", "s3://other/a/"):
        watchable.check(folder)
    for folder in ("s3://landing/", "s3://landing/trips-2013/", "s3://elsewhere/"):
        with pytest.raises(InvalidError, match="outside the allowed sources") as caught:
            watchable.check(folder)
        assert caught.value.facts["allowed"] == "s3://landing/trips/, s3://other/"


def test_who_is_told_of_no_files_says_why_and_what_to_do() -> None:
    with pytest.raises(InvalidError, match=r"a directory is not told of files.*feed"):
        IN_A_DIRECTORY.check("s3://landing/")
    with pytest.raises(InvalidError, match=r"not told of files.*stack `batching`"):
        watchable_folders(None).check("s3://landing/")
    with pytest.raises(InvalidError, match="allowed=none"):
        watchable_folders([]).check("s3://landing/")
    for watchable in (IN_A_DIRECTORY, watchable_folders(None), watchable_folders([])):
        watchable.check("")


def test_one_folder_is_one_tables() -> None:
    check_alone("s3://landing/trips/", TableId("id-trips"), ENTRIES)
    check_alone("s3://landing/trips/2013/", None, ENTRIES)
    check_alone("", None, ENTRIES)
    for table in (None, TableId("id-all")):
        with pytest.raises(InvalidError, match="another table watches this folder") as caught:
            check_alone("s3://landing/trips/", table, ENTRIES)
        assert caught.value.facts["table"] == "trips"
