"""A disk so small that it can be filled: a file system in memory where this user may mount one,
else a folder, which is not filled."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SIZE_MIB = 512
SHARED_MEMORY = Path("/dev/shm")
BALLAST_PIECE = bytes(1 << 20)


class SmallDisk:
    """folder: where it is. fillable: whether it is a file system of its own."""

    def __init__(self, folder: Path, *, fillable: bool) -> None:
        self.folder = folder
        self.fillable = fillable

    def fill(self) -> None:
        """Take all room that is left."""
        with self._ballast.open("ab", buffering=0) as file:
            piece = BALLAST_PIECE
            while piece:
                try:
                    file.write(piece)
                except OSError:
                    piece = piece[: len(piece) // 2]

    def free(self) -> None:
        """Give it back."""
        self._ballast.unlink(missing_ok=True)

    @property
    def _ballast(self) -> Path:
        return self.folder / "ballast"


@contextmanager
def small_disk() -> Iterator[SmallDisk]:
    parent = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="lakebed-adversary-", dir=parent) as name:
        folder = Path(name)
        mounted = _said_yes("mount", "-t", "tmpfs", "-o", f"size={SIZE_MIB}m", "tmpfs", name)
        try:
            yield SmallDisk(folder, fillable=mounted)
        finally:
            if mounted:
                _said_yes("umount", "--lazy", name)


def _said_yes(*command: str) -> bool:
    try:
        return subprocess.run(command, check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False
