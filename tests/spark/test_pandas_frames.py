"""A table as a frame of pandas, which is installed beside Spark and nowhere else."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import lakebed
from tests.spark.shell import spark_home
from tests.tidy.source import ROOT

PROGRAM = """
import json, sys
import lakebed, pandas
with lakebed.connect(sys.argv[1]) as lake:
    frame = lake["trips"].to_pandas(columns=["id", "fare", "at"], where="fare >= 2", limit=2)
    whole = lake["trips"].to_pandas(as_of=lake["trips"].tag("all").number)
assert isinstance(frame, pandas.DataFrame)
found = {"types": {name: str(kind) for name, kind in frame.dtypes.items()}, "rows": len(whole)}
print(json.dumps(found | {"columns": frame.to_dict("list")}, default=str))
"""
SCHEMA = lakebed.schema_of(
    row_keys={"id": "string"}, values={"fare": "float64?", "at": "timestamp[us, UTC]"}
)


def test_rows_are_a_frame_of_pandas(tmp_path: Path) -> None:
    with lakebed.connect(tmp_path / "lake") as lake:
        lake.create_table("trips", SCHEMA).ingest(
            [
                {
                    "id": f"t{n}",
                    "fare": float(n) if n else None,
                    "at": datetime.fromtimestamp(n, UTC),
                }
                for n in range(5)
            ]
        )
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "lake")],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(spark_home("4"))])},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["rows"] == 5
    assert found["columns"]["id"] == ["t2", "t3"]
    assert found["columns"]["fare"] == [2.0, 3.0]
    assert found["columns"]["at"] == ["1970-01-01 00:00:02+00:00", "1970-01-01 00:00:03+00:00"]
    assert (found["types"]["fare"], found["types"]["at"]) == ("float64", "datetime64[us, UTC]")
