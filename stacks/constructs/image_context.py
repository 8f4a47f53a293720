"""Builds the folder that an image is built from: exactly what its Dockerfile copies, of the library
the rooms that tasks need, put together without Docker. One commit gives one folder, wherever it is
made."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from stacks.constructs.python_bundle import ROOT
from stacks.constructs.rooms import files_in, rooms_of_image
from stacks.constructs.wheels import Wheel

CACHE = ROOT / ".cache" / "images"
OF_USERS = "packages/"
BEHIND_OUR_CODE = "COPY containers/"
"""A line of each Dockerfile begins with it; packages are copied before the first of them."""


@cache
def image_context(kind: str, of_users: tuple[Wheel, ...] = ()) -> Path:
    """Return the folder for the image of `containers/KIND`; its Dockerfile lies in it, too.

    of_users: packages whose files the image holds beside our code.
    """
    dockerfile = (ROOT / "containers" / kind / "Dockerfile").read_text("utf-8")
    files = {
        path.relative_to(ROOT).as_posix(): path.read_bytes()
        for source in _copied(dockerfile)
        for path in _files(source, kind)
    }
    for wheel in of_users:
        files |= {f"{OF_USERS}{name}": content for name, content in wheel.files()}
    if of_users:
        dockerfile = _with_packages(dockerfile)
    files["Dockerfile"] = dockerfile.encode()
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(b"%s %d\n" % (name.encode(), len(content)))
        digest.update(content)
    folder = CACHE / f"{kind}-{digest.hexdigest()[:16]}"
    if not folder.exists():
        _put_together(files, folder)
    return folder


def requirements_of_images() -> set[Path]:
    """Return the files of `requirements` that some image installs."""
    dockerfiles = (ROOT / "containers").glob("*/Dockerfile")
    return {
        ROOT / file
        for dockerfile in dockerfiles
        for file in re.findall(r"-r (requirements/\S+)", dockerfile.read_text("utf-8"))
    }


def _copied(dockerfile: str) -> Iterator[str]:
    for line in dockerfile.splitlines():
        match line.split():
            case ["COPY", *sources, _]:
                yield from sources


def _files(source: str, kind: str) -> list[Path]:
    """Return what a COPY line means. Of the library: the rooms that tasks of a kind need."""
    return files_in(ROOT, rooms_of_image(kind) if source == "lakebed/" else (source,))


def _with_packages(dockerfile: str) -> str:
    """Return a Dockerfile that copies users' packages, too, beside our code and before it is
    compiled."""
    at = dockerfile.index(BEHIND_OUR_CODE)
    return f"{dockerfile[:at]}COPY {OF_USERS} ./\n{dockerfile[at:]}"


def _put_together(files: dict[str, bytes], folder: Path) -> None:
    CACHE.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=CACHE) as scratch:
        made = Path(scratch) / "context"
        for name, content in files.items():
            to = made / name
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(content)
            to.chmod(0o644)
        try:
            made.rename(folder)
        except OSError:  # another process was first, with the same
            if not folder.exists():
                raise
