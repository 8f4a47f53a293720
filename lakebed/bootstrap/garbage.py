"""What the function needs that collects garbage of tables."""

from __future__ import annotations

import os

from lakebed.bootstrap.table_stores import TableStores, amazon_clients, amazon_table_stores
from lakebed.config.environments import TableWorkEnvironment, environment_of
from lakebed.garbage.collect import CollectGarbage, next_garbage
from lakebed.model.jobs import GARBAGE
from lakebed.schedules.work_on_table import WorkOnTable

App = WorkOnTable


def app() -> App:
    """Return what the variables of this process name."""
    environment = environment_of(TableWorkEnvironment, os.environ)
    return app_over(amazon_table_stores(amazon_clients(), environment))


def app_over(stores: TableStores) -> App:
    """Return the same over stores."""
    collect = CollectGarbage(objects=stores.objects)
    return stores.work(GARBAGE, collect.run, due=next_garbage)
