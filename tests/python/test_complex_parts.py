"""Complex tensors and their parts: views over the same memory, writes through them, gradients."""

from __future__ import annotations

import math

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


def test_polar_of_infinities() -> None:
    z = vesta.polar(vesta.tensor([math.inf, 1.0, 0.0]), vesta.tensor([0.0, math.inf, 3.0]))
    parts = [(w.real, w.imag) for w in z.tolist()]
    assert parts[0][0] == math.inf and math.isnan(parts[0][1])  # inf * 0
    assert all(math.isnan(part) for part in parts[1])
    assert parts[2] == (0, 0)


@pytest.mark.parametrize("record", [False, True])
def test_gradients_of_complex_numbers_made_of_parts(record: bool) -> None:
    """The real part of a gradient goes to the real operand; layouts of both may differ, and a gradient may be real."""
    a = vesta.rand(3, 4, dtype=vesta.float64).t().requires_grad_()
    b = vesta.rand(4, 1, dtype=vesta.float64).requires_grad_()
    z = vesta.complex(a, b)
    assert z.dtype == vesta.complex128 and z.shape == (4, 3)
    g = vesta.complex(vesta.rand(4, 3).double(), vesta.rand(4, 3).double())
    got = vesta.autograd.grad(z, (a, b), g, create_graph=record)
    assert got[0].tolist() == g.real.tolist() and vesta.allclose(got[1], g.imag.sum(1, keepdim=True))
    w = vesta.polar(a, b)
    size, angle = vesta.autograd.grad(w.abs().square().sum(), (a, b), create_graph=record)  # a square, whatever b
    assert vesta.allclose(size, 2 * a) and vesta.allclose(angle, vesta.zeros_like(b), atol=1e-12)
    assert vesta.autograd.grad(vesta.polar(a, b).imag.sum(), a)[0].tolist() == vesta.sin(b).expand(4, 3).tolist()


def test_complex_writes_over_its_parts() -> None:
    z = vesta.tensor([1 + 2j, 3 - 4j, 5j])
    assert vesta.complex(z.imag, z.real, out=z) is z
    assert z.tolist() == [2 + 1j, -4 + 3j, 5 + 0j]


def test_logarithms_of_sums_at_infinity() -> None:
    """As in PyTorch: infinite summands give no NaN, and large ones do not overflow."""
    inf = float("inf")

    def c(*values: complex) -> vesta.Tensor:
        return vesta.tensor([complex(v) for v in values])

    assert vesta.logaddexp(c(-inf), c(-inf)).item() == -inf and vesta.logaddexp(c(inf), c(inf)).item() == inf
    assert vesta.logaddexp(c(1000 + 1j), c(-1000 + 3j)).item() == 1000 + 1j
    assert vesta.logsumexp(c(-inf, -inf), 0).item() == -inf and vesta.logsumexp(c(inf, 1), 0).item() == inf
    assert vesta.logsumexp(vesta.zeros(0, 2, dtype=vesta.complex64), 0).tolist() == [-inf, -inf]
    z = c(1 + 2j, 3 - 1j, 0.5)
    assert vesta.allclose(vesta.logcumsumexp(z, 0), z.exp().cumsum(0).log())
    assert vesta.allclose(vesta.logsumexp(z, 0), z.exp().sum().log())
    wide = z.to(vesta.complex128).requires_grad_()
    for f in (
        lambda x: vesta.logcumsumexp(x, 0),
        lambda x: vesta.logsumexp(x, 0),
        lambda x: vesta.logaddexp(x, x * 2j),
    ):
        assert vesta.autograd.gradcheck(f, (wide,))


def test_norms_and_dropout_of_complex_numbers() -> None:
    z = vesta.tensor([[1 + 2j, 3 - 1j]], dtype=vesta.complex128, requires_grad=True)
    w = vesta.tensor([1.0, 2.0], dtype=vesta.float64)
    r = vesta.rms_norm(z, (2,), w, 0.1)
    assert vesta.allclose(r, z / ((z * z).mean() + 0.1).sqrt() * w)
    assert vesta.autograd.gradcheck(lambda x: vesta.rms_norm(x, (2,)), (z,))
    x = vesta.ones(1000, dtype=vesta.complex64) * (1 + 1j)
    vesta.manual_seed(0)
    dropped = vesta.nn.functional.dropout(x, 0.25)
    kept = dropped != 0
    assert dropped.dtype == x.dtype and 0.7 < kept.float().mean() < 0.8
    assert vesta.allclose(dropped[kept], x[kept] / 0.75)
    y = x.clone().requires_grad_()
    out, mask = vesta.native_dropout(y, 0.5, True)
    assert vesta.equal(out != 0, mask)
    out.real.sum().backward()
    assert vesta.equal(y.grad.real, mask * 2.0) and bool((y.grad.imag == 0).all())
    assert bool((vesta.nn.functional.dropout(x, 1.0) == 0).all()) and vesta.nn.functional.dropout(x, 0.0) is x
    for f in (vesta.nn.functional.dropout2d, vesta.nn.functional.alpha_dropout):
        assert f(x.view(10, 10, 5, 2), 0.5, True).dtype == x.dtype
    folded = z.view(1, 2, 1)
    unfolded = vesta.nn.functional.fold(folded, (2, 1), (2, 1))
    assert unfolded.dtype == z.dtype and vesta.equal(unfolded.flatten(), z.flatten())


def test_folds_of_complex_windows_that_overlap() -> None:
    F = vesta.nn.functional
    image = vesta.randn(1, 2, 4, 3, dtype=vesta.complex128, requires_grad=True)
    windows = F.unfold(image, (2, 2), padding=1)
    parts = [F.fold(part, (4, 3), (2, 2), padding=1) for part in (windows.real, windows.imag)]
    assert vesta.equal(F.fold(windows, (4, 3), (2, 2), padding=1), vesta.complex(*parts))
    assert vesta.autograd.gradcheck(lambda x: F.unfold(x, (2, 2), padding=1), (image,))
    assert vesta.autograd.gradcheck(
        lambda x: F.fold(x, (4, 3), (2, 2), padding=1), (windows.detach().requires_grad_(),)
    )
