"""What an image holds below /lakebed, made without Docker: the context of its Dockerfile, and what
the steps after its packages write there, run by this Python with the packages that are installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stacks.constructs import image_context as contexts
from stacks.constructs.image_context import image_context

INSIDE = "/lakebed"

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
"""Prints where our code is, and how many kernels were loaded without compiling one."""
KERNELS_MIN = 15


def instructions(kind: str) -> list[tuple[str, str]]:
    """Return what the Dockerfile of `containers/KIND` says: each instruction, and its rest."""
    text = (image_context(kind) / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in lines)]


def variables(kind: str, folder: Path) -> dict[str, str]:
    """Return the variables of an image's processes, were it in a folder."""
    words = [word for name, rest in instructions(kind) if name == "ENV" for word in rest.split()]
    told = dict(word.split("=", 1) for word in words)
    return {name: value.replace(INSIDE, str(folder)) for name, value in told.items()}


def build(kind: str, folder: Path, *, only: str = "") -> dict[str, str]:
    """Make the folder of an image. Returns the variables of processes that run from it.

    only: how a step begins, if no other is to be run.
    """
    shutil.copytree(image_context(kind), folder)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {"PATH": path, **variables(kind, folder)}
    for name, command in instructions(kind):
        if name == "RUN" and command.startswith(only) and not command.startswith("pip "):
            here = command.replace(INSIDE, str(folder))
            subprocess.run(["sh", "-ec", here], cwd=folder, env=environment, check=True)
    return environment


@contextmanager
def private_umask(cache: Path) -> Iterator[None]:
    """Let folders for images be made as on a machine with the umask 077. cache: where."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contexts, "CACHE", cache)
        image_context.cache_clear()
        before = os.umask(0o077)
        try:
            yield
        finally:
            os.umask(before)
            image_context.cache_clear()
