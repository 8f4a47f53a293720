"""Programs that run as the user of a task's image: where a test runs as root, modes of files would
refuse it nothing."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

USER = 65_534
_SETPRIV = ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups")
_MAY_READ = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
_UNREADABLE = ("(", "!", "-readable", "-o", "-type", "d", "!", "-executable", ")")


def may_be_nobody() -> bool:
    """Whether a test can run programs as that user: it is root, on Linux."""
    return os.geteuid() == 0 and shutil.which("setpriv") is not None


def as_nobody(command: Sequence[str]) -> list[str]:
    """Return a command that runs another as that user, if a test can.

    It may write only where everybody may. It reads everything, because the Python of these tests
    may lie in a home directory.
    """
    return [*_SETPRIV, *_MAY_READ, *command] if may_be_nobody() else list(command)


def give(folder: Path) -> None:
    """Make that user the owner of what is in a folder, if a test can."""
    for path in [folder, *folder.rglob("*")] if may_be_nobody() else []:
        os.chown(path, USER, USER)


def unreadable(folder: Path) -> list[str]:
    """Return what that user cannot read or list below a folder."""
    command = [*_SETPRIV, "find", str(folder), *_UNREADABLE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()
