"""Which of equal values an index names: PyTorch's choice on the CPU, where that is a plain algorithm's."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import vesta

#: PyTorch 2.15's answers; the first six indices of topk. Keys: the call, the length of the line, and its arguments.
RECORDED: dict[tuple[Any, ...], Any] = {
    ("topk", 8, 1, True, True): [5],
    ("topk", 8, 1, True, False): [5],
    ("topk", 8, 1, False, True): [0],
    ("topk", 8, 1, False, False): [0],
    ("kthvalue", 8, 1): 0,
    ("kthvalue", 8, 8): 5,
    ("topk", 8, 3, True, True): [5, 6, 3],
    ("topk", 8, 3, True, False): [5, 6, 3],
    ("topk", 8, 3, False, True): [0, 4, 7],
    ("topk", 8, 3, False, False): [0, 4, 7],
    ("kthvalue", 8, 3): 7,
    ("kthvalue", 8, 6): 3,
    ("topk", 8, 4, True, True): [5, 6, 3, 2],
    ("topk", 8, 4, True, False): [3, 5, 6, 2],
    ("topk", 8, 4, False, True): [0, 4, 7, 1],
    ("topk", 8, 4, False, False): [4, 7, 0, 1],
    ("kthvalue", 8, 4): 1,
    ("kthvalue", 8, 5): 2,
    ("mode", 8): 7,
    ("median", 8): 1,
    ("max", 8): 5,
    ("min", 8): 0,
    ("topk", 40, 1, True, True): [27],
    ("topk", 40, 1, True, False): [27],
    ("topk", 40, 1, False, True): [0],
    ("topk", 40, 1, False, False): [0],
    ("kthvalue", 40, 1): 33,
    ("kthvalue", 40, 40): 39,
    ("topk", 40, 3, True, True): [27, 6, 5],
    ("topk", 40, 3, True, False): [27, 6, 5],
    ("topk", 40, 3, False, True): [0, 11, 33],
    ("topk", 40, 3, False, False): [0, 11, 33],
    ("kthvalue", 40, 3): 11,
    ("kthvalue", 40, 38): 27,
    ("topk", 40, 20, True, True): [39, 38, 17, 16, 5, 6],
    ("topk", 40, 20, True, False): [20, 39, 38, 3, 36, 5],
    ("topk", 40, 20, False, True): [0, 22, 11, 33, 15, 29],
    ("topk", 40, 20, False, False): [21, 0, 37, 22, 4, 18],
    ("kthvalue", 40, 20): 24,
    ("kthvalue", 40, 21): 31,
    ("mode", 40): 17,
    ("median", 40): 9,
    ("max", 40): 5,
    ("min", 40): 0,
    ("topk", 300, 1, True, True): [5],
    ("topk", 300, 1, True, False): [5],
    ("topk", 300, 1, False, True): [0],
    ("topk", 300, 1, False, False): [0],
    ("kthvalue", 300, 1): 22,
    ("kthvalue", 300, 300): 149,
    ("topk", 300, 3, True, True): [16, 6, 5],
    ("topk", 300, 3, True, False): [16, 6, 5],
    ("topk", 300, 3, False, True): [22, 11, 0],
    ("topk", 300, 3, False, False): [22, 11, 0],
    ("kthvalue", 300, 3): 198,
    ("kthvalue", 300, 298): 236,
    ("topk", 300, 150, True, True): [93, 280, 104, 236, 215, 39],
    ("topk", 300, 150, True, False): [185, 184, 182, 3, 181, 5],
    ("topk", 300, 150, False, True): [242, 88, 22, 264, 165, 121],
    ("topk", 300, 150, False, False): [1, 0, 298, 297, 4, 296],
    ("kthvalue", 300, 150): 207,
    ("kthvalue", 300, 151): 284,
    ("mode", 300): 56,
    ("median", 300): 68,
    ("max", 300): 5,
    ("min", 300): 0,
}


def line(n: int) -> vesta.Tensor:
    """Returns n numbers of which many are equal."""
    places = vesta.arange(n)
    return places * places * 31 % 11 % 7


@pytest.mark.parametrize("dtype", [vesta.int64, vesta.float32, vesta.uint8], ids=str)
@pytest.mark.parametrize("name", ["topk", "kthvalue", "mode", "median", "max", "min"])
def test_indices_of_equals_are_pytorchs(name: str, dtype: vesta.dtype) -> None:
    checked = 0
    for (op, n, *arguments), want in RECORDED.items():
        if op != name:
            continue
        x = line(n).to(dtype)
        if op == "topk":
            k, largest, in_order = arguments
            got = vesta.topk(x, k, largest=largest, sorted=in_order).indices[:6].tolist()
        elif op == "kthvalue":
            got = int(vesta.kthvalue(x, *arguments).indices)
        else:
            got = int(getattr(vesta, op)(x, 0).indices)
        assert got == want, (op, n, arguments)
        checked += 1
    assert checked >= 3


@pytest.mark.parametrize("dtype", [vesta.bool, vesta.uint8, vesta.bfloat16, vesta.float64], ids=str)
def test_values_are_those_at_the_indices_and_indices_differ(dtype: vesta.dtype) -> None:
    for n in (1, 7, 90, 1000):
        x = (line(n) % 5).to(dtype)
        in_order = x.sort(descending=True).values
        for k in {1, n // 2, n} - {0}:
            for in_line in (True, False):
                values, indices = x.topk(k, sorted=in_line)
                assert vesta.equal(values, x[indices]) and len(set(indices.tolist())) == k
                got = values if in_line else values.sort(descending=True).values
                assert vesta.equal(got, in_order[:k])
            value, index = x.kthvalue(k)
            assert value == x[index] == in_order[n - k]
        assert (x == x.mode().values).sum() == max((x == v).sum() for v in x.unique())
        assert x.mode().values == x[x.mode().indices]


def test_the_choice_does_not_depend_on_threads_or_on_other_lines() -> None:
    x = line(300)
    lines = x.expand(64, 300).contiguous()
    before = vesta.get_num_threads()
    try:
        for threads in (1, 3):
            vesta.set_num_threads(threads)
            for call in (lambda t: t.topk(40), lambda t: t.kthvalue(150), lambda t: t.mode()):
                assert (call(lines).indices == call(x).indices).all()
                assert vesta.equal(call(lines.T.contiguous().T).indices, call(lines).indices)
    finally:
        vesta.set_num_threads(before)


@pytest.mark.differs
def test_a_sort_is_stable_even_if_nobody_asked() -> None:
    x = line(300)
    assert vesta.equal(x.sort().indices, x.sort(stable=True).indices)
    assert vesta.equal(x.argsort(descending=True), x.argsort(descending=True, stable=True))


def test_a_bound_that_is_a_number_takes_the_gradient_of_an_equal_value() -> None:
    for clamp in (vesta.clamp_min, vesta.clamp_max):
        x = vesta.tensor([3.0], requires_grad=True)
        clamp(x, 3.0).sum().backward()
        assert x.grad.item() == 0


def test_many_equals_of_16_bits_share_the_gradient() -> None:
    x = vesta.zeros(100000, dtype=vesta.float16, requires_grad=True)
    x.amax().backward(vesta.tensor(64.0, dtype=vesta.float16))
    assert x.grad.unique().tolist() == [vesta.tensor(64 / 100000).half().item()]


@pytest.mark.parametrize("distinct", [True, False])
@pytest.mark.parametrize("dtype", [vesta.float32, vesta.float64, vesta.float16, vesta.bfloat16], ids=str)
def test_modes_of_long_lines(dtype, distinct: bool) -> None:
    """The index does not depend on the dtype: floats whose numbers all differ are sorted in another way."""
    lines = np.stack([np.random.default_rng(seed).permutation(600) for seed in range(5)])
    if not distinct:
        lines[2:] //= 7
    numbers = lines if dtype in (vesta.float32, vesta.float64) else lines % 200
    x, whole = vesta.tensor(numbers).to(dtype), vesta.tensor(numbers)
    values, places = x.mode(1)
    wanted = [min(set(row), key=lambda v: (-list(row).count(v), v)) for row in numbers.tolist()]
    assert values.tolist() == wanted
    assert places.tolist() == whole.mode(1).indices.tolist()
    for dim, turned in ((0, x.t()), (0, x.t().contiguous()), (1, x.unsqueeze(0).transpose(1, 2))):
        again = turned.mode(dim)
        assert again.values.reshape(-1).tolist() == wanted
        assert again.indices.reshape(-1).tolist() == places.tolist()


@pytest.mark.differs
def test_modes_of_zeros_and_nans() -> None:
    many = vesta.arange(300.0)
    many[[5, 7]] = vesta.tensor([0.0, -0.0])
    assert many.mode().values == 0.0
    many[10:14] = float("nan")
    assert many.mode().values == 0.0  # no two NaNs are equal
    nan = float("nan")
    for line, value, place in (
        ([1.0, nan, nan, nan], 1.0, 0),
        ([nan, nan, 2.0, 1.0], 1.0, 3),
        ([nan, 2.0, nan, 2.0, nan], 2.0, None),
        ([nan, nan], nan, 0),
    ):
        for dtype in (vesta.float32, vesta.float64, vesta.float16):
            got = vesta.tensor(line, dtype=dtype).mode()
            assert got.values == value or (value != value and got.values.isnan())
            assert place is None or got.indices == place


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin", "clamp_min", "clamp_max"])
def test_equal_values_share_the_gradient(name: str) -> None:
    a = vesta.tensor([1.0, 2.0, 3.0, 0.0], requires_grad=True)
    b = vesta.tensor([1.0, 3.0, 2.0, -0.0], requires_grad=True)
    getattr(vesta, name)(a, b).backward(vesta.full((4,), 2.0))
    first = [1.0, 0.0, 2.0, 1.0] if name in ("maximum", "fmax", "clamp_min") else [1.0, 2.0, 0.0, 1.0]
    assert a.grad.tolist() == first and b.grad.tolist() == [2.0 - g for g in first]


def test_gradients_between_two_tensors_are_pytorchs() -> None:
    """All orders of a value, its bounds and NaN; the figures are PyTorch 2.15's."""
    numbers = [1.0, 2.0, 3.0, math.nan]
    low, x, high = vesta.tensor(list(itertools.product(numbers, repeat=3))).unbind(1)

    def wanted(low: float, x: float, high: float) -> tuple[float, float, float]:
        shares = 0.5 if low < high and x in (low, high) else 1.0
        of_x = 0.0 if x < low or x > high else shares
        of_low = float(low <= high and x < low) or 0.5 * (low < high and x == low)
        of_high = float(low > high or (low <= high and x > high)) or 0.5 * (low < high and x == high)
        return of_x, of_low, of_high

    rows = [wanted(*row) for row in zip(low.tolist(), x.tolist(), high.tolist())]
    for in_place in (False, True):
        operands = [t.clone().requires_grad_() for t in (x, low, high)]
        y = (operands[0] * 1).clamp_(*operands[1:]) if in_place else vesta.clamp(*operands)
        y.sum().backward()
        for i, operand in enumerate(operands):
            assert operand.grad.tolist() == [row[i] for row in rows]
    bound = vesta.tensor([2.0], requires_grad=True)
    vesta.clamp(vesta.tensor([2]), bound, vesta.tensor([5])).backward()  # an integer and a float share, too
    assert bound.grad.tolist() == [0.5]
