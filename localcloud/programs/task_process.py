"""Runs what a task's image runs, in a process that sees its image's files, and the packages of this
machine where the image installs some.

Run by `shifted_time`, with the folder of the image, how far ahead the clock is, and a script of the
folder, or `-m` and a module, and their arguments.
"""

from __future__ import annotations

import runpy
import sys


def main() -> None:
    """Run it as Python would."""
    _, folder, ahead, *command = sys.argv
    sys.modules["shifted_time"].shift(float(ahead))
    sys.path.insert(0, folder)
    if command[0] == "-m":
        sys.argv = command[1:]
        runpy.run_module(command[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = command
        runpy.run_path(f"{folder}/{command[0]}", run_name="__main__")


if __name__ == "__main__":
    main()
