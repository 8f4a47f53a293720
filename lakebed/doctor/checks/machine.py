"""This machine: does it have what a lake needs?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from lakebed.doctor.check import Check, Cure, Sign
from lakebed.doctor.patient import Patient
from lakebed.errors import LakebedError

PYTHON_MIN = (3, 11)
PYARROW_MIN, PYARROW_BELOW = (23,), (27,)
SQLITE_MIN = (3, 37)
"""The first with STRICT tables."""
FREE_BYTES_MIN, FREE_SHARE_MIN = 1 << 30, 0.05
FILES_FREE_MIN = 10_000
SYNC_SECONDS_MAX = 1.0
"""Most seconds to sync one small file: each commit of a lake in a directory takes a few."""
MEMORY_BYTES_MIN = 1 << 30
OPEN_FILES_MIN = 256
"""Fewest open files that a process may have: below it fewer than sixteen tables are open at
once."""
CLOCK_SECONDS_MAX = 60.0
"""S3 refuses requests whose time is a quarter of an hour off."""
GIB = 1 << 30

of_this_machine = partial(Check, section="this machine")


def _python(patient: Patient) -> Iterator[Sign]:
    version = patient.machine.python()
    if version[:2] < PYTHON_MIN:
        yield Sign(about=f"Python {_dotted(version)}; {_dotted(PYTHON_MIN)} is the oldest")


def _pyarrow(patient: Patient) -> Iterator[Sign]:
    found = patient.machine.versions().get("pyarrow", "")
    if not PYARROW_MIN <= _numbers(found) < PYARROW_BELOW:
        bounds = f"{_dotted(PYARROW_MIN)} or later, below {_dotted(PYARROW_BELOW)}"
        yield Sign(about=f"pyarrow {found or 'is not installed'}; it must be {bounds}")


def _sqlite(patient: Patient) -> Iterator[Sign]:
    found = patient.machine.versions().get("sqlite", "")
    if _numbers(found) < SQLITE_MIN:
        yield Sign(about=f"SQLite {found or 'is not there'}; {_dotted(SQLITE_MIN)} is the oldest")


def _aws_packages(patient: Patient) -> Iterator[Sign]:
    found = patient.machine.versions()
    for name in ("boto3", "obstore"):
        if name not in found:
            yield Sign(about=f"{name} is not installed")


def _kernels(patient: Patient) -> Iterator[Sign]:
    if "numba" not in patient.machine.versions():
        yield Sign(about="numba is not installed")


def _disk(patient: Patient) -> Iterator[Sign]:
    for room in patient.machine.rooms():
        if room.free < max(FREE_BYTES_MIN, room.size * FREE_SHARE_MIN):
            free, size = room.free / GIB, room.size / GIB
            yield Sign(about=f"{free:.1f} of {size:.1f} GiB are free in {room.path}")


def _files(patient: Patient) -> Iterator[Sign]:
    for room in patient.machine.rooms():
        if room.files_free is not None and room.files_free < FILES_FREE_MIN:
            yield Sign(about=f"{room.path} takes {room.files_free:,} more files")


def _network_folders(patient: Patient) -> Iterator[Sign]:
    for folder in patient.machine.network_folders():
        yield Sign(about=folder)


def _unwritable(patient: Patient) -> Iterator[Sign]:
    try:
        patient.machine.write_a_file()
    except LakebedError as error:
        yield Sign(about=str(error))


def _slow_disk(patient: Patient) -> Iterator[Sign]:
    seconds = patient.machine.write_a_file()
    if seconds > SYNC_SECONDS_MAX:
        yield Sign(about=f"a small file took {seconds:.1f} s")


def _memory(patient: Patient) -> Iterator[Sign]:
    found = patient.machine.memory_bytes()
    if found < MEMORY_BYTES_MIN:
        yield Sign(about=f"{found / GIB:.2f} GiB")


def _open_files(patient: Patient) -> Iterator[Sign]:
    found = patient.machine.files_max()
    if found is not None and found < OPEN_FILES_MIN:
        yield Sign(about=f"{found} files at once")


def _clock(patient: Patient) -> Iterator[Sign]:
    ahead = patient.machine.clock_ahead_seconds()
    if ahead is not None and abs(ahead) > CLOCK_SECONDS_MAX:
        side = "ahead of" if ahead > 0 else "behind"
        yield Sign(about=f"{abs(ahead):,.0f} s {side} the store's")


def _leftovers(patient: Patient) -> Iterator[Sign]:
    for left in patient.machine.leftovers():
        cure = Cure(
            does="remove what dead processes left on this machine",
            act=patient.machine.sweep_leftovers,
        )
        yield Sign(about=left, cure=cure)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


MACHINE_CHECKS = (
    of_this_machine(
        id="python-old",
        found_when="Python is older than Lakebed is tested with",
        cure="install Python 3.11 or later, and Lakebed with it",
        look=_python,
    ),
    of_this_machine(
        id="pyarrow-other",
        found_when="pyarrow is missing, or of a release that Lakebed is not tested with",
        cure="`pip install 'pyarrow>=23,<27'`",
        look=_pyarrow,
    ),
    of_this_machine(
        id="sqlite-old",
        found_when="SQLite is older than the tables that states are kept in",
        cure="use a Python that is built with SQLite 3.37 or later",
        look=_sqlite,
    ),
    of_this_machine(
        id="aws-packages-missing",
        found_when="packages are missing that a lake on AWS is reached by",
        cure="`pip install 'lakebed[aws]'`",
        of="an instance",
        look=_aws_packages,
    ),
    of_this_machine(
        id="kernels-missing",
        found_when="merges and sorts run without compiled loops, several times slower",
        cure="`pip install 'lakebed[fast]'`; leave it where this machine only looks",
        look=_kernels,
    ),
    of_this_machine(
        id="disk-nearly-full",
        found_when="less than 1 GiB, or a twentieth, is free where the lake keeps things here",
        cure="free space, or move the folder; of an instance, name another in `LAKEBED_CACHE`",
        look=_disk,
    ),
    of_this_machine(
        id="files-nearly-out",
        found_when="the file system takes fewer than 10,000 more files",
        cure="remove small files there, or use a file system with more inodes",
        look=_files,
    ),
    of_this_machine(
        id="folder-on-network",
        found_when="a folder of the lake lies on another machine: locks and syncs fail there",
        cure="move it to a local disk; objects alone may lie in a bucket",
        look=_network_folders,
    ),
    of_this_machine(
        id="folder-takes-no-file",
        found_when="no file can be written where the lake keeps things here",
        cure="give the user who runs this the folder; is the disk full, or read-only?",
        look=_unwritable,
    ),
    of_this_machine(
        id="disk-slow",
        found_when="writing a small file for good takes more than a second",
        cure="look what else writes to this disk; a commit waits several times as long",
        look=_slow_disk,
    ),
    of_this_machine(
        id="memory-small",
        found_when="this process may use less than 1 GiB of memory",
        cure="raise the limit of the container or machine; merges are refused without it",
        look=_memory,
    ),
    of_this_machine(
        id="open-files-few",
        found_when="this process may have fewer than 256 files open",
        cure="`ulimit -n 4096` before the program starts",
        look=_open_files,
    ),
    of_this_machine(
        id="clock-wrong",
        found_when="this machine's clock is more than a minute off the store's",
        cure="let the machine follow a time server (`timedatectl set-ntp true`)",
        look=_clock,
    ),
    of_this_machine(
        id="leftovers",
        found_when="processes that died left rows or uploads here",
        cure="`lakebed run` sweeps them, and so does `--fix`",
        look=_leftovers,
    ),
)
