"""The command run inside the test's process, in a lake of its own."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from click.testing import CliRunner, Result

from lakebed.cli.main import program


class Shell:
    """Runs commands as a person would, with ./lake in a temporary directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lake = folder / "lake"

    def run(self, *args: str) -> Result:
        environment = {"LAKEBED_LAKE": str(self.lake)}
        return CliRunner().invoke(program, list(args), env=environment, prog_name="lakebed")

    def ok(self, *args: str) -> str:
        result = self.run(*args)
        assert result.exit_code == 0, result.output
        return result.stdout

    def json(self, *args: str) -> Any:  # noqa: ANN401 - whatever JSON holds
        return json.loads(self.ok(*args, "--json"))

    def refused(self, *args: str) -> tuple[int, dict[str, Any]]:
        """Its exit code and error; nothing may have been written as a result."""
        result = self.run(*args, "--json")
        assert result.stdout == ""
        error = json.loads(result.stderr)["error"]
        assert error["exit_code"] == result.exit_code
        return result.exit_code, error

    def write(self, name: str, columns: dict[str, Any]) -> str:
        path = self.folder / name
        pq.write_table(pa.table(columns), path)
        return str(path)
