"""Templates as every machine makes them, and the command that prints one.

`python -m tests.stacks.normalised_templates STACK` prints what a stack's digest in
`tests/golden/deployment.txt` is the digest of.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.stacks.conftest import Templates, synthesized

ASSET = re.compile(r"\b[0-9a-f]{64}\.(zip|py)\b")
HIDDEN = "..."
"""Stands for what differs from one machine or commit to another."""
DIGEST_DIGITS = 16


def of_any_machine(templates: Templates) -> Templates:
    """Return templates without what a machine and a commit make of what runs."""
    found: Templates = json.loads(ASSET.sub(r"ASSET.\1", json.dumps(templates)))
    for properties in _properties(found, "AWS::Lambda::Function"):
        properties["Code"]["S3Key"] = properties["Runtime"] = HIDDEN
        properties["Architectures"] = [HIDDEN]
    for properties in _properties(found, "AWS::ECS::TaskDefinition"):
        properties["RuntimePlatform"]["CpuArchitecture"] = HIDDEN
        (container,) = properties["ContainerDefinitions"]
        container["Image"] = HIDDEN
    for properties in _properties(found, "AWS::EMRServerless::Application"):
        properties["Architecture"] = HIDDEN
    for properties in _properties(found, "AWS::IAM::Role"):  # in the order of names, hashes too
        for statement in properties["Policies"][0]["PolicyDocument"]["Statement"]:
            if isinstance(statement["Resource"], list):
                statement["Resource"].sort(key=json.dumps)
    return found


def _properties(templates: Templates, type_: str) -> Iterator[dict[str, Any]]:
    for template in templates.values():
        for resource in template["Resources"].values():
            if resource["Type"] == type_:
                yield resource["Properties"]


def template_text(template: dict[str, Any]) -> str:
    """Return a normalised template as text of many lines, the same for the same template."""
    return json.dumps(template, indent=1, sort_keys=True) + "\n"


def digest(template: dict[str, Any]) -> str:
    """Return what another template will not have."""
    return hashlib.sha256(template_text(template).encode()).hexdigest()[:DIGEST_DIGITS]


def main(arguments: Sequence[str]) -> int:
    """Print the normalised template of each stack that is named, or of all."""
    parser = argparse.ArgumentParser(prog="python -m tests.stacks.normalised_templates")
    parser.add_argument("stacks", nargs="*", metavar="STACK", help="committer, data, ...; or all")
    wanted = parser.parse_args(arguments).stacks
    with tempfile.TemporaryDirectory() as folder:
        templates = of_any_machine(synthesized(Path(folder)))
    if unknown := sorted(set(wanted) - set(templates)):
        parser.error(f"no stack is called {', '.join(unknown)}: use {', '.join(sorted(templates))}")
    for stack in wanted or sorted(templates):
        sys.stdout.write(template_text({stack: templates[stack]}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
