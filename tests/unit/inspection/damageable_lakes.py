"""What a damage needs of a lake, wherever it is kept."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Protocol


class DamageableLake(Protocol):
    """A lake with one table, about to be damaged behind its own back."""

    @property
    def cache(self) -> Path:
        """The state of the table that this machine keeps."""
        ...

    @property
    def spill(self) -> Path:
        """Where processes of this machine keep rows on their way."""
        ...

    def paths(self, part: str) -> list[str]:
        """Paths of the table's objects in a part of it: `files/`."""
        ...

    def read(self, path: str) -> bytes: ...

    def write(self, path: str, body: bytes) -> None: ...

    def remove(self, path: str) -> None: ...

    def entries(self) -> list[tuple[int, bytes]]:
        """Those entries of the log that still have a body."""
        ...

    def set_entry(self, number: int, body: bytes | None) -> None:
        """None: it goes."""
        ...

    def drop_log(self) -> None: ...

    def drop_name(self) -> None: ...

    def drop_cache(self) -> None: ...


class DamageableDirectory:
    """A lake in a directory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.spill = path / "spill"

    @property
    def cache(self) -> Path:
        return next(self.path.glob("cache/*.sqlite"))

    def paths(self, part: str) -> list[str]:
        root = self.path / "objects"
        found = root.glob(f"tables/*/{part}*")
        return sorted(file.relative_to(root).as_posix() for file in found)

    def read(self, path: str) -> bytes:
        return (self.path / "objects" / path).read_bytes()

    def write(self, path: str, body: bytes) -> None:
        file = self.path / "objects" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(body)

    def remove(self, path: str) -> None:
        (self.path / "objects" / path).unlink()

    def entries(self) -> list[tuple[int, bytes]]:
        with closing(sqlite3.connect(self._log())) as connection:
            found = connection.execute("SELECT number, body FROM entry ORDER BY number")
            return found.fetchall()

    def set_entry(self, number: int, body: bytes | None) -> None:
        with closing(sqlite3.connect(self._log())) as connection, connection:
            connection.execute("DELETE FROM entry WHERE number = ?", (number,))
            if body is not None:
                connection.execute("INSERT INTO entry VALUES (?, ?)", (number, body))

    def drop_log(self) -> None:
        for file in self.path.glob("logs/*"):
            file.unlink()

    def drop_name(self) -> None:
        with closing(sqlite3.connect(self.path / "tables.sqlite")) as connection, connection:
            assert connection.execute("DELETE FROM name").rowcount

    def drop_cache(self) -> None:
        shutil.rmtree(self.path / "cache")

    def _log(self) -> Path:
        return next(self.path.glob("logs/*.sqlite"))
