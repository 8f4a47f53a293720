"""Makes what Spark is given wherever it runs for us: where our code is, and for which instance."""

from __future__ import annotations

from collections.abc import Mapping

from lakebed.config.environments import (
    BulkImportEnvironment,
    BulkImportRunsEnvironment,
    variables_of,
)
from lakebed.config.job_queues import KEPT_DAYS
from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.ports.clock import Clock

FOLDER = "environment"
"""The folder of our code and its packages, below the working directory of each process of Spark."""
STATES_FOLDER = "/tmp/lakebed"  # noqa: S108 - the only folder that a worker surely may write
REASON_LENGTH = 300
SENT_SECONDS_MAX = KEPT_DAYS * 86_400
"""Most seconds that a message may have been under way: earlier runs are not looked for."""

CONF = {
    "spark.driver.cores": "2",
    "spark.driver.memory": "2g",
    "spark.driver.memoryOverhead": "6g",
    "spark.executor.cores": "4",
    "spark.executor.memory": "2g",
    "spark.executor.memoryOverhead": "6g",
    "spark.task.maxFailures": "4",
}
"""Options of Spark's unless a message says otherwise. Rows are in processes of Python, beside
Spark's: 1.5 GB each."""


def submit_conf(
    environment: BulkImportRunsEnvironment,
    region: str,
    asked: Mapping[str, str],
    *,
    of_driver: str,
) -> dict[str, str]:
    """Return all settings of Spark for a run. Those that are ours say where code and packages are,
    and what the driver is told: no message may say otherwise.

    asked: by the message.
    of_driver: what the driver's variables begin with on the platform.
    """
    own = BulkImportEnvironment(
        **{name: getattr(environment, name) for name in BulkImportEnvironment.__struct_fields__}
    )
    everywhere = {
        "PYTHONPATH": f"./{FOLDER}",
        "PYSPARK_PYTHON": environment.python,
        "AWS_REGION": region,
    }
    driver = {
        **everywhere,
        "PYSPARK_DRIVER_PYTHON": environment.python,
        "LAKEBED_CACHE": STATES_FOLDER,
        **variables_of(own),
    }
    return {
        **CONF,
        **asked,
        "spark.archives": f"{environment.archive}#{FOLDER}",
        **{f"spark.executorEnv.{name}": value for name, value in everywhere.items()},
        **{f"{of_driver}{name}": value for name, value in driver.items()},
    }


def messages_since(clock: Clock) -> Micros:
    """Return the time since which a message may have been under way."""
    return Micros(max(0, clock.now() - SENT_SECONDS_MAX * MICROS_PER_SECOND))
