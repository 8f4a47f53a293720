import pyarrow as pa
import pytest

from lakebed.errors import InvalidError
from lakebed.user_files import list_views
from lakebed.user_files.list_views import has_list_view, without_list_views

LARGE, SMALL = pa.large_list_view, pa.list_view
ROWS: list[tuple[pa.DataType, list[object]]] = [
    (LARGE(pa.int64()), [[1, 2], [3], None, [], [4, None]]),
    (SMALL(pa.string()), [["x"], None, ["y", "z"], []]),
    (pa.list_(LARGE(pa.int64())), [[[1, 2], [3]], None, [[]], [None, [7]]]),
    (pa.large_list(SMALL(pa.int8())), [[[1, 2], [3]], None, [[]], [None, [7]]]),
    (LARGE(pa.list_(pa.int64())), [[[1, 2], [3]], None, [[]], [None, [7]]]),
    (pa.list_(SMALL(pa.int8()), 2), [[[1], [2]], None, [[3, 4], None], [[], [5]]]),
    (
        pa.struct({"x": LARGE(pa.string()), "y": pa.int8()}),
        [{"x": ["a"], "y": 1}, None, {"x": None, "y": 2}, {"x": [], "y": 3}],
    ),
    (
        pa.map_(pa.string(), LARGE(pa.int8())),
        [[("a", [1])], None, [], [("b", None), ("c", [2, 3])]],
    ),
    (LARGE(SMALL(LARGE(pa.string_view()))), [[[["a"]]], None, [], [[["b", "c"], None]]]),
    (
        LARGE(pa.struct({"m": pa.map_(pa.string(), SMALL(pa.int8()))})),
        [[{"m": [("a", [1])]}, None], None, [{"m": None}]],
    ),
]


@pytest.mark.parametrize(("type_", "rows"), ROWS, ids=str)
def test_views_become_lists_with_the_same_values_wherever_they_are_cut(
    type_: pa.DataType, rows: list[object]
) -> None:
    whole = pa.array(rows, type_)
    for begin in range(len(rows) + 1):
        for end in range(begin, len(rows) + 1):
            found = without_list_views(whole[begin:end])
            found.validate(full=True)
            assert found.to_pylist() == rows[begin:end]
            assert not has_list_view(found.type)
    chunks = without_list_views(pa.chunked_array([whole, whole[1:]]))
    assert chunks.to_pylist() == rows + rows[1:]
    assert len(without_list_views(pa.chunked_array([], type_))) == 0


def test_views_may_overlap_lie_in_any_order_and_leave_values_out() -> None:
    values = pa.array([1, 2, 3, 4])
    views = pa.ListViewArray.from_arrays(
        pa.array([2, 0, 1, 0], pa.int32()),
        pa.array([2, 3, 1, 4], pa.int32()),
        values,
        mask=pa.array([False, False, False, True]),
    )
    assert without_list_views(views).to_pylist() == [[3, 4], [1, 2, 3], [2], None]


def test_views_that_name_more_values_than_a_list_holds_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(list_views, "ELEMENTS_MAX", 5)
    offsets, sizes = pa.array([0, 0], pa.int32()), pa.array([3, 3], pa.int32())
    views = pa.ListViewArray.from_arrays(offsets, sizes, pa.array([1, 2, 3]))
    with pytest.raises(InvalidError, match=r"too many elements \(elements=6\)"):
        without_list_views(views)


def test_columns_without_views_stay_the_same_object() -> None:
    column = pa.array([[1]], pa.list_(pa.int64()))
    assert without_list_views(column) is column
