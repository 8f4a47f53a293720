"""A process that is killed before its n-th effect:

    python -m tests.e2e.exports.killed_at_effect N ACTION LAKE FOLDER

ACTION: `export` the table `t` of the lake into the folder, or `restore` it from there.

Effects are what other processes can see: entries of a log, objects, names of tables, deletions. It
says how many there were when it comes to its end.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lakebed
from lakebed.backends.local.object_store import LocalObjectStore
from lakebed.backends.local.plain_objects import PlainLocalObjects
from lakebed.backends.local.table_registry import SqliteTableRegistry
from lakebed.backends.local.transaction_logs import SqliteTransactionLog
from lakebed.exports.export_plan import ExportRequest
from lakebed.exports.export_table import ExportTable
from lakebed.exports.target import PROGRESS, ExportTarget

SLICE_BYTES = 3_000
"""So that each leaf is a slice."""
EFFECTS = (
    (SqliteTransactionLog, "append"),
    (SqliteTableRegistry, "claim"),
    (LocalObjectStore, "_link"),
    (LocalObjectStore, "delete"),
)


class Effects:
    """Counts effects of this process. last: before this one it is killed."""

    def __init__(self, last: int) -> None:
        self.last = last
        self.count = 0

    def counted(self, act: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - of any function
            self.count += 1
            if self.count == self.last:
                os.kill(os.getpid(), signal.SIGKILL)
            return act(*arguments, **named)

        return counted


def export(lake: lakebed.Lake, folder: Path) -> None:
    """Export the table `t`, each leaf as a slice."""
    app = lake._app
    objects = PlainLocalObjects(folder, app.clock)
    ExportTable(query=app.query, clock=app.clock).run(
        lake.table("t")._opened,
        ExportTarget(objects, str(folder), lambda: objects.tidy(PROGRESS)),
        ExportRequest(),
        workers=2,
        slice_bytes=SLICE_BYTES,
    )


def main(last: str, action: str, path: str, folder: str) -> None:
    with lakebed.connect(path) as lake:
        effects = Effects(int(last))
        for owner, name in EFFECTS:
            setattr(owner, name, effects.counted(getattr(owner, name)))
        if action == "export":
            export(lake, Path(folder))
        else:
            lake.restore_table("t", folder)
    sys.stdout.write(f"{effects.count}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
