"""Freshness, the proof of row 124 of docs/map.md: who shares nothing but stores sees a commit."""

from tests.dsl.memory_instance import MemoryInstance


def test_row_124_a_reader_elsewhere_sees_what_was_committed_before_it(
    instance: MemoryInstance,
) -> None:
    instance.given_table("t")
    id_ = instance.lake.catalog.entry("t").id
    head = instance.function_stores("reader").heads(id_)
    for n in range(1, 6):
        instance.given_rows("t", 10, job=f"job{n}")
        with head.reading() as state:
            assert sum(leaf.rows for leaf in state.leaf_figures()) == 10 * n
