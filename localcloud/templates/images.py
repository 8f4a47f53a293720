"""Makes a folder of what an image would hold, from its Dockerfile, without Docker."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path, PurePosixPath

import msgspec

from lakebed.errors import InvalidError

IGNORED = ("FROM", "USER", "EXPOSE", "LABEL", "ARG", "STOPSIGNAL")
INSTALL = ("pip", "install")
COMPILERS = ("compileall", "lakebed.kernels.toolchain.filling")
"""Programs of Python that an image runs while it is built. What they would compile is compiled
here when it is first needed."""
PYTHONS = ("python", "python3")


class Image(msgspec.Struct, frozen=True):
    """An image, as a process of this machine runs it.

    folder: what it copies in.
    packages: pip installs some; those of this machine stand in.
    home: where the folder would be in the image.
    command: of Python: a script, or `-m` and a module, and arguments.
    """

    folder: Path
    home: str
    packages: bool
    environment: dict[str, str]
    command: tuple[str, ...]


def make_image(context: Path, dockerfile: str, folder: Path) -> Image:
    """Copy what a Dockerfile copies. folder: where to.

    Raises:
        InvalidError: an instruction for which nothing stands in, or no command of Python.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    home, packages = PurePosixPath("/"), False
    environment: dict[str, str] = {}
    commands: dict[str, tuple[str, ...]] = {}
    for word, rest in _instructions(context / dockerfile):
        match word:
            case "WORKDIR":
                home = PurePosixPath("/") / rest
            case "COPY":
                _copy(context, folder, rest)
            case "RUN" if tuple(shlex.split(rest)[:2]) == INSTALL:
                packages = True
            case "RUN" if _compiles(rest) or _permits(rest):
                pass
            case "ENV":
                environment |= dict(pair.split("=", 1) for pair in shlex.split(rest))
            case "CMD" | "ENTRYPOINT":
                commands[word] = _listed(context / dockerfile, rest)
            case _ if word not in IGNORED:
                hint = "teach it localcloud/templates/images.py"
                raise InvalidError(
                    "an image that cannot be made here",
                    instruction=word,
                    file=context / dockerfile,
                    hint=hint,
                )
    command = (*commands.get("ENTRYPOINT", ()), *commands.get("CMD", ()))
    return Image(folder, str(home), packages, environment, _of_python(context, command))


def python_command(image: Image, command: tuple[str, ...]) -> tuple[str, ...]:
    """Return what another command than the image's own lets Python run."""
    return _of_python(image.folder, command)


def _instructions(dockerfile: Path) -> list[tuple[str, str]]:
    found = []
    for line in dockerfile.read_text("utf-8").replace("\\\n", " ").splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            word, _, rest = line.strip().partition(" ")
            found.append((word.upper(), rest.strip()))
    return found


def _compiles(rest: str) -> bool:
    """Return whether a step does nothing but compile what is in the image."""
    match shlex.split(rest):
        case [python, "-m", module, *_]:
            return python in PYTHONS and module in COMPILERS and not set(rest) & set("&|;>")
    return False


def _permits(rest: str) -> bool:
    """Return whether a step does nothing but let everybody read what is in the image."""
    return shlex.split(rest)[:-1] == ["chmod", "-R", "a+rX"]


def _copy(context: Path, folder: Path, rest: str) -> None:
    """Copy one file or folder; where to is relative to the folder in which the command runs."""
    *sources, to = shlex.split(rest)
    for source in sources:
        what = context / source
        if PurePosixPath(to).is_absolute() or not what.exists():
            hint = "copy what is there, to a path below the WORKDIR"
            raise InvalidError("an image that cannot be made here", copies=rest, hint=hint)
        if what.is_dir():
            hidden = shutil.ignore_patterns("__pycache__", ".*", "cdk.out")
            shutil.copytree(what, folder / to, dirs_exist_ok=True, ignore=hidden)
        else:
            target = folder / to / what.name if to.endswith("/") else folder / to
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(what, target)


def _listed(dockerfile: Path, rest: str) -> tuple[str, ...]:
    try:
        return tuple(map(str, json.loads(rest)))
    except ValueError:
        hint = 'write it as a list: CMD ["python", "main.py"]'
        raise InvalidError(
            "an image that starts a shell", file=dockerfile, command=rest, hint=hint
        ) from None


def _of_python(folder: Path, command: tuple[str, ...]) -> tuple[str, ...]:
    if len(command) < 2 or command[0] not in PYTHONS:
        hint = 'let it run Python: CMD ["python", "main.py"]'
        raise InvalidError(
            "an image that does not run Python", image=folder, command=" ".join(command), hint=hint
        )
    return command[1:]
