"""What the functions need that sweep: tables with a name, and tables without."""

from __future__ import annotations

import os

from lakebed.bootstrap.table_stores import TableStores, amazon_clients, amazon_table_stores
from lakebed.config.environments import TableWorkEnvironment, environment_of
from lakebed.garbage.sweep import DeleteTableObjects, SweepObjects
from lakebed.model.jobs import SWEEP
from lakebed.schedules.work_on_table import WorkOnTable
from lakebed.tables.catalog import TableCatalog

App = WorkOnTable
NamelessApp = TableCatalog


def app() -> App:
    """Return what the variables of this process name."""
    return app_over(_stores())


def app_over(stores: TableStores) -> App:
    """Return the same over stores."""
    return stores.work(SWEEP, SweepObjects(objects=stores.objects).run)


def nameless_app() -> NamelessApp:
    """Return what the variables of this process name."""
    return nameless_app_over(_stores())


def nameless_app_over(stores: TableStores) -> NamelessApp:
    """Return the same over stores."""
    return TableCatalog(
        registry=stores.registry,
        logs=stores.logs,
        open_head=stores.heads,
        delete_objects=DeleteTableObjects(objects=stores.objects),
        rng=stores.rng,
    )


def _stores() -> TableStores:
    environment = environment_of(TableWorkEnvironment, os.environ)
    return amazon_table_stores(amazon_clients(), environment)
