"""Views made in place: geometry, history, versions, and what is refused."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest
import vesta

METHODS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "unsqueeze_": (lambda x: x.unsqueeze_(1), lambda x: x.unsqueeze(1)),
    "squeeze_": (lambda x: x.squeeze_(), lambda x: x.squeeze()),
    "squeeze_ of one": (lambda x: x.squeeze_(0), lambda x: x.squeeze(0)),
    "transpose_": (lambda x: x.transpose_(0, 1), lambda x: x.transpose(0, 1)),
    "swapaxes_": (lambda x: x.swapaxes_(0, -1), lambda x: x.swapaxes(0, -1)),
    "swapdims_": (lambda x: x.swapdims_(0, -1), lambda x: x.swapdims(0, -1)),
    "t_": (lambda x: x.t_(), lambda x: x.t()),
    "as_strided_": (lambda x: x.as_strided_((2,), (1,), 1), lambda x: x.as_strided((2,), (1,), 1)),
}


@pytest.mark.parametrize("name", METHODS)
def test_values_history_and_versions(name: str) -> None:
    inplace, plain = METHODS[name]
    leaf = vesta.randn(1, 3, dtype=vesta.float64, requires_grad=True)
    x, base = leaf * 2, leaf * 2
    version = x._version
    assert inplace(x) is x and x._version == version + 1
    want = plain(base)
    assert x.shape == want.shape and x.stride() == want.stride()
    np.testing.assert_array_equal(x.detach().numpy(), want.detach().numpy())
    weight = vesta.randn(x.shape, dtype=vesta.float64)
    (ours,) = vesta.autograd.grad((x * weight).sum(), leaf)
    (theirs,) = vesta.autograd.grad((want * weight).sum(), leaf)
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


def test_a_write_afterwards_reaches_base_and_views() -> None:
    """The history of a view of the tensor, and of its base, goes on after the change of geometry."""
    leaf = vesta.ones(2, 3, dtype=vesta.float64, requires_grad=True)
    x = leaf * 1
    row = x[0]
    x.t_()
    x[0].mul_(5)  # column 0 of leaf
    (row * 2).sum().backward()
    np.testing.assert_array_equal(leaf.grad.numpy(), [[10, 2, 2], [0, 0, 0]])
    leaf.grad = None
    y = leaf * 1
    view = y.view(3, 2)
    view.t_()
    view.mul_(3)
    assert view.shape == (2, 3)
    y.sum().backward()
    np.testing.assert_array_equal(leaf.grad.numpy(), np.full((2, 3), 3))


def test_what_is_refused() -> None:
    leaf = vesta.ones(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        leaf.t_()
    with pytest.raises(RuntimeError, match="leaf"):
        leaf[0].unsqueeze_(0)
    with pytest.raises(RuntimeError, match="requires? grad"):
        leaf.resize_(6)
    with pytest.raises(IndexError):
        vesta.ones(2).unsqueeze_(5)
    with pytest.raises(RuntimeError, match="t_|t:"):
        vesta.ones(2, 3, 4).t_()
    saved = (leaf * 2).exp()
    saved.unsqueeze_(0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        saved.sum().backward()
    with vesta.no_grad():
        assert leaf.t_().shape == (3, 2)


def test_resize() -> None:
    x = vesta.arange(6)
    assert x.resize_(2, 3) is x and x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert x.resize_(2).tolist() == [0, 1]
    assert x.resize_((3, 2)).tolist() == [[0, 1], [2, 3], [4, 5]]
    x.resize_(4, 4)
    assert x.shape == (4, 4) and x.reshape(-1)[:6].tolist() == [0, 1, 2, 3, 4, 5]
    assert x.resize_as_(vesta.ones(2, 2)).tolist() == [[0, 1], [2, 3]]
    assert x.resize_(0).numel() == 0
    with pytest.raises((RuntimeError, ValueError)):
        x.resize_(-1)
    saved, leaf = vesta.arange(6.0).reshape(2, 3), vesta.ones(2, 3, requires_grad=True)
    product = leaf * saved
    saved.resize_(3)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()
