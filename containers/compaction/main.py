"""Run compaction jobs until their queue is empty. Started when it is not."""

import sys

from lakebed.bootstrap.tasks import compaction_task

if __name__ == "__main__":
    sys.exit(compaction_task.run())
