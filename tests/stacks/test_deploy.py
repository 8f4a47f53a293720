"""The real `cdk` against an emulator: deploy, change, destroy, deploy again."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from lakebed.backends.aws.clients import AmazonClients
from lakebed.config.deployments.instance_resources import (
    InstanceResources,
    decode_resources,
    encode_resources,
)
from lakebed.config.dynamo_tables import DYNAMO_TABLES, TRACKER_TABLE
from lakebed.config.instance import InstanceId, parameter_name
from lakebed.model.releases import BEFORE, RELEASES
from tests.servers.cdk import Cdk, DeployedInstance, named_network
from tests.servers.dynamo import create_arguments
from tests.servers.s3 import S3Server
from tests.stacks.conftest import Synthesize, Templates

pytestmark = pytest.mark.timeout(900)
"""The first test also waits for the deployment."""


@pytest.fixture
def clients(ministack: S3Server) -> Iterator[AmazonClients]:
    with closing(ministack.clients()) as clients:
        yield clients


def resources_of(clients: AmazonClients, instance: str) -> InstanceResources:
    answer = clients.ssm.get_parameter(Name=parameter_name(InstanceId(instance)))
    return decode_resources(answer["Parameter"]["Value"], InstanceId(instance))


def tables(clients: AmazonClients, instance: str) -> set[str]:
    names = clients.dynamodb.list_tables()["TableNames"]
    return {name for name in names if name.startswith(f"lakebed-{instance}-")}


def test_deployed_resources_are_where_the_parameter_says(
    deployed_instance: DeployedInstance, clients: AmazonClients
) -> None:
    found = resources_of(clients, deployed_instance.instance)
    named = {found.log_table, found.registry_table, found.tracker_table, found.batches_table}
    assert tables(clients, deployed_instance.instance) == named
    assert found.bucket == "lakebed-tests-data-000000000000-us-east-1"
    for url in found.queues.values():
        asked = {"QueueUrl": url, "AttributeNames": ["RedrivePolicy", "FifoQueue"]}
        told = clients.sqs.get_queue_attributes(**asked)["Attributes"]
        assert told["FifoQueue"] == "true"
        assert "dead.fifo" in told["RedrivePolicy"]
    write(deployed_instance.server, found.bucket)


def test_a_second_deployment_has_nothing_to_do(deployed_instance: DeployedInstance) -> None:
    cdk = deployed_instance.cdk
    said = cdk.run("diff", "--all", "--fail", "--app", str(cdk.output))
    assert "Number of stacks with differences: 0" in said


@pytest.mark.slow
def test_who_names_no_instance_reads_one_sentence(ministack: S3Server, tmp_path: Path) -> None:
    done = Cdk(ministack, tmp_path / "out").try_("synth", "-c", "data_kept=true")
    assert done.returncode != 0
    assert "cannot deploy: no instance is named: add `-c instance=NAME`" in done.stdout
    assert "Traceback" not in done.stdout


@pytest.mark.slow
def test_a_network_without_an_endpoint_of_s3_is_refused(
    ministack: S3Server, synthesize: Synthesize, tmp_path: Path
) -> None:
    cdk, out = Cdk(ministack, tmp_path / "out"), tmp_path / "assembly"
    cdk.bootstrap()
    network = named_network(ministack, leads_to_s3=False)
    synthesize(out, instance="lost", **network)
    wanted = ("lost/Networking", "--require-approval", "never", "--app", str(out))
    done = cdk.try_("deploy", *wanted)
    assert done.returncode != 0
    assert "a network without an endpoint of S3" in done.stdout
    assert network["vpc_id"] in done.stdout


@pytest.mark.slow
def test_data_outlives_the_stacks_and_is_taken_over_again(
    ministack: S3Server, clients: AmazonClients, synthesize: Synthesize, tmp_path: Path
) -> None:
    """The life of an instance: each assembly is synthesized here, and deployed by the real cdk."""
    cdk = Cdk(ministack, tmp_path / "out")
    cdk.bootstrap()
    kept, gone = tmp_path / "kept", tmp_path / "gone"
    bucket = "lakebed-life-data-000000000000-us-east-1"
    network = named_network(ministack)
    ids = bucket_ids(synthesize(kept, instance="life", **network))
    synthesize(gone, instance="life", data_kept="false", **network)

    cdk.deploy("--app", str(kept))
    assert resources_of(clients, "life").bucket == bucket
    item = {"pk": {"S": "t"}, "sk": {"N": "1"}, "body": {"B": b"entry"}}
    clients.dynamodb.put_item(TableName="lakebed-life-log", Item=item)
    write(ministack, bucket)

    cdk.run("destroy", "--all", "--force", "--app", str(kept))
    with pytest.raises(ClientError, match="ParameterNotFound"):
        resources_of(clients, "life")
    assert tables(clients, "life") == {f"lakebed-life-{table.part}" for table in DYNAMO_TABLES}

    mapping = tmp_path / "mapping.json"
    mapping.write_text(
        json.dumps(
            {
                id_: {"BucketName": f"lakebed-life-{part}-000000000000-us-east-1"}
                for part, id_ in ids.items()
            }
        )
    )
    cdk.run(
        "import", "life/Data", "--resource-mapping", str(mapping), "--force", "--app", str(kept)
    )
    cdk.deploy("--import-existing-resources", "--app", str(kept))
    assert resources_of(clients, "life").bucket == bucket
    key = {"pk": item["pk"], "sk": item["sk"]}
    assert clients.dynamodb.get_item(TableName="lakebed-life-log", Key=key)["Item"] == item
    store = ministack.store("lake", bucket=bucket)
    assert store.read("rows", [(0, 4)]) == [b"rows"]

    cdk.deploy("--app", str(gone))
    store.delete(["rows"])
    cdk.run("destroy", "--all", "--force", "--app", str(gone))
    assert not tables(clients, "life")


@pytest.mark.slow
def test_a_first_deployment_that_fails_is_rolled_back_and_repeated(
    ministack: S3Server, clients: AmazonClients, synthesize: Synthesize, tmp_path: Path
) -> None:
    """A table is in the way, two others were made before that was seen: what protects those must
    not stop the rollback."""
    cdk, out = Cdk(ministack, tmp_path / "out"), tmp_path / "assembly"
    cdk.bootstrap()
    synthesize(out, instance="failed", **named_network(ministack))
    tracker = create_arguments("lakebed-failed-tracker", TRACKER_TABLE)
    stream = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    clients.dynamodb.create_table(**tracker, StreamSpecification=stream)
    wanted = ("failed/State", "--require-approval", "never", "--app", str(out))

    done = cdk.try_("deploy", *wanted)
    assert done.returncode != 0
    assert "already exists" in done.stdout
    assert "ROLLBACK_COMPLETE" in done.stdout
    assert "ROLLBACK_FAILED" not in done.stdout
    left = {f"lakebed-failed-{table.part}" for table in DYNAMO_TABLES}
    assert tables(clients, "failed") == left

    cdk.run("deploy", *wanted, "--import-existing-resources")
    assert tables(clients, "failed") == left


@pytest.mark.slow
def test_a_change_of_spark_is_refused_and_taken_back_while_it_is_started(
    ministack: S3Server, clients: AmazonClients, synthesize: Synthesize, tmp_path: Path
) -> None:
    cdk = Cdk(ministack, tmp_path / "out")
    cdk.bootstrap()
    network = named_network(ministack)
    small, large = tmp_path / "small", tmp_path / "large"
    synthesize(small, instance="spark", bulk_import_vcpus_max="8", **network)
    synthesize(large, instance="spark", bulk_import_vcpus_max="12", **network)
    wanted = ("spark/BulkImport", "--require-approval", "never", "--app")
    cdk.run("deploy", *wanted, str(small))
    started = "/emulator/started/lakebed-spark-bulk-import"
    clients.ssm.put_parameter(Name=started, Value="while a run goes on", Type="String")

    done = cdk.try_("deploy", *wanted, str(large))
    assert done.returncode != 0
    assert "Application must be in one of the following statuses" in done.stdout
    assert "UPDATE_ROLLBACK_FAILED" not in done.stdout
    unchanged = ("diff", "spark/BulkImport", "--fail", "--app")
    assert "Number of stacks with differences: 0" in cdk.run(*unchanged, str(small))

    clients.ssm.delete_parameter(Name=started)
    cdk.run("deploy", *wanted, str(large))
    assert "Number of stacks with differences: 0" in cdk.run(*unchanged, str(large))


@pytest.mark.slow
def test_a_deployment_that_skips_a_release_is_refused_before_anything_changes(
    ministack: S3Server, clients: AmazonClients, synthesize: Synthesize, tmp_path: Path
) -> None:
    cdk, out = Cdk(ministack, tmp_path / "out"), tmp_path / "assembly"
    cdk.bootstrap()
    synthesize(out, instance="skips", **named_network(ministack))

    def say(release: str) -> None:
        """Let the instance's parameter say which release deployed it."""
        there = InstanceResources(
            instance=InstanceId("skips"),
            bucket="data",
            log_table="log",
            registry_table="registry",
            tracker_table="tracker",
            release=release,
        )
        name = parameter_name(InstanceId("skips"))
        told = {"Name": name, "Value": encode_resources(there), "Type": "String"}
        clients.ssm.put_parameter(**told, Overwrite=True)

    say(RELEASES[0].name)
    done = cdk.try_("deploy", "--all", "--require-approval", "never", "--app", str(out))
    assert done.returncode != 0
    assert "a release would be skipped" in done.stdout
    assert f"deploy {RELEASES[1].name} first" in done.stdout
    assert not tables(clients, "skips")

    say(BEFORE.name)
    wanted = ("skips/Release", "--require-approval", "never", "--app", str(out))
    cdk.run("deploy", *wanted)
    say(RELEASES[0].name)  # what is checked already is not checked again
    assert "no changes" in cdk.run("deploy", *wanted)


def bucket_ids(templates: Templates) -> dict[str, str]:
    """Return logical ids of buckets, by what they hold."""
    return {
        "results"
        if "-results-" in json.dumps(resource["Properties"]["BucketName"])
        else "data": id_
        for id_, resource in templates["data"]["Resources"].items()
        if resource["Type"] == "AWS::S3::Bucket"
    }


def write(server: S3Server, bucket: str) -> None:
    writer = server.store("lake", bucket=bucket).create("rows")
    writer.write(b"rows")
    writer.finish()
