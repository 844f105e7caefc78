"""scaled_dot_product_attention of long sequences: computed by blocks, in memory linear in the length."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import vesta
from sanitized import SANITIZED
from vesta import nn
from vesta.nn.functional import scaled_dot_product_attention

LENGTH = 1100  # with 2 heads: more scores than are computed whole, and no multiple of a block's rows


def operands(*, heads: int = 2, keys: int = LENGTH, grad: bool = False) -> list[vesta.Tensor]:
    vesta.manual_seed(0)
    shapes = (1, 2, LENGTH, 4), (1, heads, keys, 4), (1, heads, keys, 3)
    return [vesta.randn(*s, dtype=vesta.float64, requires_grad=grad) for s in shapes]


def reference(q: Any, k: Any, v: Any, mask: Any = None) -> vesta.Tensor:
    scores = q @ k.mT / 2
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e30) if mask.dtype == vesta.bool else scores + mask
    return scores.softmax(-1) @ v


def causal() -> vesta.Tensor:
    return vesta.ones(LENGTH, LENGTH, dtype=vesta.bool).tril()


CASES: dict[str, tuple[dict[str, Any], Any]] = {
    "plain": ({}, None),
    "causal": ({"is_causal": True}, causal),
    "bool mask": ({"attn_mask": lambda: causal().flip(1) | causal()}, lambda: causal().flip(1) | causal()),
    "mask of each head": (
        {"attn_mask": lambda: vesta.stack([causal(), causal().flip(0) | causal()])},
        lambda: vesta.stack([causal(), causal().flip(0) | causal()]),
    ),
    "number mask": (
        {"attn_mask": lambda: vesta.arange(LENGTH, dtype=vesta.float64).cos()},
        lambda: vesta.arange(LENGTH, dtype=vesta.float64).cos(),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_blocks_compute_what_the_formula_says(case: str) -> None:
    options, mask = CASES[case]
    options = {name: value() if callable(value) else value for name, value in options.items()}
    q, k, v = operands(grad=True)
    got = scaled_dot_product_attention(q, k, v, **options)
    want = reference(q, k, v, mask() if mask else None)
    vesta.testing.assert_close(got, want)
    g = vesta.randn_like(want)
    grads = [vesta.autograd.grad(y, [q, k, v], g) for y in (got, want)]
    for a, b in zip(*grads):
        vesta.testing.assert_close(a, b)


def test_grouped_heads_and_other_lengths() -> None:
    q, k, v = operands(heads=1, keys=900)
    got = scaled_dot_product_attention(q, k, v, enable_gqa=True)
    vesta.testing.assert_close(got, reference(q, k, v))
    got = scaled_dot_product_attention(q, k[0, 0], v[0, 0])  # one for all heads
    vesta.testing.assert_close(got, reference(q, k, v))


def test_second_derivatives() -> None:
    q, k, v = operands(grad=True)
    second = []
    for y in (scaled_dot_product_attention(q, k, v, is_causal=True), reference(q, k, v, causal())):
        first = vesta.autograd.grad(y.square().sum(), [q, k, v], create_graph=True)
        second.append(vesta.autograd.grad(sum(t.square().sum() for t in first), [q, k, v]))
    for a, b in zip(*second):
        vesta.testing.assert_close(a, b)


def test_dropout_is_drawn_once_for_forward_and_backward() -> None:
    q, k, v = operands(grad=True)
    vesta.manual_seed(3)
    y = scaled_dot_product_attention(q, k, v, dropout_p=0.5)
    vesta.manual_seed(3)
    assert vesta.equal(y, scaled_dot_product_attention(q, k, v, dropout_p=0.5))
    assert not vesta.equal(y, scaled_dot_product_attention(q, k, v, dropout_p=0.5))
    # y is linear in v, so that y(v) is the product of v with the gradient of the same draw.
    (of_v,) = vesta.autograd.grad(y.sum(), [v], retain_graph=True)
    vesta.testing.assert_close((of_v * v).sum(), y.sum())
    # Differences along one direction of q, with the draw held.
    step = vesta.randn_like(q) * 1e-5
    (of_q,) = vesta.autograd.grad(y.sum(), [q])
    ends = []
    for sign in (1, -1):
        vesta.manual_seed(3)
        ends.append(scaled_dot_product_attention(q + sign * step, k, v, dropout_p=0.5).sum())
    vesta.testing.assert_close((of_q * step).sum(), (ends[0] - ends[1]) / 2, rtol=1e-5, atol=1e-9)
    kept = scaled_dot_product_attention(q, k, vesta.ones_like(v), dropout_p=0.5)
    assert abs(float(kept.mean()) - 1) < 0.01
    assert (scaled_dot_product_attention(q, k, v, dropout_p=1.0) == 0).all()


def test_bits_do_not_depend_on_threads() -> None:
    q, k, v = operands(grad=True)
    results, before = [], vesta.get_num_threads()
    try:
        for threads in (1, 2, 3):
            vesta.set_num_threads(threads)
            vesta.manual_seed(1)
            y = scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=0.1)
            results.append([y, *vesta.autograd.grad(y.sum(), [q, k, v])])
    finally:
        vesta.set_num_threads(before)
    for other in results[1:]:
        assert all(vesta.equal(a, b) for a, b in zip(results[0], other))


@pytest.mark.parametrize("length", [4, LENGTH])
@pytest.mark.parametrize("kind", ["bool", "number"])
def test_a_query_that_sees_nothing_has_no_gradient(length: int, kind: str) -> None:
    vesta.manual_seed(0)
    q, k, v = (vesta.randn(1, length, 4, requires_grad=True) for _ in range(3))
    mask = vesta.ones(length, length, dtype=vesta.bool)
    mask[1] = False
    seen = mask if kind == "bool" else vesta.zeros(length, length).masked_fill(~mask, -vesta.inf)
    y = scaled_dot_product_attention(q, k, v, seen)
    assert (y[0, 1] == 0).all()
    of_q, of_k, of_v = vesta.autograd.grad(y.sum(), [q, k, v])
    assert (of_q[0, 1] == 0).all() and not any(t.isnan().any() for t in (of_q, of_k, of_v))


MEASURE = """
import resource, sys, vesta
from vesta.nn.functional import scaled_dot_product_attention
mode, length = sys.argv[1], 3072
shapes = (1, 8, length, 16), (1, 2 if mode == "groups" else 8, length, 16)
q, k = (vesta.randn(*s, requires_grad=True) for s in shapes)
options = {
    "causal": lambda: dict(is_causal=True),
    "mask": lambda: dict(attn_mask=vesta.ones(length, length, dtype=vesta.bool).tril()),
    "groups": lambda: dict(enable_gqa=True),
    "dropout": lambda: dict(dropout_p=0.1),
}[mode]()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
y = scaled_dot_product_attention(q, k, k, **options)
y.sum().backward()
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.skipif(SANITIZED, reason="a sanitizer's memory is its own")
@pytest.mark.parametrize("mode", ["causal", "mask", "groups", "dropout"])
def test_memory_does_not_grow_with_the_square_of_the_length(mode: str) -> None:
    """The scores of 8 heads of 3,072 queries and keys would be 288 MiB."""
    out = subprocess.run([sys.executable, "-c", MEASURE, mode], capture_output=True, text=True, check=True).stdout
    assert int(out) < 96, out


@pytest.mark.parametrize("length", [64, 1500])
def test_autocast_computes_below_itself(length: int) -> None:
    """Operands are cast once; scores and weights stay in float32. A small product is as accurate as a large one."""
    generator = vesta.Generator().manual_seed(0)
    q, k, v = (vesta.randn(2, length, 16, generator=generator) * 4 for _ in range(3))
    lower = [t.bfloat16() for t in (q, k, v)]
    want = scaled_dot_product_attention(*(t.double() for t in lower))
    for operands in ((q, k, v), lower, (q, k, v.bfloat16())):
        with vesta.autocast("cpu", dtype=vesta.bfloat16):
            got = scaled_dot_product_attention(*operands)
        assert got.dtype == vesta.bfloat16
        assert (got.double() - want).abs().max() < 0.05


@pytest.mark.parametrize("length", [4, 1100])
def test_values_of_no_width(length: int) -> None:
    q = vesta.randn(1, length, 2)
    assert scaled_dot_product_attention(q, q, vesta.randn(1, length, 0)).shape == (1, length, 0)


@pytest.mark.parametrize("length", [2, 1500])
def test_shapes_that_do_not_fit_are_named_as_they_came(length: int) -> None:
    q = vesta.ones(1, 2, length, 2)
    with pytest.raises(RuntimeError, match=rf"attention: expected query .* got \[1, 2, {length}, 2\]"):
        scaled_dot_product_attention(q, vesta.ones(1, 2, length, 3), q)
    with pytest.raises(RuntimeError, match=r"value \[\*, S, V\], got"):
        scaled_dot_product_attention(q, q, q[:, :, 1:])


@pytest.mark.parametrize("norm", [False, True])
def test_an_encoder_gives_zeros_for_padding_in_evaluation(norm):
    """What PyTorch 2.15 gives: it leaves padded places out where nothing is trained."""
    vesta.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(8) if norm else None).eval()
    x, pad = vesta.randn(2, 4, 8), vesta.tensor([[False, False, True, True], [False] * 4])
    full = encoder(x, src_key_padding_mask=pad)
    assert bool((full[0, 2:] != 0).any())  # gradients could be asked for
    with vesta.no_grad():
        got = encoder(x, src_key_padding_mask=pad)
        vesta.testing.assert_close(got[~pad], full[~pad].detach())
        assert not got[pad].any()
        inner = vesta.tensor([[False, True, False, False], [False] * 4])
        assert bool(encoder(x, src_key_padding_mask=inner)[inner].any())
        encoder.mask_check = False
        assert not encoder(x, src_key_padding_mask=inner)[inner].any()
        vesta.backends.mha.set_fastpath_enabled(False)
        try:
            assert bool(encoder(x, src_key_padding_mask=pad)[pad].any())
        finally:
            vesta.backends.mha.set_fastpath_enabled(True)
        assert bool(encoder(x, mask=vesta.zeros(4, 4), src_key_padding_mask=pad)[pad].any())
        assert bool(encoder.train()(x, src_key_padding_mask=pad)[pad].any())


def test_an_encoder_gives_the_shape_on_the_meta_device():
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, device="meta"), 1).eval()
    with vesta.no_grad():
        y = encoder(vesta.empty(2, 4, 8, device="meta"), src_key_padding_mask=vesta.empty(2, 4, device="meta") > 0)
    assert y.shape == (2, 4, 8)


def test_what_keeps_an_encoder_from_leaving_padding_out():
    def packs(heads=2, **options):
        layer = nn.TransformerEncoderLayer(6, heads, 8, **{"batch_first": True, **options})
        return nn.TransformerEncoder(layer, 1).use_nested_tensor

    assert packs() and packs(activation=nn.GELU())
    assert not (packs(heads=3) or packs(batch_first=False) or packs(norm_first=True) or packs(bias=False))
    assert not packs(activation=nn.SiLU())


@pytest.mark.parametrize("norm_first", [False, True])
def test_subclasses_of_layers_replace_their_blocks(norm_first: bool) -> None:
    calls = []

    class Encoder(nn.TransformerEncoderLayer):
        def _sa_block(self, x: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False) -> Any:
            calls.append(("self", attn_mask is not None, key_padding_mask is not None, is_causal))
            return vesta.zeros_like(x)

        def _ff_block(self, x: Any) -> Any:
            calls.append("ff")
            return vesta.zeros_like(x)

    class Decoder(nn.TransformerDecoderLayer):
        def _mha_block(self, x: Any, mem: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False) -> Any:
            calls.append(("memory", mem.shape[0], attn_mask is not None, key_padding_mask is not None, is_causal))
            return super()._mha_block(x, mem, attn_mask, key_padding_mask, is_causal)

        def _sa_block(self, x: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False) -> Any:
            calls.append(("self", attn_mask is not None, key_padding_mask is not None, is_causal))
            return super()._sa_block(x, attn_mask, key_padding_mask, is_causal)

        def _ff_block(self, x: Any) -> Any:
            calls.append("ff")
            return super()._ff_block(x)

    x, mask = vesta.rand(4, 2, 8), nn.Transformer.generate_square_subsequent_mask(4)
    layer = Encoder(8, 2, 16, norm_first=norm_first).eval()
    y = layer(x, src_mask=mask, is_causal=True)
    assert calls == [("self", True, False, True), "ff"]
    assert vesta.allclose(y, x if norm_first else layer.norm2(layer.norm1(x)))
    calls.clear()
    decoder = Decoder(8, 2, 16, norm_first=norm_first).eval()
    plain = nn.TransformerDecoderLayer(8, 2, 16, norm_first=norm_first).eval()
    plain.load_state_dict(decoder.state_dict())
    memory, padding = vesta.rand(3, 2, 8), vesta.tensor([[False, False, True]] * 2)
    options = {"tgt_mask": mask, "tgt_is_causal": True, "memory_key_padding_mask": padding}
    assert vesta.equal(decoder(x, memory, **options), plain(x, memory, **options))
    assert calls == [("self", True, False, True), ("memory", 3, False, True, False), "ff"]
