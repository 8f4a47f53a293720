"""Where the time goes: as `feed_ours`, and by part: `feed_parts LAKE SERVERS OUT`.

OUT: gets processor seconds by part, of the thread that does the work; what other threads take,
librdkafka's and Arrow's, is a part of its own.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.processes import run_measured
from benchmarks.programs import feed_ours
from lakebed.backends.kafka.kafka_source import KafkaReader
from lakebed.decoding.engines import PlainDecoder
from lakebed.feeds.commit_round import CommitRound
from lakebed.feeds.decode_records import DecodeRecords
from lakebed.ingest.stage_rows import StageRows

PARTS: list[tuple[str, type, str]] = [
    ("read", KafkaReader, "read"),
    ("decode", PlainDecoder, "decode"),
    ("rows", DecodeRecords, "__call__"),
    ("stage", StageRows, "run"),
    ("round", CommitRound, "run"),
]


def main(lake: str, servers: str, out: str) -> None:
    seconds = {name: 0.0 for name, _, _ in PARTS}
    for name, owner, method in PARTS:
        setattr(owner, method, _timed(name, getattr(owner, method), seconds))
    whole, thread = time.process_time(), time.thread_time()
    feed_ours.main(lake, servers)
    thread = time.thread_time() - thread
    seconds["threads"] = time.process_time() - whole - thread
    seconds["round"] -= seconds["rows"] + seconds["stage"]
    seconds["rows"] -= seconds["decode"]
    seconds["rest"] = thread - sum(seconds[name] for name, _, _ in PARTS)
    Path(out).write_text(json.dumps(seconds), encoding="ascii")


def _timed(name: str, does: Callable[..., Any], seconds: dict[str, float]) -> Callable[..., Any]:
    def timed(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever the part takes
        begun = time.thread_time()
        try:
            return does(*args, **kwargs)
        finally:
            seconds[name] += time.thread_time() - begun

    return timed


if __name__ == "__main__":
    run_measured(main)
