"""Compaction: who creates its jobs, the queue of jobs, tasks that run them, and who frees what
dead ones held."""

import msgspec
from aws_cdk import Duration, Stack
from constructs import Construct

from lakebed.config.environments import (
    CompactionCreationEnvironment,
    DeadLettersEnvironment,
    TaskEnvironment,
)
from lakebed.config.instance import Deployment
from lakebed.config.job_queues import COMPACTION_CREATION, COMPACTION_JOBS, WORK_SECONDS_MAX
from stacks import permissions
from stacks.constructs.job_queue import FifoJobQueue
from stacks.constructs.lake_stores import LakeStores
from stacks.constructs.names import NamedJobQueue
from stacks.constructs.python_bundle import STATE
from stacks.constructs.python_function import PythonFunction
from stacks.constructs.schedule import Schedule
from stacks.constructs.scheduled_tables import ScheduledTables
from stacks.constructs.task_pool import TaskPool, TaskStart, start_for
from stacks.networking import NetworkingStack


class CompactionStack(Stack):
    """Tasks run the jobs, and so does `lakebed run` on any machine.

    network: None: it has no tasks.
    commits: the queue by which some end.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        deployment: Deployment,
        stores: LakeStores,
        network: NetworkingStack | None,
        commits: NamedJobQueue,
    ) -> None:
        super().__init__(
            scope,
            id,
            stack_name=deployment.name("compaction"),
            description=f"Lakebed {deployment.instance}: compaction jobs",
        )
        self.jobs = FifoJobQueue(self, "Jobs", shape=COMPACTION_JOBS, deployment=deployment)
        environment = CompactionCreationEnvironment(
            **msgspec.structs.asdict(stores.work_environment(deployment, COMPACTION_CREATION)),
            tracker_table=stores.tracker.table_name,
            jobs_queue_url=self.jobs.queue.queue_url,
        )
        self.creation = ScheduledTables(
            self,
            "Creation",
            deployment=deployment,
            shape=COMPACTION_CREATION,
            every=Duration.minutes(1),
            registry=stores.registry,
            environment=environment,
            may=[
                *stores.may_commit(deployment),
                permissions.report_jobs(stores.tracker),
                permissions.send(self.jobs.queue),
            ],
        )
        self._give_up(deployment, stores, commits)
        if network is not None:
            self._tasks(deployment, stores, network, commits)

    def _tasks(
        self,
        deployment: Deployment,
        stores: LakeStores,
        network: NetworkingStack,
        commits: NamedJobQueue,
    ) -> None:
        TaskPool(
            self,
            "Tasks",
            deployment=deployment,
            network=network,
            kind=self.jobs.kind,
            environment=TaskEnvironment(
                **msgspec.structs.asdict(stores.environment(deployment)),
                task_vcpus=deployment.settings.task_vcpus,
                task_memory_mib=str(deployment.settings.task_memory_mib),
                tracker_table=stores.tracker.table_name,
                compaction_queue_url=self.jobs.queue.queue_url,
                commits_queue_url=commits.queue.queue_url,
            ),
            may=[
                *stores.may_commit(deployment),
                permissions.write_files(deployment),
                permissions.write_job_reports(stores.tracker),
                permissions.take_jobs(self.jobs.queue),
            ],
            start=self._start(deployment),
        )

    def _start(self, deployment: Deployment) -> TaskStart:
        return start_for(
            self.jobs,
            tasks_max=deployment.settings.compaction_tasks_max,
            capacity=deployment.settings.compaction_capacity,
        )

    def _give_up(self, deployment: Deployment, stores: LakeStores, commits: NamedJobQueue) -> None:
        """Every five minutes, free the files of jobs that reached the dead letters."""
        every = Duration.minutes(5)
        own = PythonFunction(
            self,
            "GiveUp",
            deployment=deployment,
            bundle=STATE,
            room="dead-letters",
            verb="give-up",
            environment=DeadLettersEnvironment(
                **msgspec.structs.asdict(stores.function_environment(deployment)),
                tracker_table=stores.tracker.table_name,
                jobs_queue_url=self.jobs.queue.queue_url,
                commits_queue_url=commits.queue.queue_url,
            ),
            permissions=[
                *stores.may_commit(deployment),
                permissions.end_jobs(stores.tracker),
                *permissions.take_dead_letters(self.jobs.queue, self.jobs.dead_letters),
                *permissions.take_dead_letters(commits.queue, commits.dead_letters),
            ],
            runs_apart=every,
            timeout_seconds=WORK_SECONDS_MAX,
        )
        Schedule(
            self,
            "GiveUpSchedule",
            deployment=deployment,
            name="dead-letters",
            every=every,
            function=own.function,
        )
