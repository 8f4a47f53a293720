"""Who lives is decided by the watcher's own clock, and by counters that rise."""

import random

import pytest

from lakebed.feeds.living_workers import DEAD_SECONDS, FORGET_SECONDS, LivingWorkers
from lakebed.ports.leases import WorkerBeat, WorkerId


def beats(**counters: int) -> list[WorkerBeat]:
    return [WorkerBeat(WorkerId(name), counter, b"") for name, counter in counters.items()]


def test_a_worker_whose_counter_does_not_rise_for_six_seconds_is_dead() -> None:
    watcher = LivingWorkers()
    for n in range(5):
        watcher.see(beats(ann=n, ben=7), now=1_000.0 + 2 * n)
        assert watcher.living() == (["ann", "ben"] if 2 * n < DEAD_SECONDS else ["ann"])


def test_a_dead_worker_that_beats_again_lives() -> None:
    watcher = LivingWorkers()
    for n in range(5):
        watcher.see(beats(ann=1), now=2.0 * n)
    assert watcher.living() == []
    watcher.see(beats(ann=2), now=10.0)
    assert watcher.living() == ["ann"]


def test_a_counter_that_falls_has_changed_as_after_a_restored_store() -> None:
    watcher = LivingWorkers()
    for n in range(5):
        watcher.see(beats(ann=100 - n), now=2.0 * n)
    assert watcher.living() == ["ann"]


def test_a_watcher_that_could_not_look_takes_nobody_for_dead() -> None:
    """It stood still, or the store was away: then the others could not beat, either."""
    watcher = LivingWorkers()
    watcher.see(beats(ann=1, ben=1), now=0.0)
    watcher.see(beats(ann=1, ben=1), now=3_600.0)
    assert watcher.living() == ["ann", "ben"]
    watcher.see(beats(ann=2, ben=1), now=3_602.0)
    watcher.see(beats(ann=3, ben=1), now=3_604.0)
    assert watcher.living() == ["ann"]


def test_a_worker_that_has_left_is_gone_and_one_that_comes_is_new() -> None:
    watcher = LivingWorkers()
    for n in range(5):
        watcher.see(beats(ann=1), now=2.0 * n)
    watcher.see([], now=10.0)
    assert watcher.living() == []
    watcher.see(beats(ann=1), now=12.0)
    assert watcher.living() == ["ann"]


def test_a_worker_that_is_dead_for_long_may_be_forgotten() -> None:
    watcher = LivingWorkers()
    for n in range(int(FORGET_SECONDS) // 2 + 1):
        assert watcher.forgotten() == []
        watcher.see(beats(ann=1, ben=n), now=2.0 * n)
    assert watcher.forgotten() == ["ann"]


@pytest.mark.parametrize("seed", range(50))
def test_a_death_is_seen_in_time_and_no_living_worker_is_buried(seed: int) -> None:
    """Beats each two seconds, looks now and then, any clock: within 10 s of the last beat."""
    rng = random.Random(seed)
    watcher = LivingWorkers()
    offset, died = rng.uniform(-1e6, 1e6), rng.uniform(5, 60)
    now = 0.0
    while now < died + 10:
        now += rng.uniform(1.5, 2.5)
        counters = {"ann": int(now / 2), "ben": int(min(now, died) / 2)}
        watcher.see(beats(**counters), now=now + offset)
        assert "ann" in watcher.living()
        if now < died:
            assert "ben" in watcher.living()
    watcher.see(beats(ann=int(now / 2), ben=int(died / 2)), now=now + offset)
    assert "ben" not in watcher.living()
