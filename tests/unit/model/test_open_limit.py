"""A bound on how many of many things are open."""

from lakebed.model.open_limit import OpenLimit


class Things:
    """Names that are open; those in use are not closed."""

    def __init__(self, open_max: int) -> None:
        self.open: set[str] = set()
        self.in_use: set[str] = set()
        self.limit = OpenLimit(open_max, self.close)

    def close(self, name: str) -> bool:
        if name in self.in_use:
            return False
        self.open.remove(name)
        return True

    def when_used(self, *names: str) -> None:
        for name in names:
            self.open.add(name)
            self.limit.used(name)


def test_the_least_recently_used_one_is_closed_first() -> None:
    things = Things(2)
    things.when_used("a", "b", "a", "c")
    assert things.open == {"a", "c"}
    things.when_used("b")
    assert things.open == {"c", "b"}


def test_what_is_in_use_stays_open_beyond_the_bound_and_is_closed_later() -> None:
    things = Things(1)
    things.in_use = {"a", "b"}
    things.when_used("a", "b", "c")
    assert things.open == {"a", "b", "c"}
    things.in_use.clear()
    things.when_used("d")
    assert things.open == {"d"}


def test_what_its_owner_closed_is_not_counted() -> None:
    things = Things(2)
    things.when_used("a", "b")
    things.open.remove("b")
    things.limit.forget("b")
    things.when_used("c")
    assert things.open == {"a", "c"}
