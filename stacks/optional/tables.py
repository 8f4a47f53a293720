"""Tables that files declare: made while an instance is deployed."""

import json
from pathlib import Path

import msgspec
from aws_cdk import Aws, CfnCustomResource, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from lakebed.config.environments import DeclaredTablesEnvironment
from lakebed.config.instance import Deployment
from lakebed.errors import InvalidError
from stacks import permissions
from stacks.constructs import spark_permissions
from stacks.constructs.lake_stores import LakeStores
from stacks.constructs.names import NamedTable
from stacks.constructs.python_bundle import ROWS
from stacks.constructs.python_function import PythonFunction
from stacks.partition_permissions import in_partitions

SECONDS_MAX = 900
MEMORY_MIB = 1_024


class TablesStack(Stack):
    """Files of tables, and a function that the deployment waits for: it refuses tables that cannot
    be as they are declared. It drops nothing, and may delete no object (docs/operate/declare.md).
    """

    def __init__(
        self, scope: Construct, id: str, *, deployment: Deployment, stores: LakeStores
    ) -> None:
        super().__init__(
            scope,
            id,
            stack_name=deployment.name("tables"),
            description=f"Lakebed {deployment.instance}: tables that files declare",
        )
        files = s3_assets.Asset(self, "Files", path=str(_folder(deployment.settings.tables)))
        own = PythonFunction(
            self,
            "Apply",
            deployment=deployment,
            bundle=ROWS,
            room="tables",
            verb="apply",
            environment=DeclaredTablesEnvironment(
                **msgspec.structs.asdict(stores.function_environment(deployment)),
                files=files.s3_object_url,
                sources=deployment.settings.sources,
                has_batching=json.dumps("batching" in deployment.stacks),
                stack=Aws.STACK_ID,
            ),
            permissions=[
                read_states(deployment),
                permissions.list_objects(deployment),
                permissions.commit(stores.log),
                permissions.write_bodies(deployment),
                permissions.find_tables(stores.registry),
                name_tables(stores.registry),
                *spark_permissions.read_assets(files),
                look_at_stack(),
            ],
            runs_apart=None,
            timeout_seconds=SECONDS_MAX,
            memory_mib=MEMORY_MIB,
            reported=False,
        )
        applied = CfnCustomResource(self, "Applied", service_token=own.function.function_arn)
        applied.node.add_dependency(own)
        applied.add_property_override("Files", files.s3_object_key)


def read_states(deployment: Deployment) -> iam.PolicyStatement:
    """Read what states of tables are made of beside the log: no rows."""
    bucket = f"arn:{Aws.PARTITION}:s3:::{permissions.bucket_name(deployment)}"
    folders: tuple[permissions.Folder, ...] = ("logs/*", "tables/*/snapshots/*")
    keys = [f"{bucket}/{permissions.keys_of(folder)}" for folder in folders]
    return iam.PolicyStatement(actions=["s3:GetObject"], resources=keys)


def name_tables(registry: NamedTable) -> iam.PolicyStatement:
    """Give tables names, mark them, and raise what may be written."""
    written = ("PutItem", "UpdateItem", "DeleteItem")
    partitions = ["names", "ids", "marks", "formats"]
    return in_partitions(registry.table_arn, partitions, *written)


def look_at_stack() -> iam.PolicyStatement:
    """See whether a deployment of this very stack is being taken back."""
    return iam.PolicyStatement(actions=["cloudformation:DescribeStacks"], resources=[Aws.STACK_ID])


def _folder(setting: str) -> Path:
    """Return the folder of files. Raises: InvalidError: it is none, or declares no table."""
    path = Path(setting)
    if not path.is_dir() or not any(path.glob("*.toml")):
        hint = "name the folder that holds TABLE.toml files: `-c tables=FOLDER`"
        raise InvalidError("no folder of tables", tables=setting, hint=hint)
    return path.absolute()
