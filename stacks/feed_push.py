"""Pushed feeds: a function behind a URL that keeps what senders push until workers land it.

An instance whose setting `feed_push` is `false` has no such stack.
"""

from __future__ import annotations

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from lakebed.config.instance import Deployment
from stacks import feed_permissions
from stacks.constructs.lake_stores import LakeStores
from stacks.constructs.python_bundle import STATE
from stacks.constructs.python_function import PythonFunction

SECONDS_MAX = 60
"""A feed that answers when its records are in the landing table lets a request wait for half of
it."""


class FeedPushStack(Stack):
    """Senders sign their requests, and IAM judges them: whom the function lets in, is said in their
    own policies. Nothing here names them."""

    def __init__(
        self, scope: Construct, id: str, *, deployment: Deployment, stores: LakeStores
    ) -> None:
        super().__init__(
            scope,
            id,
            stack_name=deployment.name("feed-push"),
            description=f"Lakebed {deployment.instance}: records that senders push",
        )
        push = PythonFunction(
            self,
            "Push",
            deployment=deployment,
            bundle=STATE,
            room="feeds",
            verb="push",
            environment=stores.function_environment(deployment),
            permissions=[
                *feed_permissions.put_segments(deployment),
                *feed_permissions.look_into_landing_tables(stores.registry, stores.log),
            ],
            runs_apart=None,
            timeout_seconds=SECONDS_MAX,
        )
        url = push.function.add_function_url(auth_type=lambda_.FunctionUrlAuthType.AWS_IAM)
        CfnOutput(self, "Url", value=url.url, description="Senders push to URL + FEED")
