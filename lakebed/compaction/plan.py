"""Decides which files of a leaf become a job. Pure.

basic: every `job_files_max` files, oldest first. size_ratio (as Accumulo and Sleeper do): a group
of files of which the largest holds no more rows than the others together divided by `size_ratio`,
so that a row is rewritten a logarithmic number of times.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from lakebed.config.settings import TableSettings
from lakebed.model.files import FileReference
from lakebed.model.names import FileName

FAN_IN_MAX = 500


def plan_compactions(
    files: Sequence[FileReference], settings: TableSettings, *, everything: bool = False
) -> list[tuple[FileName, ...]]:
    """Return groups of at least two files of one leaf, each to become a job.

    files: those that no job has claimed.
    everything: all files, until the leaf has one.
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
    file_groups = _by_size_ratio(files, settings.size_ratio, fan_in)
    if behind and not file_groups:  # no ratio holds; but ingest waits until there are fewer files
        ascending = sorted(files, key=lambda f: (f.rows, f.file.name))
        return [tuple(f.file.name for f in ascending[: max(2, min(fan_in, len(files) // 2))])]
    return file_groups


def _by_size_ratio(
    files: Sequence[FileReference], ratio: int, fan_in: int
) -> list[tuple[FileName, ...]]:
    """Return groups in which the ratio holds, smallest first; the files left over make none.

    From the largest file down: the files just below it are the largest that it can be grouped with,
    so if the ratio does not hold with them, it holds in no group of which it is the largest. One
    pass over sums from the smallest on, whatever the number of files.
    """
    ascending = sorted(files, key=lambda f: (f.rows, f.file.name))
    below = list(accumulate((f.rows for f in ascending), initial=0))
    file_groups: list[tuple[FileName, ...]] = []
    end = len(ascending)
    while end > 1:
        begin = max(0, end - fan_in)
        if below[end - 1] - below[begin] >= ratio * ascending[end - 1].rows:
            file_groups.append(tuple(f.file.name for f in ascending[begin:end]))
            end = begin
        else:
            end -= 1
    return file_groups[::-1]


def _chunks(names: Sequence[FileName], size: int) -> list[tuple[FileName, ...]]:
    return [tuple(names[at : at + size]) for at in range(0, len(names), size)]
