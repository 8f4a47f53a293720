"""Rules send what S3 says of new files in `sources` to the queue of submissions."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.stacks.conftest import Synthesize, Templates
from tests.stacks.rules.iam_rules import unknown_to_iam
from tests.stacks.test_checks import reports
from tests.stacks.test_templates import resources

SOURCES = "s3://landing/trips,s3://partners,s3://landing/rides/late,s3://partners/some"


@pytest.fixture(scope="module")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("arrivals")


@pytest.fixture(scope="module")
def told(synthesize: Synthesize, assembly: Path) -> Templates:
    return synthesize(assembly, sources=SOURCES, paused="true")


def rules(templates: Templates) -> dict[str, dict[str, Any]]:
    """Rules with a pattern, by their buckets."""
    of_stack = {"batching": templates["batching"]}
    found = [rule["Properties"] for rule in resources(of_stack, "AWS::Events::Rule")]
    patterns = [rule for rule in found if "EventPattern" in rule]
    return {rule["EventPattern"]["detail"]["bucket"]["name"][0]: rule for rule in patterns}


def queue_policy(templates: Templates) -> list[dict[str, Any]]:
    found = resources({"batching": templates["batching"]}, "AWS::SQS::QueuePolicy")
    statements = [s for p in found for s in p["Properties"]["PolicyDocument"]["Statement"]]
    return [s for s in statements if s.get("Principal") == {"Service": "events.amazonaws.com"}]


def test_a_rule_for_each_bucket_sends_its_new_files_in_order(told: Templates) -> None:
    found = rules(told)
    assert set(found) == {"landing", "partners"}
    assert found["landing"]["EventPattern"] == {
        "source": ["aws.s3"],
        "detail-type": ["Object Created"],
        "detail": {
            "bucket": {"name": ["landing"]},
            "object": {"key": [{"prefix": "rides/late/"}, {"prefix": "trips/"}]},
        },
    }
    assert "object" not in found["partners"]["EventPattern"]["detail"], "all of the bucket"
    for bucket, rule in found.items():
        (target,) = rule["Targets"]
        assert target["SqsParameters"] == {"MessageGroupId": bucket}
        assert rule["Name"].startswith("lakebed-dev-arrivals-")
        assert rule["State"] == "ENABLED", "events wait in the queue while the instance is paused"


def test_only_these_rules_may_send_for_s3(told: Templates) -> None:
    statements = queue_policy(told)
    assert len(statements) == 2
    for statement in statements:
        assert "aws:SourceArn" in json.dumps(statement["Condition"])
        assert statement["Effect"] == "Allow"


def test_an_alarm_tells_of_events_that_were_lost(told: Templates) -> None:
    alarms = [a["Properties"] for a in resources(told, "AWS::CloudWatch::Alarm")]
    lost = [alarm for alarm in alarms if alarm["AlarmName"].endswith("-lost")]
    assert [(a["Namespace"], a["MetricName"], a["Threshold"]) for a in lost] == [
        ("AWS/Events", "FailedInvocations", 1)
    ] * 2
    names = {rule["Name"] for rule in rules(told).values()}
    assert {a["Dimensions"][0]["Value"] for a in lost} == names
    assert all("docs/operate/lost-arrivals.md" in a["AlarmDescription"] for a in lost)


def test_nothing_is_found_that_nobody_has_answered_for(told: Templates, assembly: Path) -> None:
    assert unknown_to_iam(told) == []
    found = [found for report in reports(assembly).values() for found in report["violations"]]
    assert [one["ruleName"] for one in found] == ["Annotation::lakebed:alarms-unheard"]


def test_an_instance_without_sources_hears_of_nothing(templates: Templates) -> None:
    assert rules(templates) == {}
    assert queue_policy(templates) == []


def test_who_opens_the_instance_knows_what_may_be_watched(
    told: Templates, templates: Templates, synthesize: Synthesize
) -> None:
    def sources(of: Templates) -> object:
        (parameter,) = resources({"address": of["address"]}, "AWS::SSM::Parameter")
        text = json.dumps(parameter["Properties"]["Value"])
        text = text.partition('\\"deployed_with\\":')[0]  # which says how it was set
        return text.partition('\\"sources\\":')[2].partition("]")[0]

    assert all(source in str(sources(told)) for source in SOURCES.split(","))
    assert sources(templates) == "["
    assert sources(synthesize(without="batching", sources=SOURCES)) == ""
