"""The choice of generated tests that fit into the time of ``make test``."""

from __future__ import annotations

import budget

DTYPES = ("bool", "int8", "int64", "float16", "float32", "float64", "complex64")
TESTS = ("test_forward", "test_layouts", "test_gradcheck", "test_out")


def cases(rows: int) -> list[budget.Case]:
    return [
        budget.Case(f"{test}[op{row}-{dtype}-{device}]", f"op{row}", device, test, dtype)
        for row in range(rows)
        for device in ("cpu", "cuda")
        for test in TESTS
        for dtype in DTYPES
    ]


def spent(kept: list[budget.Case]) -> float:
    return sum(case.cost for case in kept)


def test_everything_runs_while_it_fits() -> None:
    some = cases(10)
    assert budget.left_out(some, spent(some) + 1) == set()


def test_a_larger_table_keeps_the_budget_and_every_test_of_every_row() -> None:
    many = cases(700)
    limit = spent(many) / 3
    left = budget.left_out(many, limit)
    kept = [case for case in many if case.id not in left]
    assert 0.8 * limit < spent(kept) <= limit
    assert {(c.row, c.device, c.test) for c in kept} == {(c.row, c.device, c.test) for c in many}
    assert all(f"{test}[op0-float32-cpu]" not in left for test in TESTS)
    assert {c.dtype for c in kept} == set(DTYPES), "over the rows every dtype takes its turn"
    assert budget.left_out(reversed(many), limit) == left, "the choice does not depend on the order"


def test_small_rows_run_whole() -> None:
    small = [budget.Case(f"test_forward[small-{d}]", "small", "cpu", "test_forward", d) for d in DTYPES]
    left = budget.left_out([*small, *cases(50)], spent(cases(50)) / 2)
    assert not left & {case.id for case in small} and left


def test_fair_share() -> None:
    assert budget.fair_share([1, 1, 1], 3) == float("inf")
    assert budget.fair_share([1, 5, 5], 7) == 3
    assert budget.fair_share([], 1) == float("inf")
