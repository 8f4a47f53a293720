import pytest

from lakebed.model.names import Micros, TableId, TransactionNumber
from lakebed.ports.table_marks import Failed, Handled, TableMark, TableMarks
from tests.contracts.conftest import Marks

ONE, TWO = TableId("1"), TableId("2")


def handled(number: int, due: int = 100) -> Handled:
    return Handled(TransactionNumber(number), Micros(due))


@pytest.fixture
def view(marks: Marks) -> TableMarks:
    return marks()


def test_what_was_told_is_seen_by_anyone(marks: Marks) -> None:
    assert marks().list() == {}
    marks().changed(ONE, TransactionNumber(3))
    marks().handled(ONE, "splitting", handled(2))
    marks().handled(TWO, "garbage", handled(9))
    assert marks().list() == {
        ONE: TableMark(TransactionNumber(3), {"splitting": handled(2)}),
        TWO: TableMark(TransactionNumber(0), {"garbage": handled(9)}),
    }


def test_late_marks_do_not_take_newer_ones_back(view: TableMarks) -> None:
    for number in (3, 5, 4):
        view.changed(ONE, TransactionNumber(number))
        view.handled(ONE, "sweep", handled(number, due=number))
    assert view.list() == {ONE: TableMark(TransactionNumber(5), {"sweep": handled(5, due=5)})}


def test_kinds_of_work_are_marked_apart(view: TableMarks) -> None:
    view.handled(ONE, "splitting", handled(5))
    view.handled(ONE, "compaction-creation", handled(2, due=7))
    view.handled(ONE, "splitting", handled(5, due=8))
    marks = view.list()[ONE].handled
    assert marks == {"splitting": handled(5, due=8), "compaction-creation": handled(2, due=7)}


def test_work_that_failed_is_not_due_until_its_time_and_done_work_ends_that(marks: Marks) -> None:
    marks().changed(ONE, TransactionNumber(3))
    for tries in (1, 2):
        marks().failed(ONE, "splitting", Failed(tries, Micros(50)))
        marks().failed(ONE, "sweep", Failed(tries, Micros(40)))
    mark = marks().list()[ONE]
    assert mark.failed == {"splitting": Failed(2, Micros(50)), "sweep": Failed(2, Micros(40))}
    assert [mark.is_due("splitting", Micros(now)) for now in (49, 50)] == [False, True]
    assert mark.is_due("garbage", Micros(0))
    marks().handled(ONE, "splitting", handled(3))
    assert marks().list()[ONE].failed == {"sweep": Failed(2, Micros(40))}
