"""Which files of a leaf become a job: pure decisions.

basic: every `job_files_max` files, oldest first. size_ratio (as Accumulo and Sleeper do): a group
of files of which the largest holds no more rows than the others together divided by `size_ratio`,
so that a row is rewritten a logarithmic number of times.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakebed.config.settings import TableSettings
from lakebed.model.files import FileReference
from lakebed.model.names import FileName

FAN_IN_MAX = 500


def plan_compactions(
    files: Sequence[FileReference], settings: TableSettings, *, everything: bool = False
) -> list[tuple[FileName, ...]]:
    """Return groups of at least two files of one leaf, each to become a job.

    files: those that no job has claimed. everything: all files, until the leaf has one.
    """
    fan_in = settings.job_files_max
    behind = len(files) >= settings.leaf_files_max
    if behind:  # merge more at once
        fan_in = max(fan_in, min(FAN_IN_MAX, len(files)))
    if everything:
        return [g for g in _chunks([f.file.name for f in files], FAN_IN_MAX) if len(g) > 1]
    if settings.compaction_strategy == "basic":
        oldest = sorted(files, key=lambda f: f.file.name)
        return [g for g in _chunks([f.file.name for f in oldest], fan_in) if len(g) == fan_in]
    groups = _by_size_ratio(files, settings.size_ratio, fan_in)
    if behind and not groups:  # no ratio holds; but ingest waits until there are fewer files
        ascending = sorted(files, key=lambda f: (f.rows, f.file.name))
        return [tuple(f.file.name for f in ascending[: max(2, min(fan_in, len(files) // 2))])]
    return groups


def _by_size_ratio(
    files: Sequence[FileReference], ratio: int, fan_in: int
) -> list[tuple[FileName, ...]]:
    """Leave the largest files out until the ratio holds; cut the rest into jobs in which it
    holds."""
    ascending = sorted(files, key=lambda f: (f.rows, f.file.name))
    while len(ascending) > 1 and not _holds(ascending, ratio):
        ascending.pop()
    chunks = (ascending[at : at + fan_in] for at in range(0, len(ascending), fan_in))
    return [tuple(f.file.name for f in c) for c in chunks if len(c) > 1 and _holds(c, ratio)]


def _holds(ascending: Sequence[FileReference], ratio: int) -> bool:
    return sum(f.rows for f in ascending[:-1]) >= ratio * ascending[-1].rows


def _chunks(names: Sequence[FileName], size: int) -> list[tuple[FileName, ...]]:
    return [tuple(names[at : at + size]) for at in range(0, len(names), size)]
