"""Lakebed as it is installed: its wheel, unpacked."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from tests.tidy.source import ROOT

PACKAGES = ("lakebed", "spark_jobs")
_BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


def installed(folder: Path) -> Path:
    """Return a new folder, for `PYTHONPATH`, with what the wheel of these sources holds. They are
    copied first: the build writes beside them."""
    sources = folder / "sources"
    for name in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, sources / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, sources / name)
    subprocess.run(
        [sys.executable, "-c", _BUILD, str(folder)], cwd=sources, capture_output=True, check=True
    )
    (wheel,) = folder.glob("*.whl")
    unpacked = folder / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(unpacked)
    return unpacked
