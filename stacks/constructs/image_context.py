"""What an image is built from: a folder with exactly what its Dockerfile copies, of the library the
rooms that tasks need, put together without Docker. One commit gives one folder, wherever it is
made."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from stacks.constructs.python_bundle import ROOT
from stacks.constructs.rooms import files_in, rooms_of_image

CACHE = ROOT / ".cache" / "images"


@cache
def image_context(kind: str) -> Path:
    """Return the folder for the image of `containers/KIND`; its Dockerfile lies in it, too."""
    dockerfile = ROOT / "containers" / kind / "Dockerfile"
    files = {"Dockerfile": dockerfile}
    for source in _copied(dockerfile.read_text("utf-8")):
        for path in _files(source, kind):
            files[path.relative_to(ROOT).as_posix()] = path
    digest = hashlib.sha256()
    for name, path in sorted(files.items()):
        content = path.read_bytes()
        digest.update(b"%s %d\n" % (name.encode(), len(content)))
        digest.update(content)
    folder = CACHE / f"{kind}-{digest.hexdigest()[:16]}"
    if not folder.exists():
        _put_together(files, folder)
    return folder


def _copied(dockerfile: str) -> Iterator[str]:
    for line in dockerfile.splitlines():
        match line.split():
            case ["COPY", *sources, _]:
                yield from sources


def _files(source: str, kind: str) -> list[Path]:
    """Return what a COPY line means. Of the library: the rooms that tasks of a kind need."""
    return files_in(ROOT, rooms_of_image(kind) if source == "lakebed/" else (source,))


def _put_together(files: dict[str, Path], folder: Path) -> None:
    CACHE.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=CACHE) as scratch:
        made = Path(scratch) / "context"
        for name, path in files.items():
            to = made / name
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, to)
            to.chmod(0o644)
        try:
            made.rename(folder)
        except OSError:  # another process was first, with the same
            if not folder.exists():
                raise
