"""Numbers that multiply or bound: beyond a dtype's range, complex ones, and the forms that PyTorch has deprecated."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import vesta
import vesta.nn.functional as F
from vesta import Tensor

Call = Callable[[Tensor, Any], Any]

#: A call with a number, and whether 16-bit elements must hold it themselves (else float32, in which they compute).
BOUNDED: list[tuple[str, Call, bool]] = [
    ("clamp_max", lambda x, n: x.clamp_max(n), True),
    ("clamp_min_", lambda x, n: x.clone().clamp_min_(-n), True),
    ("clamp", lambda x, n: x.clamp(max=n), True),
    ("hardtanh", lambda x, n: F.hardtanh(x, -n, n), True),
    ("threshold", lambda x, n: F.threshold(x, n, 0.0), True),
    ("threshold", lambda x, n: F.threshold(x, 0.0, n), True),
    ("hardshrink", lambda x, n: F.hardshrink(x, n), True),
    ("softshrink", lambda x, n: F.softshrink(x, n), True),
    ("add", lambda x, n: vesta.add(x, x, alpha=n), True),
    ("add_", lambda x, n: x.clone().add_(x, alpha=-n), True),
    ("sub", lambda x, n: vesta.sub(x, x, alpha=n), True),
    ("rsub", lambda x, n: vesta.rsub(x, x, alpha=n), True),
    ("lerp", lambda x, n: vesta.lerp(x, x, n), False),
    ("addcmul", lambda x, n: vesta.addcmul(x, x, x, value=n), False),
    ("addcdiv", lambda x, n: vesta.addcdiv(x, x, x, value=n), False),
    ("elu", lambda x, n: F.elu(x, n), False),
    ("celu", lambda x, n: F.celu(x, n), False),
    ("leaky_relu", lambda x, n: F.leaky_relu(x, n), False),
    ("softplus", lambda x, n: F.softplus(x, n), False),
    ("addmm", lambda x, n: vesta.addmm(x, x.view(1, 2), vesta.eye(2, dtype=x.dtype), beta=n), False),
    ("addmm", lambda x, n: vesta.addmm(x, x.view(1, 2), vesta.eye(2, dtype=x.dtype), alpha=n), False),
    ("addmv", lambda x, n: vesta.addmv(x, vesta.eye(2, dtype=x.dtype), x, beta=n), True),
    ("baddbmm", lambda x, n: vesta.baddbmm(x, x.view(1, 1, 2), vesta.eye(2, dtype=x.dtype)[None], beta=n), False),
    ("addr", lambda x, n: vesta.addr(vesta.eye(2, dtype=x.dtype), x, x, alpha=n), True),
]


@pytest.mark.parametrize("size", [2, 70000], ids=["small", "large"])
@pytest.mark.parametrize(("op", "call", "as_element"), BOUNDED, ids=[f"{i}-{row[0]}" for i, row in enumerate(BOUNDED)])
def test_a_number_beyond_the_dtype_raises(op: str, call: Call, as_element: bool, size: int) -> None:
    """A finite number that would be infinite raises; infinity itself, and NaN, are numbers of every float dtype."""
    if size > 2 and op.startswith(("add", "badd")) and op not in ("add", "add_", "addcmul", "addcdiv"):
        return
    x = vesta.ones(size)
    with pytest.raises(RuntimeError, match=op.rstrip("_").replace("clamp_max", "clamp").replace("clamp_min", "clamp")):
        call(x, 1e300)
    if op != "softshrink":
        call(x, math.inf)
    call(x, 1e30)
    call(x.double(), 1e300)
    half = x.half()
    with pytest.raises(RuntimeError):
        call(half, 1e6 if as_element else 1e300)
    if not as_element:
        call(half, 1e6)


def test_bounds_of_integers_are_brought_into_their_range() -> None:
    x = vesta.tensor([1, 200], dtype=vesta.uint8)
    assert x.clamp_max(300).tolist() == [1, 200] == x.clamp_min(-1).tolist()
    assert x.clone().clamp_max_(300).tolist() == [1, 200] and x.clamp_max(7).dtype == vesta.uint8
    for call in (lambda: x.clamp_max(-1), lambda: x.clamp_min(300)):
        with pytest.raises(RuntimeError, match="outside the representable range of uint8"):
            call()
    for call in (lambda b: b.clamp_max(True), lambda b: vesta.clamp(b, False)):
        with pytest.raises(NotImplementedError, match="clamp.*: expected a dtype other than bool"):
            call(vesta.tensor([True, False]))
    y = vesta.tensor([1.0, 3.0], requires_grad=True)
    r = y.clamp_max(2)
    assert type(r.grad_fn).__name__ == "ClampMaxBackward0"
    r.sum().backward()
    assert y.grad.tolist() == [1, 0]


def test_fractions_of_integer_factors_are_cut_off() -> None:
    i = vesta.tensor([1, 2])
    for value, expected in ((1.5, [2, 6]), (2.9, [3, 10]), (-1.5, [0, -2])):
        assert (
            vesta.addcmul(i, i, i, value=value).tolist() == expected == i.clone().addcmul_(i, i, value=value).tolist()
        )
    for value in (1e300, math.inf):
        with pytest.raises(RuntimeError, match="addcmul"):
            vesta.addcmul(i, i, i, value=value)


def test_two_integers_are_no_quotient() -> None:
    x, c, i, b = vesta.ones(2), vesta.ones(2) * 1j, vesta.tensor([1, 2]), vesta.tensor([True, False])
    for operands in ((x, i, i), (x, b, b), (x, i, b), (c, i, i)):
        for value in (1, 2.0):
            with pytest.raises(RuntimeError, match="addcdiv: .*Integer division"):
                vesta.addcdiv(*operands, value=value)
    with pytest.raises(RuntimeError, match="addcdiv: .*Integer division"):
        vesta.addcdiv(c, i, i, value=1j)
    assert vesta.addcdiv(x, i, x).tolist() == [2, 3] and vesta.addcdiv(x, x, i).tolist() == [2, 1.5]


C, R, B = vesta.tensor([1 + 2j, 3 - 1j]), vesta.tensor([1.0, 2.0]), vesta.tensor([True, False])
M, BM = vesta.tensor([[1j, 2], [1, 1 - 1j]]), vesta.tensor([[[1j, 2], [1, 1 - 1j]]])
#: A deprecated call, and what it means.
OLDER: list[tuple[Callable[[Any], Any], Callable[[], Any]]] = [
    (lambda c: c.add(1j, C), lambda: C + 1j * C),
    (lambda c: vesta.sub(c, 1j, C), lambda: C - 1j * C),
    (lambda c: c.add_(2j, R), lambda: C + 2j * R),
    (lambda c: c.sub_(1j, C), lambda: C - 1j * C),
    (lambda c: c.addcmul(1j, C, R), lambda: C + 1j * C * R),
    (lambda c: c.addcdiv(1j, C, R), lambda: C + 1j * C / R),
    (lambda c: c.addcmul_(1j, C, C), lambda: C + 1j * C * C),
    (lambda c: c.addcdiv_(1j, C, C), lambda: C + 1j * C / C),
    (lambda c: c.addmm(1j, M, M), lambda: 1j * C + M @ M),
    (lambda c: vesta.addmm(1j, c, M, M), lambda: 1j * C + M @ M),
    (lambda c: vesta.addmm(1j, c, 2 - 1j, M, M), lambda: 1j * C + (2 - 1j) * (M @ M)),
    (lambda c: c.addmv(1j, M, C), lambda: 1j * C + M @ C),
    (lambda c: c.addmv_(1j, 2j, M, C), lambda: 1j * C + 2j * (M @ C)),
    (lambda c: vesta.addr(1j, M, C, C), lambda: 1j * M + vesta.outer(C, C)),
    (lambda c: vesta.addr(1j, M, 1j, C, C), lambda: 1j * M + 1j * vesta.outer(C, C)),
    (lambda c: vesta.addbmm(1j, M, BM, BM), lambda: 1j * M + (BM @ BM).sum(0)),
    (lambda c: vesta.baddbmm(1j, BM, 2, BM, BM), lambda: 1j * BM + 2 * (BM @ BM)),
    (lambda c: M.clone().addmm_(1j, M, M), lambda: 1j * M + M @ M),
    (lambda c: M.clone().addmm_(2, 3, M, M), lambda: 2 * M + 3 * (M @ M)),
    (lambda c: M.clone().addr_(1j, C, C), lambda: 1j * M + vesta.outer(C, C)),
]


@pytest.mark.parametrize("number", range(len(OLDER)))
def test_deprecated_forms_take_complex_factors(number: int) -> None:
    call, meant = OLDER[number]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = call(C.clone())
    assert got.dtype == vesta.complex64 and vesta.allclose(got, meant())


def test_complex_factors_of_mixed_dtypes() -> None:
    ones, whole = vesta.ones(2, 2), vesta.ones(2, 2, dtype=vesta.int64)
    for t in (ones, whole):
        assert vesta.allclose(vesta.addr(t, C, C, beta=1j), 1j * ones + vesta.outer(C, C))
    assert vesta.allclose(vesta.addr(ones, C, R, alpha=1j), ones + 1j * vesta.outer(C, R.to(C.dtype)))
    wide = vesta.addcmul(C.to(vesta.complex128), R, R, value=1j / 3)
    assert wide.dtype == vesta.complex128 and (wide - (C + 1j / 3 * R.double() * R.double())).abs().max() < 1e-12
    refused: list[Callable[[], Any]] = [
        lambda: R.add(1j, R),
        lambda: vesta.addmm(ones, ones, ones, beta=1j),
        lambda: vesta.addr(ones, R, R, alpha=1j),
        lambda: vesta.lerp(R, R, 1j),
        lambda: vesta.addcmul(R, R, R, value=1j),
    ]
    for call in refused:
        with warnings.catch_warnings(), pytest.raises(RuntimeError, match="complex|real"):
            warnings.simplefilter("ignore")
            call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: vesta.sub(C, B, alpha=1j),
        lambda: vesta.sub(B, C, alpha=1j),
        lambda: vesta.rsub(B, C, alpha=1j),
        lambda: C.sub(True, alpha=1j),
        lambda: C.clone().sub_(B, alpha=1j),
    ],
)
def test_flags_are_not_subtracted_with_a_complex_factor(call: Callable[[], Any]) -> None:
    with pytest.raises(NotImplementedError, match="Subtraction"):
        call()
