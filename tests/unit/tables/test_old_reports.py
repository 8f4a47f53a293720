"""Reports of jobs are kept for thirty days."""

import lakebed
from lakebed.model.names import MICROS_PER_SECOND, JobId, Micros, TableId
from lakebed.ports.job_tracker import JobReport

DAY = 86_400 * MICROS_PER_SECOND


def test_a_sweep_forgets_reports_older_than_thirty_days(lake: lakebed.Lake) -> None:
    tracker, now, table = lake._app.tracker, lake._app.clock.now(), TableId("t")
    for days in (0, 29, 31):
        at = Micros(now - days * DAY)
        report = JobReport(table=table, job=JobId(f"{days}"), kind="ingest", event="sent", at=at)
        tracker.report(report)
    lake.run()
    assert [report.job for report in tracker.find(table, reports_max=9)] == ["0", "29"]
