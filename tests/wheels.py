"""Wheels as a builder of packages makes them, without one and without a network."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path

from tests.unit.packages_of_tests import entry_points_text

Steps = Mapping[str, Mapping[str, str]]


def build_wheel(
    folder: Path,
    name: str,
    module: str,
    steps: Steps | None = None,
    *,
    version: str = "1.0",
    tag: str = "py3-none-any",
    needs: tuple[str, ...] = (),
    more: Mapping[str, bytes] | None = None,
) -> Path:
    """Write the wheel of a package with one module, of the package's name.

    steps: entry points, by group: names, and what they are in the module. needs: `Requires-Dist`.
    more: other files of it.
    """
    info = f"{name}-{version}.dist-info"
    required = "".join(f"Requires-Dist: {one}\n" for one in needs)
    files = {
        f"{name}.py": module.encode(),
        f"{info}/METADATA": (
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{required}\nAbout it.\n"
        ).encode(),
        f"{info}/WHEEL": (
            f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n"
        ).encode(),
        **(more or {}),
    }
    if steps:
        files[f"{info}/entry_points.txt"] = entry_points_text(name, steps).encode()
    lines = [f"{path},sha256={_digest(content)},{len(content)}" for path, content in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*lines, f"{info}/RECORD,,"]).encode()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for where, content in files.items():
            archive.writestr(where, content)
    return path


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
