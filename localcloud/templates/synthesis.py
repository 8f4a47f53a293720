"""Synthesizes an instance for this machine, by the program that `cdk` runs, in its own process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from lakebed.errors import InvalidError

PROGRAM, SETTINGS = "app.py", "cdk.json"
SAID_CHARACTERS_MAX = 2_000


def synthesize(project: Path, outdir: Path, context: Mapping[str, object]) -> None:
    """Write the assembly of a project to a folder. context: beside what its cdk.json says.

    Raises:
        InvalidError: the folder is no such project, or its program refuses: what it says is told.
    """
    program = project / PROGRAM
    if not program.exists():
        hint = f"run it where {PROGRAM} lies, or name what was synthesized: --assembly cdk.out"
        raise InvalidError("nothing to synthesize here", missing=program, hint=hint)
    written = msgspec.json.decode((project / SETTINGS).read_bytes(), type=dict[str, object])
    own = written.get("context")
    whole = {**(own if isinstance(own, dict) else {}), **context}
    done = subprocess.run(  # noqa: S603 - the user's own program
        [sys.executable, program.name],
        cwd=project,
        env={
            **os.environ,
            "CDK_OUTDIR": str(outdir.resolve()),
            "CDK_CONTEXT_JSON": msgspec.json.encode(whole).decode(),
            "PYTHONPATH": os.pathsep.join(filter(None, [".", os.environ.get("PYTHONPATH")])),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        said = done.stdout.strip()[-SAID_CHARACTERS_MAX:]
        hint = "what deploying needs: requirements/deploy.txt"
        raise InvalidError("synthesis failed", says=said, hint=hint)
