"""``cond``, ``while_loop``, ``conv_tbc``, ``binomial``, ``Tensor.set_``."""

from __future__ import annotations

import pytest
import vesta


def test_one_of_two_functions_runs() -> None:
    x = vesta.tensor([1.0, 2.0], requires_grad=True)
    for pred in (True, 1, vesta.tensor([True]), x.sum() > 0):
        assert vesta.cond(pred, lambda x: x * 2, lambda x: x / 0, (x,)).tolist() == [2.0, 4.0]
    vesta.cond(False, lambda x: x, lambda x: x * 3, [x]).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    assert vesta.cond(vesta.tensor(0), lambda: 1, lambda: 2) == 2
    for call in (
        lambda: vesta.cond(x, lambda: 1, lambda: 2),
        lambda: vesta.cond(True, 1, lambda: 2),
        lambda: vesta.cond(True, lambda x: x, lambda x: x, x),
        lambda: vesta.while_loop(lambda i: i < 3, lambda i: (i, i), (0,)),
    ):
        with pytest.raises((TypeError, RuntimeError), match="cond|while_loop"):
            call()
    assert vesta.while_loop(lambda i: i < 10, lambda i: i * 2, (vesta.tensor(1),))[0] == 16


def test_convolution_over_time() -> None:
    """By hand: output t is the sum over k of input[t + k - pad] @ weight[k]."""
    x, w, b = (vesta.randn(*shape, dtype=vesta.float64) for shape in ((6, 2, 3), (3, 3, 4), (4,)))
    for pad in (0, 2):
        padded = vesta.nn.functional.pad(x, (0, 0, 0, 0, pad, pad))
        want = vesta.stack([sum(padded[t + k] @ w[k] for k in range(3)) + b for t in range(len(padded) - 2)])
        assert vesta.allclose(vesta.conv_tbc(x, w, b, pad), want)
    with pytest.raises(RuntimeError, match="conv_tbc"):
        vesta.conv_tbc(x[0], w, b)


def test_binomial_counts() -> None:
    vesta.manual_seed(1)
    n = vesta.tensor([[1.0], [20.0], [1000.0]])
    p = vesta.tensor([0.0, 0.3, 1.0])
    draws = vesta.stack([vesta.binomial(n, p) for _ in range(400)])
    assert draws.shape == (400, 3, 3) and draws.dtype == vesta.float32
    assert bool((draws[..., 0] == 0).all()) and bool((draws[..., 2] == n[:, 0]).all())
    spread = 5 * (n[:, 0] * 0.3 * 0.7 / 400).sqrt()
    assert bool(((draws[..., 1].mean(0) - 0.3 * n[:, 0]).abs() < spread).all())
    generator = vesta.Generator().manual_seed(3)
    first = vesta.binomial(n, p, generator)
    assert vesta.equal(first, vesta.binomial(n, p, generator.manual_seed(3)))
    for wrong in ((n.int(), p), (-n, p), (n, p + 1), (n, p.log())):
        with pytest.raises((RuntimeError, ValueError), match="binomial"):
            vesta.binomial(*wrong)


def test_a_tensor_moves_to_another_storage() -> None:
    source = vesta.arange(6.0)
    x = vesta.ones(2)
    assert x.set_(source.view(3, 2)) is x
    x[0, 0] = 9
    assert source[0] == 9 and x.shape == (3, 2)
    x.set_(source.untyped_storage(), 1, (2, 2), (1, 2))
    assert x.tolist() == [[1.0, 3.0], [2.0, 4.0]] and x.data_ptr() == source.data_ptr() + 4
    assert x.set_(source.storage()).tolist() == source.tolist()
    assert x.set_().shape == (0,)
    for tensor, other in ((vesta.ones(2, requires_grad=True), vesta.ones(3)), (x, vesta.ones(3, requires_grad=True))):
        with pytest.raises(RuntimeError, match="set_: .* require no grad"):
            tensor.set_(other)
        with vesta.no_grad():
            assert tensor.set_(other).shape == (3,)
    assert x.set_(source, 2, (2,), (2,)).tolist() == [2.0, 4.0]
    for wrong in (
        (vesta.ones(2).int(),),
        (3,),
        (source.untyped_storage(), 4, (3,)),
        (source.untyped_storage(), 0, (-1,)),
    ):
        with pytest.raises((RuntimeError, TypeError), match="set_"):
            x.set_(*wrong)
    assert x.tolist() == [2.0, 4.0]


def test_another_storage_is_another_value() -> None:
    """An offset counts from where the source begins; what was saved for backward is not used with new values."""
    assert vesta.empty(0).set_(vesta.arange(12.0)[4:], 1, (2,)).tolist() == [5.0, 6.0]
    w, a = vesta.ones(4, requires_grad=True), vesta.full((4,), 2.0)
    y = (w * a).sum()
    a.set_(vesta.full((4,), 3.0))
    with pytest.raises(RuntimeError, match="modified by an inplace operation|modified by an in-place operation"):
        y.backward()


def test_a_convolution_over_time_is_contiguous() -> None:
    assert vesta.conv_tbc(vesta.ones(4, 2, 2), vesta.ones(3, 2, 5), vesta.zeros(5)).view(-1).shape == (20,)
    for dim in (2, -3, 5):
        with pytest.raises(IndexError, match="norm_except_dim"):
            vesta.norm_except_dim(vesta.ones(2, 2), 2, dim)
