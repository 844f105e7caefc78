"""``out=`` of what is no pointwise op: memory that operands share, tuples checked as a whole, no temporary result."""

from __future__ import annotations

from typing import Any

import pytest
import vesta

x = vesta.rand(64, 64, generator=vesta.Generator().manual_seed(1))
n = (x * 9).long()

CALLS = {
    "matmul": lambda t, **out: vesta.matmul(t, t, **out),
    "bmm": lambda t, **out: vesta.bmm(t.view(4, 16, 64), t.view(4, 64, 16), **out),
    "cumsum": lambda t, **out: vesta.cumsum(t, 1, **out),
    "softmax": lambda t, **out: vesta.softmax(t, 1, **out),
    "cat": lambda t, **out: vesta.cat([t, t], 1, **out),
    "amax": lambda t, **out: vesta.amax(t, 1, **out),
    "argmax": lambda t, **out: vesta.argmax(t, 1, **out),
    "clamp": lambda t, **out: vesta.clamp(t, 0.2, 0.7, **out),
    "clamp by tensors": lambda t, **out: vesta.clamp(t, t.mT, t.flip(0), **out),
    "div": lambda t, **out: vesta.div(t, 0.3, rounding_mode="floor", **out),
    "nan_to_num": lambda t, **out: vesta.nan_to_num(t, **out),
    "ldexp": lambda t, **out: vesta.ldexp(t, n[0].to(t.device), **out),
    "maximum": lambda t, **out: vesta.max(t, t.mT, **out),
    "outer": lambda t, **out: vesta.outer(t[0], t[:, 1], **out),
    "addmm": lambda t, **out: vesta.addmm(t, t, t.mT, beta=0.5, alpha=2, **out),
    "baddbmm": lambda t, **out: vesta.baddbmm(t[0, 0], t.view(4, 16, 64), t.view(4, 64, 16), **out),
    "diff": lambda t, **out: vesta.diff(t, **out),
    "kron": lambda t, **out: vesta.kron(t[:8, :8], t[8:16, :8], **out),
    "inner": lambda t, **out: vesta.inner(t.view(4, 16, 64), t, **out),
}
INPLACE = {
    "clamp": (0.2, 0.7),
    "clip": (None, 0.7),
    "clamp by tensors": (x.mT / 2, x.flip(0)),
    "div": (0.3,),
    "nan_to_num": (0.0, 0.5, -0.5),
    "ldexp": (n[0],),
    "tril": (-3,),
    "triu": (2,),
    "cumsum": (1,),
    "cumprod": (0,),
    "renorm": (2, 0, 1),
    "addmm": (x.mT, x, 0.5, 2),
    "addmv": (x, x[3]),
    "addr": (x[1], x[2], 0.5),
}
#: Those that compute in several steps, or need the value that is overwritten.
STEPS = ("ldexp", "clamp by tensors", "renorm", "addmm", "addmv", "addr")
PAIRS = {
    "sort": lambda t, **out: vesta.sort(t, 1, **out),
    "cummax": lambda t, **out: vesta.cummax(t, 0, **out),
    "max": lambda t, **out: vesta.max(t, 0, **out),
}


@pytest.mark.parametrize(
    "call",
    [
        lambda a, i, m: vesta.masked_select(a, m, out=a[:3]),
        lambda a, i, m: vesta.gather(a, 0, i, out=a),
        lambda a, i, m: vesta.gather(a, 0, i, out=i.view(vesta.float64)),
        lambda a, i, m: vesta.take(a, i[:3], out=a[3:]),
        lambda a, i, m: vesta.index_select(a, 0, i[:3], out=a[:3]),
        lambda a, i, m: vesta.cat([a[:3], a[3:]], out=a),
        lambda a, i, m: vesta.stack([a[:3]], out=a[1:4].view(1, 3)),
        lambda a, i, m: vesta.hstack([a[:3]], out=a[1:4]),
        lambda a, i, m: vesta.take_along_dim(a, i, 0, out=a),
        lambda a, i, m: vesta.aminmax(a.view(2, 3), dim=0, out=(a[:3], vesta.empty(3).double())),
    ],
)
def test_an_operand_of_a_gathering_may_not_overlap_out(call: Any) -> None:
    """As in PyTorch: such an op reads elements in another order than it writes them. Nothing is written."""
    a, i = vesta.arange(6.0, dtype=vesta.float64), vesta.arange(6)
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        call(a, i, a > 2)
    assert a.tolist() == i.tolist() == [0, 1, 2, 3, 4, 5]


def test_two_results_may_not_overlap() -> None:
    b = vesta.zeros(6)
    with pytest.raises(ValueError, match="aminmax: expected tensors that do not overlap"):
        vesta.aminmax(vesta.ones(3, 3), dim=0, out=(b[:3], b[2:5]))
    vesta.gather(b[:3], 0, vesta.tensor([0, 1]), out=b[3:5])  # beside each other


@pytest.mark.parametrize("name", CALLS)
def test_an_operand_may_be_out(name: str) -> None:
    want = CALLS[name](x)
    operand = x.clone()
    out = operand if want.dtype == x.dtype and want.shape == x.shape else vesta.empty(0, dtype=want.dtype)
    assert CALLS[name](operand, out=out) is out and vesta.equal(out, want)


@pytest.mark.parametrize("name", PAIRS)
def test_an_operand_may_be_one_of_two(name: str) -> None:
    for t in (x, n):
        want, operand, places = PAIRS[name](t), t.clone(), vesta.empty(0, dtype=vesta.int64)
        values = operand if want.values.shape == t.shape else vesta.empty(0, dtype=t.dtype)
        got = PAIRS[name](operand, out=(values, places))
        assert got.values is values and got.indices is places
        assert vesta.equal(values, want.values) and vesta.equal(places, want.indices)


def test_a_view_of_an_operand() -> None:
    a = x.clone()
    vesta.cumsum(a, 1, out=a.mT)
    assert vesta.equal(a.mT, x.cumsum(1))
    b = vesta.zeros(2, 64, 64)
    vesta.matmul(x, x, out=b[1])
    assert vesta.equal(b[1], x @ x) and not b[0].any()


def test_nothing_is_written_if_one_of_several_does_not_fit() -> None:
    values, places = vesta.full((64, 64), 7.0), vesta.full((64, 63), 7)
    with pytest.raises(ValueError, match=r"sort: expected out of shape \[64, 64\], got \[64, 63\]"):
        vesta.sort(x, out=(values, places))
    assert (places == 7).all() and places._version == 0
    with pytest.raises(TypeError, match="tuple of 2 Tensors, not vesta.Tensor"):
        vesta.sort(x, out=values)
    with pytest.raises(TypeError, match="'out' must be Tensor, not tuple"):
        vesta.cumsum(x, 0, out=(values,))
    with pytest.raises(TypeError, match="'out' must be Tensor, not str"):
        vesta.cumsum(x, 0, out="values")


def test_an_operand_that_requires_grad_leaves_out_alone() -> None:
    w, out = x.clone().requires_grad_(), vesta.full((64, 64), 7.0)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        vesta.matmul(w, x, out=out)
    assert (out == 7).all() and out._version == 0
    with vesta.no_grad():
        vesta.matmul(w, x, out=out)
    assert vesta.equal(out, x @ x) and out._version == 1


@pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a GPU or the build tree's emulated device")
@pytest.mark.parametrize("name", [*CALLS, *PAIRS])
def test_no_temporary_holds_the_result(name: str) -> None:
    """The peak of memory during the call is what it was before: the kernel writes where it is told."""
    call, t = {**CALLS, **PAIRS}[name], x.cuda()
    want = call(t)
    parts = want if isinstance(want, tuple) else (want,)
    outs = tuple(vesta.zeros_like(part) for part in parts)
    size = min(part.numel() * part.element_size() for part in parts)
    spent = []
    for out in (outs if name in PAIRS else outs[0], None):
        result = call(t, **({} if out is None else {"out": out}))
        del result
        vesta.cuda.reset_peak_memory_stats()
        before = vesta.cuda.memory_allocated()
        result = call(t, **({} if out is None else {"out": out}))
        spent.append(vesta.cuda.max_memory_allocated() - before)
        del result
    assert spent[1] - spent[0] >= size
    for out, part in zip(outs, parts):
        assert vesta.equal(out, part)


@pytest.mark.parametrize("device", ["cpu", *["cuda"] * vesta.cuda.is_available()])
@pytest.mark.parametrize("name", INPLACE)
def test_in_place_is_the_same_without_a_temporary(name: str, device: str) -> None:
    op = name.split()[0]
    args = [arg.to(device) if isinstance(arg, vesta.Tensor) else arg for arg in INPLACE[name]]
    options = {"rounding_mode": "trunc"} if op == "div" else {}
    if op.startswith("add") and len(args) > 2:
        options = dict(zip(("beta", "alpha"), args[2:]))
        del args[2:]
    operand = (x[0] if op == "addmv" else x).to(device, copy=True)
    want = getattr(operand, op)(*args, **options)
    if device == "cuda" and name not in STEPS:
        vesta.cuda.reset_peak_memory_stats()
        before = vesta.cuda.memory_allocated()
        assert getattr(operand.clone(), op + "_")(*args, **options).shape == want.shape
        assert vesta.cuda.max_memory_allocated() - before <= operand.numel() * 4 + 512
    leaf, other = (operand.clone().requires_grad_() for _ in range(2))
    assert getattr(operand, op + "_")(*args, **options) is operand and operand._version == 1
    assert vesta.equal(operand, want)

    getattr(leaf * 1, op)(*args, **options).square().sum().backward()
    getattr(other * 1, op + "_")(*args, **options).square().sum().backward()
    assert vesta.equal(leaf.grad, other.grad)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        getattr(leaf, op + "_")(*args, **options)


def test_clamp_in_place_has_the_gradients_of_clamp() -> None:
    values = vesta.tensor([[9.0, -2.0, 3.0], [9.0, 0.7, 5.0]])
    for bounds in ((vesta.zeros(2), vesta.ones(2)), (vesta.zeros(2), 1.0), (0.0, vesta.ones(2))):
        grads = []
        for inplace in (True, False):
            leaves = [values.clone().requires_grad_()]
            leaves += [b.clone().requires_grad_() for b in bounds if isinstance(b, vesta.Tensor)]
            given = iter(leaves[1:])
            args = [next(given) if isinstance(b, vesta.Tensor) else b for b in bounds]
            base = leaves[0] * 1
            part = base[:, 1:]
            if inplace:
                part.clamp_(*args)
                total = base.sum()
            else:
                total = base[:, :1].sum() + part.clamp(*args).sum()
            grads.append(vesta.autograd.grad(total, leaves))
        for got, want in zip(*grads):
            assert vesta.equal(got, want)


def test_errors_of_out_name_the_op() -> None:
    w, out = x.clone().requires_grad_(), vesta.empty(64, 64)
    for name, call in (
        ("clamp", lambda: vesta.clamp(w, 0, 1, out=out)),
        ("outer", lambda: vesta.outer(w[0], x[0], out=out)),
        ("div", lambda: vesta.div(w, 2, rounding_mode="floor", out=out)),
        ("max", lambda: vesta.max(w, x, out=out)),
    ):
        with pytest.raises(RuntimeError, match=rf"^{name}\(\): functions with out="):
            call()
    t = vesta.arange(4.0)
    vesta.split_copy(t, 2, out=[t[2:], t[:2]])  # results that lie in the memory of another's out
    assert t.tolist() == [2, 3, 0, 1]
    outs = [vesta.full((2,), 7.0), vesta.zeros(1).expand(2)]
    with pytest.raises(RuntimeError, match="^split_copy: "):
        vesta.split_copy(vesta.arange(4.0), 2, out=outs)
    assert outs[0].tolist() == [7, 7]


def test_clamp_in_place_by_itself() -> None:
    for low, high in ((x.mT / 2, x), (x, x.mT / 2)):
        operand = x.clone()
        bounds = [operand if bound is x else bound for bound in (low, high)]
        assert vesta.equal(operand.clamp_(*bounds), x.clamp(low, high))
    operand = x.clone()
    with pytest.raises(RuntimeError, match="shape"):
        operand.clamp_(x.mT / 2, vesta.ones(2, 64, 64))
    assert vesta.equal(operand, x)


@pytest.mark.parametrize("device", ["cpu", *["cuda"] * vesta.cuda.is_available()])
@pytest.mark.parametrize("op", [vesta.softmax, vesta.log_softmax])
def test_an_out_with_the_shape_of_an_intermediate_is_refused_unwritten(op: Any, device: str) -> None:
    """Along the first dimension a softmax is computed transposed."""
    out = vesta.zeros(2, 3, device=device)
    with pytest.raises(RuntimeError, match=r"expected out of shape \[3, 2\], got \[2, 3\]"):
        op(vesta.rand(3, 2, device=device), 0, out=out)
    assert out.tolist() == [[0.0] * 3] * 2


def test_the_dtype_of_out_is_that_of_the_computation() -> None:
    """Where an op takes a dtype and none is given, as in PyTorch: nothing is rounded on the way to out."""
    halves = vesta.full((5000,), 100.0, dtype=vesta.float16)
    double, whole = vesta.float64, vesta.int64
    for call, dtype, want in (
        (lambda **o: vesta.sum(halves, 0, **o), vesta.float32, 500000.0),
        (lambda **o: vesta.nansum(halves, 0, **o), vesta.float32, 500000.0),
        (lambda **o: vesta.cumsum(halves, 0, **o)[-1], vesta.float32, 500000.0),
        (lambda **o: vesta.mean(vesta.full((3,), 0.1), 0, **o), double, vesta.full((3,), 0.1).double().mean().item()),
        (lambda **o: vesta.prod(vesta.full((3,), 1e20), 0, **o), double, vesta.tensor(1e20).double().item() ** 3),
        (lambda **o: vesta.sum(halves, 0, **o), whole, 500000),
        (lambda **o: vesta.sum(halves, 0, **o), vesta.bool, True),
        (lambda **o: vesta.cumprod(halves[:3], 0, **o)[-1], whole, 1000000),
        (lambda **o: vesta.linspace(0, 1, 4, **o)[1], double, 1 / 3),
        (lambda **o: vesta.full((1,), 0.1, **o)[0], double, 0.1),
        (lambda **o: vesta.arange(0.1, 1, 0.1, **o)[1], double, 0.2),
        (lambda **o: vesta.range(0, 1, 0.1, **o)[1], double, 0.1),
        (lambda **o: vesta.logspace(0, 1, 3, **o)[1], double, 10**0.5),
        (lambda **o: vesta.zeros(2, **o)[0], whole, 0),
        (lambda **o: vesta.eye(2, **o)[0, 0], vesta.bool, True),
    ):
        got = call(out=vesta.empty(0, dtype=dtype))
        assert got.dtype == dtype and got.item() == pytest.approx(want, rel=1e-15), (got, want)
    with pytest.raises((RuntimeError, TypeError)):
        vesta.mean(halves, 0, out=vesta.empty(0, dtype=whole))
    with pytest.raises(TypeError, match="sum: result type float32 can't be cast"):
        vesta.sum(x, 0, dtype=vesta.float32, out=vesta.empty(64, dtype=whole))


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "floor_divide", "true_divide", "multiply", "subtract"])
def test_a_number_may_come_first(name: str) -> None:
    function = getattr(vesta, name)
    flags = () if name in ("sub", "subtract") else (True,)  # which are not subtracted
    for number in (2, 2.5, *flags):
        got, want = function(number, x), function(vesta.tensor(number), x)
        assert got.dtype == want.dtype and vesta.equal(got, want)
    for pair in ((6, 3), (6, 2.5), (2.5, 3), *((flag, 2) for flag in flags)):
        got, want = function(*pair), function(vesta.tensor(pair[0]), pair[1])
        assert got.dim() == 0 and got.dtype == want.dtype and got == want
    if name != "sub":
        with pytest.raises(TypeError, match="must be Tensor"):
            getattr(x, name)("2")


def cut(t: vesta.Tensor, first: int) -> vesta.Tensor:
    """Views a batch of 8 squares in a 64 x 64 tensor."""
    return t.unflatten(0, (8, 8))[:, :, first : first + 8]


@pytest.mark.parametrize(
    ("call", "want"),
    [
        (lambda t: t.tril_(), lambda t: t.tril()),
        (lambda t: t.triu_(1), lambda t: t.triu(1)),
        (lambda t: t.cumsum_(1), lambda t: t.cumsum(1)),
        (lambda t: t.cumprod_(0), lambda t: t.cumprod(0)),
        (lambda t: t.renorm_(1, 1, 2), lambda t: t.renorm(1, 1, 2)),
        (lambda t: t.addmm_(t, t), lambda t: t.addmm(t, t)),
        (lambda t: t.addmm_(t.mT, t, beta=0), lambda t: t.addmm(t.mT, t, beta=0)),
        (lambda t: t[0].addmv_(t, t[0]), lambda t: t[0].addmv(t, t[0])),
        (lambda t: t.addr_(t[0], t[:, 1], alpha=3), lambda t: t.addr(t[0], t[:, 1], alpha=3)),
        (lambda t: cut(t, 0).baddbmm_(cut(t, 4), cut(t, 4)), lambda t: cut(t, 0).baddbmm(cut(t, 4), cut(t, 4))),
        (lambda t: t[:8, :8].addbmm_(cut(t, 0), cut(t, 4)), lambda t: t[:8, :8].addbmm(cut(t, 0), cut(t, 4))),
        (lambda t: vesta.kron(t[:8, :8], t[:8, :8], out=t), lambda t: vesta.kron(t[:8, :8], t[:8, :8])),
        (lambda t: vesta.inner(t, t.mT, out=t), lambda t: vesta.inner(t, t.mT)),
        (lambda t: vesta.addr(t, t[0], t[1], out=t.mT), lambda t: vesta.addr(t, t[0], t[1])),
    ],
)
@pytest.mark.parametrize("layout", ["rows", "columns", "every other"])
def test_operands_that_share_the_memory_of_the_result(call: Any, want: Any, layout: str) -> None:
    """The answer is that of operands which were copied first, whatever the strides."""
    t = vesta.rand(64, 128, generator=vesta.Generator().manual_seed(2))
    t = {"rows": x.clone(), "columns": x.mT.clone().mT, "every other": t[:, ::2]}[layout]
    expected = want(t.clone())
    got = call(t)
    assert vesta.allclose(got, expected, rtol=1e-6, atol=0)


def test_in_place_sums_of_products_keep_shape_and_name() -> None:
    for name, t, args in (
        ("addmm_", vesta.zeros(3), (vesta.ones(2, 3), vesta.ones(3, 3))),
        ("addr_", vesta.zeros(1, 3), (vesta.ones(2), vesta.ones(3))),
        ("addmv_", vesta.zeros(1), (vesta.ones(2, 3), vesta.ones(3))),
        ("baddbmm_", vesta.zeros(2, 3), (vesta.ones(4, 2, 3), vesta.ones(4, 3, 3))),
        ("addbmm_", vesta.zeros(3), (vesta.ones(4, 2, 3), vesta.ones(4, 3, 3))),
    ):
        with pytest.raises(RuntimeError, match=rf"^{name}: output with shape .*an in-place op keeps its shape"):
            getattr(t, name)(*args)
        assert t.abs().sum() == 0 and t._version == 0
    for name in ("tril_", "cumsum_", "renorm_"):
        spread = vesta.ones(3, 1).expand(3, 3)
        with pytest.raises(RuntimeError, match=rf"^{name}: .*single memory location"):
            getattr(spread, name)(*{"tril_": (), "cumsum_": (0,), "renorm_": (2, 0, 1)}[name])


def test_truth_goes_to_flags_and_bytes() -> None:
    """``any`` and ``all`` write to bool and uint8 alone, whatever their input is, as in PyTorch."""
    flags, byte = vesta.empty((), dtype=vesta.bool), vesta.empty((), dtype=vesta.uint8)
    for op in (vesta.any, vesta.all):
        for data in (x > 0.5, x, (x * 9).to(vesta.uint8), n):
            want = bool(op(data))
            assert op(data, out=flags).item() is want and op(data, (0, 1), out=byte).item() == want
            for dtype in (vesta.float32, vesta.int64):
                with pytest.raises(RuntimeError, match="only supports bool tensor for result"):
                    op(data, 0, out=vesta.empty(64, dtype=dtype))


@pytest.mark.parametrize("dtype", [vesta.float32, vesta.int32])
def test_numbers_of_classes_are_written_as_int64(dtype: vesta.dtype) -> None:
    out = vesta.empty(2, dtype=dtype)
    with pytest.raises(RuntimeError, match="int64"):
        vesta.multinomial(vesta.ones(3), 2, out=out)
    assert vesta.multinomial(vesta.ones(3), 2, out=vesta.empty(2, dtype=vesta.int64)).dtype is vesta.int64
