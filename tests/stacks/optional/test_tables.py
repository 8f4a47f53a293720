"""A deployment that brings files of tables, and the function that it waits for."""

import json
from pathlib import Path

import pytest

from lakebed.config.environments import DeclaredTablesEnvironment, variables_named
from lakebed.errors import InvalidError
from tests.stacks.conftest import Synthesize, Templates
from tests.stacks.rules import security_rules as rules
from tests.stacks.rules.iam_rules import unknown_to_iam
from tests.stacks.test_templates import resources

WRITTEN_AT_MOST = {
    "dynamodb:DeleteItem",
    "dynamodb:PutItem",
    "dynamodb:UpdateItem",
    "logs:CreateLogStream",
    "logs:PutLogEvents",
    "s3:PutObject",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    (folder / "trips.toml").write_text('name = "trips"\n[row_keys]\nid = "string"\n')
    return folder


@pytest.fixture(scope="module")
def with_tables(synthesize: Synthesize, folder: Path) -> Templates:
    return synthesize(tables=str(folder))


def test_an_instance_without_files_has_no_such_stack(templates: Templates) -> None:
    assert "tables" not in templates


def test_a_deployment_waits_for_the_function_whenever_the_files_are_others(
    with_tables: Templates, synthesize: Synthesize, folder: Path
) -> None:
    own = {"tables": with_tables["tables"]}
    (applied,) = resources(own, "AWS::CloudFormation::CustomResource")
    (function,) = resources(own, "AWS::Lambda::Function")
    assert function["Properties"]["Handler"] == "lambdas.tables.apply.handler"
    variables = function["Properties"]["Environment"]["Variables"]
    assert set(variables) == variables_named(DeclaredTablesEnvironment)
    key = applied["Properties"]["Files"]
    assert key in json.dumps(variables["LAKEBED_FILES"])
    assert variables["LAKEBED_STACK"] == {"Ref": "AWS::StackId"}
    (folder / "more.toml").write_text('name = "more"\n[row_keys]\nid = "string"\n')
    again = {"tables": synthesize(tables=str(folder))["tables"]}
    (other,) = resources(again, "AWS::CloudFormation::CustomResource")
    assert other["Properties"]["Files"] != key
    assert with_tables.keys() == {*synthesize(), "tables"}


def test_its_role_deletes_no_object_and_writes_few_things(with_tables: Templates) -> None:
    (role,) = resources({"tables": with_tables["tables"]}, "AWS::IAM::Role")
    statements = role["Properties"]["Policies"][0]["PolicyDocument"]["Statement"]
    actions: set[str] = set()
    for statement in statements:
        action = statement["Action"]
        actions |= {action} if isinstance(action, str) else set(action)
        assert statement["Resource"] != "*"
    reads = ("Get", "Query", "List", "Describe")
    written = {one for one in actions if not one.partition(":")[2].startswith(reads)}
    assert written == WRITTEN_AT_MOST
    files = [s for s in statements if "assets" in json.dumps(s) and s["Action"] == "s3:GetObject"]
    assert len(files) == 1
    assert json.dumps(files[0]["Resource"]).count(".zip") == 1


def test_it_keeps_the_rules_of_all_stacks(with_tables: Templates) -> None:
    assert unknown_to_iam(with_tables) == []
    assert not rules.services_without_source(with_tables)
    assert not rules.objects_written_twice(with_tables)


@pytest.mark.parametrize("name", ["gone", "empty"])
def test_a_folder_without_tables_is_refused(
    synthesize: Synthesize, tmp_path: Path, name: str
) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidError, match="no folder of tables"):
        synthesize(tables=str(tmp_path / name))
