"""Which of the generated tests ``make test`` runs, when there are more than its time allows.

All tests of ``python/test_op_db*.py`` together have ``BUDGET`` seconds of one core. As long as their costs, which
``COST`` estimates, add up to less, all of them run. Beyond, every row has the same share on each device: those that
cost less run whole, the others run one case of each test first, then more, in an order that a checksum of the case's
name draws.
The cases that are left get the marker ``campaign``: ``make campaign`` runs them. The choice depends on the table alone,
so that every run, worker and machine makes the same one; a test file that is run alone runs whole.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

#: Seconds of one core for all generated tests: 7 minutes on 2 cores, of the 25 that ``make test`` has after the build.
BUDGET = 800.0

#: Seconds of processor time of a case by test and device, means of a whole run; what is not listed costs ``OTHER``. The
#: emulated device takes most of the time.
COST: dict[tuple[str, str], float] = {
    ("test_gradcheck", "cuda"): 0.25,
    ("test_extremes", "cuda"): 0.035,
    ("test_extremes", "cpu"): 0.03,
    ("test_layouts", "cuda"): 0.025,
    ("test_a_second_gradient_is_that_of_float64", "cuda"): 0.015,
    ("test_a_recorded_gradient_is_the_other_one", "cuda"): 0.012,
    ("test_gradcheck", "cpu"): 0.012,
    ("test_in_place", "cuda"): 0.011,
}
OTHER = 0.005

#: The dtype in which a test runs first, where the row takes it.
FIRST = "float32"


@dataclass(frozen=True)
class Case:
    """One generated test: its id, the row and device it belongs to, the test function and the dtype."""

    id: str
    row: str
    device: str
    test: str
    dtype: str

    @property
    def cost(self) -> float:
        return COST.get((self.test, self.device), OTHER)


def left_out(cases: Iterable[Case], budget: float = BUDGET) -> set[str]:
    """Returns the ids of the cases that do not fit into the budget."""
    groups: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in cases:
        groups[case.row, case.device].append(case)
    share = fair_share([sum(case.cost for case in group) for group in groups.values()], budget)
    left: set[str] = set()
    for group in groups.values():
        spent = 0.0
        for case in in_turn(group):
            if spent + case.cost > share:
                left.add(case.id)
            else:
                spent += case.cost
    return left


def fair_share(costs: list[float], budget: float) -> float:
    """Returns the largest share s with sum(min(cost, s)) <= budget; infinity if everything fits."""
    left = len(costs)
    for cost in sorted(costs):
        if cost * left > budget:
            return budget / left
        budget -= cost
        left -= 1
    return float("inf")


def in_turn(group: list[Case]) -> list[Case]:
    """Orders a row's cases: each test in one dtype, then each in a second one, and so on."""
    draw = {case.id: zlib.crc32(case.id.encode()) for case in group}
    by_test: dict[str, list[Case]] = defaultdict(list)
    for case in group:
        by_test[case.test].append(case)
    rounds: list[tuple[int, int, Case]] = []
    for cases in by_test.values():
        cases.sort(key=lambda case: (case.dtype != FIRST, draw[case.id]))
        rounds += [(number, draw[case.id], case) for number, case in enumerate(cases)]
    return [case for _, _, case in sorted(rounds, key=lambda entry: entry[:2])]
