"""What holds of users' files, wherever they lie."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lakebed.backends.aws.source_files import S3SourceFiles
from lakebed.backends.local.source_files import LocalSourceFiles
from lakebed.backends.system import SystemClock, system_random
from lakebed.errors import InvalidError, UnreadableInputError
from lakebed.ports.source_files import SourceFiles
from tests.servers.s3 import BUCKET, QUICK, S3Server


class Landing:
    """A folder of users' files. root: its name."""

    def __init__(self, root: str, files: SourceFiles, put: Callable[[str, bytes], object]) -> None:
        self.root = root
        self.files = files
        self.put = put

    def names(self, below: str) -> list[str]:
        found = self.files.find(f"{self.root}/{below}")
        return [file.name.removeprefix(f"{self.root}/") for file in found]


@pytest.fixture(params=["local", "ministack"])
def landing(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Landing]:
    if request.param == "local":

        def put(name: str, body: bytes) -> None:
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body)

        yield Landing(str(tmp_path), LocalSourceFiles(), put)
        return
    server: S3Server = request.getfixturevalue("ministack")
    prefix = server.new_prefix()
    files = S3SourceFiles(
        tmp_path,
        clock=SystemClock(),
        rng=system_random(),
        patience=QUICK,
        config={
            "endpoint": server.url,
            "access_key_id": "test",
            "secret_access_key": server.secret,
            "region": "us-east-1",
        },
    )
    with closing(server.clients()) as clients:
        yield Landing(
            f"s3://{BUCKET}/{prefix}",
            files,
            lambda name, body: clients.s3.put_object(
                Bucket=BUCKET, Key=f"{prefix}/{name}", Body=body
            ),
        )


def test_a_file_is_found_and_read_as_it_is(landing: Landing) -> None:
    landing.put("a.csv", b"id\n1\n")
    (file,) = landing.files.find(f"{landing.root}/a.csv")
    assert (file.name, file.size) == (f"{landing.root}/a.csv", 5)
    with landing.files.on_disk(file) as path:
        assert path.read_bytes() == b"id\n1\n"
        assert path.suffix == ".csv"


def test_some_bytes_of_a_file_are_where_they_belong(landing: Landing) -> None:
    body = bytes(range(256)) * 1_000
    landing.put("a.parquet", body)
    (file,) = landing.files.find(f"{landing.root}/a.parquet")
    spans = ((10, 300), (100_000, 100_001), (255_990, 256_000))
    with landing.files.on_disk(file, spans) as path:
        found = path.read_bytes()
    assert len(found) == len(body)
    assert all(found[begin:end] == body[begin:end] for begin, end in spans)
    landing.put("a.parquet", b"other")
    with pytest.raises(UnreadableInputError), landing.files.on_disk(file, spans):
        pass


def test_a_folder_means_all_files_below_but_those_of_hidden_names(landing: Landing) -> None:
    wanted = ["day/a.csv", "day/b/c.csv"]
    for name in (*wanted, "day/_SUCCESS", "day/.x.csv", "day/_tmp/d.csv", "days.csv", "day2/e.csv"):
        landing.put(name, b"x")
    assert sorted(landing.names("day/")) == wanted
    assert sorted(landing.names("day")) == wanted


@pytest.mark.parametrize("name", ["missing.csv", "missing/", "hidden/"])
def test_nothing_there_is_refused_by_name(landing: Landing, name: str) -> None:
    landing.put("hidden/_a.csv", b"x")
    with pytest.raises(InvalidError) as caught:
        landing.files.find(f"{landing.root}/{name}")
    assert name in str(caught.value)


def test_a_file_that_is_changed_or_gone_is_not_read_as_what_it_was(landing: Landing) -> None:
    landing.put("a.csv", b"first")
    (file,) = landing.files.find(f"{landing.root}/a.csv")
    landing.put("a.csv", b"something else")
    with pytest.raises(UnreadableInputError, match=r"a\.csv"), landing.files.on_disk(file):
        pytest.fail("it was changed")


def test_nothing_of_a_file_stays_behind(landing: Landing, tmp_path: Path) -> None:
    landing.put("a.csv", b"x")
    (file,) = landing.files.find(f"{landing.root}/a.csv")
    before = sorted(tmp_path.rglob("*"))
    with landing.files.on_disk(file):
        pass
    assert sorted(tmp_path.rglob("*")) == before
