"""The synthesized assembly, as `cdk synth` leaves it: stacks in their order, and their assets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from lakebed.errors import InvalidError

STACK, NOT_DEPLOYED = "aws:cloudformation:stack", ("cdk:asset-manifest", "cdk:tree")
HINT = "synthesize again: `python -m localcloud up INSTANCE`, or `cdk synth`"


class Template(msgspec.Struct, frozen=True):
    """One stack.

    assets: folders and files that its resources name, by their hash.
    """

    stack: str
    resources: dict[str, dict[str, Any]]
    outputs: dict[str, dict[str, Any]]
    conditions: dict[str, Any]
    parameters: dict[str, dict[str, Any]]
    assets: Mapping[str, Path]
    dockerfiles: Mapping[str, str]
    """Dockerfiles of assets that are images: relative to their folder."""


def read_assembly(folder: Path) -> list[Template]:
    """Return the stacks of an assembly, each after those that it depends on.

    Raises:
        InvalidError: there is none, or it holds what is not known here.
    """
    artifacts: dict[str, Any] = _json(folder / "manifest.json").get("artifacts", {})
    found: list[Template] = []
    done: set[str] = set()

    def visit(id_: str) -> None:
        if id_ in done:
            return
        done.add(id_)
        artifact = artifacts[id_]
        for needed in artifact.get("dependencies", []):
            visit(needed)
        if artifact["type"] == STACK:
            found.append(_template(folder, artifact["properties"]))
        elif artifact["type"].startswith("cdk:cloud-assembly") or "stack" in artifact["type"]:
            what = artifact["type"]
            raise InvalidError("an assembly with stages", artifact=id_, type=what, hint=HINT)

    for id_ in artifacts:
        visit(id_)
    if not found:
        raise InvalidError("an assembly without stacks", folder=folder, hint=HINT)
    return found


def _template(folder: Path, properties: Mapping[str, Any]) -> Template:
    body = _json(folder / properties["templateFile"])
    manifest = folder / properties["templateFile"].replace(".template.json", ".assets.json")
    assets: dict[str, Path] = {}
    dockerfiles: dict[str, str] = {}
    if manifest.exists():
        decoded = _json(manifest)
        for kind, key in (("files", "path"), ("dockerImages", "directory")):
            for hash_, asset in decoded.get(kind, {}).items():
                if key in asset["source"]:
                    assets[hash_] = folder / asset["source"][key]
                    dockerfiles[hash_] = asset["source"].get("dockerFile", "Dockerfile")
    return Template(
        properties["stackName"],
        body.get("Resources", {}),
        body.get("Outputs", {}),
        body.get("Conditions", {}),
        body.get("Parameters", {}),
        assets,
        dockerfiles,
    )


def _json(path: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except FileNotFoundError:
        raise InvalidError("not a synthesized assembly", missing=path, hint=HINT) from None
    except msgspec.DecodeError as error:
        raise InvalidError("not a synthesized assembly", file=path, why=error, hint=HINT) from None
