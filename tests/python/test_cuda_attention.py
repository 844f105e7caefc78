"""scaled_dot_product_attention on CUDA, one kernel that never writes the scores, against the CPU."""

from __future__ import annotations

from typing import Any

import pytest
import vesta
from vesta.nn.functional import scaled_dot_product_attention as attention

pytestmark = pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a GPU, or the emulated device")

TOLERANCE = {vesta.float64: 1e-12, vesta.float32: 2e-5, vesta.float16: 4e-3, vesta.bfloat16: 3e-2}


@pytest.fixture
def own_kernels() -> Any:
    """Leaves cuDNN out."""
    with vesta.backends.cuda.sdp_kernel(enable_cudnn=False):
        yield


def made(*shape: int, dtype: Any = vesta.float32, seed: int = 0) -> Any:
    generator = vesta.Generator().manual_seed(seed + sum(shape))
    return vesta.randn(*shape, generator=generator, dtype=vesta.float64).to(dtype)


def launches() -> int:
    return dict(vesta._C_cuda.counters())["launches"]


def both(q: Any, k: Any, v: Any, *, grad: bool = True, **options: Any) -> None:
    """Compares result and gradients of both devices. On the CPU 16-bit floats compute as float32 does on CUDA."""
    sides = []
    for device in ("cpu", "cuda"):
        vesta.manual_seed(7)
        inputs = [t.detach().to(device).requires_grad_(grad) for t in (q, k, v)]
        more = {n: o.to(device) if isinstance(o, vesta.Tensor) else o for n, o in options.items()}
        y = attention(*inputs, **more)
        sides.append([y])
        if grad:
            g = made(*y.shape, dtype=y.dtype, seed=5).to(device)
            sides[-1] += vesta.autograd.grad(y, inputs, g)
    for want, got in zip(*sides):
        assert got.device.type == "cuda" and got.shape == want.shape and got.dtype == want.dtype
        tolerance = TOLERANCE[q.dtype]
        vesta.testing.assert_close(got.detach().cpu(), want.detach(), rtol=tolerance, atol=tolerance, equal_nan=True)


SIZES = [  # batch and heads, queries, keys, size of keys, size of values
    ((2, 3), 5, 7, 4, 4),
    ((1, 2), 70, 65, 33, 17),
    ((1, 1), 1, 130, 8, 8),
    ((1, 1), 17, 64, 64, 72),
    ((1,), 20, 3, 1, 130),
    ((), 33, 40, 80, 3),
    ((1, 2), 66, 130, 150, 136),
    ((2, 1, 2), 3, 2, 5, 6),
]


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_sizes_and_types(size: tuple[tuple[int, ...], int, int, int, int], dtype: Any) -> None:
    heads, queries, keys, e, values = size
    q, k, v = (made(*heads, *s, dtype=dtype) for s in ((queries, e), (keys, e), (keys, values)))
    both(q, k, v)
    both(q, k, v, is_causal=True, scale=0.7 / e**0.5)


MASKS: dict[str, Any] = {
    "bool": lambda: made(20, 23) > 0,
    "bool of each head": lambda: made(2, 3, 20, 23) > -0.5,
    "bool of keys": lambda: made(2, 1, 1, 23) > 0,
    "numbers": lambda: made(3, 20, 23),
    "numbers, turned": lambda: made(23, 20).t(),
    "numbers of queries": lambda: made(20, 1),
    "one number": lambda: made(1, 1),
    "sees nothing": lambda: vesta.zeros(20, 23, dtype=vesta.bool),
    "some see nothing": lambda: made(20, 1).expand(20, 23) > 0,
    "minus infinity": lambda: made(20, 23).masked_fill(made(20, 1) > 0, -vesta.inf),
}


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("dtype", [vesta.float32, vesta.float64, vesta.bfloat16], ids=str)
def test_masks(kind: str, dtype: Any) -> None:
    q, k, v = made(2, 3, 20, 6, dtype=dtype), made(2, 3, 23, 6, dtype=dtype), made(2, 3, 23, 5, dtype=dtype)
    mask = MASKS[kind]()
    both(q, k, v, attn_mask=mask)
    if mask.dtype == vesta.float32 and dtype != vesta.float32:
        both(q, k, v, attn_mask=mask.to(dtype))


def test_queries_that_see_nothing_are_zero() -> None:
    q = made(1, 2, 5, 4).cuda().requires_grad_()
    mask = vesta.ones(5, 5, dtype=vesta.bool)
    mask[1] = False
    y = attention(q, q, q, mask.cuda())
    (of_q,) = vesta.autograd.grad(y.sum(), q)
    assert (y[:, :, 1] == 0).all() and not of_q.isnan().any()


@pytest.mark.parametrize("dtype", [vesta.float32, vesta.bfloat16, vesta.float64], ids=str)
def test_nan_under_a_mask_is_nan(dtype) -> None:
    q, k, v = (made(1, 2, n, 8).to(dtype) for n in (3, 5, 5))
    q[0, 0, 1, 2] = vesta.nan
    mask = vesta.ones(3, 5, dtype=vesta.bool)
    mask[0, 2:] = False
    both(q, k, v, attn_mask=mask)
    y = attention(q.cuda(), k.cuda(), v.cuda(), attn_mask=mask.cuda()).cpu()
    assert y.isnan().any(-1).flatten().tolist() == [False, True, False, False, False, False]


@pytest.mark.parametrize("dtype", [vesta.float32, vesta.float64], ids=str)
def test_scores_of_minus_infinity_alone_give_zeros(dtype) -> None:
    """Without a mask too, on every device, as in PyTorch; float64 gave NaN here."""
    far = 1e30 if dtype is vesta.float32 else 1e200
    for device in ("cpu", "cuda"):
        q = vesta.full((1, 1, 2, 8), -far, dtype=dtype, device=device, requires_grad=True)
        k, v = vesta.full((2, 1, 1, 5, 8), far, dtype=dtype, device=device)
        y = attention(q, k, v)
        y.sum().backward()
        assert not y.any() and not q.grad.any()


@pytest.mark.parametrize("number", [vesta.nan, vesta.inf])
@pytest.mark.parametrize("dtype", [vesta.float32, vesta.bfloat16, vesta.float64], ids=str)
def test_a_query_that_sees_nothing_keeps_values_that_are_not_finite(dtype, number: float) -> None:
    """Weights of zero times NaN are NaN, as on the CPU and in PyTorch; other columns are zero."""
    for queries, keys in ((3, 5), (40, 70)):
        q, k, v = (made(1, 2, n, 8).to(dtype) for n in (queries, keys, keys))
        v[0, 0, 1, 2] = number
        mask = vesta.ones(queries, keys, dtype=vesta.bool)
        mask[1] = False
        # With an infinite value the gradients of other queries are differences of infinities: cuDNN's need not be ours.
        both(q, k, v, attn_mask=mask, grad=dtype != vesta.bfloat16)
        y = attention(q.cuda(), k.cuda(), v.cuda(), attn_mask=mask.cuda()).cpu()
        assert y[0, :, 1].isnan().sum() == 1 and y[0, 0, 1, 2].isnan()
        assert (y[0, :, 1].nan_to_num() == 0).all()


@pytest.mark.parametrize("keys", [1, 2, 6])
def test_grouped_heads(keys: int) -> None:
    q, k, v = made(2, 6, 19, 8), made(2, keys, 21, 8), made(2, keys, 21, 8)
    both(q, k, v, enable_gqa=True, is_causal=True)
    both(q, k, v, enable_gqa=True, attn_mask=made(6, 19, 21))
    both(q, k, made(2, 3, 21, 8), enable_gqa=True)  # other heads of values than of keys


def test_operands_broadcast() -> None:
    q, k, v = made(2, 3, 9, 4), made(7, 4), made(7, 5)
    both(q, k, v)
    both(q, made(3, 7, 4), made(2, 1, 7, 5))
    both(made(9, 4), made(3, 7, 4), made(3, 7, 5), attn_mask=made(2, 1, 9, 7))
    both(q, made(2, 1, 7, 4), made(2, 1, 7, 5), is_causal=True)


@pytest.mark.parametrize("p", [0.3, 0.9, 1.0])
def test_dropout_draws_the_numbers_of_the_cpu(p: float) -> None:
    q, k, v = made(2, 4, 20, 6), made(2, 4, 33, 6), made(2, 4, 33, 5)
    both(q, k, v, dropout_p=p)
    both(q.double(), k.double(), v.double(), dropout_p=p, attn_mask=made(20, 33) > 0)
    both(q, k[:, :2], v[:, :2], dropout_p=p, enable_gqa=True)


def test_layouts() -> None:
    def views(t: Any) -> list[Any]:
        b, h, n, e = t.shape
        inside = vesta.empty(b, n, h, e).transpose(1, 2).copy_(t)
        fused = vesta.empty(b, n, 3, h, e)[:, :, 1].transpose(1, 2).copy_(t)
        turned = vesta.empty(b, h, e, n).transpose(2, 3).copy_(t)
        return [inside, fused, turned, t[:, :, ::2]]

    q = made(2, 3, 18, 8)
    for view in views(q):
        both(view, view, view, is_causal=True)
    x = made(2, 18, 24).cuda()
    y = attention(*(x.view(2, 18, 3, 8).transpose(1, 2),) * 3)
    assert y.transpose(1, 2).is_contiguous()  # goes back to [2, 18, 24] without a copy
    # The bits do not depend on the layout, on the batch or on the number of queries.
    on = q.cuda()
    want = attention(on, on, on)
    for view in views(q)[:3]:
        at = vesta.empty_strided(view.shape, view.stride(), device="cuda").copy_(view)
        assert vesta.equal(attention(at, at, at), want)
    assert vesta.equal(attention(on[1:], on[1:], on[1:]), want[1:])
    assert vesta.equal(attention(on[:, :, :3], on, on), want[:, :, :3])


def test_empty_operands() -> None:
    for q, k, v in (
        ((2, 0, 4), (2, 3, 4), (2, 3, 5)),
        ((2, 3, 4), (2, 0, 4), (2, 0, 5)),
        ((2, 3, 0), (2, 3, 0), (2, 3, 5)),
        ((2, 3, 4), (2, 3, 4), (2, 3, 0)),
        ((0, 3, 4), (0, 3, 4), (0, 3, 4)),
    ):
        both(made(*q), made(*k), made(*v))


@pytest.mark.parametrize("dtype, size", [(vesta.float32, 16), (vesta.bfloat16, 16), (vesta.bfloat16, 72)], ids=str)
def test_tiles_that_a_mask_hides_have_the_bits_of_an_additive_one(size: int, dtype: Any, own_kernels: None) -> None:
    """What the mask hides wholly is passed over: the numbers are those of scores minus infinity, NaN of values too."""
    n = 140
    q, k, v = (made(1, 1, n, size, dtype=dtype, seed=s) for s in range(3))
    g = made(1, 1, n, size, dtype=dtype, seed=3).cuda()
    bad_q, bad_v = q.clone(), v.clone()
    bad_q[0, 0, 20], bad_v[0, 0, 100, 3], bad_v[0, 0, 139, 2] = vesta.nan, vesta.inf, vesta.nan
    place = vesta.arange(n)
    blocks = place[:, None] // 70 == place[None, :] // 70
    late = (place > 110).expand(n, n)
    nothing = (place[:, None] > 80) & (place > 130)  # of the first queries
    for mask, query, value, dropout in (
        (blocks, q, v, 0.3), (blocks, bad_q, v, 0.0), (late, q, bad_v, 0.0), (nothing, q, bad_v, 0.0),
    ):  # fmt: skip
        sides = []
        for given in (mask, vesta.where(mask, 0, -vesta.inf).to(dtype)):
            vesta.manual_seed(1)
            leaves = [t.detach().cuda().requires_grad_() for t in (query, k, value)]
            y = attention(*leaves, attn_mask=given.cuda(), dropout_p=dropout)
            sides.append([y, *vesta.autograd.grad(y, leaves, g)])
        for have, want in zip(*sides):
            assert vesta.equal(have.nan_to_num(7, 8, 9), want.nan_to_num(7, 8, 9))


def test_infinite_and_missing_numbers() -> None:
    q, k, v = made(1, 2, 20, 4), made(1, 2, 20, 4), made(1, 2, 20, 4)
    q[0, 0, 3, 1] = vesta.nan
    k[0, 1, 5, 2] = vesta.inf
    both(q, k, v)


def test_infinite_factors_are_infinite() -> None:
    # Tensor cores take a float as a sum of two numbers, of which the second may be 0: 0 times infinity is no number.
    q, k, v = (made(1, 2, 70, 8).round() for _ in range(3))
    k[0, 0, 5, 2], k[0, 1, 69, 0] = -vesta.inf, vesta.inf
    v[0, 1, 3, 4], v[0, 0, 66, 7] = vesta.inf, -vesta.inf
    both(q, k, v)
    both(q[:, :, :3], k, v, attn_mask=made(3, 70) > -1)
    y = attention(q.cuda(), k.cuda(), v.cuda())
    assert (y == vesta.inf).any() and (y == -vesta.inf).any() and y.isfinite().any()


def test_infinite_gradients() -> None:
    q, k, v, g = (made(1, 4, 40, 8, seed=n).round() for n in range(4))
    g[0, 0, 3, 1], g[0, 3, 39, 5] = vesta.inf, -vesta.inf
    sides = []
    for device in ("cpu", "cuda"):
        on = [t.to(device).requires_grad_() for t in (q, k[:, :2], v[:, :2])]
        y = attention(*on, enable_gqa=True)
        sides.append(vesta.autograd.grad(y, on, g.to(device)))
    for want, got in zip(*sides):
        assert vesta.equal(want.isnan(), got.cpu().isnan()) and not want.isnan().all()
        vesta.testing.assert_close(got.cpu(), want, rtol=1e-5, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("size", [64, 128])
def test_floats_keep_their_digits(size: int) -> None:
    """The errors of result and gradients, against float64, are those of sums of floats."""
    q, k, v, g = (made(1, 2, 200, size, dtype=vesta.float64, seed=n) for n in range(4))
    sides = []
    for dtype, device in ((vesta.float64, "cpu"), (vesta.float32, "cuda")):
        on = [t.float().to(device, dtype).requires_grad_() for t in (q, k, v)]
        y = attention(*on, is_causal=True)
        sides.append([y, *vesta.autograd.grad(y, on, g.float().to(device, dtype))])
    for want, got in zip(*sides):
        error = (got.detach().cpu().double() - want.detach()).abs().max() / want.detach().abs().max()
        assert error < 2e-6, error.item()


@pytest.mark.parametrize("dtype", [vesta.float32, vesta.float16, vesta.bfloat16], ids=str)
@pytest.mark.parametrize("size", [64, 104])
def test_many_tiles(size: int, dtype: Any) -> None:
    q, k, v = made(1, 2, 150, size, dtype=dtype), made(1, 1, 141, size, dtype=dtype), made(1, 1, 141, size, dtype=dtype)
    both(q, k, v, enable_gqa=True, is_causal=True, dropout_p=0.2)
    both(q, k, v, enable_gqa=True, attn_mask=made(2, 1, 141) > -1)
    both(q, k, v, enable_gqa=True, attn_mask=made(150, 141))
    both(q[:, :, :70], k, v, enable_gqa=True, is_causal=True)  # keys that nobody sees


@pytest.mark.parametrize("dtype", [vesta.float32, vesta.float16, vesta.bfloat16], ids=str)
@pytest.mark.parametrize("size", [64, 100])
def test_few_queries_of_many_keys(size: int, dtype: Any) -> None:
    """Blocks share the keys, and a second kernel joins what they have."""
    length = 1100
    q, k, v = (made(2, n, m, e, dtype=dtype) for n, m, e in ((2, 3, size), (1, length, size), (1, length, 37)))
    on = [t.cuda() for t in (q, k, v)]
    before = launches()
    y = attention(*on, enable_gqa=True)
    assert launches() - before == 2
    both(q, k, v, grad=False, enable_gqa=True)
    one = [t[:1] for t in (q, k, v)]
    both(*one, enable_gqa=True, dropout_p=0.2)
    both(*one, grad=False, enable_gqa=True, attn_mask=made(1, 2, 3, length))
    place = vesta.arange(length)
    for seen in (place < 20, (place < 300) | (place > 1050), place < 0):  # ranges that are hidden
        both(*one, grad=False, enable_gqa=True, attn_mask=seen.expand(3, length))
    # The bits do not depend on batch and heads.
    assert vesta.equal(attention(*(t[1:] for t in on), enable_gqa=True), y[1:])
    assert vesta.equal(attention(on[0][:, 1:], on[1], on[2], enable_gqa=True), y[:, 1:])


def test_parts_of_few_queries_keep_what_is_not_finite() -> None:
    q, k, v = made(1, 2, 3, 8).round(), made(1, 2, 1100, 8).round(), made(1, 2, 1100, 40).round()
    k[0, 0, 5, 2], v[0, 1, 1000, 4], v[0, 1, 9, 35] = -vesta.inf, vesta.inf, vesta.nan
    both(q, k, v)
    mask = vesta.ones(3, 1100, dtype=vesta.bool)
    mask[1], mask[2, 800:] = False, False
    both(q, k, v, attn_mask=mask)
    y = attention(q.cuda(), k.cuda(), v.cuda(), attn_mask=mask.cuda()).cpu()
    assert (y[0, 0, 1] == 0).all() and y[0, 1, 1].isnan().nonzero().flatten().tolist() == [4, 35]
    mask = vesta.zeros(3, 1100).masked_fill(~mask, vesta.finfo(vesta.float32).min)
    both(q, k[:, 1:], v[:, :1], enable_gqa=True, attn_mask=mask)


@pytest.mark.parametrize("size", [64, 128])
def test_few_queries_keep_their_digits(size: int) -> None:
    q, k, v = (made(1, 2, n, size, dtype=vesta.float64).float() for n in (2, 1500, 1500))
    want = attention(q.double(), k.double(), v.double())
    error = (attention(q.cuda(), k.cuda(), v.cuda()).cpu().double() - want).abs().max() / want.abs().max()
    assert error < 2e-6, error.item()


def test_the_lowest_mask_is_not_infinite() -> None:
    q, mask = made(1, 2, 20, 8), made(20, 20)
    mask[3], mask[5, :9] = vesta.finfo(vesta.float32).min, vesta.finfo(vesta.float32).min
    both(q, q, q, attn_mask=mask)
    both(q, q, q, attn_mask=mask, scale=-0.5)


@pytest.mark.parametrize("dtype", [vesta.float32, vesta.bfloat16], ids=str)
@pytest.mark.parametrize("size", [8, 64, 96])
def test_places_change_no_bits(size: int, dtype: Any, own_kernels: None) -> None:
    def shifted(t: Any) -> Any:
        room = vesta.empty(t.numel() + 1, dtype=dtype, device="cuda")[1:]  # no row is aligned to 16 bytes
        return room.view(t.shape).copy_(t)

    q, k, v, g = (made(2, 2, 90, size, dtype=dtype, seed=n).cuda() for n in range(4))
    seen = (made(90, 90) > -1).cuda()
    wants: list[Any] = []
    for place in (lambda t: t, shifted):
        on = [place(t).requires_grad_() for t in (q, k, v)]
        y = attention(*on, attn_mask=seen)
        wants.append([y, *vesta.autograd.grad(y, on, place(g))])
    assert all(vesta.equal(a, b) for a, b in zip(*wants))
    for n in (1, 16, 17, 40):  # of other numbers of queries
        assert vesta.equal(attention(q[:, :, :n], k, v, attn_mask=seen[:n]), wants[0][0][:, :, :n])
    on = [t[1:, 1:].requires_grad_() for t in (q, k, v)]
    alone = vesta.autograd.grad(attention(*on, attn_mask=seen), on, g[1:, 1:])
    assert all(vesta.equal(a, b[1:, 1:]) for a, b in zip(alone, wants[0][1:]))


def test_second_gradient() -> None:
    sides = []
    for device in ("cpu", "cuda"):
        vesta.manual_seed(1)
        q, k, v = (
            made(1, h, n, 4, dtype=vesta.float64).to(device).requires_grad_() for h, n in ((2, 6), (1, 5), (1, 5))
        )
        y = attention(q, k, v, is_causal=True, dropout_p=0.2, enable_gqa=True)
        first = vesta.autograd.grad(y.square().sum(), [q, k, v], create_graph=True)
        sides.append(vesta.autograd.grad(sum(t.square().sum() for t in first), [q, k, v]))
    for want, got in zip(*sides):
        vesta.testing.assert_close(got.cpu(), want)


def test_the_gradient_of_a_mask() -> None:
    sides = []
    for device in ("cpu", "cuda"):
        q, mask = made(2, 5, 4).to(device), made(5, 5).to(device).requires_grad_()
        sides.append(vesta.autograd.grad(attention(q, q, q, mask).square().sum(), mask)[0])
    vesta.testing.assert_close(sides[1].cpu(), sides[0])


def test_launches_and_memory() -> None:
    q = made(2, 2, 130, 16).cuda().requires_grad_()
    g = made(2, 2, 130, 16).cuda()
    before = launches()
    y = attention(q, q.detach(), q.detach(), is_causal=True)
    assert launches() - before == 1
    vesta.autograd.grad(y, q, g)
    assert launches() - before == 4  # sums of grad * out, then a kernel for queries, and one for keys and values
    long = made(1, 1, 1500, 4).cuda()
    vesta.cuda.reset_peak_memory_stats()
    before = vesta.cuda.memory_allocated()
    attention(long, long, long)
    assert vesta.cuda.max_memory_allocated() - before < 1500 * 1500  # a byte for each score would be more


def test_same_bits_every_time() -> None:
    q, k, v = (made(2, h, 70, 16).cuda().requires_grad_() for h in (4, 2, 2))

    def once() -> list[Any]:
        vesta.manual_seed(3)
        y = attention(q, k, v, is_causal=True, dropout_p=0.1, enable_gqa=True)
        return [y, *vesta.autograd.grad(y.sum(), [q, k, v])]

    assert all(vesta.equal(a, b) for a, b in zip(once(), once()))


def test_autocast_and_bad_operands() -> None:
    q = made(1, 2, 8, 4).cuda()
    with vesta.autocast("cuda", dtype=vesta.bfloat16):
        assert attention(q, q, q).dtype == vesta.bfloat16
    with pytest.raises(RuntimeError, match="expected all tensors on one device"):
        attention(q, q.cpu(), q)
    with pytest.raises(RuntimeError, match="broadcast"):
        attention(q, q, q, made(3, 8, 8).cuda())
    with pytest.raises(RuntimeError, match="attn_mask dtype"):
        attention(q, q, q, vesta.ones(8, 8, dtype=vesta.int64, device="cuda"))
