"""Queued commits that were given up are sent again, unless they could be done twice."""

from lakebed.errors import UnavailableError
from lakebed.model.names import TableId
from lakebed.ports.job_queue import Message
from lakebed.statestore.committer import HIDDEN_SECONDS
from lakebed.statestore.head import TableHead
from lakebed.statestore.queued_commits import CommitsMessage, encode_commits
from lakebed.statestore.redrive import RedriveCommits, Redriven
from lakebed.statestore.table_changes import ChangeSettings
from tests.dsl.commit_office import Office

DAY = 86_400


def redrive(office: Office) -> Redriven:
    head = office.story.another_head()
    service = RedriveCommits(queue=office.queue, heads=lambda _: head, clock=office.clock)
    return service.run(letters_max=10)


def given_dead(office: Office, receives_max: int = 3) -> None:
    for _ in range(receives_max + 1):
        office.queue.receive(messages_max=10, hidden_seconds=1)
        office.clock.advance(HIDDEN_SECONDS)


def test_commits_that_were_given_up_are_sent_again_and_done() -> None:
    office = Office()
    office.given_sent(office.adding("a", user=True))
    given_dead(office)
    assert office.queue.depth() == (0, 1)
    assert redrive(office) == Redriven(sent=1)
    assert office.queue.depth() == (1, 0)
    office.committer.run(batches_max=5)
    assert office.events("a") == ["committed"]


def test_what_is_older_than_ids_are_remembered_stays() -> None:
    office = Office()
    office.story.when_committed(ChangeSettings({"job_id_seconds_min": 2 * DAY}))
    office.given_sent(office.adding("a", user=True))
    given_dead(office)
    office.clock.advance(DAY)
    office.given_sent(office.adding("b", user=True))
    given_dead(office)
    office.clock.advance(DAY)
    done = redrive(office)
    assert done.sent == 1
    (refused,) = done.refused
    assert refused.startswith("too old")
    assert office.queue.depth() == (1, 1)
    office.committer.run(batches_max=5)
    assert office.events("b") == ["committed"]


def test_a_second_death_does_not_make_a_commit_young_again() -> None:
    office = Office()
    office.story.when_committed(ChangeSettings({"job_id_seconds_min": 2 * DAY}))
    office.given_sent(office.adding("a"))
    given_dead(office)
    office.clock.advance(DAY)
    assert redrive(office).sent == 1
    given_dead(office)
    office.clock.advance(DAY)
    assert redrive(office).sent == 0


def test_what_cannot_be_read_or_has_no_table_stays() -> None:
    office = Office()
    office.queue.send([Message(b"\x01nonsense")])
    office.queue.send([Message(encode_commits(CommitsMessage(TableId("gone"))))])
    given_dead(office)

    def no_head(table: TableId) -> TableHead:
        raise UnavailableError("its state cannot be opened", table=table)

    service = RedriveCommits(queue=office.queue, heads=no_head, clock=office.clock)
    codes = [reason.partition(":")[0] for reason in service.run(letters_max=10).refused]
    assert codes == ["invalid", "unavailable"]
    assert office.queue.depth() == (0, 2)
