"""Work on feeds that were started, until no task is needed. Started when one is."""

import sys

from lakebed.bootstrap.tasks import feed_task

if __name__ == "__main__":
    sys.exit(feed_task.run())
