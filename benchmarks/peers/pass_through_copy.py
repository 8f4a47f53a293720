"""The least that copying can do: files are read and written as they are, and synced, by
blocks of a mebibyte: `pass_through_copy STORE`."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.inputs import files_in
from benchmarks.processes import run_measured

BLOCK_BYTES = 1 << 20


def main(store: str) -> None:
    root = Path(store)
    with (root / "copied").open("wb", buffering=0) as out:
        for file in files_in(root):
            with file.open("rb", buffering=0) as given:
                while block := given.read(BLOCK_BYTES):
                    out.write(block)
        os.fsync(out.fileno())


if __name__ == "__main__":
    run_measured(main)
