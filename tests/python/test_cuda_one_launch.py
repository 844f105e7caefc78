"""Gradients and draws that were many launches on a device and are one or few: their values, and how many there are."""

from __future__ import annotations

import itertools
import os
from typing import Any, Callable

import numpy as np
import pytest
import vesta
import vesta.nn.functional as F

pytestmark = pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a CUDA device, emulated or not")
EMULATED = os.environ.get("VESTA_CUDA_LIBRARY", "").endswith("libvesta_cuda_emulation.so")


def drawn(shape: tuple[int, ...], dtype: str = "float64", seed: int = 0) -> vesta.Tensor:
    rng = np.random.default_rng([seed, *shape])
    x = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if "complex" in dtype else 0)
    return vesta.tensor(x).to(getattr(vesta, dtype))


def near(got: vesta.Tensor, want: vesta.Tensor, tolerance: float, what: Any = None) -> None:
    assert got.shape == want.shape and got.dtype == want.dtype, what
    wide = vesta.complex128 if want.is_complex() else vesta.float64
    a, b = (t.detach().cpu().to(wide).numpy() for t in (got, want))
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=str(what))


def gradients(f: Callable[..., vesta.Tensor], *operands: vesta.Tensor) -> tuple[list[list[vesta.Tensor]], int]:
    """Returns result and gradients on the CPU and on the device, and the launches of the device's backward."""
    both = []
    launches = 0
    for device in ("cpu", "cuda"):
        leaves = [x.to(device).requires_grad_() for x in operands]
        y = f(*leaves)
        g = drawn(tuple(y.shape), str(y.dtype).split(".")[1], 5).to(device)
        before = count("launches")
        found = vesta.autograd.grad(y, leaves, g)
        launches = count("launches") - before
        both.append([y, *found])
    return both, launches


def count(name: str) -> int:
    from vesta import _C_cuda

    return int(dict(_C_cuda.counters())[name])


LINES = [((7,), 0), ((5, 3), 0), ((5, 3), 1), ((2, 3, 4), 1), ((1, 5), 0), ((3, 40), 1), ((40, 3), 0), ((2, 300), 1),
         ((3, 1500), 1), ((70, 3), 0), ((40, 130), 0), ((0, 3), 1), ((3, 0), 0)]  # fmt: skip


@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-10), ("float32", 2e-4), ("complex128", 1e-10)])
@pytest.mark.parametrize("zeros", [0, 1, 2, 5])
def test_gradients_of_products(zeros: int, dtype: str, tolerance: float) -> None:
    """Of products and running products, with and without zeros, short lines and long ones, in any place."""
    for shape, dim in LINES:
        x = drawn(shape, dtype)
        x = x / x.abs().clamp(min=0.1) * (1 + 0.1 * drawn(shape, seed=2).clamp(-2, 2)).to(x.dtype)
        if x.numel():
            lines = x.movedim(dim, 0).flatten(1) if x.dim() > 1 else x[:, None]
            for k in range(min(zeros, lines.shape[0])):
                lines[(k * 13 + 2) % lines.shape[0], k % lines.shape[1]] = 0
                lines[(k * 7 + 1) % lines.shape[0], 0] = 0
            x = lines.reshape(x.movedim(dim, 0).shape).movedim(0, dim)
        for f in (lambda t, d=dim: t.prod(d), lambda t, d=dim: t.prod(d, True), lambda t, d=dim: t.cumprod(d)):
            (host, device), launches = gradients(f, x)
            for a, b in zip(device, host):
                scale = max(1.0, b.abs().max().item()) if b.numel() else 1.0
                near(a / scale, b / scale, tolerance, (shape, dim))
            assert launches <= 2, (shape, dim, launches)  # one, and a copy of a transposed operand


def test_gradients_of_products_to_second_order() -> None:
    from vesta.autograd import gradcheck, gradgradcheck

    x = drawn((2, 4)).cuda()
    x[0, 1] = x[1, 0] = x[1, 2] = 0
    for f in (lambda t: t.prod(1), lambda t: t.cumprod(1), lambda t: t.cumprod(0)):
        t = x.clone().requires_grad_()
        assert gradcheck(f, (t,)) and gradgradcheck(f, (t,))


@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-12), ("float32", 1e-5), ("bfloat16", 2e-2)])
def test_vectors_of_length_one(dtype: str, tolerance: float) -> None:
    for (shape, dim), eps in itertools.product(LINES, (1e-12, 3.0)):
        x, y = drawn(shape, dtype), drawn(shape, dtype, 1)
        if x.numel():
            x.select(dim, 0)[...] = 0  # with dim of size 1: vectors of zeros
        for f, operands, most in (
            (lambda t, d=dim, e=eps: F.normalize(t, dim=d, eps=e), (x,), 2),
            (lambda s, t, d=dim, e=eps: F.cosine_similarity(s, t, dim=d, eps=e), (x, y), 8),
        ):
            (host, device), launches = gradients(f, *operands)
            for a, b in zip(device, host):
                near(a, b, tolerance, (shape, dim, eps))
            assert launches <= most, (shape, dim, launches)


def test_cosine_similarity_broadcasts() -> None:
    for a, b, dim in (
        ((4, 1, 3), (5, 3), 2),
        ((4, 1, 3), (5, 3), -1),
        ((4, 1), (1, 3), 1),
        ((3,), (4, 5, 3), 0),
        ((4,), (2, 4), 1),
    ):
        (host, device), _ = gradients(lambda s, t, d=dim: F.cosine_similarity(s, t, dim=d), drawn(a), drawn(b))
        for x, y in zip(device, host):
            near(x, y, 1e-12, (a, b, dim))


def test_unit_vectors_to_second_order() -> None:
    from vesta.autograd import gradcheck, gradgradcheck

    x, y = drawn((3, 4)).cuda().requires_grad_(), drawn((3, 4), seed=1).cuda().requires_grad_()
    for eps in (1e-8, 4.0):
        assert gradcheck(lambda t, e=eps: F.normalize(t, eps=e), (x,))
        assert gradgradcheck(lambda t, e=eps: F.normalize(t, eps=e), (x,))
    assert gradcheck(F.cosine_similarity, (x, y)) and gradgradcheck(F.cosine_similarity, (x, y))


def test_multinomial_waits_for_nothing_and_draws_what_the_cpu_draws() -> None:
    weights = drawn((6, 30), "float32").abs()
    weights[:, ::3] = 0
    for samples, replacement in ((1, False), (1, True), (5, False), (40, True)):
        for w in (weights, weights.half(), weights.double()[0], weights.t()[1:7, :].contiguous().t()):
            if samples > 1 and not replacement and w.shape[-1] < 10:
                continue
            vesta.manual_seed(3)
            host = w.multinomial(samples, replacement)
            there = w.cuda()
            vesta.manual_seed(3)
            before = count("launches"), count("synchronizations"), count("copies")
            device = there.multinomial(samples, replacement)
            spent = [b - a for a, b in zip(before, (count("launches"), count("synchronizations"), count("copies")))]
            assert spent[1:] == [0, 0] and spent[0] <= 10, (samples, replacement, spent)
            assert device.tolist() == host.tolist(), (samples, replacement)


@pytest.mark.parametrize("weights, samples, words", [
    ([1.0, -1.0], 1, "element < 0"), ([1.0, float("nan")], 1, "`nan`"), ([1.0, float("inf")], 1, "`inf`"),
    ([0.0, 0.0], 1, "sum of probabilities <= 0"),
])  # fmt: skip
def test_multinomial_of_what_are_no_weights(weights: list[float], samples: int, words: str) -> None:
    with pytest.raises(RuntimeError, match=words):
        vesta.tensor(weights).multinomial(samples)
    with pytest.raises(RuntimeError, match=words):
        vesta.tensor(weights).cuda().multinomial(samples).tolist()
    rows = vesta.ones(3, 2)
    rows[1] = vesta.tensor(weights)
    with pytest.raises(RuntimeError, match=words):
        rows.cuda().multinomial(samples).tolist()
    assert vesta.ones(3, 2).cuda().multinomial(2).sum().item() == 3  # nothing is left of it


@pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "nearest", "midpoint"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_quantile_whose_rank_the_host_knows(dtype: str, interpolation: str) -> None:
    """The bits of the CPU, which works with tensors of ranks; NaN, infinities and equal numbers too."""
    inf, nan = float("inf"), float("nan")
    odd = vesta.tensor([[1.0, nan, 2.0, 3.0], [inf, -inf, inf, 0.0], [2.0, 2.0, 1.0, 1.0]]).to(getattr(vesta, dtype))
    for x, dim in ((drawn((6, 9), dtype), 0), (drawn((6, 9), dtype), 1), (drawn((6, 9), dtype), None), (odd, 1),
                   (drawn((), dtype), None), (drawn((1, 4), dtype), 0)):  # fmt: skip
        for q, keepdim in itertools.product((0, 0.1, 0.25, 0.5, 0.77, 1), (False, True)):
            both = []
            for device in ("cpu", "cuda"):
                t = x.to(device).requires_grad_()
                before = count("launches"), count("synchronizations")
                y = t.quantile(q, dim, keepdim, interpolation=interpolation)
                spent = count("launches") - before[0], count("synchronizations") - before[1]
                assert device == "cpu" or (spent[0] <= 8 and spent[1] == 0), spent
                (g,) = vesta.autograd.grad(y, t, vesta.ones_like(y))
                both.append((y.detach().cpu().numpy(), g.cpu().numpy()))
            (y, g), (there, g_there) = both
            np.testing.assert_array_equal(there, y)
            np.testing.assert_allclose(g_there, g, rtol=1e-6, atol=1e-6)
    for q in (-0.1, 1.5):
        with pytest.raises(RuntimeError, match=r"q must be in the range \[0, 1\]"):
            drawn((3,), dtype).cuda().quantile(q)


@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-14), ("float32", 1e-6), ("bfloat16", 2e-2)])
@pytest.mark.parametrize("norm_type", [1.0, 2.0, 3.0, np.inf])
def test_rows_of_a_table_are_scaled_down_once(norm_type: float, dtype: str, tolerance: float) -> None:
    """A row that is read twice is scaled once, one that is short or not read not at all; without a sort."""
    rows = vesta.tensor([[3, 1, 3], [0, 3, 5]])
    table = drawn((7, 5), dtype, 1)
    table[0], table[1] = 0, table[1] * 1e-3
    wide = table.double().numpy()
    norms = np.linalg.norm(wide, norm_type, axis=1, keepdims=True)
    want = np.where(norms > 1, wide / (norms + 1e-7), wide)
    want[[2, 4, 6]] = wide[[2, 4, 6]]
    for device in ("cpu", "cuda"):
        weight = table.clone().to(device)
        read = F.embedding(rows.to(device), weight, max_norm=1.0, norm_type=norm_type)
        near(weight, vesta.tensor(want).to(table.dtype), tolerance, (norm_type, device))
        assert vesta.equal(read, weight[rows.to(device)])
    before = count("launches")
    F.embedding(rows.to(device), weight, max_norm=1.0, norm_type=norm_type)
    assert dtype != "float32" or count("launches") - before <= 14


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("p", [0.0, 1.0, 1.5, 2.0, np.inf])
def test_distances_of_points_are_one_launch_each_way(p: float, dtype: str) -> None:
    """The CPU's bits forward, but for powers; no differences of all pairs in memory."""

    def between(a: vesta.Tensor, b: vesta.Tensor) -> vesta.Tensor:
        return vesta.cdist(a, b, p, compute_mode="donot_use_mm_for_euclid_dist")

    def pairs(a: vesta.Tensor) -> vesta.Tensor:
        return vesta.pdist(a, p)

    odd = drawn((9, 5), dtype)
    odd[2] = odd[4]  # a distance of 0
    odd[3, 1], odd[5, 2] = float("nan"), float("inf")
    exact = p in (0.0, 1.0, 2.0, np.inf)
    tolerance = {"float32": 1e-5, "float64": 1e-12, "bfloat16": 5e-2}[dtype]
    cases = [
        (between, drawn((5, 3), dtype), drawn((7, 3), dtype, 1), 1),
        (between, drawn((40, 70), dtype), drawn((37, 70), dtype, 1), 1),  # sums of more than 64 terms
        (between, drawn((2, 66, 129), dtype), drawn((2, 4, 129), dtype, 1), 1),
        (between, drawn((6, 4), dtype), drawn((3, 2, 5, 4), dtype, 1), 4),  # operands that broadcast
        (between, drawn((4, 5), dtype), odd, 1),
        (pairs, drawn((2, 3), dtype), None, 1),
        (pairs, drawn((70, 33), dtype), None, 1),
        (pairs, odd, None, 1),
    ]
    for f, a, b, most in cases:
        operands = [a] if b is None else [a, b]
        there = [x.cuda() for x in operands]
        before = count("launches")
        result = f(*there)
        spent = count("launches") - before
        want = f(*operands)
        assert vesta.equal(result.cpu().nan_to_num(7.0), want.nan_to_num(7.0)) or not exact, (a.shape, b is None)
        near(result.nan_to_num(7.0), want.nan_to_num(7.0), tolerance, (p, a.shape))
        assert spent <= most + (0 if dtype != "bfloat16" else 3), (a.shape, spent)
        (host, device), launches = gradients(f, *operands)
        for x, y in zip(device, host):
            near(x.nan_to_num(7.0, 5.0, 5.0), y.nan_to_num(7.0, 5.0, 5.0), 10 * tolerance, (p, a.shape))
        assert p == 0 or dtype == "bfloat16" or most > 1 or launches <= len(operands), (a.shape, launches)


def test_distances_hold_no_differences() -> None:
    x = drawn((300, 64), "float32").cuda().requires_grad_()
    vesta.cuda.synchronize()
    for f in (lambda t: vesta.cdist(t, t.detach(), 1.0), lambda t: vesta.pdist(t, 1.0)):
        held = vesta.cuda.memory_allocated()
        vesta.cuda.reset_peak_memory_stats()
        f(x).sum().backward()
        x.grad = None
        assert vesta.cuda.max_memory_allocated() - held < 2 << 20


@pytest.mark.parametrize("dtype", ["int32", "float32", "bfloat16", "complex64"])
def test_flips_and_cross_products_are_one_launch(dtype: str) -> None:
    kind = getattr(vesta, dtype)
    x = (10 * drawn((4, 6, 5, 3), "complex128" if dtype == "complex64" else "float64")).to(kind)
    last = x.to(memory_format=vesta.channels_last)
    cut = x[:, ::2, :, 1:]
    for t in (x, last, cut, x.permute(2, 0, 3, 1), x[0, 0, 0, 0], x[:, :0], x.expand(2, 4, 6, 5, 3), x[:1, :1, :1, :1]):
        for dims in itertools.chain.from_iterable(
            itertools.combinations(range(t.dim()), n) for n in range(t.dim() + 1)
        ):
            there = t.cuda() if t.is_contiguous() else x.cuda().as_strided(t.size(), t.stride(), t.storage_offset())
            if t is last:
                there = t.cuda()
            before = count("launches")
            y = there.flip(dims)
            assert count("launches") - before <= 1, (t.shape, dims)
            want = t.flip(dims)
            assert vesta.equal(y.cpu(), want) and y.stride() == want.stride(), (t.shape, dims)
    a, b = x, (7 * x.roll(1, 0) + 1).to(kind)
    for u, v, dim in ((a, b, 3), (a.movedim(3, 1).contiguous(), b.movedim(3, 1).contiguous(), 1)):
        left, right = u.cuda(), v.cuda()
        before = count("launches")
        y = vesta.linalg.cross(left, right, dim=dim)
        assert count("launches") - before == 1
        want = vesta.linalg.cross(u, v, dim=dim)
        assert vesta.equal(y.cpu(), want)
        if kind.is_floating_point:
            assert gradients(lambda s, t, d=dim: vesta.linalg.cross(s, t, dim=d), u, v)[1] == 2
    assert vesta.equal(vesta.linalg.cross(a.cuda()[:1], b.cuda()).cpu(), vesta.linalg.cross(a[:1], b))


@pytest.mark.parametrize("dtype", ["int64", "float32", "float16", "complex128"])
def test_a_compressed_matrix_times_a_dense_one_is_one_launch(dtype: str) -> None:
    """The CPU's bits: sums go in the order of the elements."""
    kind = getattr(vesta, dtype)
    for rows, inner, columns, share in (
        (5, 4, 1, 0.5),
        (70, 50, 3, 0.3),
        (9, 200, 40, 0.9),
        (6, 5, 7, 0.0),
        (3, 9, 0, 1),
    ):
        dense = (8 * drawn((rows, inner), "complex128" if dtype == "complex128" else "float64")).to(kind)
        dense = dense * (drawn((rows, inner), "float64", 2).abs() < 2 * share).to(kind)
        other = (8 * drawn((inner, columns), "complex128" if dtype == "complex128" else "float64", 1)).to(kind)
        for sparse in (dense.to_sparse_csr(), dense.to_sparse()):
            want = sparse @ other
            left, right = sparse.cuda(), other.cuda()
            before = count("launches")
            y = left @ right
            spent = count("launches") - before
            assert vesta.equal(y.cpu(), want), (rows, inner, columns)
            assert spent <= (1 if sparse.layout == vesta.sparse_csr else 4), spent


def test_changed_places_of_a_sparse_matrix_are_reported() -> None:
    for place in (-1, 4, 1 << 40):
        matrix = vesta.eye(4, device="cuda").to_sparse_csr()
        matrix.col_indices()[2] = place
        with pytest.raises(IndexError, match=f"matmul: index {place} is out of bounds"):
            (matrix @ vesta.ones(4, 2, device="cuda")).tolist()
    matrix = vesta.eye(4, device="cuda").to_sparse_csr()
    matrix.crow_indices()[1] = 99
    with pytest.raises(RuntimeError, match="changed in place"):
        (matrix @ vesta.ones(4, 2, device="cuda")).tolist()
    assert vesta.equal((vesta.eye(4).to_sparse_csr().cuda() @ vesta.ones(4, 2, device="cuda")).cpu(), vesta.ones(4, 2))


@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-11), ("float32", 2e-5), ("bfloat16", 3e-2)])
def test_the_gradient_of_running_sums_of_exponentials(dtype: str, tolerance: float) -> None:
    """One launch, or three for lines of several pieces; the slopes by hand."""
    for shape, dim in ((7,), 0), ((5, 3), 0), ((3, 40), 1), ((2, 300), 1), ((3, 8193), 1), ((17001,), 0), ((40, 70), 0):
        x = 2 * drawn(shape, dtype)
        (host, device), launches = gradients(lambda t, d=dim: t.logcumsumexp(d), x)
        g = drawn(shape, dtype, 5).double()
        wide = x.double().requires_grad_()
        with vesta.enable_grad():
            plain = (wide - wide.max().detach()).exp().cumsum(dim).log()
        want = vesta.autograd.grad(plain, wide, g)[0]
        for got in (host[1], device[1]):
            near(got.double(), want, tolerance * max(1.0, want.abs().max().item()), (shape, dim))
        assert launches <= (1 if shape[dim] <= 8192 else 3) + (dim == 0 and len(shape) > 1), (shape, launches)
    for f in (lambda t: t.logcumsumexp(1), lambda t: t.t().logcumsumexp(0)):
        y = drawn((3, 5)).cuda().requires_grad_()
        assert vesta.autograd.gradcheck(f, (y,)) and vesta.autograd.gradgradcheck(f, (y,))


def test_the_gradient_of_running_sums_of_infinities() -> None:
    inf, nan = float("inf"), float("nan")
    for values in ([-inf, -inf, 1.0, 2.0], [1.0, inf, 2.0, 3.0], [0.5, nan, 1.0], [800.0, -800.0, 900.0], [-inf, 3.0]):
        for slopes in ([1.0, 2.0, -3.0, 4.0], [0.0, 0.0, 1.0, -1.0]):
            sides = []
            for device in ("cpu", "cuda"):
                x = vesta.tensor(values, device=device, requires_grad=True)
                g = vesta.tensor(slopes[: len(values)], device=device)
                sides.append(vesta.autograd.grad(x.logcumsumexp(0), x, g)[0].cpu())
            near(sides[1], sides[0], 1e-6, (values, slopes))


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_repeated_elements_are_found_in_three_launches(dtype: str) -> None:
    rng = np.random.default_rng(2)
    kind = getattr(vesta, dtype)
    for counts in (
        [3],
        [0, 0, 2],
        [2, 0, 0],
        [0],
        [],
        rng.integers(0, 4, 3000),
        rng.integers(0, 2, 9000),
        [5000, 0, 7],
    ):
        repeats = vesta.tensor(np.asarray(counts, dtype=np.int64)).to(kind)
        want, there = vesta.repeat_interleave(repeats), repeats.cuda()
        for size in (None, want.numel()):
            before = count("launches"), count("synchronizations") + count("copies")
            got = vesta.repeat_interleave(there, output_size=size)
            spent = count("launches") - before[0]
            waited = count("synchronizations") + count("copies") - before[1]
            assert vesta.equal(got.cpu(), want) and got.dtype == want.dtype, (dtype, len(counts), size)
            assert spent <= 3 + (dtype != "int64") + 2 * (len(counts) > 8192), (len(counts), spent)
            assert size is None or waited == 0
    x = drawn((4, 3), "float32").cuda().requires_grad_()
    y = x.repeat_interleave(vesta.tensor([1, 0, 2, 3]).to(kind).cuda(), 0)
    assert y.tolist() == x.detach().cpu().repeat_interleave(vesta.tensor([1, 0, 2, 3]), 0).tolist()


def test_what_are_no_repeats() -> None:
    with pytest.raises(RuntimeError, match="repeats can not be negative"):
        vesta.repeat_interleave(vesta.tensor([2, -1, 3], device="cuda"))
    with pytest.raises(RuntimeError, match="repeats can not be negative"):
        vesta.repeat_interleave(vesta.tensor([2, -1, 3], device="cuda"), output_size=4).tolist()
    for size in (2, 9):
        with pytest.raises(RuntimeError, match="allocated size does not match required size"):
            vesta.repeat_interleave(vesta.tensor([2, 3], device="cuda"), output_size=size).tolist()
    for size in (-1, 3):
        with pytest.raises(RuntimeError, match="allocated size does not match required size"):
            vesta.repeat_interleave(vesta.tensor([], dtype=vesta.int64, device="cuda"), output_size=size)
    assert vesta.repeat_interleave(vesta.tensor([2, 1], device="cuda")).tolist() == [0, 0, 1]  # nothing is left of it


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_windows_at_random_are_one_launch_each_way(dtype: str) -> None:
    """The CPU's bits, of images and volumes; the last of several NaNs."""
    for shape, kernel, size in (
        ((2, 3, 9, 11), (2, 3), (4, 5)),
        ((3, 7, 7), 3, 1),
        ((2, 1, 5, 6, 7), (2, 1, 3), (3, 6, 4)),
        ((1, 2, 40, 33), 2, (20, 32)),
    ):
        pool = F.fractional_max_pool3d if len(shape) == 5 else F.fractional_max_pool2d
        x = drawn(shape, dtype)
        x[..., 1] = x[..., 2]
        if len(shape) == 4:
            x[0, 0, :3] = float("nan")
        channels = shape[:2] if len(shape) > 3 else (1, shape[0])
        numbers = vesta.rand(*channels, 3 if len(shape) == 5 else 2).to(x.dtype)
        sides = []
        for device in ("cpu", "cuda"):
            t = x.to(device).requires_grad_()
            there = numbers.to(device)
            before = count("launches")
            y, indices = pool(t, kernel, size, return_indices=True, _random_samples=there)
            forward = count("launches") - before
            g = drawn(tuple(y.shape), dtype, 3).to(device)
            before = count("launches")
            (gx,) = vesta.autograd.grad(y, t, g)
            assert device == "cpu" or (forward == 1 and count("launches") - before <= 1), forward
            sides.append([r.detach().cpu().double().nan_to_num(99.0).tolist() for r in (y, indices, gx)])
        assert sides[0] == sides[1], shape
    with pytest.raises(RuntimeError, match="expected \\[at least 2, 3, 2\\] numbers"):
        F.fractional_max_pool2d(drawn((2, 3, 5, 5)).cuda(), 2, 2, _random_samples=vesta.rand(2, 3, 3).double().cuda())
    for number in (-3.7, 1e30, float("inf"), float("nan")):  # which are no numbers of [0, 1)
        numbers = vesta.full((1, 1, 2), number, dtype=vesta.float64)
        x = drawn((1, 1, 9, 9))
        want = F.fractional_max_pool2d(x, 2, 4, _random_samples=numbers)
        assert vesta.equal(F.fractional_max_pool2d(x.cuda(), 2, 4, _random_samples=numbers.cuda()).cpu(), want)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "complex64", "bool"])
def test_sparse_tensors_are_coalesced_in_few_launches(dtype: str) -> None:
    kind = getattr(vesta, dtype)
    rng = np.random.default_rng(5)
    for sizes, nnz, dense in (((5, 4), 40, ()), ((300,), 900, (3,)), ((7, 9, 2), 0, ()), ((70_000, 80_000), 500, (2,)),
                              ((1,), 30, (40,)), ((), 3, ()), ((40, 50), 3000, ())):  # fmt: skip
        indices = vesta.tensor(np.stack([rng.integers(0, n, nnz) for n in sizes]) if sizes else np.zeros((0, nnz), int))
        values = (8 * drawn((nnz, *dense), "complex128" if kind.is_complex else "float64", 1)).to(kind)
        host = vesta.sparse_coo_tensor(indices, values, (*sizes, *dense))
        device = vesta.sparse_coo_tensor(indices.cuda(), values.cuda(), (*sizes, *dense))
        want = host.coalesce()
        before = count("launches")
        got = device.coalesce()
        spent = count("launches") - before
        assert vesta.equal(got.indices().cpu(), want.indices()), (sizes, dtype)
        assert vesta.equal(got.values().cpu(), want.values()), (sizes, dtype)
        assert got.is_coalesced()
        assert spent <= 6 or nnz > 2048 or dtype == "bool", (sizes, spent)
        if want.numel() < 10_000:
            before = count("launches")
            whole = device.to_dense()
            spent = count("launches") - before
            assert vesta.equal(whole.cpu(), host.to_dense()) or dtype == "bfloat16"  # the CPU rounds each sum
            assert spent <= 6 or nnz > 2048 or dtype == "bool", (sizes, spent)
            if sizes:
                assert vesta.equal(whole.to_sparse(len(sizes)).to_dense(), whole)


def test_gradients_pass_through_coalesced_tensors() -> None:
    indices = vesta.tensor([[0, 2, 0, 1, 2, 2], [1, 0, 1, 1, 0, 3]])
    sides = []
    for device in ("cpu", "cuda"):
        values = drawn((6, 3)).to(device).requires_grad_()
        made = vesta.sparse_coo_tensor(indices.to(device), values, (3, 4, 3)).coalesce()
        (made.to_dense() * drawn((3, 4, 3), seed=4).to(device)).sum().backward()
        sides.append(values.grad.cpu())
    near(sides[1], sides[0], 1e-12)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_the_gradient_of_log_determinants_solves_once(dtype: str) -> None:
    x = drawn((3, 5, 5), dtype) + 4 * vesta.eye(5, dtype=getattr(vesta, dtype))
    for part in (0, 1):
        (host, device), launches = gradients(lambda t, k=part: vesta.linalg.slogdet(t)[k], x)
        for a, b in zip(device, host):
            near(a, b, 1e-10, part)
        assert launches <= 30, launches
        t = x[:2].clone().requires_grad_()
        assert vesta.autograd.gradcheck(lambda s, k=part: vesta.linalg.slogdet(s)[k], (t,))
        assert vesta.autograd.gradgradcheck(lambda s, k=part: vesta.linalg.slogdet(s)[k], (t,))
    assert gradients(lambda t: vesta.linalg.slogdet(t)[1], x.real.clone())[1] <= 20


@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-12), ("float32", 1e-5), ("bfloat16", 2e-2)])
def test_weighted_cross_entropy_of_scores_is_two_launches(dtype: str, tolerance: float) -> None:
    x, t, w = drawn((6, 7), dtype), drawn((6, 7), dtype, 1).sigmoid(), drawn((7,), dtype, 2).abs()
    x[0, 0], x[0, 1] = 90, -90
    for reduction in ("none", "mean", "sum"):

        def loss(a: vesta.Tensor, b: vesta.Tensor, p: vesta.Tensor, how: str = reduction) -> vesta.Tensor:
            return F.binary_cross_entropy_with_logits(a, b, pos_weight=p, reduction=how)

        (host, device), launches = gradients(loss, x, t, w)
        for a, b in zip(device, host):
            near(a, b, tolerance * 100, reduction)
        assert launches <= 7, launches
        there = [v.cuda() for v in (x, t, w)]
        before = count("launches")
        loss(*there)
        assert count("launches") - before <= 2
    a = x.double().clamp(-3, 3).requires_grad_()
    wide = t.double().requires_grad_(), w.double().requires_grad_()
    assert vesta.autograd.gradcheck(
        lambda *v: F.binary_cross_entropy_with_logits(v[0], v[1], pos_weight=v[2]), (a, *wide)
    )


@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-12), ("float32", 1e-5), ("bfloat16", 3e-2)])
def test_the_gradient_of_logsumexp_down_columns(dtype: str, tolerance: float) -> None:
    """One launch, but for few long columns; infinities and NaN as on the CPU."""
    inf = float("inf")
    for shape, dim in (
        ((5, 3), 0),
        ((7, 64), 0),
        ((3, 9, 40), 1),
        ((2, 300, 33), 1),
        ((400, 2), 0),
        ((3, 4, 5), (0, 2)),
    ):
        x = drawn(shape, dtype)
        if dim != (0, 2):
            x.select(-1, 0)[...] = -inf
            x.select(-1, 1).flatten()[:1] = 50
            x.movedim(dim, 0)[0].flatten()[-1:] = inf if shape == (7, 64) else 1
        (host, device), launches = gradients(lambda t, d=dim: t.logsumexp(d), x)
        for a, b in zip(device, host):
            near(a.nan_to_num(7.0), b.nan_to_num(7.0), tolerance, (shape, dim))
        few_and_long = shape in ((2, 300, 33), (400, 2))  # which are made rows
        assert dim == (0, 2) or launches <= (3 if few_and_long else 1), (shape, launches)
