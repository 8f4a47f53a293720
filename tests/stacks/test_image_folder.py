"""What an image holds below /lakebed, by the steps of its Dockerfile but without Docker: tasks have
nothing to compile there, and nowhere to write. Where root runs the tests, they run as another user,
as in an image."""

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.image import first, make_lake
from lakebed.kernels.toolchain import processors
from tests.servers.image_folder import KERNELS_MIN, LOAD_ALL, build, instructions, private_umask
from tests.servers.nobody import as_nobody, give, may_be_nobody, unreadable

pytest.importorskip("numba")


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, str]]]:
    """Yields the folder of an image, in which nothing can be written, and its variables."""
    target = processors.baseline()
    if target is None or not target.supported():
        pytest.skip("images are not made for such a machine")
    folder = tmp_path_factory.mktemp("built") / "image"
    environment = build("compaction", folder)
    below = [folder, *folder.rglob("*")]
    for path in below:
        path.chmod(path.stat().st_mode & ~0o222)
    yield folder, environment
    for path in below:
        path.chmod(path.stat().st_mode | stat.S_IWUSR)


def everything(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in [folder, *folder.rglob("*")]}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_process_in_an_image_compiles_nothing(
    image: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    folder, environment = image
    before = everything(folder)
    done = subprocess.run(
        as_nobody([sys.executable, "-c", LOAD_ALL]),
        env={**environment, "HOME": "/nonexistent"},
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    where, count = done.stdout.split()
    assert Path(where).is_relative_to(folder)
    assert int(count) >= KERNELS_MIN
    make_lake(tmp_path / "lake", 1_000)
    give(tmp_path)
    told = first(
        tmp_path / "lake",
        environment,
        started_by=as_nobody([]),
        LAKEBED_KERNELS="always",
        LAKEBED_CACHE=str(tmp_path / "cache"),
    )
    assert told["merged_by_kernels"]
    assert not told["compiled"]
    assert everything(folder) == before
    ours = [p for p in folder.rglob("*.py") if p.stat().st_size]
    assert not [p for p in ours if not list(p.parent.glob(f"__pycache__/{p.stem}.*.pyc"))]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_process_in_an_image_cannot_write_there(image: tuple[Path, dict[str, str]]) -> None:
    folder, _ = image
    command = as_nobody(["find", str(folder), "-writable"])
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout == ""


@pytest.mark.parametrize("kind", ["compaction", "feeds", "ingest"])
def test_no_step_of_an_image_is_lost_on_the_next(kind: str) -> None:
    """What kernels are kept in is named before they are compiled; the user comes last."""
    steps = instructions(kind)
    names = [name for name, _ in steps]
    assert names[-2:] == ["USER", "ENTRYPOINT"]
    (named,) = (place for place, (name, rest) in enumerate(steps) if "KERNEL_CACHE=" in rest)
    (filled,) = (place for place, (name, rest) in enumerate(steps) if "filling" in rest)
    assert names[named] == "ENV"
    assert named < filled
    assert "--no-compile" not in dict(steps)["RUN"]
    assert os.sep not in steps[-2][1]


@pytest.mark.parametrize("kind", ["compaction", "feeds", "ingest"])
def test_an_image_made_on_a_machine_with_a_private_umask_can_be_read_by_its_user(
    kind: str, reachable: Path, tmp_path: Path
) -> None:
    folder, whole = reachable / "image", reachable / "whole"
    with private_umask(tmp_path / "contexts"):
        build(kind, folder, only="(no step)")
        build(kind, whole, only="chmod ")
    for made, is_private in ((folder, True), (whole, False)):
        refused = [path for path in [made, *made.rglob("*")] if not readable(path)]
        assert bool(refused) == is_private
        assert not may_be_nobody() or bool(unreadable(made)) == is_private
    names = [name for name, _ in instructions(kind)]
    (permits,) = (n for n, (_, rest) in enumerate(instructions(kind)) if rest.startswith("chmod "))
    assert permits > max(place for place, name in enumerate(names) if name == "COPY")


@pytest.fixture
def reachable() -> Iterator[Path]:
    """Yields a folder to which every user comes; those of pytest are their user's alone."""
    with tempfile.TemporaryDirectory(prefix="lakebed-image-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def readable(path: Path) -> bool:
    """Whether everybody may read a file, or enter and list a folder."""
    wanted = 0o005 if path.is_dir() else 0o004
    return path.stat().st_mode & wanted == wanted
