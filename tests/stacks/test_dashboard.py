"""The dashboard and its alarms show metrics that exist, and each alarm leads to its page."""

import json
import re
from collections import Counter

from lakebed.config.job_queues import ALL_QUEUES
from lakebed.costs import idle_costs
from lakebed.observe.metrics import METRICS, NAMESPACE
from tests.stacks.conftest import Templates
from tests.stacks.deployments.test_reached_alarms import seconds_of
from tests.stacks.test_templates import only, resources


def test_the_dashboard_shows_every_metric_and_queue(templates: Templates) -> None:
    text = json.dumps(only(templates, "AWS::CloudWatch::Dashboard")["DashboardBody"])
    for metric in METRICS:
        assert re.search(rf"{NAMESPACE}\W+{metric.name}\W+instance\W+dev", text), metric.name
    named = set(re.findall(rf"{NAMESPACE}\W+(\w+)", text))
    assert named == {metric.name for metric in METRICS}
    for shape in ALL_QUEUES:
        assert len(re.findall(rf"label\W+{shape.kind}[^\w-]", text)) == 3


def test_alarms_on_metrics_are_those_of_the_list(templates: Templates) -> None:
    alarms = {
        alarm["Properties"]["MetricName"]: alarm["Properties"]
        for alarm in resources(templates, "AWS::CloudWatch::Alarm")
        if alarm["Properties"]["Namespace"] == NAMESPACE
    }
    wanted = {metric.name: metric for metric in METRICS if metric.alarm is not None}
    assert set(alarms) == set(wanted)
    for name, alarm in alarms.items():
        declared = wanted[name].alarm
        assert declared is not None
        assert alarm["Threshold"] == declared.threshold
        assert alarm["Period"] == 60 * declared.minutes
        assert alarm["Statistic"] == wanted[name].statistic
        assert alarm["AlarmDescription"].endswith(declared.page)
        assert alarm["Dimensions"] == [{"Name": "instance", "Value": "dev"}]


def test_idle_costs_count_what_is_deployed(templates: Templates) -> None:
    spaces = Counter(
        alarm["Properties"]["Namespace"] for alarm in resources(templates, "AWS::CloudWatch::Alarm")
    )
    assert spaces.total() == idle_costs.alarms()
    assert spaces["AWS/Lambda"] == idle_costs.FUNCTIONS
    sources = resources(templates, "AWS::Lambda::EventSourceMapping")
    assert len(sources) == idle_costs.POLLED_QUEUES
    rules = [rule["Properties"] for rule in resources(templates, "AWS::Events::Rule")]
    assert {
        rule["Name"].removeprefix("lakebed-dev-"): seconds_of(rule["ScheduleExpression"])
        for rule in rules
    } == idle_costs.SCHEDULES
