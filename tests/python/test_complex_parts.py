"""Complex tensors and their parts: views over the same memory, writes through them, gradients."""

from __future__ import annotations

import pytest
import vesta


def test_parts_share_memory() -> None:
    z = vesta.tensor([1 + 2j, 3 - 1j])
    parts = vesta.view_as_real(z)
    assert parts.shape == (2, 2) and parts.data_ptr() == z.data_ptr()
    parts[0, 1] = 7
    assert z.tolist() == [1 + 7j, 3 - 1j]
    z.imag[1] = 5
    z.real = vesta.tensor([0.0, 1.0])
    assert parts.tolist() == [[0, 7], [1, 5]]
    assert vesta.view_as_complex(parts).data_ptr() == z.data_ptr()


def test_real_of_a_real_tensor_is_the_tensor() -> None:
    x = vesta.ones(2)
    assert vesta.real(x) is x and x.real is x
    with pytest.raises(RuntimeError, match="imag"):
        x.imag  # noqa: B018


def test_views_keep_strides() -> None:
    z = vesta.complex(vesta.arange(6.0), vesta.arange(6.0)).reshape(2, 3).t()
    assert vesta.view_as_real(z).stride() == (2, 6, 1)
    assert vesta.view_as_real(z)[1:].storage_offset() == 2
    assert vesta.view_as_complex(vesta.view_as_real(z)[1:]).tolist() == z[1:].tolist()


def test_gradient_through_a_write_to_a_part() -> None:
    """A write through view_as_real changes the complex base; both operands get their gradient."""
    x = vesta.tensor([1 + 1j, 2 - 1j], requires_grad=True)
    w = vesta.tensor(3.0, requires_grad=True)
    z = x * 1
    z.real.mul_(w)
    (z * z.conj()).real.sum().backward()
    # |z|^2 = (w re)^2 + im^2
    assert w.grad.item() == 2 * 3.0 * (1 + 4)
    assert x.grad.tolist() == [2 * 9 * 1 + 2j, 2 * 9 * 2 - 2j]


def test_gradient_through_a_write_to_the_base() -> None:
    x = vesta.zeros(2, 2)
    z = vesta.view_as_complex(x)
    w = vesta.tensor([1 + 2j, 3j], requires_grad=True)
    z.copy_(w * 2)
    (x * vesta.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert w.grad.tolist() == [2 + 4j, 6 + 8j]


def test_views_of_views_follow_the_base() -> None:
    """A view made before a write through the base takes its history from the base."""
    z = vesta.zeros(2, dtype=vesta.complex64)
    imag = z.imag
    w = vesta.tensor([1 + 2j, 3 - 4j], requires_grad=True)
    z.mul_(0).add_(w)
    imag.sum().backward()
    assert w.grad.tolist() == [1j, 1j]


def test_angle_and_polar() -> None:
    z = vesta.polar(vesta.tensor([2.0, 1.0]), vesta.tensor([0.5, -3.0]))
    assert vesta.allclose(z.angle(), vesta.tensor([0.5, -3.0]))
    assert vesta.angle(vesta.tensor([1, -1])).tolist() == vesta.tensor([0.0, 3.1415927]).tolist()
