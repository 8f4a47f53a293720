"""What an image holds below /lakebed, made without Docker: the context of its Dockerfile, and what
the steps after its packages write there, run by this Python with the packages that are installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from stacks.constructs.image_context import image_context

INSIDE = "/lakebed"


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
