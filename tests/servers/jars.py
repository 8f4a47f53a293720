"""Jars of servers: artifacts of Maven's, each with its locked hash.

Ivy, which Spark's wheel brings, fetches them once. A file `NAME.sha256` beside this one lists what
it fetched first.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

import pytest

from tests.tidy.source import ROOT

FETCH_SECONDS_MAX = 600


@dataclass(frozen=True)
class Jars:
    """What a server consists of. title: of the product. lock: the name of its file of hashes.
    artifact: organisation and module of the one that needs all the others."""

    title: str
    lock: str
    artifact: tuple[str, str]
    version: str

    @property
    def folder(self) -> Path:
        return ROOT / ".cache" / f"{self.lock}-{self.version}"

    @property
    def is_there(self) -> bool:
        """Whether Java is, and all jars are or can be fetched."""
        return bool(shutil.which("java")) and (bool(_hashes(self.folder)) or bool(_ivy()))

    def java(self) -> str:
        """Have Java, and all jars in the cache, exactly as they are locked; else skip, or fail in
        CI. Returns the command."""
        java = shutil.which("java")
        if java is None:
            self._skip("no Java")
        lines = Path(__file__).with_name(f"{self.lock}.sha256").read_text().splitlines()
        locked = dict(reversed(line.split()) for line in lines)
        if _hashes(self.folder) != locked:
            self._fetch(java, locked)
        return java

    def _fetch(self, java: str, locked: dict[str, str]) -> None:
        found = _ivy()
        if not found:
            self._skip("no Ivy, which the Spark of `make test-all` brings")
        self.folder.parent.mkdir(exist_ok=True)
        with TemporaryDirectory(dir=self.folder.parent) as new:
            command = [java, "-jar", str(found[-1]), "-m2compatible", "-cache", f"{new}/cache"]
            command += ["-confs", "default", "-dependency", *self.artifact, self.version]
            command += ["-retrieve", f"{new}/jars/[artifact]-[revision](-[classifier]).[ext]"]
            done = subprocess.run(
                command, capture_output=True, timeout=FETCH_SECONDS_MAX, check=False
            )
            if done.returncode:
                self._skip("its jars could not be fetched")
            fetched = _hashes(Path(new, "jars"))
            assert fetched == locked, "Maven gave other jars than those that are locked"
            shutil.rmtree(self.folder, ignore_errors=True)
            Path(new, "jars").rename(self.folder)

    def _skip(self, why: str) -> NoReturn:
        assert not os.environ.get("CI"), f"{self.title}: {why}"
        pytest.skip(f"{self.title}: {why}")


def _ivy() -> list[Path]:
    return sorted((ROOT / ".venv").glob("spark-*/pyspark/jars/ivy-*.jar"))


def _hashes(folder: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.jar")
    }
