"""``vesta.nn.attention``: choices of kernels, attention with functions of scores and masks, causal masks."""

from __future__ import annotations

from typing import Any

import pytest
import vesta
import vesta.nn.functional as F
from vesta.nn.attention import SDPBackend, sdpa_kernel
from vesta.nn.attention.bias import CausalBias, causal_lower_right, causal_upper_left
from vesta.nn.attention.flex_attention import (
    AuxRequest,
    BlockMask,
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
    or_masks,
)


def causal(b: Any, h: Any, q: Any, k: Any) -> Any:
    return q >= k


def inputs(batch: int = 2, heads: int = 4, queries: int = 5, keys: int = 7, width: int = 3, shared: int = 1) -> Any:
    vesta.manual_seed(0)
    make = vesta.randn
    sizes = ((heads, queries), (heads // shared, keys), (heads // shared, keys))
    return [make(batch, n, length, width, dtype=vesta.float64).requires_grad_() for n, length in sizes]


def reference(query: Any, key: Any, value: Any, scores_of: Any = lambda s: s) -> Any:
    scores = scores_of(query @ key.transpose(-2, -1) * query.size(-1) ** -0.5)
    return vesta.softmax(scores, -1) @ value


def test_kernels_can_be_named() -> None:
    q = vesta.randn(1, 2, 3, 4)
    want = F.scaled_dot_product_attention(q, q, q)
    for chosen in (SDPBackend.MATH, [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]):
        with sdpa_kernel(chosen):
            assert (F.scaled_dot_product_attention(q, q, q) == want).all()
    assert SDPBackend(0) is SDPBackend.MATH and SDPBackend.CUDNN_ATTENTION.value == 3
    for wrong in (3, None, "math", [SDPBackend.MATH, 1]):
        with pytest.raises(AssertionError, match="backends"):
            sdpa_kernel(wrong)

    @sdpa_kernel(SDPBackend.MATH)
    def decorated() -> Any:
        return F.scaled_dot_product_attention(q, q, q)

    assert (decorated() == want).all()


def test_functions_of_scores() -> None:
    query, key, value = inputs()
    table = vesta.randn(12, dtype=vesta.float64, requires_grad=True)
    slopes = vesta.randn(4, dtype=vesta.float64)
    documents = vesta.tensor([0, 0, 1, 1, 1, 0, 2])

    def relative(score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
        return score + table[q - k + 6]

    def alibi(score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
        return score + slopes[h] * (k - q)

    def one_document(score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
        return vesta.where(documents[q] == documents[k], score, -vesta.inf)

    def capped(score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
        return 2 * vesta.tanh(score / 2)

    q, k = vesta.arange(5).unsqueeze(1), vesta.arange(7)
    wanted = {
        relative: lambda s: s + table[q - k + 6],
        alibi: lambda s: s + slopes.view(4, 1, 1) * (k - q),
        one_document: lambda s: s.masked_fill(documents[q] != documents[k], -vesta.inf),
        capped: lambda s: 2 * vesta.tanh(s / 2),
    }
    for score_mod, scores_of in wanted.items():
        got, want = flex_attention(query, key, value, score_mod), reference(query, key, value, scores_of)
        assert vesta.allclose(got, want, rtol=1e-12, atol=1e-12), score_mod.__name__
        leaves = [query, key, value, table]
        for a, b in zip(*(vesta.autograd.grad(y.sin().sum(), leaves, allow_unused=True) for y in (got, want))):
            assert (a is None) == (b is None) and (a is None or vesta.allclose(a, b, rtol=1e-9, atol=1e-10))


def test_functions_of_masks() -> None:
    query, key, value = inputs()
    mask = create_block_mask(causal, None, None, 5, 7)
    want = F.scaled_dot_product_attention(query, key, value, create_mask(causal, 1, 1, 5, 7))
    assert vesta.allclose(flex_attention(query, key, value, block_mask=mask), want)
    shifted = flex_attention(query, key, value, lambda s, b, h, q, k: s + (q - k), mask)
    distance = vesta.arange(5).unsqueeze(1) - vesta.arange(7)
    want = reference(query, key, value, lambda s: (s + distance).masked_fill(distance < 0, -vesta.inf))
    assert vesta.allclose(shifted, want)
    by_head = create_block_mask(lambda b, h, q, k: (k + h + b) % 2 == 0, 2, 4, 5, 7)
    assert by_head.shape == (2, 4, 5, 7)
    want = F.scaled_dot_product_attention(query, key, value, create_mask(by_head.mask_mod, 2, 4, 5, 7))
    assert vesta.allclose(flex_attention(query, key, value, block_mask=by_head), want)


def test_a_query_without_keys_gives_zero() -> None:
    query, key, value = inputs()
    mask = create_block_mask(lambda b, h, q, k: (q > 1) & (k > 2), 1, 1, 5, 7)
    for options in ({}, {"score_mod": lambda s, b, h, q, k: s * 1}):
        got = flex_attention(query, key, value, block_mask=mask, **options)
        assert bool((got[:, :, :2] == 0).all()) and bool((got[:, :, 2:] != 0).any())
        grads = vesta.autograd.grad(got.sum(), [query, key, value])
        assert all(bool(g.isfinite().all()) for g in grads)
    got, lse = flex_attention(query, key, value, block_mask=mask, return_lse=True)
    scores = (query @ key.transpose(-2, -1) * 3**-0.5)[:, :, 2:, 3:]
    assert bool((lse[:, :, :2] == -vesta.inf).all()) and vesta.allclose(lse[:, :, 2:], scores.logsumexp(-1))
    assert all(bool(g.isfinite().all()) for g in vesta.autograd.grad(lse[:, :, 2:].sum(), [query, key]))
    _, more = flex_attention(query, key, value, return_aux=AuxRequest(max_scores=True))
    assert more.lse is None and vesta.allclose(more.max_scores, (query @ key.transpose(-2, -1) * 3**-0.5).amax(-1))


def test_groups_of_queries_share_keys_and_16_bits_are_computed_in_32() -> None:
    query, key, value = inputs(shared=2)
    with pytest.raises(ValueError, match="enable_gqa"):
        flex_attention(query, key, value)
    want = reference(query, key.repeat_interleave(2, 1), value.repeat_interleave(2, 1))
    for score_mod in (None, lambda s, b, h, q, k: s):
        assert vesta.allclose(flex_attention(query, key, value, score_mod, enable_gqa=True), want)
    query, key, value = inputs()
    half = [x.detach().to(vesta.bfloat16) for x in (query, key, value)]
    got, lse = flex_attention(*half, return_lse=True)
    assert got.dtype == vesta.bfloat16 and lse.dtype == vesta.float32
    assert vesta.allclose(got.double(), reference(*(x.double() for x in half)), rtol=2e-2, atol=2e-2)


def test_tables_of_blocks() -> None:
    """The tables are PyTorch 2.15's of the same function."""
    mask = create_block_mask(causal, 1, 1, 256, 300)
    assert mask.to_dense().tolist() == [[[[1, 0, 0], [1, 1, 0]]]]
    assert mask.kv_num_blocks.tolist() == [[[1, 1]]] and mask.kv_indices.tolist() == [[[[0, 1, 2], [1, 0, 2]]]]
    assert mask.full_kv_num_blocks.tolist() == [[[0, 1]]] and mask.full_kv_indices.tolist()[0][0][1] == [0, 1, 2]
    assert mask.q_indices.tolist() == [[[[0, 1], [1, 0], [0, 1]]]]
    assert mask.sparsity() == 50.0 and mask.numel() == 256 * 300
    assert str(mask).splitlines()[:3] == ["BlockMask(shape=(1, 1, 256, 300), sparsity=50.00%, ", "(0, 0)", "██    "]
    again = BlockMask.from_kv_blocks(*mask.as_tuple(False)[1:5], mask_mod=causal, seq_lengths=(256, 300))
    assert vesta.equal(again.to_dense(), mask.to_dense()) and vesta.equal(again.q_indices, mask.q_indices)
    assert mask[0, 0, 1:].to_dense().tolist() == [[[[1, 1, 0]]]]
    small = create_block_mask(causal, 1, 1, 4, 4, BLOCK_SIZE=2, separate_full_blocks=False)
    assert small.full_kv_indices is None and small.to_dense().tolist() == [[[[1, 0], [1, 1]]]]
    window = and_masks(causal, lambda b, h, q, k: q - k < 2)
    assert create_mask(window, 1, 1, 3, 3).int().tolist() == [[[[1, 0, 0], [1, 1, 0], [0, 1, 1]]]]
    either = or_masks(window, lambda b, h, q, k: k == 0)
    assert create_mask(either, 1, 1, 3, 3).int().tolist() == [[[[1, 0, 0], [1, 1, 0], [1, 1, 1]]]]


def test_bad_input() -> None:
    query, key, value = inputs()
    mask = create_block_mask(causal, 1, 1, 4, 7)
    for call, words in (
        (lambda: flex_attention(query[0], key, value), "query"),
        (lambda: flex_attention(query, key.float(), value), "same dtype"),
        (lambda: flex_attention(query, key[:, :, :6], value), "as many keys"),
        (lambda: flex_attention(query, key, value, block_mask=mask), "create_block_mask"),
        (lambda: flex_attention(query, key, value, block_mask=create_block_mask(causal, 3, 1, 5, 7)), "batch"),
        (lambda: create_block_mask(lambda b, h, q, k: q + k, 1, 1, 4, 4), "bools"),
        (lambda: create_block_mask(causal, 1, 1, -4, 4), "Q_LEN"),
        (lambda: create_block_mask(causal, 1, 1, 4, 4, BLOCK_SIZE=0), "BLOCK_SIZE"),
        (lambda: causal_lower_right(3), "two lengths"),
        (lambda: causal_upper_left(3, -1), "seq_len_kv"),
    ):
        with pytest.raises((ValueError, TypeError), match=words):
            call()


def test_causal_masks_of_two_lengths() -> None:
    mask = causal_lower_right(3, 5)
    assert isinstance(mask, CausalBias) and type(mask & mask) is vesta.Tensor
    assert mask.int().tolist() == [[1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]
    assert causal_upper_left(3, 5).int().tolist() == [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0]]
    query, key, value = inputs(queries=7)
    want = F.scaled_dot_product_attention(query, key, value, is_causal=True)
    assert vesta.allclose(F.scaled_dot_product_attention(query, key, value, causal_lower_right(7, 7)), want)


def test_functions_that_reduce_are_called_for_each_place() -> None:
    """What a function does with all places at once may be another thing than what it does with one."""
    rows = create_mask(lambda b, h, q, k: (vesta.tensor([0, 2]) == q).any() & (k <= q), 1, 1, 4, 4)
    assert rows[0, 0].int().tolist() == [[1, 0, 0, 0], [0, 0, 0, 0], [1, 1, 1, 0], [0, 0, 0, 0]]
    assert vesta.equal(create_mask(lambda b, h, q, k: q.max() > k, 1, 1, 4, 4), vesta.ones(1, 1, 4, 4).tril(-1).bool())
    x, value = vesta.ones(1, 1, 4, 4), vesta.arange(16.0).view(1, 1, 4, 4)
    left, right = vesta.ones(4, 3), vesta.arange(12.0).view(4, 3)
    together = flex_attention(x, x, value, lambda s, b, h, q, k: s + (left[q] * right[k]).sum())
    table = left @ right.T
    for form in (lambda s, b, h, q, k: s + table[q][k], lambda s, b, h, q, k: s + table[q, k]):
        assert vesta.allclose(flex_attention(x, x, value, form), together)
    with pytest.raises(ZeroDivisionError):
        create_mask(lambda b, h, q, k: 1 / 0, 1, 1, 4, 4)


def test_a_part_of_a_mask_does_not_know_its_places() -> None:
    mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, 512, 512)
    x = vesta.randn(1, 1, 512, 4)
    with pytest.raises(RuntimeError, match="sliced BlockMask"):
        flex_attention(x[:, :, :128], x, x, block_mask=mask[:, :, 1:2])


def test_arguments_that_exclude_each_other() -> None:
    x = vesta.randn(2, 1, 4, 4)
    with pytest.raises(ValueError, match="return_lse or return_aux"):
        flex_attention(x, x, x, return_lse=True, return_aux=AuxRequest(max_scores=True))
    with pytest.raises(ValueError, match="batch size"):
        flex_attention(x[:1], x, x)
