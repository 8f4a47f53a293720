"""DynamoDB's tables of an instance, made without a deployment."""

from typing import Any

from lakebed.config.dynamo_tables import PARTITION_KEY, SORT_KEY, DynamoTable


def create_arguments(name: str, table: DynamoTable) -> dict[str, Any]:
    """Return what `create_table` of boto3's client takes, as the stacks would make it."""
    types = {PARTITION_KEY: "S", SORT_KEY: table.sort_key}
    more: dict[str, Any] = {}
    if table.index is not None:
        types |= {table.index.partition_key: "S", table.index.sort_key: "N"}
        more["GlobalSecondaryIndexes"] = [
            {
                "IndexName": table.index.name,
                "KeySchema": _keys(table.index.partition_key, table.index.sort_key),
                "Projection": {"ProjectionType": "ALL"},
            }
        ]
    return {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": _keys(PARTITION_KEY, SORT_KEY),
        "AttributeDefinitions": [
            {"AttributeName": key, "AttributeType": type_} for key, type_ in types.items()
        ],
        **more,
    }


def _keys(partition_key: str, sort_key: str) -> list[dict[str, str]]:
    return [
        {"AttributeName": partition_key, "KeyType": "HASH"},
        {"AttributeName": sort_key, "KeyType": "RANGE"},
    ]
