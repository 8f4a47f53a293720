"""Open a table of a million files from its snapshot on AWS and answer: a process of its own, with
nothing on its disk. `amazon_open ROOT S3 AMAZON`: the folder, and URLs of the servers.

Prints JSON: seconds to the first answer, peak memory.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

BEGUN = time.perf_counter()  # before imports of ours: they are part of opening

from benchmarks.programs.state_open import peak_mib  # noqa: E402 - it counts
from benchmarks.servers.amazon_table import opened  # noqa: E402 - it counts
from benchmarks.servers.slow_amazon import SlowAmazon  # noqa: E402 - it counts
from benchmarks.servers.slow_s3 import SlowS3  # noqa: E402 - it counts
from lakebed.model.names import PartitionId  # noqa: E402 - it counts


def main(root: str, s3: str, amazon: str) -> None:
    folder = Path(root)
    leaves = json.loads((folder / "leaves.json").read_text())
    head = opened(folder, SlowS3(s3), SlowAmazon(amazon), cache="cold")
    with head.reading() as state:
        assert state.references(PartitionId(leaves[len(leaves) // 2]))
    print(json.dumps({"seconds": time.perf_counter() - BEGUN, "peak_mib": peak_mib()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
