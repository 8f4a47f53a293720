"""Packages that are installed for the time of a test, written by it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

Install = Callable[..., None]
"""Installs a package: its name, the text of its only module, which has the same name, and by the
group of entry points its names and what they mean."""


def installing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    def install(name: str, module: str, groups: Mapping[str, Mapping[str, str]]) -> None:
        site = folder / f"site-{name}"
        info = site / f"{name}-1.0.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (site / f"{name}.py").write_text(module, "utf-8")
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(entry_points_text(name, groups))
        monkeypatch.syspath_prepend(str(site))
        monkeypatch.delitem(sys.modules, name, raising=False)

    return install


def entry_points_text(module: str, groups: Mapping[str, Mapping[str, str]]) -> str:
    """Return what a package's `entry_points.txt` says."""
    lines = []
    for group, names in groups.items():
        lines += [f"[{group}]", *(f"{name} = {module}:{what}" for name, what in names.items())]
    return "\n".join(lines) + "\n"
