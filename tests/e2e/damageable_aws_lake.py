"""A lake on AWS that tests may damage behind its back, and restore again."""

import shutil
from pathlib import Path
from typing import Any

from obstore.store import S3Store

from lakebed.backends.aws.clients import AmazonClients
from lakebed.config.deployments.instance_resources import InstanceResources
from tests.servers.s3 import S3Server

OBJECTS = "objects/"


class DamageableAwsLake:
    """Remembers all of it when it is made; `restore` puts back what was changed since.

    states, spill: the folders of this machine.
    """

    def __init__(
        self,
        resources: InstanceResources,
        server: S3Server,
        clients: AmazonClients,
        *,
        states: Path,
        spill: Path,
        saved: Path,
    ) -> None:
        self.spill = spill
        self._resources = resources
        self._dynamodb: Any = clients.dynamodb
        self._states, self._saved = states, saved
        self._bucket = S3Store(
            resources.bucket,
            prefix=f"{resources.prefix}/{OBJECTS}",
            endpoint=server.url,
            region="us-east-1",
            access_key_id="test",
            secret_access_key=server.secret,
            client_options={"allow_http": True},
        )
        self._objects = {path: self.read(path) for path in self._listed("")}
        self._tables = (resources.log_table, resources.registry_table)
        self._items = {table: self._scanned(table) for table in self._tables}
        shutil.copytree(states, saved)
        self._touched: set[str] = set()

    @property
    def cache(self) -> Path:
        return next(self._states.glob("*.sqlite"))

    def paths(self, part: str) -> list[str]:
        return [path for path in self._listed("tables/") if f"/{part}" in path]

    def large_bodies(self) -> list[str]:
        return self._listed("logs/")

    def read(self, path: str) -> bytes:
        return bytes(self._bucket.get(path).bytes())

    def write(self, path: str, body: bytes) -> None:
        self._touched.add(path)
        self._bucket.put(path, body, use_multipart=False)

    def remove(self, path: str) -> None:
        self._touched.add(path)
        self._bucket.delete(path)

    def entries(self) -> list[tuple[int, bytes]]:
        found = []
        for item in self._scanned(self._resources.log_table):
            number = int(item["sk"]["N"])
            if "body" in item:
                found.append((number, bytes(item["body"]["B"])))
            elif "object" in item:
                found.append((number, self.read(item["object"]["S"])))
        return sorted(found)

    def items(self) -> list[Any]:
        """All items of the table of logs."""
        return sorted(self._scanned(self._resources.log_table), key=str)

    def set_entry(self, number: int, body: bytes | None) -> None:
        (item,) = [i for i in self._log_items() if i["sk"]["N"] == str(number)]
        self.set_item(self._resources.log_table, item, None)
        if body is not None:
            key = {"pk": item["pk"], "sk": item["sk"]}
            self.set_item(self._resources.log_table, None, key | {"body": {"B": body}})

    def empty_entry(self, number: int) -> None:
        """Take the body of an entry away, as a truncation does."""
        (item,) = [i for i in self._log_items() if i["sk"]["N"] == str(number)]
        key = {"pk": item["pk"], "sk": item["sk"]}
        self.set_item(self._resources.log_table, None, key)

    def set_back(self, number: int) -> None:
        """Leave the log as it was when entry `number` was the newest, as a restore to an earlier
        time does. What it was truncated since then stays so."""
        for item in self._log_items():
            at = int(item["sk"]["N"])
            if at > number:
                self.set_item(self._resources.log_table, item, None)
            elif at == number:
                item.pop("followed", None)
                self.set_item(self._resources.log_table, None, item)

    def drop_mark(self) -> None:
        """Forget how far the log is truncated."""
        (item,) = [i for i in self._log_items() if i["sk"]["N"] == "0"]
        self.set_item(self._resources.log_table, item, None)

    def drop_log(self) -> None:
        for item in self._scanned(self._resources.log_table):
            self.set_item(self._resources.log_table, item, None)

    def drop_name(self) -> None:
        for item in self._scanned(self._resources.registry_table):
            if item["pk"]["S"] == "names":
                self.set_item(self._resources.registry_table, item, None)

    def drop_cache(self) -> None:
        shutil.rmtree(self._states)
        self._states.mkdir()

    def set_item(self, table: str, old: Any, new: Any) -> None:  # noqa: ANN401 - as boto3 has it
        """Put an item, or delete the old one."""
        if new is None:
            key = {"pk": old["pk"], "sk": old["sk"]}
            self._dynamodb.delete_item(TableName=table, Key=key)
        else:
            self._dynamodb.put_item(TableName=table, Item=new)

    def restore(self) -> None:
        """Put everything back, whoever changed it."""
        found = set(self._listed(""))
        for path in found | set(self._objects):
            right = self._objects.get(path)
            if right is None:
                self._bucket.delete(path)
            elif path in self._touched or path not in found:
                self._bucket.put(path, right, use_multipart=False)
        self._touched.clear()
        for table in self._tables:
            right_items = self._items[table]
            there = self._scanned(table)
            for item in there:
                if item not in right_items:
                    self.set_item(table, item, None)
            for item in right_items:
                if item not in there:
                    self.set_item(table, None, item)
        shutil.rmtree(self._states)
        shutil.copytree(self._saved, self._states)
        for left in self.spill.iterdir():
            shutil.rmtree(left, ignore_errors=True)

    def _log_items(self) -> list[Any]:
        return [i for i in self._scanned(self._resources.log_table) if i["pk"]["S"] != ":tables"]

    def _listed(self, prefix: str) -> list[str]:
        return sorted(meta["path"] for page in self._bucket.list(prefix) for meta in page)

    def _scanned(self, table: str) -> list[Any]:
        answer = self._dynamodb.scan(TableName=table, ConsistentRead=True)
        assert "LastEvaluatedKey" not in answer, "a small lake"
        return list(answer["Items"])
