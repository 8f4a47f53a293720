"""Many processes commit to one table at once, on each server that can be trusted; and servers that
keep files are killed meanwhile."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

from tests.contracts.crowd import (
    Place,
    check_all_there,
    commit_some,
    new_place,
    spawn,
    wait_for_entries,
)
from tests.servers.dynamo_servers import dynoxide_server
from tests.servers.running import free_ports, kill
from tests.servers.s3 import SEAWEEDFS_PORTS, S3Server, seaweedfs_server

MANY, COMMITS = 32, 5
WRITERS, COMMITS_WHILE_KILLED, KILLS = 8, 15, 2

Start = Callable[[Path, Sequence[int]], AbstractContextManager[S3Server]]


def race(place: Place, processes: int, commits: int) -> None:
    jobs = [(place, worker, commits) for worker in range(processes)]
    with spawn.Pool(processes) as pool:
        done = pool.starmap(commit_some, jobs, chunksize=1)
    acknowledged = {id_: number for one in done for id_, number in one.items()}
    assert len(acknowledged) == processes * commits
    check_all_there(place, acknowledged)


def test_processes_that_commit_at_once_leave_no_gap_and_no_double(ministack: S3Server) -> None:
    race(new_place(ministack, ministack), processes=3, commits=7)


@pytest.mark.slow
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize(
    ("log", "objects"),
    [("ministack", "ministack"), ("dynoxide", "ministack"), ("ministack", "seaweedfs")],
)
def test_32_processes_commit_to_one_table_at_once(
    request: pytest.FixtureRequest, log: str, objects: str
) -> None:
    servers = request.getfixturevalue(log), request.getfixturevalue(objects)
    race(new_place(*servers), MANY, COMMITS)


@pytest.mark.slow
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize(
    ("start", "ports"), [(dynoxide_server, 1), (seaweedfs_server, SEAWEEDFS_PORTS)]
)
def test_what_was_acknowledged_survives_a_server_that_is_killed(
    ministack: S3Server, tmp_path: Path, start: Start, ports: int
) -> None:
    taken = free_ports(ports)
    with ExitStack() as stack:
        server = stack.enter_context(start(tmp_path, taken))
        is_log = server.name == "dynoxide"
        place = new_place(server, ministack) if is_log else new_place(ministack, server)
        jobs = [(place, worker, COMMITS_WHILE_KILLED) for worker in range(WRITERS)]
        with spawn.Pool(WRITERS) as pool:
            work = pool.starmap_async(commit_some, jobs, chunksize=1)
            for killed in range(1, KILLS + 1):
                wait_for_entries(place, killed * WRITERS * COMMITS_WHILE_KILLED // (KILLS + 1))
                kill(tmp_path)
                stack.enter_context(start(tmp_path, taken))
            done = work.get()
        acknowledged = {id_: number for one in done for id_, number in one.items()}
        assert len(acknowledged) == WRITERS * COMMITS_WHILE_KILLED
        check_all_there(place, acknowledged)
