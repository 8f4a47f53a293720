"""Make tables as files declare them. Trigger: a deployment that brings other files."""

from lakebed.bootstrap.functions import declared_tables
from lambdas.shape import deployed_handler


def apply(app: declared_tables.App) -> None:
    app.run()


handler = deployed_handler(declared_tables.app, apply)
