"""Builds the catalog of tables for functions: users' messages name tables, and a sweep buries
tables without a name."""

from __future__ import annotations

import os

from lakebed.bootstrap.functions.function_clients import amazon_clients
from lakebed.bootstrap.functions.table_stores import TableStores, amazon_table_stores
from lakebed.config.environments import TableFunctionEnvironment, environment_of
from lakebed.garbage.sweep import DeleteTableObjects
from lakebed.tables.catalog import TableCatalog
from lakebed.tasks.watched_folders import NOT_BATCHED, WatchableFolders

App = TableCatalog


def app() -> App:
    """Builds the catalog of the stores that the variables of this process name."""
    environment = environment_of(TableFunctionEnvironment, os.environ)
    return catalog_over(amazon_table_stores(amazon_clients(), environment))


def catalog_over(
    stores: TableStores, *, buries: bool = True, watchable: WatchableFolders = NOT_BATCHED
) -> TableCatalog:
    """Return the tables that are kept in stores. buries, watchable: as the catalog takes them."""
    return TableCatalog(
        registry=stores.registry,
        logs=stores.logs,
        open_head=stores.heads,
        delete_objects=DeleteTableObjects(objects=stores.objects),
        rng=stores.rng,
        buries=buries,
        watchable=watchable,
    )
