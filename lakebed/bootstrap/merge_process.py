"""Processes that help to merge: how they are started, and the program that they run."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

import msgspec
import pyarrow as pa

from lakebed.backends.local.object_store import LocalObjectStore
from lakebed.backends.system.clock import SystemClock
from lakebed.bootstrap.object_places import ObjectsPlace, objects_for_process
from lakebed.sorted_files.merge_helpers import READY, Command, MergeHelpers
from lakebed.sorted_files.range_merger import RangeMerger, load_kernels

PATHS = "PYTHONPATH"


def merge_helpers(place: ObjectsPlace | None, scratch: Path, count: int) -> MergeHelpers | None:
    """Return so many helpers, none of them started; None: no process but this finds the objects.

    scratch: a folder for what they merged, made when there is something.
    """
    if place is None or count < 1 or not sys.executable:
        return None
    words = (sys.executable, "-P", "-m", __name__, _encoded(place), str(scratch))
    package = str(Path(__file__).parents[2])
    paths = os.pathsep.join([package, *filter(None, [os.environ.get(PATHS)])])
    command = Command(words, {**os.environ, PATHS: paths})
    return MergeHelpers(command, open_scratch=partial(_scratch, scratch), count=count)


def main(place: str, scratch: str) -> None:
    """Answer lines until there are no more."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever else is printed is no answer
    pa.set_cpu_count(1)
    objects, _ = objects_for_process(msgspec.json.decode(place, type=ObjectsPlace))
    merger = RangeMerger(objects, _scratch(Path(scratch)))
    load_kernels()
    answers.write(READY + b"\n")
    answers.flush()
    for line in sys.stdin.buffer:
        answer = merger.answer(line)
        if answer is not None:
            answers.write(answer + b"\n")
            answers.flush()


def _encoded(place: ObjectsPlace) -> str:
    return msgspec.json.encode(place).decode()


def _scratch(folder: Path) -> LocalObjectStore:
    folder.mkdir(parents=True, exist_ok=True)
    return LocalObjectStore(folder, SystemClock(), durable=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
