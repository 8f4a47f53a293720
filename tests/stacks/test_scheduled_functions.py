"""Functions of scheduled work share their code: which work each does, and where it may send to."""

from typing import Any

from lakebed.config.job_queues import TICK_QUEUES
from tests.stacks.conftest import Templates
from tests.stacks.test_functions import by_action


def by_id(templates: Templates, type_: str) -> dict[str, dict[str, Any]]:
    return {
        id_: resource["Properties"]
        for template in templates.values()
        for id_, resource in template["Resources"].items()
        if resource["Type"] == type_
    }


def functions(templates: Templates) -> dict[str, dict[str, Any]]:
    """By name in the instance."""
    found = by_id(templates, "AWS::Lambda::Function").values()
    return {function["FunctionName"].removeprefix("lakebed-dev-"): function for function in found}


def test_functions_of_scheduled_work_share_their_code_and_are_told_which_work_it_is(
    templates: Templates,
) -> None:
    found = functions(templates)
    for shape in TICK_QUEUES:
        for verb in ("trigger", "handle"):
            function = found[f"{shape.kind}-{verb}"]
            assert function["Handler"] == f"lambdas.scheduled_work.{verb}.handler"
            assert function["Environment"]["Variables"]["LAKEBED_WORK"] == shape.kind


def test_a_trigger_sends_to_the_queue_of_its_work_and_to_no_other(
    templates: Templates,
) -> None:
    found = functions(templates)
    queues = by_id(templates, "AWS::SQS::Queue")
    roles = by_id(templates, "AWS::IAM::Role")
    for shape in TICK_QUEUES:
        function = found[f"{shape.kind}-trigger"]
        url = function["Environment"]["Variables"]["LAKEBED_QUEUE_URL"]["Ref"]
        assert queues[url]["QueueName"] == f"lakebed-dev-{shape.kind}.fifo"
        (policy,) = roles[function["Role"]["Fn::GetAtt"][0]]["Policies"]
        sent = by_action(policy["PolicyDocument"]["Statement"])["sqs:SendMessage"]
        assert [statement["Resource"] for statement in sent] == [{"Fn::GetAtt": [url, "Arn"]}]
