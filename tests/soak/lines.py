"""Sizes that are taken again and again, and whether they rise."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

import msgspec

SHARE_MAX = 1.25
"""Of the median of the first half, that of the second half may be."""
SLACK: Mapping[str, float] = {
    "MiB": 16.0,
    "handles": 8.0,
    "files": 40.0,
    "entries": 300.0,
    "pages": 40.0,
    "messages": 20.0,
}
"""By unit: a rise that is smaller is no rise."""
MIB = 1 << 20


class Line(msgspec.Struct):
    """One size over time. unit: out of `SLACK`."""

    name: str
    unit: str
    values: list[float] = []

    def rises(self) -> bool:
        """Whether it is higher in the second half than in the first; the first value, of what had
        just begun, does not count."""
        settled = self.values[1:]
        if len(settled) < 2:
            return False
        middle = len(settled) // 2
        before, after = median(settled[:middle]), median(settled[middle:])
        return after > max(before * SHARE_MAX, before + SLACK[self.unit])


def memory_mib(process: int) -> float:
    """Return the resident memory of a process."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1_024
    return 0.0


def handles(process: int) -> float:
    """Return how many files a process has open."""
    return float(len(list(Path(f"/proc/{process}/fd").iterdir())))


def folder_mib(folder: Path) -> float:
    """Return the bytes of all files below a folder. Others may remove some meanwhile."""
    sizes = 0
    for path in folder.rglob("*"):
        try:
            sizes += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            continue
    return sizes / MIB


def folder_files(folder: Path) -> float:
    """Return how many files lie below a folder."""
    return float(sum(path.is_file() for path in folder.rglob("*")))


def table(lines: Sequence[Line]) -> str:
    """Return lines of text: a size in each, oldest value first."""
    return "\n".join(
        f"  {line.name:<24} {line.unit:<8} "
        + " ".join(f"{value:>8.1f}" for value in line.values)
        + ("  RISES" if line.rises() else "")
        for line in lines
    )
