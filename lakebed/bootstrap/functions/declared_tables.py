"""Services of the function that makes tables as files declare them, when they are deployed."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from lakebed.backends.system.installed_steps import StepsBesideUs
from lakebed.bootstrap.aws_stores import source_files_of
from lakebed.bootstrap.functions.function_clients import amazon_clients
from lakebed.bootstrap.functions.table_names import catalog_over
from lakebed.bootstrap.functions.table_stores import amazon_table_stores
from lakebed.config.environments import DeclaredTablesEnvironment, environment_of, sources_in
from lakebed.tables.apply_tables import ApplyTables
from lakebed.tables.deploy_tables import DeployTables
from lakebed.tables.table_files import packed_table_texts
from lakebed.tasks.watched_folders import watchable_folders

if TYPE_CHECKING:
    from lakebed.ports.source_files import SourceFiles

App = DeployTables


def app() -> App:
    """Return what the variables of this process name."""
    from lakebed.backends.aws.releases.stacks import is_taken_back

    environment = environment_of(DeclaredTablesEnvironment, os.environ)
    clients = amazon_clients()
    stores = amazon_table_stores(clients, environment)
    files = source_files_of(clients, stores.rng, stores.scratch)
    has_batching: bool = msgspec.json.decode(environment.has_batching)
    catalog = catalog_over(
        stores,
        buries=False,
        watchable=watchable_folders(sources_in(environment.sources) if has_batching else None),
    )
    return DeployTables(
        ApplyTables(catalog=catalog, steps=StepsBesideUs()),
        read_texts=partial(_texts, files, environment.files),
        is_taken_back=partial(is_taken_back, clients, environment.stack),
    )


def _texts(files: SourceFiles, url: str) -> dict[str, str]:
    (archive,) = files.find(url)
    with files.on_disk(archive) as path:
        return packed_table_texts(path)
