"""When work that failed is begun again."""

from lakebed.feeds.restarts import HOUR_SECONDS, RestartRules, Restarts


def test_waits_double_up_to_the_longest_and_are_short_again_after_work() -> None:
    restarts = Restarts(RestartRules(max=100, seconds_min=1, seconds_max=10))
    waits = [restarts.waits(float(n), is_counted=True) for n in range(6)]
    assert waits == [1, 2, 4, 8, 10, 10]
    restarts.worked()
    assert restarts.waits(6, is_counted=True) == 1


def test_so_many_failures_in_an_hour_are_final_and_those_of_earlier_do_not_count() -> None:
    restarts = Restarts(RestartRules(max=2))
    assert restarts.waits(0, is_counted=True) is not None
    assert restarts.waits(10, is_counted=True) is not None
    assert restarts.waits(HOUR_SECONDS - 1, is_counted=True) is None
    assert restarts.waits(HOUR_SECONDS, is_counted=True) is not None


def test_what_is_not_counted_is_never_final() -> None:
    restarts = Restarts(RestartRules(max=0))
    assert all(restarts.waits(n, is_counted=False) for n in range(100))
    assert restarts.waits(100, is_counted=True) is None
