"""A key of one's own encrypts all that is stored, and only roles that meet data may use it."""

import json

from tests.stacks.conftest import Synthesize, Templates
from tests.stacks.test_functions import ROLES_WITHOUT_DATA, properties


def test_a_key_of_ones_own_encrypts_all_that_is_stored(
    synthesize: Synthesize, templates: Templates
) -> None:
    key = "arn:aws:kms:eu-west-1:123456789012:key/0f1e2d3c-aaaa-bbbb-cccc-1234567890ab"
    own = synthesize(key_arn=key)
    for bucket in properties(own, "AWS::S3::Bucket"):
        assert key in json.dumps(bucket["BucketEncryption"])
    for table in properties(own, "AWS::DynamoDB::Table"):
        assert table["SSESpecification"]["KMSMasterKeyId"] == key
    for queue in properties(own, "AWS::SQS::Queue"):
        assert queue["KmsMasterKeyId"] == key
    without = 0
    for role in properties(own, "AWS::IAM::Role"):
        statements = role["Policies"][0]["PolicyDocument"]["Statement"]
        of_key = [statement for statement in statements if "kms:Decrypt" in statement["Action"]]
        without += not of_key
        assert {statement["Resource"] for statement in of_key} <= {key}
    assert without == len(ROLES_WITHOUT_DATA)
    assert "kms" not in json.dumps(templates)
