"""The parameter of an instance says how it was deployed, where there is room for it."""

import json

from lakebed.config.deployments.instance_resources import RESOURCES_BYTES_MAX
from tests.stacks.conftest import Synthesize
from tests.stacks.deployments.test_optional_stacks import parameter_of
from tests.stacks.test_templates import only


def test_the_parameter_says_how_the_instance_is_set(synthesize: Synthesize) -> None:
    templates = synthesize(log_days="90", without="query", tags="team=data", history_days="7")
    found = parameter_of(templates).recorded_settings()
    assert found.settings.items() >= {"log_days": "90", "history_days": 7}.items()
    assert "results_days" not in found.settings, "it has its default"
    assert found.without == ("query",)
    assert found.tags == {"team": "data"}
    value = json.dumps(only(templates, "AWS::SSM::Parameter")["Value"])
    assert len(value) < RESOURCES_BYTES_MAX


def test_settings_that_do_not_fit_are_left_out_and_nothing_else(synthesize: Synthesize) -> None:
    folders = [f"s3://landing/{'x' * 200}{n}" for n in range(7)]
    found = parameter_of(synthesize(sources=",".join(folders)))
    assert found.deployed_with is None
    assert found.sources == tuple(folders)
