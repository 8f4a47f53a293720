"""An instance in a local cloud, as users and operators see it."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from lakebed.bootstrap.aws import open_instance
from lakebed.lake import Lake
from localcloud.cloud import LocalCloud
from localcloud.services.emulator import ACCOUNT, REGION

INSTANCE = "local"
SOURCES = "s3://landing/files"
"""Where files of users lie."""
FEED_QUEUE = "orders"
"""A queue of SQS, made by who uses it, that feeds may take messages from."""
FEED_SETTINGS = {
    "feed_workers_max": "2",
    "feed_take": "true",
    "feed_ports": "9092",
    "feed_queues": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{FEED_QUEUE}",
    "feed_secrets": "kafka",
    "feed_push": "true",
}
NOTICES = "notices"
"""A queue of SQS, made by who uses it, that hears of alarms."""
PEOPLE = ("reader", "sender", "writer", "operator", "admin")
"""Users of IAM who may each assume the role of their name."""
PEOPLE_SETTINGS = {
    "notices_queue": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{NOTICES}",
    "job_events": "true",
    **{f"people_{name}": f"arn:aws:iam::{ACCOUNT}:user/{name}" for name in PEOPLE},
}


@contextmanager
def with_variables(variables: Mapping[str, str]) -> Iterator[None]:
    """Until the block ends, this process has these variables of its environment.

    No other is touched: libraries read them in threads of their own, beside Python, and crash when
    all are taken away and put back meanwhile, as mock's `patch.dict` does.
    """
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


class RunningInstance:
    """cloud: where it runs. cache: for states of tables that its users see."""

    def __init__(self, cloud: LocalCloud, cache: Path) -> None:
        self.cloud = cloud
        self._cache = cache

    @contextmanager
    def led_here(self) -> Iterator[None]:
        """Until the block ends, what this process asks of AWS goes to the cloud."""
        with with_variables({**self.cloud.environment(), "LAKEBED_CACHE": str(self._cache)}):
            yield

    @contextmanager
    def lake(self) -> Iterator[Lake]:
        """A user's view, in the cloud's time."""
        with Lake(open_instance(INSTANCE, clock=self.cloud.clock)) as lake:
            yield lake

    def forget(self) -> None:
        """Leave nothing to the next test: no tables, no messages, no faults."""
        with self.led_here(), self.lake() as lake:
            for name in lake.tables():
                lake.drop_table(name)
        self.cloud.faults.dies_before_delete = lambda *_: False
        self.cloud.faults.delivers_twice = lambda *_: False
        self.cloud.failures.clear()
        sqs = self.cloud.client("sqs")
        for name in self.cloud.queues():
            sqs.purge_queue(QueueUrl=sqs.get_queue_url(QueueName=name)["QueueUrl"])
