"""Ops over whole lists of tensors, and what uses them: clipping of gradients, ``_foreach_*``, ``zero_grad``."""

from __future__ import annotations

import math
from typing import Any

import pytest
import vesta
from vesta import _C, Tensor, nn

FLOATS = [vesta.float16, vesta.bfloat16, vesta.float32, vesta.float64]
DEVICES = ["cpu", "cuda"] if vesta.cuda.is_available() else ["cpu"]
SIZES = [(3, 5), (17,), (), (0,), (2, 3, 4), (20000,), (8192,), (16385,), *[(7,)] * 200]  # more than one launch
RTOL = {vesta.float16: 1e-5, vesta.bfloat16: 1e-5, vesta.float32: 1e-6, vesta.float64: 1e-13}


def values(size: tuple[int, ...], seed: int, dtype: Any, device: str) -> Tensor:
    generator = vesta.Generator().manual_seed(seed)
    return vesta.randn(size, generator=generator, dtype=vesta.float64).to(dtype).to(device)


def tensors(dtype: Any, device: str) -> list[Tensor]:
    """Makes tensors of many sizes, one of them without alignment, one transposed, one with gaps, one repeated."""
    made = [values(size, i, dtype, device) for i, size in enumerate(SIZES)]
    made.append(values((9001,), 500, dtype, device)[1:])
    made.append(values((30, 50), 501, dtype, device).t())
    made.append(values((12, 90), 502, dtype, device)[1:9, ::3])
    return made


def norm(x: Tensor, p: float) -> float:
    listed = [abs(v) for v in x.detach().cpu().to(vesta.float64).flatten().tolist()]
    return max(listed, default=0.0) if p == math.inf else math.fsum(v**p for v in listed) ** (1 / p)


def product(x: Tensor, by: Any) -> Tensor:
    """Returns x * by, computed in float32 at least: 16-bit floats round once."""
    kind = x.dtype if x.dtype == vesta.float64 else vesta.float32
    return (x.to(kind).reshape(-1) * by).reshape(x.shape).to(x.dtype)


def launches() -> int:
    return dict(vesta._C_cuda.counters())["launches"]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_norms(p: float, dtype: Any, device: str) -> None:
    list_ = tensors(dtype, device)
    list_.append(values((5,), 7, dtype, device).expand(4, 5))
    norms = _C._list_norms(list_, p, False)
    assert norms.dtype == (dtype if dtype == vesta.float64 else vesta.float32) and norms.device.type == device
    want = [norm(t, p) for t in list_]
    assert norms.tolist() == pytest.approx(want, rel=RTOL[dtype])
    total = _C._list_norms(list_, p, True)
    assert total.shape == () and total.dtype == norms.dtype
    assert total.item() == pytest.approx(norm(vesta.tensor(want, dtype=vesta.float64), p), rel=RTOL[dtype])
    # What else is in the list, and where a tensor lies, makes no difference.
    for t, n in zip(list_[:8], norms[:8]):
        moved = vesta.zeros(t.numel() + 1, dtype=dtype, device=device)[1:].copy_(t.flatten())
        assert vesta.equal(_C._list_norms([moved], p, True), n)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_norms_of_what_is_not_finite(p: float, device: str) -> None:
    for bad in (math.inf, -math.inf, math.nan):
        for place in (0, 5000, 19999):
            x = vesta.ones(20000, device=device)
            x[place] = bad
            norms = _C._list_norms([vesta.ones(3, device=device), x], p, False)
            assert norms[0].item() == pytest.approx(norm(vesta.ones(3), p))
            got = norms[1].item()
            assert math.isnan(got) if math.isnan(bad) else got == math.inf


@pytest.mark.parametrize("device", DEVICES)
def test_norms_of_several_dtypes(device: str) -> None:
    list_ = [values((100 + i,), i, FLOATS[i % 4], device) for i in range(12)]
    norms = _C._list_norms(list_, 2.0, False)
    assert norms.dtype == vesta.float64
    assert norms.tolist() == pytest.approx([norm(t, 2) for t in list_], rel=1e-6)


def test_norms_do_not_depend_on_threads() -> None:
    list_ = [values((n,), n, vesta.float32, "cpu") for n in (70000, 5, 200001, 31, 16384)]
    before = vesta.get_num_threads()
    try:
        found = []
        for threads in (1, 2, 3):
            vesta.set_num_threads(threads)
            found.append(_C._list_norms(list_, 2.0, False).tolist())
        assert found[0] == found[1] == found[2]
    finally:
        vesta.set_num_threads(before)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_products(dtype: Any, device: str) -> None:
    list_ = tensors(dtype, device)
    cells = {kind: vesta.tensor(0.3, dtype=kind, device=device) for kind in (vesta.float32, vesta.float64)}
    for by, factor in ((None, 0.7), (None, 1.0), (cells[vesta.float32], 1.0), (cells[vesta.float64], 1.0)):
        got = [t.clone() if t.is_contiguous() else t.clone().t().clone().t() for t in list_]
        versions = [t._version for t in got]
        assert _C._list_mul_(got, by, factor, False) is None
        for before, after, version in zip(list_, got, versions):
            assert vesta.equal(after, product(before, factor if by is None else by)) and after._version == version + 1


@pytest.mark.parametrize("device", DEVICES)
def test_products_with_gaps_and_repeats(device: str) -> None:
    base = vesta.ones(6, 8, device=device)
    part = base[1:5, ::2]
    _C._list_mul_([part], None, 3.0, False)
    assert base.sum().item() == 48 + 2 * 16 and part.sum().item() == 48
    x = vesta.ones(5000, device=device)
    _C._list_mul_([x, x[100:200], x], None, 2.0, False)  # in order, as one after the other
    assert x[:100].eq(4).all().item() and x[100:200].eq(8).all().item() and x[200:].eq(4).all().item()
    y = vesta.full((3,), 2.0, device=device)
    _C._list_mul_([y], y[1], 1.0, False)  # the factor is itself multiplied
    assert y.tolist() == [4.0] * 3


@pytest.mark.parametrize("device", DEVICES)
def test_zeros(device: str) -> None:
    kinds = [*FLOATS, vesta.int64, vesta.uint8, vesta.bool, vesta.complex64]
    list_ = [vesta.ones(n, dtype=kind, device=device) for kind in kinds for n in (0, 1, 13, 20001)]
    list_[2][0] = math.nan
    base = vesta.ones(6, 8, device=device)
    _C._list_zero_([*list_, base[1:5, ::2], vesta.ones(301, dtype=vesta.uint8, device=device)[3:]])
    assert not any(t.any().item() for t in list_) and base.sum().item() == 32


@pytest.mark.parametrize("call, error, words", [
    (lambda x: _C._list_norms([x, x.long()], 2.0, False), TypeError, r"int64 \(tensors\[1\]\)"),
    (lambda x: _C._list_norms([], 2.0, True), ValueError, "at least one tensor"),
    (lambda x: _C._list_norms([x], 3.0, True), ValueError, r"1, 2 or inf, got 3.0 \(ord\)"),
    (lambda x: _C._list_norms([x, x.to("meta")], 2.0, True), RuntimeError, "one device"),
    (lambda x: _C._list_mul_([x], x, 1.0, False), ValueError, r"one float32 or float64 element, .* \(by\)"),
    (lambda x: _C._list_mul_([x], None, 1.0, True), TypeError, r"None \(by\)"),
    (lambda x: _C._list_mul_([x[:1].expand(3)], None, 2.0, False), RuntimeError, "single memory location"),
    (lambda x: _C._list_zero_([x.requires_grad_()]), RuntimeError, "leaf"),
])  # fmt: skip
def test_refused(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call(vesta.ones(3))


# ---- clipping ----


def parameters(device: str, dtypes: Any = (vesta.float32,)) -> list[nn.Parameter]:
    made = []
    for i, size in enumerate([(64,), (3, 5), (9000,), (1,)] * 12):
        p = nn.Parameter(vesta.zeros(size, dtype=dtypes[i % len(dtypes)], device=device))
        p.grad = values(size, i, p.dtype, device)
        made.append(p)
    return made


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, 0.5, math.inf])
@pytest.mark.parametrize("foreach", [None, True, False])
def test_clipping(foreach: bool | None, p: float, device: str) -> None:
    for dtypes in ([vesta.float32], [vesta.float32, vesta.bfloat16], [vesta.float64, vesta.float32]):
        weights = parameters(device, dtypes)
        grads = [w.grad for w in weights]
        before = [g.clone() for g in grads]
        want = norm(vesta.cat([g.cpu().double().flatten() for g in grads]), p)
        total = nn.utils.clip_grad_norm_(weights, 2.0, p, foreach=foreach)
        assert total.shape == () and total.item() == pytest.approx(want, rel=1e-4)
        factor = 2.0 / (total.item() + 1e-6)
        for w, g, b in zip(weights, grads, before):
            assert w.grad is g
            tolerance = 1e-2 if g.dtype == vesta.bfloat16 else 1e-5
            assert vesta.allclose(g, b * factor, rtol=tolerance, atol=0)
        assert nn.utils.get_total_norm(grads, p, foreach=foreach).item() == pytest.approx(2.0, rel=1e-2)
        kept = [g.clone() for g in grads]
        nn.utils.clip_grad_norm_(weights, 100.0, p)
        assert all(vesta.equal(a, b) for a, b in zip(grads, kept))


@pytest.mark.parametrize("device", DEVICES)
def test_clipping_what_is_not_finite(device: str) -> None:
    for bad in (math.inf, math.nan):
        weights = parameters(device)
        weights[5].grad[0] = bad
        before = [w.grad.clone() for w in weights]
        with pytest.raises(RuntimeError, match="non-finite"):
            nn.utils.clip_grad_norm_(weights, 1.0, error_if_nonfinite=True)
        assert all(vesta.allclose(w.grad, b, equal_nan=True) for w, b in zip(weights, before))
        total = nn.utils.clip_grad_norm_(weights, 1.0)
        if math.isnan(bad):
            assert math.isnan(total.item()) and all(w.grad.isnan().all().item() for w in weights)
        else:  # by 0
            assert total.item() == math.inf and weights[0].grad.abs().sum().item() == 0


def test_clipping_on_two_devices() -> None:
    if len(DEVICES) == 1:
        pytest.skip("needs a CUDA device, or the emulated one")
    weights = [*parameters("cpu"), *parameters("cuda")]
    want = norm(vesta.cat([w.grad.cpu().flatten() for w in weights]), 2)
    total = nn.utils.clip_grad_norm_(weights, 1.0)
    assert total.device.type == "cpu" and total.item() == pytest.approx(want, rel=1e-5)
    assert nn.utils.get_total_norm([w.grad for w in weights]).item() == pytest.approx(1.0, rel=1e-5)


def test_clipping_by_a_given_norm() -> None:
    for dtype in (vesta.float32, vesta.float64, vesta.bfloat16):
        (weight,) = [nn.Parameter(vesta.zeros(2))]
        weight.grad = vesta.tensor([3.0, 4.0])
        nn.utils.clip_grads_with_norm_(weight, 2.5, vesta.tensor(5.0, dtype=dtype))
        assert weight.grad.tolist() == pytest.approx([1.5, 2.0], rel=1e-6)


def test_foreach_is_refused_where_pytorch_has_none() -> None:
    weight = nn.Parameter(vesta.zeros(2, device="meta"))
    weight.grad = vesta.zeros(2, device="meta")
    assert nn.utils.clip_grad_norm_(weight, 1.0).is_meta
    with pytest.raises(RuntimeError, match="can't use the foreach API on meta"):
        nn.utils.clip_grad_norm_(weight, 1.0, foreach=True)
    with pytest.raises(RuntimeError, match="can't use the foreach API on meta"):
        nn.utils.clip_grads_with_norm_(weight, 1.0, vesta.tensor(1.0), foreach=True)


def test_complex_gradients_are_clipped() -> None:
    weight = nn.Parameter(vesta.zeros(2, dtype=vesta.complex64))
    weight.grad = vesta.tensor([3.0 + 0j, 4j])
    assert nn.utils.clip_grad_norm_([weight], 1.0).item() == pytest.approx(5.0)
    assert weight.grad.abs().tolist() == pytest.approx([0.6, 0.8])


@pytest.mark.skipif(len(DEVICES) == 1, reason="needs a CUDA device, or the emulated one")
def test_launches() -> None:
    weights = []
    for i in range(148):
        weights.append(nn.Parameter(vesta.zeros(64, device="cuda")))
        weights[-1].grad = values((64,), i, vesta.float32, "cuda")
    grads = [w.grad for w in weights]
    optimizer = vesta.optim.SGD(weights, lr=0.1)

    def count(call: Any) -> int:
        synchronizations, before = dict(vesta._C_cuda.counters())["synchronizations"], launches()
        call()
        assert dict(vesta._C_cuda.counters())["synchronizations"] == synchronizations
        return launches() - before

    assert count(lambda: nn.utils.clip_grad_norm_(weights, 1.0)) == 3  # sums of pieces, their norm, the product
    assert count(lambda: nn.utils.get_total_norm(grads)) == 2
    assert count(lambda: vesta._foreach_norm(grads)) == 2
    assert count(lambda: vesta._foreach_mul_(grads, 0.5)) == 1
    assert count(lambda: vesta._foreach_mul_(grads, grads[0].new_ones(()))) == 2  # and of the number
    assert count(lambda: vesta._foreach_zero_(grads)) == 1
    assert count(lambda: optimizer.zero_grad(set_to_none=False)) == 1


# ---- lists ----


@pytest.mark.parametrize("device", DEVICES)
def test_foreach_of_lists(device: str) -> None:
    for dtype in FLOATS:
        list_ = [values(size, i, dtype, device) for i, size in enumerate([(3, 5), (), (1000,)])]
        for p in (1, 2, 2.0, math.inf, 3):
            norms = vesta._foreach_norm(list_, p)
            assert isinstance(norms, tuple) and all(n.shape == () and n.dtype == dtype for n in norms)
            for n, t in zip(norms, list_):
                assert n.item() == pytest.approx(norm(t, p), rel=1e-2 if dtype.itemsize == 2 else 1e-5)
        for by in (2, 0.3, vesta.tensor(0.3, device=device), vesta.tensor(0.3, device=device, dtype=vesta.float64)):
            got = [t.clone() for t in list_]
            assert vesta._foreach_mul_(got, by) is None
            assert all(vesta.equal(g, product(t, by)) for g, t in zip(got, list_))
        assert vesta._foreach_zero_(list_) is None and not any(t.any().item() for t in list_)
    ints = [vesta.arange(3, device=device), vesta.ones(2, device=device)]
    vesta._foreach_mul_(ints, 2)
    assert [t.tolist() for t in ints] == [[0, 2, 4], [2.0, 2.0]]


def test_foreach_is_recorded() -> None:
    leaves = [vesta.tensor([3.0, 4.0], requires_grad=True), vesta.tensor([2.0], requires_grad=True)]
    sum(vesta._foreach_norm(leaves)).backward()
    assert leaves[0].grad.tolist() == pytest.approx([0.6, 0.8])
    made = [leaf * 1 for leaf in leaves]
    vesta._foreach_mul_(made, 3.0)
    vesta._foreach_mul_(made, leaves[1].sum())
    (made[0].sum() + made[1].sum()).backward()
    assert leaves[0].grad.tolist() == pytest.approx([6.6, 6.8])
    with vesta.no_grad():
        vesta._foreach_zero_(leaves)
    assert leaves[0].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("device", DEVICES)
def test_zero_grad(device: str) -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)).to(device)
    optimizer = vesta.optim.SGD(model.parameters(), lr=0.1)
    for clear in (optimizer.zero_grad, model.zero_grad):
        model(vesta.ones(2, 3, device=device)).sum().backward()
        grads = [p.grad for p in model.parameters()]
        assert any(g.any().item() for g in grads)
        clear(set_to_none=False)
        for p, g in zip(model.parameters(), grads):
            assert p.grad is g and not g.any().item() and not g.requires_grad
    model(vesta.ones(2, 3, device=device)).pow(2).sum().backward(create_graph=True)
    optimizer.zero_grad(set_to_none=False)
    assert all(p.grad.grad_fn is None and not p.grad.any().item() for p in model.parameters())


def test_bounds_of_lists_are_numbers_or_lists() -> None:
    tensors = [vesta.tensor([1.0, 5.0]), vesta.tensor([3, 4])]
    larger, whole = vesta._foreach_maximum(tensors, 3)
    assert larger.tolist() == [3.0, 5.0] and whole.tolist() == [3, 4] and whole.dtype == vesta.int64
    assert [t.tolist() for t in vesta._foreach_minimum(tensors, [2.0, vesta.tensor([9, 1])])] == [[1.0, 2.0], [3, 1]]
    assert vesta._foreach_maximum_(tensors[:1], 2.0) is None and tensors[0].tolist() == [2.0, 5.0]
