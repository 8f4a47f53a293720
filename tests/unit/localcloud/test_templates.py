import json
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from lakebed.errors import InvalidError
from localcloud.resources.calls import make_url
from localcloud.resources.deployment import in_order, refuse_unknown_types
from localcloud.resources.making import Making, Properties
from localcloud.resources.resource_types import RESOURCE_TYPES
from localcloud.templates.assembly import Template, read_assembly
from localcloud.templates.expressions import Expressions
from localcloud.templates.running import Running
from tests.cloud.assemblies import outcomes, queue, write_assembly

if TYPE_CHECKING:
    from localcloud.services.amazon import Amazon

PAGE = Path(__file__).parents[3] / "docs/design/localcloud.md"


def expressions(**conditions: object) -> Expressions:
    made = {("Queue", "Ref"): "https://queue", ("Queue", "Arn"): "arn:queue"}
    return Expressions(
        "stack",
        attribute=lambda id_, name: made[id_, name],
        exports={"other:Export": "imported"},
        conditions=conditions,
    )


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ({"Ref": "Queue"}, "https://queue"),
        ({"Fn::GetAtt": ["Queue", "Arn"]}, "arn:queue"),
        ({"Fn::GetAtt": "Queue.Arn"}, "arn:queue"),
        ({"Fn::Join": ["-", ["a", {"Ref": "AWS::Region"}]]}, "a-eu-central-2"),
        ({"Fn::Sub": "x ${Queue} ${Queue.Arn} ${!kept}"}, "x https://queue arn:queue ${kept}"),
        ({"Fn::Sub": ["${a}", {"a": {"Ref": "AWS::AccountId"}}]}, "000000000000"),
        ({"Fn::Select": [1, {"Fn::Split": [":", {"Fn::GetAtt": "Queue.Arn"}]}]}, "queue"),
        ({"Fn::ImportValue": "other:Export"}, "imported"),
        ({"Fn::Base64": {"Ref": "AWS::Partition"}}, "YXdz"),
        ({"Fn::If": ["Same", "yes", "no"]}, "yes"),
        ({"a": {"Ref": "AWS::NoValue"}, "b": [{"Ref": "AWS::NoValue"}, 1]}, {"b": [1]}),
        ({"Ref": "Queue", "beside": 1}, {"Ref": "Queue", "beside": 1}),
    ],
    ids=json.dumps,
)
def test_expressions_mean_what_they_mean_on_aws(written: object, meant: object) -> None:
    condition = {"Fn::Equals": [{"Ref": "AWS::Partition"}, "aws"]}
    assert expressions(Same=condition).value(written) == meant


def test_a_function_of_templates_that_is_not_known_is_refused() -> None:
    with pytest.raises(InvalidError, match="unknown function"):
        expressions().value({"a": [{"Fn::Transform": {}}]})


def test_resources_are_made_after_what_they_need() -> None:
    resources = {
        "Work": queue("work", dead="Dead"),
        "Last": {"Type": "x", "DependsOn": ["Work"]},
        "Text": {"Type": "x", "Properties": {"a": {"Fn::Sub": "${Last}"}}},
        "Dead": queue("dead"),
    }
    order = in_order(dict(reversed(resources.items())))
    assert [order.index(id_) for id_ in ("Dead", "Work", "Last", "Text")] == [0, 1, 2, 3]


def test_stacks_come_after_those_that_they_depend_on(tmp_path: Path) -> None:
    write_assembly(tmp_path, {"state": {"T": outcomes("t")}, "queues": {}, "jobs": {}})
    assert [template.stack for template in read_assembly(tmp_path)] == ["state", "queues", "jobs"]


def test_a_folder_without_an_assembly_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match="not a synthesized assembly"):
        read_assembly(tmp_path)


def test_a_type_for_which_nothing_stands_in_is_refused_by_name() -> None:
    resources = {"Net": {"Type": "AWS::Redshift::Cluster"}, "T": outcomes("t")}
    template = Template("jobs", resources, {}, {}, {}, {}, {})
    with pytest.raises(InvalidError, match="stack=jobs resource=Net type=AWS::Redshift::Cluster"):
        refuse_unknown_types(template)


def test_a_property_that_nobody_takes_is_refused_by_name() -> None:
    properties = Properties(
        "AWS::SQS::Queue", "Queue", {"QueueName": "a", "Fast": True, "Tags": []}
    )
    assert properties.need("QueueName") == "a"
    with pytest.raises(InvalidError, match=r"does not know a property.*Fast=True"):
        properties.end()


def test_an_address_of_a_function_that_is_open_to_all_is_refused() -> None:
    template = Template("jobs", {}, {}, {}, {}, {}, {})
    making = Making(cast("Amazon", None), template, running=Running(), images=Path())
    url = Properties("AWS::Lambda::Url", "Url", {"TargetFunctionArn": "a:f", "AuthType": "NONE"})
    with pytest.raises(InvalidError, match=r"open to all.*function=f type=NONE"):
        make_url(making, url)


def test_the_page_lists_what_stands_in_for_each_type() -> None:
    rows = [f"| `{n}` | {t.by} | {t.what} |" for n, t in sorted(RESOURCE_TYPES.items())]
    page = PAGE.read_text("utf-8")
    assert not [row for row in rows if row not in page]
    assert page.count("| `AWS::") == len(rows)
