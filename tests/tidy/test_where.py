"""The list of behaviours in `docs/map.md` leads to what there is."""

import ast
import re

from tests.tidy.source import ROOT

_ROW = re.compile(r"^\| [^|]+ \| `([^`]+\.py)` \| `(\w+)` \|$", re.MULTILINE)
BEHAVIOURS_MIN = 20


def rows() -> list[tuple[str, str]]:
    """Return file and name of each behaviour."""
    page = (ROOT / "docs" / "map.md").read_text()
    return _ROW.findall(page.partition("## Where is ...?")[2].partition("\n## ")[0])


def names_in(path: str) -> set[str]:
    """Return the public names that a module defines."""
    defined = ast.FunctionDef | ast.ClassDef
    tree = ast.parse((ROOT / path).read_text())
    return {node.name for node in tree.body if isinstance(node, defined)}


def test_each_behaviour_is_where_the_map_says() -> None:
    found = rows()
    assert len(found) >= BEHAVIOURS_MIN
    missing = [(path, name) for path, name in found if name not in names_in(path)]
    assert not missing
