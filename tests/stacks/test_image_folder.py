"""What an image holds below /lakebed, by the steps of its Dockerfile but without Docker: tasks have
nothing to compile there, and nowhere to write."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.image import first, make_lake
from lakebed.kernels.toolchain import processors
from stacks.constructs import image_context
from tests.servers.image_folder import build, instructions

pytest.importorskip("numba")

LOAD_ALL = """
import importlib, pkgutil, sys
sys.modules["lakebed.kernels.toolchain.building"] = None  # compiling fails
import lakebed.kernels
from lakebed.kernels.toolchain.compiling import cache_directories
from lakebed.kernels.toolchain.native import load
found = []
names = {one.name for one in pkgutil.iter_modules(lakebed.kernels.__path__)}
for name in sorted(names - {"toolchain", "zstd"}):  # which hold none
    module = importlib.import_module(f"lakebed.kernels.{name}")
    wrapped = [getattr(value, "__wrapped__", None) for value in vars(module).values()]
    functions = [one for one in wrapped if isinstance(one, type(load))]
    found += [one for one in functions if one.__module__ == module.__name__]
for function in found:
    load(function, cache_directories())
print(lakebed.kernels.__file__, len(found))
"""
KERNELS_MIN = 15


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
        [sys.executable, "-c", LOAD_ALL],
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
    told = first(tmp_path / "lake", environment, LAKEBED_KERNELS="always")
    assert told["merged_by_kernels"]
    assert not told["compiled"]
    assert everything(folder) == before
    ours = [p for p in folder.rglob("*.py") if p.stat().st_size]
    assert not [p for p in ours if not list(p.parent.glob(f"__pycache__/{p.stem}.*.pyc"))]


@pytest.mark.parametrize("kind", ["compaction", "ingest"])
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


@pytest.mark.parametrize("kind", ["compaction", "ingest"])
def test_an_image_made_on_a_machine_with_a_private_umask_can_be_read_by_its_user(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_context, "CACHE", tmp_path / "contexts")
    image_context.image_context.cache_clear()
    before = os.umask(0o077)
    try:
        folder = tmp_path / "image"
        build(kind, folder, only="(no step)")
        below = [folder, *folder.rglob("*")]
        assert [path for path in below if not readable(path)], "the umask counts here"
        build(kind, tmp_path / "whole", only="chmod ")
    finally:
        os.umask(before)
        image_context.image_context.cache_clear()
    assert not [
        p for p in [tmp_path / "whole", *(tmp_path / "whole").rglob("*")] if not readable(p)
    ]
    names = [name for name, _ in instructions(kind)]
    (permits,) = (n for n, (_, rest) in enumerate(instructions(kind)) if rest.startswith("chmod "))
    assert permits > max(place for place, name in enumerate(names) if name == "COPY")


def readable(path: Path) -> bool:
    """Whether everybody may read a file, or enter and list a folder."""
    wanted = 0o005 if path.is_dir() else 0o004
    return path.stat().st_mode & wanted == wanted
