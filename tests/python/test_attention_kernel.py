"""Attention in one kernel on the CPU: against its parts, with gradients; equal bits for any batch and threads."""

import math

import pytest
import vesta
from vesta.nn.functional import scaled_dot_product_attention as attention

# batch, heads, heads of keys, queries, keys, width, width of values, causal, mask
CASES = [
    (2, 3, 3, 5, 7, 4, 6, False, None),
    (2, 4, 2, 130, 130, 16, 8, True, None),
    (1, 1, 1, 300, 300, 64, 64, True, None),
    (2, 4, 1, 33, 700, 32, 32, False, "bool"),
    (1, 2, 2, 70, 40, 8, 8, False, "float"),
    (1, 2, 2, 70, 40, 8, 8, False, "infinite"),
    (1, 2, 2, 7, 3, 8, 8, True, None),
    (1, 2, 2, 3, 9, 1, 8, True, None),
    (1, 8, 8, 1, 50, 64, 64, False, None),
    (1, 1, 1, 1, 1, 1, 1, False, None),
]


def make_mask(kind, batch, queries, keys, dtype):
    if kind is None:
        return None
    if kind == "float":
        return vesta.randn(queries, keys, dtype=dtype)
    seen = vesta.rand(batch, 1, queries, keys) > 0.4
    seen[0, 0, min(3, queries - 1)] = False  # a query that sees nothing
    return seen if kind == "bool" else vesta.zeros(seen.shape, dtype=dtype).masked_fill(~seen, -math.inf)


def in_parts(q, k, v, mask, causal):
    k, v = (t.repeat_interleave(q.size(1) // t.size(1), 1) for t in (k, v))
    scores = (q / math.sqrt(q.size(-1))) @ k.transpose(-1, -2)
    if causal:
        mask = vesta.ones(q.size(2), k.size(2), dtype=vesta.bool).tril()
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == vesta.bool else scores + mask
    blind = (scores == -math.inf).all(-1, keepdim=True)
    return scores.masked_fill(blind, 0.0).softmax(-1).masked_fill(blind, 0.0) @ v


def operands(case, dtype):
    batch, heads, shared, queries, keys, width, value_width, _, kind = case
    q = vesta.randn(batch, queries, heads, width, dtype=dtype).transpose(1, 2).requires_grad_()
    k = vesta.randn(batch, shared, keys, width, dtype=dtype, requires_grad=True)
    v = vesta.randn(batch, shared, value_width, keys, dtype=dtype).transpose(2, 3).requires_grad_()
    return q, k, v, make_mask(kind, batch, queries, keys, dtype)


@pytest.mark.parametrize("dtype", [vesta.float32, vesta.float64])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_its_parts(case, dtype):
    vesta.manual_seed(0)
    q, k, v, mask = operands(case, dtype)
    y = attention(q, k, v, mask, is_causal=case[7], enable_gqa=case[1] != case[2])
    want = in_parts(q, k, v, mask, case[7])
    grad = vesta.randn_like(want)
    got, expected = (vesta.autograd.grad(out, (q, k, v), grad) for out in (y, want))
    tolerance = 1e-5 if dtype == vesta.float32 else 1e-13
    for a, b in zip((y, *got), (want, *expected)):
        vesta.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


def test_second_derivatives():
    vesta.manual_seed(0)
    q, k, v = (vesta.randn(1, 2, 3, 2, dtype=vesta.float64, requires_grad=True) for _ in range(3))
    assert vesta.autograd.gradgradcheck(lambda *t: attention(*t, is_causal=True), (q, k, v))


def test_bits_do_not_depend_on_batch_or_threads():
    vesta.manual_seed(0)
    q, k, v = (vesta.randn(5, 3, 150, 24, requires_grad=True) for _ in range(3))
    grad = vesta.randn(5, 3, 150, 24)

    def run(part):
        inputs = [t.detach()[part].requires_grad_() for t in (q, k, v)]
        y = attention(*inputs, is_causal=True)
        return (y, *vesta.autograd.grad(y, inputs, grad[part]))

    whole, threads = run(slice(None)), vesta.get_num_threads()
    try:
        for count in (1, 3):
            vesta.set_num_threads(count)
            assert all(a.equal(b) for a, b in zip(run(slice(None)), whole))
    finally:
        vesta.set_num_threads(threads)
    for part in (slice(0, 1), slice(3, 5)):
        assert all(a.equal(b[part]) for a, b in zip(run(part), whole))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("heads", [1, 4])
def test_threads_share_the_gradient_of_one_head_of_keys(heads, causal):
    """Multi-query attention of one example has a single head of keys: the bits are those of one thread."""
    vesta.manual_seed(0)
    q, k, v = (vesta.randn(1, n, 333, 40, requires_grad=True) for n in (heads, 1, 1))
    grad, threads, found = vesta.randn(1, heads, 333, 40), vesta.get_num_threads(), []
    try:
        for count in (1, 2, 5):
            vesta.set_num_threads(count)
            y = attention(q, k, v, is_causal=causal, enable_gqa=True)
            found.append(vesta.autograd.grad(y, (q, k, v), grad))
    finally:
        vesta.set_num_threads(threads)
    for gradients in found[1:]:
        assert all(a.equal(b) for a, b in zip(gradients, found[0]))


def test_result_lies_as_queries_do():
    q, k, v = (vesta.rand(2, 6, 4, 8).transpose(1, 2) for _ in range(3))
    y = attention(q, k, v)
    assert y.transpose(1, 2).is_contiguous()
    assert y.transpose(1, 2).reshape(2, 6, 32).data_ptr() == y.data_ptr()


@pytest.mark.differs
@pytest.mark.parametrize("scale", [-0.7, 0.0])
def test_a_hidden_key_stays_hidden_whatever_the_scale(scale):
    """PyTorch's kernel multiplies the -inf of what is_causal hides by the scale."""
    vesta.manual_seed(0)
    q, k, v = (vesta.rand(1, 2, 5, 4, dtype=vesta.float64) for _ in range(3))
    seen = vesta.ones(5, 5, dtype=vesta.bool).tril()
    y = attention(q, k, v, is_causal=True, scale=scale)
    vesta.testing.assert_close(y, ((q @ k.mT) * scale).masked_fill(~seen, -math.inf).softmax(-1) @ v)
    assert y.equal(attention(q, k, v, seen, scale=scale))


@pytest.mark.differs
def test_a_hidden_key_stays_hidden_whatever_it_is():
    """PyTorch adds -inf to its score, which gives NaN where that is NaN or inf."""
    vesta.manual_seed(0)
    q, k, v = (vesta.rand(1, 2, 5, 4, dtype=vesta.float64) for _ in range(3))
    seen = vesta.ones(5, 5, dtype=vesta.bool).tril()
    expected = attention(q, k, v, seen)[:, :, :3]
    k[:, :, 3:] = vesta.tensor([math.nan, math.inf])[:, None]
    assert attention(q, k, v, seen)[:, :, :3].equal(expected)
    assert attention(q, k, v, is_causal=True)[:, :, :3].equal(expected)


@pytest.mark.differs
@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (3, 9), (2, 1, 3, 9)], ids=str)
def test_a_mask_of_float32_is_added_to_scores_of_float64(shape):
    vesta.manual_seed(0)
    q, k, v = (vesta.randn(2, 1, n, 1, dtype=vesta.float64) for n in (3, 9, 9))
    mask = vesta.randn(shape)
    vesta.testing.assert_close(attention(q, k, v, mask), attention(q, k, v, mask.double()))
