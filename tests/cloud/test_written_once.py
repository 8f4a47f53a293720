"""The bucket's policy keeps objects from being overwritten, whatever roles may do."""

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from lakebed.config.instance import OBJECTS_PREFIX
from tests.cloud.instance import INSTANCE, RunningInstance

ROLE = f"lakebed-{INSTANCE}-ingest-TasksRole"
PLACE = f"{OBJECTS_PREFIX}/objects/tables/0/files"
ALWAYS = {"IfNoneMatch": "*"}


def test_a_write_that_could_overwrite_is_denied_and_parts_are_not(
    instance: RunningInstance,
) -> None:
    cloud = instance.cloud
    (bucket,) = [
        found["Name"]
        for found in cloud.client("s3").list_buckets()["Buckets"]
        if found["Name"].startswith(f"lakebed-{INSTANCE}-data-")
    ]
    (role,) = [
        found["Arn"]
        for page in cloud.client("iam").get_paginator("list_roles").paginate()
        for found in page["Roles"]
        if found["RoleName"].startswith(ROLE)
    ]
    session = cloud.client("sts").assume_role(RoleArn=role, RoleSessionName="writer")
    writer = boto3.client(
        "s3",
        aws_access_key_id=session["Credentials"]["AccessKeyId"],
        aws_secret_access_key=session["Credentials"]["SecretAccessKey"],
        aws_session_token=session["Credentials"]["SessionToken"],
        config=Config(s3={"addressing_style": "path"}),
    )
    one, parts = {"Bucket": bucket, "Key": f"{PLACE}/one"}, {"Bucket": bucket, "Key": f"{PLACE}/2"}
    with pytest.raises(ClientError, match="AccessDenied"):
        writer.put_object(**one, Body=b"one")
    writer.put_object(**one, **ALWAYS, Body=b"one")
    with pytest.raises(ClientError, match="PreconditionFailed"):
        writer.put_object(**one, **ALWAYS, Body=b"two")
    upload = writer.create_multipart_upload(**parts)["UploadId"]
    part = writer.upload_part(**parts, UploadId=upload, PartNumber=1, Body=b"part")
    told = {
        **parts,
        "UploadId": upload,
        "MultipartUpload": {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]},
    }
    with pytest.raises(ClientError, match="AccessDenied"):
        writer.complete_multipart_upload(**told)
    writer.complete_multipart_upload(**told, **ALWAYS)
    given_up = writer.create_multipart_upload(**parts)["UploadId"]
    writer.abort_multipart_upload(**parts, UploadId=given_up)
