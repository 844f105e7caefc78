"""``narrow_copy`` and its like: the values of the view in memory of its own, gradients, ``out=``, errors."""

from __future__ import annotations

from typing import Any, Callable

import pytest
import vesta
from vesta import _view_copies

#: Arguments of each function, and the same view by methods.
CALLS: dict[str, tuple[tuple[Any, ...], Callable[[vesta.Tensor], Any]]] = {
    "alias_copy": ((), lambda t: t),
    "as_strided_copy": (((2, 2), (1, 2), 1), lambda t: t.as_strided((2, 2), (1, 2), 1)),
    "detach_copy": ((), lambda t: t),
    "diagonal_copy": ((1, 0, 2), lambda t: t.diagonal(1, 0, 2)),
    "expand_copy": (((2, 3, 4, 2),), lambda t: t.expand(2, 3, 4, 2)),
    "narrow_copy": ((1, 1, 2), lambda t: t[:, 1:3]),
    "permute_copy": (((2, 0, 1),), lambda t: t.permute(2, 0, 1)),
    "select_copy": ((1, -1), lambda t: t[:, -1]),
    "slice_copy": ((1, 0, 4, 2), lambda t: t[:, 0:4:2]),
    "split_copy": ((3, 1), lambda t: t.split(3, 1)),
    "split_with_sizes_copy": (([1, 3], 1), lambda t: t.split([1, 3], 1)),
    "squeeze_copy": ((), lambda t: t.squeeze()),
    "transpose_copy": ((0, -1), lambda t: t.transpose(0, -1)),
    "unbind_copy": ((2,), lambda t: t.unbind(2)),
    "unfold_copy": ((1, 3, 1), lambda t: t.unfold(1, 3, 1)),
    "unsqueeze_copy": ((-1,), lambda t: t.unsqueeze(-1)),
    "view_as_real_copy": ((), lambda t: vesta.view_as_real(t)),
    "view_as_complex_copy": ((), lambda t: vesta.view_as_complex(t)),
    "view_copy": (((6, 4),), lambda t: t.reshape(6, 4)),
    "t_copy": ((), lambda t: t.t()),
}

#: PyTorch's names of the arguments.
NAMES = {
    "as_strided_copy": ("size", "stride", "storage_offset"),
    "diagonal_copy": ("offset", "dim1", "dim2"),
    "expand_copy": ("size",),
    "narrow_copy": ("dim", "start", "length"),
    "permute_copy": ("dims",),
    "select_copy": ("dim", "index"),
    "slice_copy": ("dim", "start", "end", "step"),
    "split_with_sizes_copy": ("split_sizes", "dim"),
    "split_copy": ("split_size", "dim"),
    "transpose_copy": ("dim0", "dim1"),
    "unbind_copy": ("dim",),
    "unfold_copy": ("dimension", "size", "step"),
    "unsqueeze_copy": ("dim",),
    "view_copy": ("size",),
}


def operand(op: str) -> vesta.Tensor:
    if op == "view_as_real_copy":
        return vesta.arange(6).reshape(2, 3) * (1 + 2j)
    if op == "t_copy":
        return vesta.arange(6.0).reshape(2, 3)
    return vesta.arange(24.0).reshape(3, 4, 2)


def parts(made: Any) -> list[vesta.Tensor]:
    return [made] if isinstance(made, vesta.Tensor) else list(made)


@pytest.mark.parametrize("op", CALLS)
def test_a_copy_has_the_values_of_the_view_and_memory_of_its_own(op: str) -> None:
    args, view = CALLS[op]
    call, t = getattr(vesta, op), operand(op)
    made, want = call(t, *args), view(t)
    assert isinstance(made, (vesta.Tensor, tuple)) and len(parts(made)) == len(parts(want))
    for own, other in zip(parts(made), parts(want)):
        assert vesta.equal(own, other) and own.is_contiguous() and own.dtype == other.dtype
        assert own.untyped_storage().data_ptr() != t.untyped_storage().data_ptr()
    again = call(input=t, **dict(zip(NAMES.get(op, ()), args)))  # by PyTorch's names
    assert all(vesta.equal(a, b) for a, b in zip(parts(again), parts(want)))


@pytest.mark.parametrize("op", CALLS)
def test_out(op: str) -> None:
    args, view = CALLS[op]
    call, t = getattr(vesta, op), operand(op)
    want = parts(view(t))
    kind = want[0].dtype
    refused = f"{op}: Expected out tensor to have dtype {str(kind).removeprefix('vesta.')}, but got int16"
    for out in ([vesta.empty(0, dtype=kind) for _ in want], [vesta.empty_like(w) for w in want]):
        one = isinstance(view(t), vesta.Tensor)
        made = call(t, *args, out=out[0] if one else out)
        assert made is (out[0] if one else None)
        assert all(vesta.equal(a, b) for a, b in zip(out, want))
        wrong = [vesta.empty(o.shape, dtype=vesta.int16) for o in out]
        with pytest.raises(RuntimeError, match=refused):
            call(t, *args, out=wrong[0] if one else wrong)


def test_out_is_checked() -> None:
    x = vesta.arange(6.0).reshape(2, 3)
    for call, error, words in (
        (lambda: vesta.t_copy(x, out=vesta.ones(2, 3)), RuntimeError, r"expected out of shape \[3, 2\], got \[2, 3\]"),
        (lambda: vesta.t_copy(x, out=[1.0]), TypeError, r"expected Tensor, got list \(out\)"),
        (lambda: vesta.t_copy(x.clone().requires_grad_(), out=vesta.ones(3, 2)), RuntimeError, "don't support autom"),
        (lambda: vesta.unbind_copy(x, out=vesta.ones(3)), TypeError, "a list of Tensors, got Tensor"),
        (lambda: vesta.unbind_copy(x, out=[vesta.ones(3)]), RuntimeError, "expected 2 tensors, got 1"),
        (lambda: vesta.t_copy(3), TypeError, "expected Tensor, got int"),
        (lambda: vesta.narrow_copy(x, 0), TypeError, r"narrow_copy\(\) missing 2 required"),
        (lambda: vesta.slice_copy(x, 2), IndexError, r"in \[-2, 1\], got 2"),
        (lambda: x.narrow_copy(0, 1, 5), RuntimeError, "narrow"),
    ):
        with pytest.raises(error, match=words):
            call()
    square = vesta.arange(9.0).reshape(3, 3)
    want = square.t().clone()
    assert vesta.t_copy(square, out=square) is square and vesta.equal(square, want)  # the operand may be out


@pytest.mark.parametrize("op", [op for op in CALLS if not op.startswith("view_as")])
def test_gradients(op: str) -> None:
    t = operand(op).double().requires_grad_()
    assert vesta.autograd.gradcheck(lambda v: getattr(vesta, op)(v, *CALLS[op][0]), (t,))


def test_other_forms() -> None:
    x = vesta.arange(6.0).reshape(2, 3)
    assert vesta.equal(x.narrow_copy(1, 0, 2), x[:, :2])
    assert vesta.view_copy(x, vesta.int32).dtype == vesta.int32 and vesta.view_copy(x.t(), (6,)).shape == (6,)
    assert vesta.squeeze_copy(x[None, :, None], 0).shape == (2, 1, 3)
    assert vesta.squeeze_copy(x[None, :, None], (0, 2)).shape == (2, 3)
    sparse = vesta.eye(3).to_sparse()
    assert vesta.equal(vesta.indices_copy(sparse), sparse.indices())
    assert vesta.values_copy(sparse).tolist() == [1, 1, 1]


def test_the_package_offers_them_all() -> None:
    copies = {name for name in vars(_view_copies) if name.endswith("_copy")}
    for op in copies:
        assert op in dir(vesta) and getattr(vesta, op).__name__ == op and getattr(vesta, op).__doc__
    compressed = {f"{part}_indices_copy" for part in ("crow", "col", "ccol", "row")}  # test_compressed.py
    assert set(CALLS) | {"indices_copy", "values_copy"} | compressed == copies
