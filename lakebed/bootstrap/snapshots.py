"""What the function needs that writes snapshots of tables and empties their logs."""

from __future__ import annotations

import os

from lakebed.bootstrap.table_stores import TableStores, amazon_clients, amazon_table_stores
from lakebed.config.environments import TableWorkEnvironment, environment_of
from lakebed.model.jobs import SNAPSHOTS
from lakebed.schedules.work_on_table import WorkOnTable
from lakebed.statestore.write_snapshot import WriteSnapshot

App = WorkOnTable


def app() -> App:
    """Return what the variables of this process name."""
    environment = environment_of(TableWorkEnvironment, os.environ)
    return app_over(amazon_table_stores(amazon_clients(), environment))


def app_over(stores: TableStores) -> App:
    """Return the same over stores."""
    write = WriteSnapshot(snapshots=stores.heads.snapshots, logs=stores.logs)
    return stores.work(SNAPSHOTS, write.run)
