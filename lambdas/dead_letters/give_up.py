"""Free the files of compaction jobs that reached the dead letters. Trigger: a schedule."""

from lakebed.bootstrap.functions import dead_letters
from lambdas.shape import Tick, scheduled_handler


def give_up(app: dead_letters.App, _tick: Tick) -> None:
    app.run()


handler = scheduled_handler(dead_letters.app, give_up)
