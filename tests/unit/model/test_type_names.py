"""Types as people of SQL, pandas and Arrow call them."""

from pathlib import Path

import pytest

from lakebed.errors import InvalidError
from lakebed.model.type_names import SYNONYMS
from lakebed.model.types import VALUE_TYPES, type_of
from tests.unit.cli.programs import Shell


@pytest.mark.parametrize(
    ("name", "type_"),
    [
        ("varchar", "string"),
        ("TEXT", "string"),
        ("BigInt", "int64"),
        ("double", "float64"),
        ("Double  Precision", "float64"),
        ("boolean", "bool"),
        ("date", "date32"),
        ("timestamp with time zone", "timestamp[us, UTC]"),
        ("timestamp[us, tz=UTC]", "timestamp[us, UTC]"),
        ("NUMERIC(12, 2)", "decimal128(12,2)"),
        ("bytea", "binary"),
    ],
)
def test_a_name_that_means_one_thing_is_understood(name: str, type_: str) -> None:
    assert str(type_of(name)) == type_


def test_every_synonym_means_a_type_and_is_none() -> None:
    assert set(SYNONYMS.values()) <= set(VALUE_TYPES)
    assert not set(SYNONYMS) & set(VALUE_TYPES)
    assert all(str(type_of(name)) == type_ for name, type_ in SYNONYMS.items())


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("int", "use int64 (int of Python), or int32 (INT of SQL)"),
        ("INTEGER", "use int64"),
        ("float", "use float64 (float of Python), or float32 (float of Arrow)"),
        ("datetime", "use 'timestamp[us, UTC]', or 'timestamp[us]'"),
        ("datetime64[ns]", "use 'timestamp[us, UTC]'"),
        ("timestamp[ns]", "use 'timestamp[us, UTC]'"),
        ("varchar(255)", "use 'string': it has no greatest length"),
        ("timedelta64[ns]", "use int64 with the unit in the field's name"),
        ("object", "use 'string'"),
        ("list<string>", 'use {"list": "string"}'),
        ("decimal", "use 'decimal128(12,2)'"),
        ("int46", "did you mean 'int64'?"),
        ("money", "`lakebed explain types` lists all of them"),
    ],
)
def test_a_name_that_means_none_or_several_is_told_what_to_say(name: str, says: str) -> None:
    with pytest.raises(InvalidError) as caught:
        type_of(name)
    assert caught.value.facts["type"] == name
    assert says in str(caught.value.hint)


def test_the_shell_tells_of_types_without_the_sources(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.ok("table", "create", "t", "--row-key", "id:VARCHAR", "--value", "fare:double?")
    assert "fare  float64?" in shell.ok("table", "describe", "t")
    assert "`timestamp[us, UTC]`" in shell.ok("explain", "types")
    assert "leaf_rows_max" in shell.json("explain", "settings")["text"]
    assert "## Table" in shell.ok("explain", "python")
    assert "processing" in shell.ok("explain").splitlines()[-1]
    assert shell.refused("explain", "tipes")[1]["hint"] == "did you mean 'types'?"
