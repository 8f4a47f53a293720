"""Tables by name, for functions: users' messages name them."""

from __future__ import annotations

from lakebed.bootstrap.table_stores import TableStores
from lakebed.garbage.sweep import DeleteTableObjects
from lakebed.tables.catalog import TableCatalog


def catalog_over(stores: TableStores) -> TableCatalog:
    """Return the tables that are kept in stores."""
    return TableCatalog(
        registry=stores.registry,
        logs=stores.logs,
        open_head=stores.heads,
        delete_objects=DeleteTableObjects(objects=stores.objects),
        rng=stores.rng,
    )
