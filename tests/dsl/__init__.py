"""The language of tests: stories about one table over memory backends, and about whole lakes.

`docs/design/stories.md` has the words of both.
"""

from tests.dsl.scripted_log import ScriptedLog
from tests.dsl.table_story import TableStory, bounds, point

__all__ = ["ScriptedLog", "TableStory", "bounds", "point"]
