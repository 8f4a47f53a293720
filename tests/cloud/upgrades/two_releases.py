"""Two releases of one instance: older ones come from the history of this repository."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Set as AbstractSet
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from localcloud.templates.synthesis import synthesize
from tests.cloud.conftest import ROOT
from tests.cloud.instance import INSTANCE, SOURCES

BEFORE_COMMIT = "af298b8a2236c0b0dcb081518e35174b15a31f49"
"""The last one of the release before: no release is tagged yet. It reads and writes log entries of
format 4 and states of layout 2."""
UNGATED_COMMIT = "e8523751b4abec05177cf0ff945c0a67ca032676"
"""The last one that took what a newer release wrote for a mistake of who asked for it."""
STACK = "aws:cloudformation:stack"
SETTINGS = {"instance": INSTANCE, "architecture": "machine", "sources": SOURCES}
"""Of all releases."""
TABLE = "moved"
CREATE = ("--at", INSTANCE, "table", "create", TABLE)
CREATE += ("--row-key", "id:string", "--sort-key", "at:int64", "--value", "text:string?")
CREATE += ("--set", "leaf_rows_max=100")
"""The table of `tests.dsl.table_rows`, with small leaves."""


def has_history() -> bool:
    """Whether older releases can be taken from here: a download has no history, and a shallow clone
    not all of it."""
    command = ["git", "cat-file", "-e", f"{UNGATED_COMMIT}^{{commit}}"]
    try:
        return not subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode
    except FileNotFoundError:
        return False


NEEDS_HISTORY = pytest.mark.skipif(
    not has_history(), reason="no history: a download, or a shallow clone"
)


def release_of(commit: str, folder: Path) -> Path:
    """Write the project as it was. Returns its folder."""
    command = ["git", "archive", "--format=tar", commit]
    archive = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    return folder


def command_of(project: Path, *arguments: str) -> str:
    """Return what the command of a release answers."""
    done = subprocess.run(
        [sys.executable, "-c", "from lakebed.cli.main import main; main()", *arguments],
        env={**os.environ, "PYTHONPATH": str(project), "LAKEBED_CACHE": f"{project}/cache"},
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stderr
    return done.stdout


def synthesized(project: Path, folder: Path) -> Path:
    """Return the assembly of a release, as both are deployed."""
    synthesize(project, folder, SETTINGS)
    return folder


def stacks_of(assembly: Path) -> dict[str, dict[str, Any]]:
    """Return the stacks of an assembly by the ids that both releases give them."""
    artifacts = json.loads((assembly / "manifest.json").read_text())["artifacts"]
    return {id_: one for id_, one in artifacts.items() if one["type"] == STACK}


def with_needed(assembly: Path, wanted: AbstractSet[str]) -> set[str]:
    """Return stacks with all that they depend on: what `cdk deploy` of them deploys."""
    stacks, found = stacks_of(assembly), set[str]()
    waiting = list(wanted)
    while waiting:
        id_ = waiting.pop()
        if id_ in stacks and id_ not in found:
            found.add(id_)
            waiting += stacks[id_].get("dependencies", [])
    return found


def mixed(before: Path, after: Path, upgraded: AbstractSet[str], folder: Path) -> Path:
    """Return an assembly of which some stacks are those of the release after; all others are as the
    release before has them. Stacks that only one release has are there with it."""
    folder.mkdir()
    artifacts = {}
    for release, is_after in ((before, False), (after, True)):
        for path in release.glob("asset.*"):
            (folder / path.name).exists() or (folder / path.name).symlink_to(path)
        for id_, artifact in stacks_of(release).items():
            if (id_ in upgraded) == is_after:
                template = artifact["properties"]["templateFile"]
                for name in (template, template.replace(".template.", ".assets.")):
                    (folder / name).symlink_to(release / name)
                artifacts[id_] = artifact
    for artifact in artifacts.values():
        needed = artifact.get("dependencies", [])
        artifact["dependencies"] = [id_ for id_ in needed if id_ in artifacts]
    (folder / "manifest.json").write_text(json.dumps({"artifacts": artifacts}))
    return folder
