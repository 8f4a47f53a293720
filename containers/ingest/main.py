"""Run ingest jobs of users' messages until the queue is empty. Started when it is not."""

import sys

from lakebed.bootstrap.tasks import ingest_task

if __name__ == "__main__":
    sys.exit(ingest_task.run())
