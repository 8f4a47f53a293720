"""A key of one's own encrypts all that is stored, and only roles that meet data may use it."""

import json
import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tests.stacks.conftest import ROOT, Synthesize, Templates
from tests.stacks.test_checks import reports
from tests.stacks.test_functions import properties
from tests.stacks.test_security import KEY

PAGE = ROOT / "docs/operate/deploy.md"


def statement_for(service: str) -> dict[str, Any]:
    """Return the statement of a key's policy that the page has for a service."""
    texts = re.findall(r"^```json\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    statements = [json.loads(text) for text in texts]
    (found,) = [one for one in statements if one["Principal"] == {"Service": service}]
    return dict(found)


def test_the_page_has_the_statement_that_rules_of_arrivals_need(synthesize: Synthesize) -> None:
    statement = statement_for("events.amazonaws.com")
    assert statement["Action"] == ["kms:Decrypt", "kms:GenerateDataKey"]
    arn = statement["Condition"]["ArnLike"]["aws:SourceArn"]
    pattern = arn.removeprefix("arn:aws:events:REGION:ACCOUNT:rule/")
    templates = synthesize(sources="s3://landing,s3://partners", key_arn=KEY)
    rules = properties(templates, "AWS::Events::Rule")
    told = [rule["Name"] for rule in rules if "EventPattern" in rule]
    assert len(told) == 2
    assert all(fnmatchcase(name, pattern) for name in told)


def test_the_page_has_the_statement_that_logs_need_of_a_keys_policy(templates: Templates) -> None:
    statement = statement_for("logs.REGION.amazonaws.com")
    named = statement["Condition"]["ArnLike"]["kms:EncryptionContext:aws:logs:arn"]
    patterns = [arn.removeprefix("arn:aws:logs:REGION:ACCOUNT:log-group:") for arn in named]
    groups = [log["LogGroupName"] for log in properties(templates, "AWS::Logs::LogGroup")]
    assert len(groups) > 20
    assert [g for g in groups if not any(fnmatchcase(g, p) for p in patterns)] == []
    assert all(any(fnmatchcase(g, p) for g in groups) for p in patterns)


def test_a_key_of_ones_own_encrypts_all_that_is_stored(
    synthesize: Synthesize, templates: Templates, tmp_path: Path
) -> None:
    key = KEY
    own = synthesize(tmp_path, key_arn=key)
    warned = [v["ruleName"] for one in reports(tmp_path).values() for v in one["violations"]]
    assert "Annotation::lakebed:key-policy" in warned
    for bucket in properties(own, "AWS::S3::Bucket"):
        assert key in json.dumps(bucket["BucketEncryption"])
    for table in properties(own, "AWS::DynamoDB::Table"):
        assert table["SSESpecification"]["KMSMasterKeyId"] == key
    for queue in properties(own, "AWS::SQS::Queue"):
        assert queue["KmsMasterKeyId"] == key
    assert "kms" not in json.dumps(templates)
