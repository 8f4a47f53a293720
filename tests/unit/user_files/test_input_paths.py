import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from lakebed.backends.local.source_files import LocalSourceFiles
from lakebed.errors import InvalidError, UnreadableInputError
from lakebed.user_files import input_paths
from lakebed.user_files.input_files import expanded

Find = Callable[[Path], object]
WAYS = pytest.mark.parametrize(
    "find",
    [lambda path: expanded([path]), lambda path: LocalSourceFiles().find(str(path))],
    ids=["ingest", "message"],
)


def a_folder(path: Path) -> Path:
    path.mkdir()
    (path / "b.csv").write_text("id\n")
    (path / "_SUCCESS").write_text("")
    return path


def names(found: list[Path], folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in found]


def test_files_below_a_folder_come_by_name_and_links_to_folders_are_followed(
    tmp_path: Path,
) -> None:
    folder = a_folder(tmp_path / "in")
    a_folder(folder / "a")
    a_folder(folder / ".hidden")
    a_folder(tmp_path / "elsewhere")
    (folder / "z").symlink_to(tmp_path / "elsewhere")
    assert names(expanded([folder]), folder) == ["a/b.csv", "b.csv", "z/b.csv"]


@WAYS
def test_a_link_back_to_a_folder_above_is_refused(find: Find, tmp_path: Path) -> None:
    folder = a_folder(tmp_path / "in")
    a_folder(folder / "a")
    for name in ("one", "two"):
        (folder / "a" / name).symlink_to(folder)
    with pytest.raises(InvalidError, match="two paths lead to one folder"):
        find(folder)


@WAYS
def test_links_to_each_other_are_refused(find: Find, tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(UnreadableInputError, match=r"cannot access an input.*path="):
        find(tmp_path / "a")


@WAYS
def test_a_link_that_leads_nowhere_is_named(find: Find, tmp_path: Path) -> None:
    folder = a_folder(tmp_path / "in")
    (folder / "gone.csv").symlink_to(tmp_path / "gone")
    with pytest.raises(UnreadableInputError, match=r"leads nowhere.*gone\.csv"):
        find(folder)


@WAYS
@pytest.mark.parametrize("path", ["/", "/../", "//"])
def test_the_whole_file_system_is_refused(find: Find, path: str) -> None:
    with pytest.raises(InvalidError, match="the whole file system is not an input"):
        find(Path(path))


@WAYS
@pytest.mark.parametrize("inside", [False, True])
def test_pipes_and_sockets_are_refused_and_never_opened(
    find: Find, tmp_path: Path, inside: bool
) -> None:
    folder = a_folder(tmp_path / "in")
    pipe = folder / "rows.csv"
    os.mkfifo(pipe)
    with pytest.raises(InvalidError, match=r"a pipe is no file \(path=.*rows\.csv"):
        find(folder if inside else pipe)
    pipe.unlink()
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(pipe))
        with pytest.raises(InvalidError, match="a socket is no file"):
            find(folder if inside else pipe)


@WAYS
def test_devices_are_refused(find: Find) -> None:
    for name in ("/dev/zero", "/dev/null"):
        with pytest.raises(InvalidError, match=f"a device is no file .path={name}"):
            find(Path(name))


@WAYS
def test_a_folder_that_may_not_be_listed_is_named(
    find: Find, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = a_folder(tmp_path / "in")
    closed = a_folder(folder / "closed")
    scandir = os.scandir

    def denied(path: Path) -> object:
        if path == closed:  # who runs the tests may be allowed everything
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", denied)
    with pytest.raises(UnreadableInputError, match=r"path=.*closed reason=Permission denied"):
        find(folder)


@WAYS
def test_a_name_that_no_file_can_have_is_refused(find: Find) -> None:
    with pytest.raises(InvalidError):
        find(Path("a\0b.csv"))


def test_a_folder_of_too_many_files_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(input_paths, "ENTRIES_MAX", 3)
    folder = a_folder(tmp_path / "in")
    assert len(expanded([folder])) == 1
    for name in "cd":
        (folder / f"{name}.csv").write_text("id\n")
    with pytest.raises(InvalidError, match=r"too many files .*files_max=3"):
        expanded([folder])
