"""A target that cannot be written is refused before anything happens: no pin, no object."""

import errno
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from lakebed.backends.faulty.crash_plan import Crash, CrashPlan
from lakebed.backends.local import plain_objects
from lakebed.backends.local.object_store import LocalObjectWriter
from lakebed.backends.local.plain_objects import PlainLocalObjects
from lakebed.errors import DeniedError
from lakebed.exports.target import MANIFEST, PROBE, ExportTarget
from lakebed.ports.object_store import ObjectFacts
from tests.unit.exports.exported_lake import ExportedLake, exported_lake


@pytest.fixture
def made(tmp_path: Path) -> Iterator[ExportedLake]:
    with exported_lake(tmp_path) as one:
        yield one


class DeniedLate(PlainLocalObjects):
    """As S3: whether an object may be put shows when it is sent, which is when it is finished."""

    puts = deletes = True

    def create(self, path: str) -> LocalObjectWriter:
        writer = super().create(path)
        if not self.puts:
            writer.finish = refused  # type: ignore[method-assign]  # of this one
        return writer

    def delete(self, paths: Iterable[str]) -> None:
        if not self.deletes:
            refused()
        super().delete(paths)


def refused() -> ObjectFacts:
    raise DeniedError("the store refuses the credentials", permission="s3:PutObject")


def commits(made: ExportedLake) -> int:
    with made.table._opened.head.reading() as state:
        return state.head().number


def test_a_directory_that_the_user_may_not_write_is_refused(
    made: ExportedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests may run as root, who may write everywhere: the system's answer is made up."""
    before = commits(made)

    def denied(_root: Path, folder: Path, _known: set[Path]) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(folder))

    with monkeypatch.context() as patched:
        patched.setattr(plain_objects, "make_folders", denied)
        with pytest.raises(DeniedError, match="the file system denies it") as raised:
            made.export()
    assert str(made.folder) in str(raised.value)
    assert "let the user who runs this read and write there" in str(raised.value)
    assert (commits(made), made.pins(), made.names()) == (before, [], [])
    assert made.export().rows == len(made.table)


@pytest.mark.parametrize("denied", ["puts", "deletes"])
def test_a_bucket_whose_policy_denies_it_is_refused_before_a_version_is_pinned(
    made: ExportedLake, denied: str
) -> None:
    before = commits(made)
    objects = DeniedLate(made.folder, made.clock)
    setattr(objects, denied, False)
    target = ExportTarget(objects, "s3://bucket/folder", is_probed=True)
    with pytest.raises(DeniedError, match="refuses the credentials"):
        made.export(target)
    assert (commits(made), made.pins()) == (before, [])
    assert list(objects.list("")) == ([] if denied == "puts" else [PROBE])
    setattr(objects, denied, True)
    assert made.export(target).rows == len(made.table)
    assert set(objects.list("")) == {MANIFEST, *(file.name for file in made.files())}


@pytest.mark.parametrize("effect", [1, 2])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_while_it_is_tried_out_the_next_run_begins(
    made: ExportedLake, effect: int, moment: str
) -> None:
    crashes = CrashPlan(effect, moment)  # type: ignore[arg-type]  # one of two words
    with pytest.raises(Crash):
        made.export(made.target(crashes, is_probed=True))
    assert made.pins() == []
    made.export(made.target(is_probed=True))
    assert made.read().equals(made.table.to_arrow())
    assert PROBE not in made.names()
