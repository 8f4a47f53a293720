"""Processes that help to merge: how they are started, and the program that they run."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

import msgspec
import pyarrow as pa

from lakebed.backends.local.object_store import LocalObjectStore
from lakebed.backends.system.clock import SystemClock
from lakebed.bootstrap.object_locations import ObjectsLocation, objects_for_process
from lakebed.sorted_files.merging.helper_processes import READY, MergeHelpers
from lakebed.sorted_files.merging.range_merger import RangeMerger, load_kernels

PROGRAM = f"""
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from {__name__} import main
main(*sys.argv[2:])
"""
"""Modules are found where the process that is helped finds them, in the same order."""


def merge_helpers(
    location: ObjectsLocation | None, scratch: Path, count: int
) -> MergeHelpers | None:
    """Return so many helpers, none of them started; None: no process but this finds the objects.

    scratch: a folder for what they merged, made when there is something.
    """
    is_python = Path(sys.executable or "").name.startswith("python")  # or a program that embeds it
    if location is None or count < 1 or not is_python:
        return None
    paths = json.dumps([path for path in sys.path if path])
    command = (sys.executable, "-c", PROGRAM, paths, _encoded(location), str(scratch))
    return MergeHelpers(command, open_scratch=partial(_scratch, scratch), count=count)


def main(location: str, scratch: str) -> None:
    """Answer lines until there are no more; then end at once, whatever is being merged."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever else is printed is no answer
    lines: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_read, args=[lines], daemon=True).start()
    pa.set_cpu_count(1)
    objects, _ = objects_for_process(msgspec.json.decode(location, type=ObjectsLocation))
    merger = RangeMerger(objects, _scratch(Path(scratch)))
    load_kernels()
    answers.write(READY + b"\n")
    answers.flush()
    while True:  # until `_read` ends the process
        answer = merger.answer(lines.get())
        if answer is not None:
            answers.write(answer + b"\n")
            answers.flush()


def _read(lines: SimpleQueue[bytes]) -> None:
    """Pass lines on. They end with the process that is helped, and with it the need to answer."""
    for line in sys.stdin.buffer:
        lines.put(line)
    os._exit(0)


def _encoded(location: ObjectsLocation) -> str:
    return msgspec.json.encode(location).decode()


def _scratch(folder: Path) -> LocalObjectStore:
    folder.mkdir(parents=True, exist_ok=True)
    return LocalObjectStore(folder, SystemClock(), durable=False)
