"""`lakebed.toml`: what it says is deployed, and what it cannot say is told with its place."""

from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from msgspec import Meta

from lakebed.config.deployments.deployment import deployment_of
from lakebed.config.deployments.instance_file import (
    LISTED,
    InstanceFile,
    instance_file_of,
    read_instance_file,
)
from lakebed.config.instance import InstanceSettings
from lakebed.errors import InvalidError

WHOLE = """\
without = ["bulk-import", "query"]

[instance]
name = "dev"
log_days = 90
task_vcpus = 0.5
task_memory_mib = 2048
paused = true
sources = ["s3://landing/trips", "s3://other"]
key_arn = ""

[packages]
wheels = "wheels"

[tags]
team = "data"
"cost center" = "1234"
"""


def said(text: str, path: str = "fleet/lakebed.toml") -> InstanceFile:
    return instance_file_of(text, Path(path))


def test_a_file_says_what_an_instance_is_deployed_with() -> None:
    assert said(WHOLE) == InstanceFile(
        name="dev",
        settings={
            "log_days": "90",
            "task_vcpus": "0.5",
            "task_memory_mib": 2048,
            "paused": True,
            "sources": "s3://landing/trips,s3://other",
            "key_arn": "",
            "packages": "fleet/wheels",
        },
        without=("bulk-import", "query"),
        tags={"team": "data", "cost center": "1234"},
    )
    assert said("") == InstanceFile()


def test_wheels_lie_beside_the_file_wherever_the_command_runs() -> None:
    several = 'packages = { wheels = ["a.whl", "/absolute/b.whl"] }'
    assert said(several).settings == {"packages": "fleet/a.whl,/absolute/b.whl"}
    assert said(several, "lakebed.toml").settings == {"packages": "a.whl,/absolute/b.whl"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a = ", "a file is no TOML"),
        ("a = 1\na = 2", "a file is no TOML"),
        ("[" * 5_000, "a file is no TOML"),
        ("[instanze]", r"at=instanze\): did you mean 'instance'"),
        ("witout = []", r"at=witout\): did you mean 'without'"),
        ("instance = 3", r"a value is given to a section \(.*at=instance"),
        ("[[instance]]", r"a value is given to a section \(.*at=instance"),
        ("[instance]\nlog_day = 7", r"no such setting \(.*setting=log_day\): did you mean 'log_da"),
        ("[instance]\nlog_days = 8", r"setting=log_days value='8'\): give one of `1`, `7`"),
        ('[instance]\npaused = "true"', r"setting=paused value='true'\): give one of `true`"),
        ("[instance]\npaused = 1", "setting=paused value=1"),
        (
            '[instance]\nresults_days = "7"',
            r"setting=results_days value='7'\): give a number, 1 to",
        ),
        ("[instance]\nresults_days = 1.5", "setting=results_days"),
        ("[instance]\nresults_days = 2026-01-01", "setting=results_days"),
        ("[instance]\nresults_days = 99999999999999999999", "setting=results_days"),
        ("[instance]\nsources = [1]", "setting=sources"),
        ('[instance]\nsources = ["s3://a,file"]', "setting=sources"),
        ('[instance]\nalarm_mail = ["a@b.de"]', "setting=alarm_mail"),
        ('[instance]\npackages = "wheels"', r"at=instance\.packages\): write \[packages\]"),
        (
            "[instance]\npaused = 1\nlog_days = 8",
            "several settings are wrong.*settings=paused, log",
        ),
        ('without = "query"', r"not a list of stacks \(.*at=without"),
        ("without = [1]", r"at=without value=.1."),
        (
            "[packages]\nwheel = 'a'",
            r"an unknown setting of the file.*at=packages\.wheel\): did you",
        ),
        ("[packages]\nwheels = 3", r"at=packages\.wheels.*give a text or a list of texts"),
        ("[packages]\nwheels = []", r"no wheels are named \(.*at=packages\.wheels"),
        ('[packages]\nwheels = "a,b.whl"', "none has a comma in its name"),
        ("[packages]", r"not allowed in the file of an instance.*at=packages.*wheels"),
        ("tags = 1", r"a value is given to a section \(.*at=tags"),
        ("[tags]\ncost = 1234", r"tag='cost' value=1234\): give a text"),
        ('[tags]\n"aws:x" = "y"', "reserved"),
    ],
)
def test_what_it_cannot_say_is_told_with_the_file_and_the_key(text: str, says: str) -> None:
    with pytest.raises(InvalidError, match=says) as refused:
        said(text)
    assert refused.value.facts["file"] == Path("fleet/lakebed.toml")
    assert len(str(refused.value)) < 1_000


def test_settings_with_commas_between_are_lists_in_a_file() -> None:
    described = {}
    for name, hint in get_type_hints(InstanceSettings, include_extras=True).items():
        inner, meta = get_args(hint)
        assert isinstance(meta, Meta)
        if inner is str and "commas between" in str(meta.description):
            described[name] = hint
    assert set(described) - {"packages"} == set(LISTED)


def test_people_and_notices_have_sections() -> None:
    text = """
[people]
reader = ["arn:aws:iam::123456789012:role/one", "arn:aws:iam::123456789012:role/two"]
direct = true
[notices]
mail = ["ops@example.org"]
"""
    roles = "arn:aws:iam::123456789012:role/one,arn:aws:iam::123456789012:role/two"
    assert said(text).settings == {
        "notices_mail": "ops@example.org",
        "people_reader": roles,
        "people_direct": True,
    }
    with pytest.raises(InvalidError, match="unknown setting") as refused:
        said('[people]\nreaders = ["arn:aws:iam::123456789012:role/one"]')
    assert "reader" in (refused.value.hint or "")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match=r"cannot be read \(file=.*none.toml why=No such file"):
        read_instance_file(tmp_path / "none.toml")
    with pytest.raises(InvalidError, match="cannot be read"):
        read_instance_file(tmp_path)
    strange = tmp_path / "strange.toml"
    strange.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidError, match="cannot be read"):
        read_instance_file(strange)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "lakebed.toml"
    path.write_text(WHOLE.replace('[packages]\nwheels = "wheels"\n', ""), "utf-8")
    return str(path)


def test_the_command_overrides_the_file(file: str) -> None:
    by_file = deployment_of({"file": file, "aws:cdk": "passed over"})
    assert by_file.instance == "dev"
    assert by_file.settings.paused
    assert by_file.settings.log_days == "90"
    assert by_file.stacks == {"batching", "dashboard", "ingest", "networking", "people"}
    assert by_file.tags == {"team": "data", "cost center": "1234"}
    given = {"instance": "prod", "paused": "false", "without": "query, dashboard", "tags": "a=b=c"}
    both = deployment_of({"file": file, **given})
    assert both.instance == "prod"
    assert not both.settings.paused
    assert both.settings.log_days == "90"
    assert both.stacks == {"batching", "bulk-import", "ingest", "networking", "people"}
    assert both.tags == {"a": "b=c"}
    nothing = deployment_of({"file": file, "without": "", "tags": ""})
    assert len(nothing.stacks) == 7
    assert nothing.tags == {}


def test_the_context_of_cdk_json_gives_lists_and_sections() -> None:
    found = deployment_of({"instance": "dev", "without": ["query"], "tags": {"team": "data"}})
    assert "query" not in found.stacks
    assert found.tags == {"team": "data"}
    assert found.all_tags() == {"team": "data", "lakebed:instance": "dev"}


@pytest.mark.parametrize(
    ("context", "says"),
    [
        ({}, "no instance is named: add `-c instance=NAME`$"),
        ({"instance": "dev", "tags": "team"}, "not a tag .*write `-c tags=NAME=VALUE"),
        ({"instance": "dev", "tags": "aws:x=1"}, "reserved"),
        ({"instance": "dev", "without": "networking"}, "needed_by=ingest, compaction"),
        ({"instance": "dev", "fil": "x"}, "no such setting"),
    ],
)
def test_a_command_that_asks_for_what_there_is_not_is_refused(
    context: dict[str, object], says: str
) -> None:
    with pytest.raises(InvalidError, match=says):
        deployment_of(context)


def test_a_file_may_leave_the_name_to_the_command(tmp_path: Path) -> None:
    path = tmp_path / "lakebed.toml"
    path.write_text("[instance]\nlog_days = 7\n")
    with pytest.raises(InvalidError, match="`name` under \\[instance\\]"):
        deployment_of({"file": str(path)})
    assert deployment_of({"file": str(path), "instance": "a"}).settings.log_days == "7"
    path.write_text("[instance]\nname = 7\n")
    with pytest.raises(InvalidError, match="not a name of an instance"):
        deployment_of({"file": str(path)})
