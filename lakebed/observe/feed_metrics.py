"""The metrics of feeds, which `lakebed/observe/metrics.py` lists among all."""

from __future__ import annotations

from lakebed.observe import events
from lakebed.observe.metric import FOLLOWS, Metric

FED = "`lakebed feed status` shows it; `feed_quarantines` counts where too much is bad"

OWN_STACK = "instances that run feeds have one, by their own stack"
"""The reason why metrics whose alarm is in the stack of feeds have none in the list."""


def _fed(fate: str, meaning: str) -> Metric:
    """Return the metric of what became of records of feeds."""
    return Metric(
        name=f"feed_records_{fate}",
        unit="Count",
        section="feeds",
        meaning=meaning,
        event=events.FEED_PROGRESSED,
        fact=f"{fate}_count",
        without_alarm=FED,
    )


def _trouble(
    name: str, meaning: str, event: str, *, where: tuple[tuple[str, str], ...] = ()
) -> Metric:
    """Return a metric whose alarm is in the stack of feeds."""
    return Metric(
        name=name,
        unit="Count",
        section="feeds",
        meaning=meaning,
        event=event,
        where=where,
        without_alarm=OWN_STACK,
        of_trouble=True,
    )


FEED_METRICS = (
    _fed("read", "records that feeds took from their sources"),
    _fed("stored", "of these, became rows"),
    _fed("filtered", "of these, left out by a connection's filter"),
    _fed("quarantined", "of these, no row could be made of"),
    _fed("deduplicated", "of these, known already"),
    _fed("sampled_out", "of these, left out by a policy that samples"),
    _fed("discarded", "of these, left out by a policy: too late, or too many"),
    Metric(
        name="feed_bytes_read",
        unit="Bytes",
        section="feeds",
        meaning="bytes of the records that feeds took from their sources",
        event=events.FEED_PROGRESSED,
        fact="bytes_count",
        without_alarm=FOLLOWS,
    ),
    Metric(
        name="feed_commit_seconds",
        unit="Seconds",
        section="feeds",
        meaning="from the records of a round to its log entry, the longest",
        event=events.FEED_PROGRESSED,
        fact="commit_seconds",
        statistic="Maximum",
        without_alarm="a store that is slow shows as lag",
    ),
    Metric(
        name="feed_records_behind",
        unit="Count",
        section="feeds",
        meaning="positions that a source has beyond what was read of it, the most",
        event=events.FEED_MEASURED,
        fact="behind_count",
        statistic="Maximum",
        without_alarm="a feed that begins is far behind",
    ),
    Metric(
        name="feed_lag_seconds",
        unit="Seconds",
        section="feeds",
        meaning="how long the oldest record of a source waits for its commit, the longest",
        event=events.FEED_MEASURED,
        fact="lag_seconds",
        statistic="Maximum",
        without_alarm="what is too much is for a policy to say: `feed_lags` counts that",
    ),
    Metric(
        name="feed_bytes_waiting",
        unit="Bytes",
        section="feeds",
        meaning="bytes that a worker has read and not committed, of one pipeline, the most",
        event=events.FEED_MEASURED,
        fact="waiting_bytes",
        statistic="Maximum",
        without_alarm="it is bounded by `rotate_bytes`",
    ),
    Metric(
        name="feed_bytes_spooled",
        unit="Bytes",
        section="feeds",
        meaning="bytes that wait on a worker's disk, in the spool of one pipeline, the most",
        event=events.FEED_MEASURED,
        fact="spooled_bytes",
        statistic="Maximum",
        without_alarm="what is too much is for a policy to say: `feed_spool_percent` goes by that",
    ),
    Metric(
        name="feed_spool_percent",
        unit="Percent",
        section="feeds",
        meaning="how full the fullest spool of a pipeline is, of what its policy and its disk take",
        event=events.FEED_MEASURED,
        fact="spool_percent",
        statistic="Maximum",
        without_alarm=OWN_STACK,
    ),
    Metric(
        name="feed_pipelines_failing",
        unit="Count",
        section="feeds",
        meaning="reports of a landing or a connection that waits to be tried again",
        event=events.FEED_MEASURED,
        fact="failing_count",
        without_alarm="what does not mend itself fails, and is counted as that",
    ),
    _trouble(
        "feed_failures",
        "landings and connections that stopped until they are started again",
        events.FEED_FAILED,
    ),
    _trouble(
        "feed_lags",
        "times that a feed came to be behind its source for longer than its policy allows",
        events.FEED_LAGGING,
    ),
    _trouble(
        "feed_gaps",
        "parts of a source that were gone before they were taken",
        events.FEED_GAP_RECORDED,
    ),
    _trouble(
        "feed_quarantines",
        "rounds with bad records, in an hour of a connection of which more than 1 % are bad",
        events.FEED_QUARANTINE_GREW,
    ),
    _trouble(
        "feed_tasks_failed",
        "tasks of feeds that ended with an error, or were killed",
        events.TASK_FAILED,
        where=(("kind", "feeds"),),
    ),
)
