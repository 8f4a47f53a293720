"""The language of tests: stories about one table, told over memory backends."""

from tests.dsl.scripted_log import ScriptedLog
from tests.dsl.table_story import TableStory, bounds, point

__all__ = ["ScriptedLog", "TableStory", "bounds", "point"]
