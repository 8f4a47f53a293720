"""`lakebed doctor`: what it says, and an instance examined against an emulator."""

import json
from pathlib import Path

import boto3
import pytest
from moto import mock_aws
from moto.servicequotas.models import ServiceQuotasBackend

from lakebed.cli.doctor import exit_code_of, findings_text
from lakebed.config.instance import (
    InstanceId,
    InstanceResources,
    encode_resources,
    instance_settings,
    parameter_name,
)
from lakebed.config.quotas import QUOTAS, quotas_needed
from lakebed.doctor.examine_account import QuotaFinding
from tests.unit.cli.programs import Shell

DEV = InstanceId("dev")
ENOUGH = QuotaFinding(
    service="vpc",
    code="L-F678F1CE",
    name="VPCs per Region",
    state="enough",
    has=4.0,
    needs=1,
    advice="",
)
LITTLE = QuotaFinding(
    service="emr-serverless",
    code="L-D05C8A75",
    name="Max concurrent vCPUs per account",
    state="too little",
    has=16.0,
    needs=64,
    advice="ask Service Quotas for 64",
)
UNREAD = QuotaFinding(
    service="lambda",
    code="L-B99A9384",
    name="Concurrent executions",
    state="not read",
    has=None,
    needs=10,
    advice="the credentials must permit lambda:GetAccountSettings",
)


def test_findings_are_told_as_a_table_and_what_to_do_below_it() -> None:
    assert findings_text([ENOUGH, LITTLE, UNREAD]) == (
        "quota                                             code        has      needs\n"
        "vpc: VPCs per Region                              L-F678F1CE  4        1      enough\n"
        "emr-serverless: Max concurrent vCPUs per account  L-D05C8A75  16       64     too little\n"
        "lambda: Concurrent executions                     L-B99A9384  unknown  10     not read\n"
        "emr-serverless L-D05C8A75: ask Service Quotas for 64\n"
        "lambda L-B99A9384: the credentials must permit lambda:GetAccountSettings"
    )


@pytest.mark.parametrize(
    ("found", "code"),
    [([ENOUGH], 0), ([ENOUGH, UNREAD], 4), ([UNREAD, LITTLE], 2), ([LITTLE], 2)],
)
def test_the_exit_code_is_that_of_the_gravest_finding(found: list[QuotaFinding], code: int) -> None:
    assert exit_code_of(found) == code


def test_a_directory_has_no_account(tmp_path: Path) -> None:
    code, error = Shell(tmp_path).refused("doctor")
    assert code == 2
    assert "lakebed --at INSTANCE doctor" in error["hint"]


def test_an_instance_is_examined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setattr(ServiceQuotasBackend, "get_service_quota", new_account)
    resources = InstanceResources(
        instance=DEV,
        bucket="b",
        log_table="l",
        registry_table="r",
        tracker_table="t",
        quotas=quotas_needed(instance_settings({"bulk_import_vcpus_max": "64"})),
    )
    with mock_aws():
        told = encode_resources(resources)
        ssm = boto3.client("ssm", region_name="us-east-1")
        ssm.put_parameter(Name=parameter_name(DEV), Value=told, Type="String")
        result = Shell(tmp_path).run("--at", "dev", "doctor", "--json")
    found = {one["code"]: one for one in json.loads(result.stdout)}
    states = {code: one["state"] for code, one in found.items() if one["state"] != "enough"}
    assert states == {"L-D05C8A75": "too little", "L-B99A9384": "not read"}, "moto has no runs"
    assert (found["L-D05C8A75"]["has"], found["L-D05C8A75"]["needs"]) == (16.0, 64)
    assert result.exit_code == 2


def new_account(_backend: object, service_code: str, quota_code: str) -> dict[str, object]:
    """What moto lacks: it knows quotas of networks only."""
    (quota,) = [one for one in QUOTAS if (one.service, one.code) == (service_code, quota_code)]
    return {"QuotaCode": quota_code, "Value": float(quota.new_account)}
