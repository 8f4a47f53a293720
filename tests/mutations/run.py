"""`make mutate`: make each break in a copy of the tree, and see the tests that are named fail.

A break that no test sees is a survivor: then the proof is too weak, and the exit code is 1.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue

from tests.mutations.breaks import Break, breaks
from tests.tidy.source import ROOT

COPIES = 2
"""Breaks that are tried at the same time, each in a copy of its own."""

SECONDS_MAX = 300
FAILED = re.compile(r"^(?:FAILED|ERROR) ([^\s\[]+)", re.MULTILINE)
NO_DEPLOYMENT = "not deployed]"
"""Stories are told in this process only: to deploy each break takes a minute."""
HEADINGS = ("of", "break", "seen by", "seconds")


@dataclass
class Copy:
    """A copy of the tree. Each write has a newer time than the one before, so that no compiled
    module outlives its source."""

    folder: Path
    writes: int = field(default=0)

    def write(self, file: str, text: str) -> None:
        path = self.folder / file
        path.write_text(text, "utf-8")
        self.writes += 1
        at = time.time() + 2 * self.writes
        os.utime(path, (at, at))

    def failed(self, tests: list[str]) -> set[str]:
        """Run tests; return which failed."""
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "--tb=no",
            "-rfE",
            "-p",
            "no:cacheprovider",
            "-k",
            NO_DEPLOYMENT,
        ]
        environment = os.environ | {"PYTHONPATH": str(self.folder)}
        done = subprocess.run(
            [*command, *tests],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
        if done.returncode not in {0, 1}:
            raise RuntimeError(f"pytest ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return set(FAILED.findall(done.stdout))


@dataclass(frozen=True)
class Tried:
    """What became of a break. unseen_by: tests that passed with it."""

    what: Break
    unseen_by: list[str]
    seconds: float


def try_break(what: Break, copies: SimpleQueue[Copy]) -> Tried:
    """Make a break in a copy that is free, run its tests, take it back."""
    copy, began = copies.get(), time.monotonic()
    try:
        whole = (ROOT / what.file).read_text("utf-8")
        copy.write(what.file, what.applied(whole))
        try:
            failed = copy.failed(what.test_ids)
        finally:
            copy.write(what.file, whole)
    finally:
        copies.put(copy)
    unseen_by = [test for test in what.test_ids if test not in failed]
    return Tried(what, unseen_by, time.monotonic() - began)


def main() -> int:
    """Try all breaks, or those of the rows and rules that are named; print a table."""
    asked = set(sys.argv[1:])
    wanted = [one for one in breaks() if not asked or asked & set(one.names)]
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="lakebed-mutations-") as folder:
        copies: SimpleQueue[Copy] = SimpleQueue()
        made = [Copy(copied(Path(folder) / str(n))) for n in range(COPIES)]
        every = sorted({test for one in wanted for test in one.test_ids})
        if failed := made[0].failed(every):
            say("\n  ".join(["these fail without a break:", *sorted(failed)]))
            return 1
        for copy in made:
            copies.put(copy)
        with ThreadPoolExecutor(COPIES) as pool:
            tried = list(pool.map(lambda one: try_break(one, copies), wanted))
    say(table(tried))
    survivors = [one for one in tried if one.unseen_by]
    seconds = round(time.monotonic() - began)
    say(f"\n{len(tried)} breaks, {len(survivors)} not seen, {seconds} s")
    for one in survivors:
        what = f"\nnot seen: {one.what.says} ({one.what.file})"
        say("\n  passed: ".join([what, *one.unseen_by]))
    return 1 if survivors else 0


def say(text: str) -> None:
    """Write a line, or several."""
    sys.stdout.write(f"{text}\n")


def copied(folder: Path) -> Path:
    """Copy the files of the tree that git knows, and new ones that it does not ignore."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        source, target = ROOT / name, folder / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    return folder


def table(tried: list[Tried]) -> str:
    """Return a line for each break."""
    lines = [HEADINGS]
    for one in tried:
        seen = len(one.what.test_ids) - len(one.unseen_by)
        by = f"{seen} of {len(one.what.test_ids)}" + (" SURVIVED" if one.unseen_by else "")
        lines.append((", ".join(one.what.names), one.what.says, by, f"{one.seconds:.1f}"))
    widths = [max(len(line[n]) for line in lines) for n in range(len(HEADINGS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


if __name__ == "__main__":
    sys.exit(main())
