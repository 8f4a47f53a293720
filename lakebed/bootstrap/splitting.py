"""What the function needs that splits leaves of tables."""

from __future__ import annotations

import os

from lakebed.bootstrap.table_stores import TableStores, amazon_clients, amazon_table_stores
from lakebed.config.environments import TableWorkEnvironment, environment_of
from lakebed.model.jobs import SPLITTING
from lakebed.schedules.work_on_table import WorkOnTable
from lakebed.sorted_files.format.file_samples import FileSamples
from lakebed.splitting.split_leaves import SplitLeaves

App = WorkOnTable


def app() -> App:
    """Return what the variables of this process name."""
    environment = environment_of(TableWorkEnvironment, os.environ)
    return app_over(amazon_table_stores(amazon_clients(), environment))


def app_over(stores: TableStores) -> App:
    """Return the same over stores."""
    split = SplitLeaves(files=FileSamples(stores.objects))
    return stores.work(SPLITTING, split.run)
