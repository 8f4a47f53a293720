"""Checks what was deployed: is there room, and what tasks and imports run on?"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from lakebed.config.accounts.quotas import (
    FARGATE_SPOT_VCPUS,
    FARGATE_VCPUS,
    FUNCTION_RUNS,
    MACHINE_VCPUS,
    NETWORKS,
    SPARK_VCPUS,
    Quota,
    quotas_needed,
)
from lakebed.config.instance import InstanceSettings
from lakebed.doctor.check import Check, Sign
from lakebed.doctor.checks.wiring import BY_TASKS, DEPLOY
from lakebed.doctor.examine_account import ExamineAccount
from lakebed.doctor.patient import Patient
from lakebed.errors import UnavailableError

GATEWAYS = ("dynamodb", "s3")
FAILED = ("FAILED", "ROLLBACK")
"""Parts of the state of a stack that did not become as it was meant."""

_check = partial(Check, section="what was deployed", of="an instance")


def _quota(quota: Quota, patient: Patient) -> Iterator[Sign]:
    needs = patient.resources().quotas or quotas_needed(InstanceSettings())
    found = ExamineAccount(patient.account(), needs).of(quota)
    if found.state == "not read":
        raise UnavailableError("the quota cannot be read", why=found.advice)
    if found.state == "too little":
        yield Sign(about=f"{found.has:g} of {found.needs}: {found.advice}")


def _images(patient: Patient) -> Iterator[Sign]:
    for task in patient.parts().tasks():
        if not task.is_there:
            yield Sign(about=f"{task.kind}: {task.image}")


def _undefined(patient: Patient) -> Iterator[Sign]:
    defined = {task.kind for task in patient.parts().tasks()}
    for kind in sorted(BY_TASKS & set(patient.resources().queues)):
        if kind not in defined:
            yield Sign(about=kind)


def _cluster(patient: Patient) -> Iterator[Sign]:
    state = patient.parts().cluster_state()
    if state != "ACTIVE":
        yield Sign(about=state or "it is not there")


def _gateways(patient: Patient) -> Iterator[Sign]:
    network = patient.parts().network()
    if network is None:  # a network of the user's: checked when it is deployed
        return
    for service in GATEWAYS:
        if service not in network.gateways:
            yield Sign(about=f"{network.id} has no route to {service}")


def _spark(patient: Patient) -> Iterator[Sign]:
    state = patient.parts().spark_state()
    if state in {"", "TERMINATED"}:
        yield Sign(about=state or "it is not there")


def _stacks_failed(patient: Patient) -> Iterator[Sign]:
    for stack in patient.parts().stacks():
        if any(word in stack.status for word in FAILED):
            yield Sign(about=f"{stack.name}: {stack.status}")


def _stacks_drifted(patient: Patient) -> Iterator[Sign]:
    for stack in patient.parts().stacks():
        if stack.drift == "DRIFTED":
            yield Sign(about=stack.name)


def _quota_check(id_: str, quota: Quota) -> Check:
    return _check(
        id=id_,
        found_when=f"the account has less than the instance may use of: {quota.name}",
        cure=f"ask Service Quotas for more of {quota.service} {quota.code}, or deploy with less",
        look=partial(_quota, quota),
    )


PLATFORM_CHECKS = (
    _quota_check("quota-function-runs", FUNCTION_RUNS),
    _quota_check("quota-fargate", FARGATE_VCPUS),
    _quota_check("quota-fargate-spot", FARGATE_SPOT_VCPUS),
    _quota_check("quota-machines", MACHINE_VCPUS),
    _quota_check("quota-spark", SPARK_VCPUS),
    _quota_check("quota-networks", NETWORKS),
    _check(
        id="images-missing",
        found_when="the image that tasks run is not in its repository",
        cure=DEPLOY,
        look=_images,
    ),
    _check(
        id="tasks-undefined",
        found_when="a queue of jobs has no tasks that would run them",
        cure=DEPLOY,
        look=_undefined,
    ),
    _check(
        id="cluster-missing",
        found_when="the cluster that tasks run in is not there or not active",
        cure=DEPLOY,
        look=_cluster,
    ),
    _check(
        id="network-without-gateways",
        found_when="tasks of the instance's own network have no free way to S3 or DynamoDB",
        cure=DEPLOY,
        look=_gateways,
    ),
    _check(
        id="spark-missing",
        found_when="what runs bulk imports is not there",
        cure=DEPLOY,
        look=_spark,
    ),
    _check(
        id="stacks-failed",
        found_when="a stack is not as it was meant: its last change failed",
        cure="read its events in CloudFormation, mend the reason, deploy again",
        look=_stacks_failed,
    ),
    _check(
        id="stacks-drifted",
        found_when="CloudFormation found, when it last looked, that a stack was changed by hand",
        cure=f"{DEPLOY}; `aws cloudformation detect-stack-drift` looks again",
        look=_stacks_drifted,
    ),
)
