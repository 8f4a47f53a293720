"""`lakebed config download` and `diff` of an instance's settings, against an emulator."""

from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from moto import mock_aws
from msgspec import UNSET, UnsetType

from lakebed.config.deployments.deployed_settings import DeployedSettings, deployed_settings
from lakebed.config.deployments.deployment import deployment_of
from lakebed.config.deployments.instance_resources import InstanceResources, encode_resources
from lakebed.config.instance import InstanceId, parameter_name
from tests.unit.cli.programs import Shell

DEV = InstanceId("dev")
REGION = "eu-central-1"
DEPLOYED = """\
# what we run
without = ["bulk-import"]

[instance]
name = "dev"
log_days = 90
sources = ["s3://landing/trips", "s3://landing/fares"]

[tags]
team = "data"
"""


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Shell]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_REGION", REGION)
    monkeypatch.setenv("LAKEBED_CACHE", str(tmp_path / "cache"))
    with mock_aws():
        keys = {"pk": "HASH", "sk": "RANGE"}
        boto3.client("dynamodb", region_name=REGION).create_table(
            TableName="lakebed-dev-registry",
            KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys.items()],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in keys],
            BillingMode="PAY_PER_REQUEST",
        )
        yield Shell(tmp_path)


def told(deployed_with: DeployedSettings | UnsetType | None) -> None:
    """Let the instance's parameter say how it was deployed."""
    resources = InstanceResources(
        instance=DEV,
        bucket="lakebed-dev-data",
        log_table="lakebed-dev-log",
        registry_table="lakebed-dev-registry",
        tracker_table="lakebed-dev-tracker",
        release="0.3.0",
        deployed_with=deployed_with,
    )
    ssm = boto3.client("ssm", region_name=REGION)
    ssm.put_parameter(
        Name=parameter_name(DEV), Value=encode_resources(resources), Type="String", Overwrite=True
    )


def deploy(folder: Path, text: str) -> Path:
    """Deploy an instance with a file, and return the file."""
    folder.mkdir(exist_ok=True)
    path = folder / "lakebed.toml"
    path.write_text(text)
    told(deployed_settings(deployment_of({"file": str(path)})))
    return path


def test_what_is_deployed_is_written_compared_and_deploys_the_same(shell: Shell) -> None:
    deployed = deploy(shell.folder / "ours", DEPLOYED)
    there = shell.folder / "there"
    assert shell.ok("--at", "dev", "config", "download", str(there)).splitlines() == [
        "written: lakebed.toml",
        "0 files as before",
    ]
    assert (there / "lakebed.toml").read_text() == (
        'without = ["bulk-import"]\n\n[instance]\nname = "dev"\n'
        'sources = ["s3://landing/trips", "s3://landing/fares"]\nlog_days = "90"\n\n'
        '[tags]\nteam = "data"\n'
    )
    written = deployment_of({"file": str(there / "lakebed.toml")})
    assert written == deployment_of({"file": str(deployed)})
    said = shell.ok("--at", "dev", "config", "diff", str(there))
    assert said == "settings are as the files say\n"
    assert not shell.json("--at", "dev", "config", "download", str(there))["settings_written"]


def test_each_setting_that_differs_is_shown_as_deployed_and_as_the_file_says(shell: Shell) -> None:
    path = deploy(shell.folder / "ours", DEPLOYED)
    other = DEPLOYED.replace("90", "7").replace('["bulk-import"]', '["query", "dashboard"]')
    path.write_text(other.replace("team", "stage") + "[notices]\nmail = ['a@example.org']\n")
    ours = str(path.parent)
    assert shell.ok("--at", "dev", "config", "diff", ours).splitlines() == [
        "settings (lakebed.toml)",
        "  log_days: 90 -> 7",
        '  notices_mail: "" -> a@example.org',
        "  without: bulk-import -> dashboard, query",
        "  tags.stage: nothing -> data",
        "  tags.team: data -> nothing",
    ]
    found = shell.json("--at", "dev", "config", "diff", ours)["settings"]
    assert found[0] == {"name": "log_days", "deployed": "90", "declared": "7"}


def test_a_file_that_says_something_else_stays_unless_it_may_go(shell: Shell) -> None:
    path = deploy(shell.folder / "ours", DEPLOYED)
    ours = str(path.parent)
    assert not shell.json("--at", "dev", "config", "download", ours)["settings_written"]
    assert path.read_text() == DEPLOYED, "it says the same in its own words"
    for text in (DEPLOYED.replace("90", "7"), "no TOML"):
        path.write_text(text)
        code, error = shell.refused("--at", "dev", "config", "download", ours)
        assert (code, error["facts"]["files"]) == (2, "lakebed.toml")
        assert path.read_text() == text
        assert shell.json("--at", "dev", "config", "download", ours, "--replace")[
            "settings_written"
        ]
        assert deployment_of({"file": str(path)}).settings.log_days == "90"


@pytest.mark.parametrize(
    ("recorded", "says"), [(UNSET, "deploy it again"), (None, "shorter lists and fewer tags")]
)
def test_an_instance_that_does_not_say_how_it_is_set_is_told_and_tables_are_done(
    shell: Shell, recorded: UnsetType | None, says: str
) -> None:
    told(recorded)
    there = shell.folder / "there"
    downloaded = shell.run("--at", "dev", "config", "download", str(there))
    assert downloaded.exit_code == 2
    assert says in downloaded.stderr
    assert downloaded.stdout == "0 files as before\n"
    assert not (there / "lakebed.toml").exists()
    there.mkdir()
    (there / "lakebed.toml").write_text(DEPLOYED)
    compared = shell.run("--at", "dev", "config", "diff", str(there))
    assert (compared.exit_code, compared.stdout) == (2, "")
    assert says in compared.stderr


def test_a_directory_has_no_settings_to_compare(shell: Shell) -> None:
    shell.ok("table", "create", "trips", "--row-key", "id:string")
    there = shell.folder / "there"
    shell.ok("config", "download", str(there))
    (there / "lakebed.toml").write_text("no TOML")
    assert shell.json("config", "diff", str(there)) == {"tables": [], "settings": None}
