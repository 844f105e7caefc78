"""Sequences and random numbers on a CUDA device: the CPU's bits for the same seed; a generator per device."""

from __future__ import annotations

from typing import Any

import pytest
import vesta
from vesta import Tensor

pytestmark = pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a GPU or the build tree's emulated device")

FLOATS = [vesta.float16, vesta.bfloat16, vesta.float32, vesta.float64]
INTEGERS = [vesta.uint8, vesta.int8, vesta.int16, vesta.int32, vesta.int64]
COMPLEX = [vesta.complex64, vesta.complex128]
SHAPES = [(), (0,), (1,), (3,), (5,), (4, 7), (1025,), (33, 31), (9000,)]


def same(got: Tensor, want: Tensor) -> None:
    assert got.device.type == "cuda" and got.dtype == want.dtype and got.shape == want.shape
    assert vesta.equal(got.cpu(), want)


def both(draw: Any, seed: int = 7) -> tuple[Tensor, Tensor]:
    """Draws twice on the CPU and on the device from the same seed; returns the second draws."""
    found = []
    for device in ("cpu", "cuda"):
        g = vesta.Generator(device).manual_seed(seed)
        vesta.rand(3, generator=g, device=device)
        found.append(draw(device, g))
    return found[0], found[1]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_fills_have_the_bits_of_the_cpu(shape: tuple) -> None:
    fills = {
        "uniform_": (FLOATS + COMPLEX, lambda t, g: t.uniform_(-2, 3, generator=g)),
        "unit": (FLOATS, lambda t, g: t.uniform_(generator=g)),
        "normal_": (FLOATS + COMPLEX, lambda t, g: t.normal_(1.5, 2.5, generator=g)),
        "random_": (FLOATS + INTEGERS + [vesta.bool], lambda t, g: t.random_(generator=g)),
        "to": (FLOATS + INTEGERS, lambda t, g: t.random_(100, generator=g)),
        "range": ([vesta.int64], lambda t, g: t.random_(-(2**62), 2**62, generator=g)),
        "bernoulli_": (FLOATS + INTEGERS + [vesta.bool], lambda t, g: t.bernoulli_(0.3, generator=g)),
        "never": (FLOATS, lambda t, g: t.bernoulli_(0.0, generator=g)),
        "always": (FLOATS, lambda t, g: t.bernoulli_(1.0, generator=g)),
    }
    for dtypes, fill in fills.values():
        for dtype in dtypes:
            want, got = both(lambda d, g: fill(vesta.empty(shape, dtype=dtype, device=d), g))  # noqa: B023
            same(got, want)


def test_fills_follow_the_number_of_the_element() -> None:
    want, got = both(lambda d, g: vesta.zeros(5, 9, device=d).mT.uniform_(generator=g))
    same(got, want)
    want, got = both(lambda d, g: vesta.zeros(5, 9, device=d)[1:, ::2].normal_(generator=g))
    same(got, want)
    want, got = both(lambda d, g: vesta.zeros(9, device=d)[1:].uniform_(generator=g))  # not aligned
    same(got, want)
    want, got = both(lambda d, g: vesta.zeros(9, device=d)[1:].bernoulli(generator=g))
    same(got, want)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_bernoulli_of_probabilities(dtype: Any) -> None:
    p = vesta.linspace(0, 1, 101).to(dtype)
    want, got = both(lambda d, g: p.to(d).bernoulli(generator=g))
    same(got, want)
    want, got = both(lambda d, g: p[:100].reshape(10, 10).mT.to(d).bernoulli(generator=g))
    same(got, want)
    with pytest.raises(RuntimeError, match="bernoulli: expected probabilities between 0 and 1"):
        (p.cuda() * 2).bernoulli()
        vesta.cuda.synchronize()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_dropout(dtype: Any) -> None:
    x = vesta.randn(37, 13).to(dtype)
    for p in (0.0, 0.3, 1.0):
        found = []
        for device in ("cpu", "cuda"):
            vesta.manual_seed(5)
            a = x.clone().to(device).requires_grad_()
            y, mask = vesta.native_dropout(a, p, True)
            y.backward(vesta.ones(37, 13).to(dtype).to(device))
            found.append((y.detach(), mask, a.grad))
        for want, got in zip(*found):
            same(got, want)
    grads = vesta.randn(37, 13).to(dtype)
    grads[0, 0] = vesta.nan
    for g, view in ((grads, lambda t: t), (grads[1:], lambda t: t[1:]), (grads.mT.clone().mT, lambda t: t),
                    (grads.mT, lambda t: t.mT)):  # fmt: skip
        found = []
        for device in ("cpu", "cuda"):
            vesta.manual_seed(5)
            a = x.clone().to(device).requires_grad_()
            found.append(vesta.autograd.grad(vesta.native_dropout(view(a), 0.4, True)[0], a, g.to(device))[0])
        assert found[1].is_cuda and vesta.equal(found[1].cpu().nan_to_num(7), found[0].nan_to_num(7))
    twice = vesta.randn(4, 5).to(dtype).cuda().requires_grad_()
    y, mask = vesta.native_dropout(twice, 0.5, True)
    (g,) = vesta.autograd.grad(y.square().sum(), twice, create_graph=True)
    g.sum().backward()
    assert vesta.equal(twice.grad, mask.to(dtype) * 8)
    y, mask = vesta.native_dropout(x.cuda().mT, 0.5, False)
    same(y, x.mT)
    assert mask.cpu().all()


@pytest.mark.parametrize("n", [0, 1, 2, 100, 2048, 2049, 5000, 70_000])
def test_randperm(n: int) -> None:
    want, got = both(lambda d, g: vesta.randperm(n, generator=g, device=d))
    same(got, want)
    want, got = both(lambda d, g: vesta.randperm(min(n, 100), generator=g, dtype=vesta.float16, device=d))
    same(got, want)


def test_factories_of_random_tensors() -> None:
    for draw in (
        lambda d, g: vesta.rand(3, 5, generator=g, device=d), lambda d, g: vesta.randn(3, 5, generator=g, device=d),
        lambda d, g: vesta.randint(-5, 5, (70,), generator=g, device=d),
    ):  # fmt: skip
        want, got = both(draw)
        same(got, want)
    vesta.manual_seed(3)
    want = vesta.rand_like(vesta.zeros(6))
    vesta.manual_seed(3)
    same(vesta.rand_like(vesta.zeros(6, device="cuda")), want)


def test_each_device_has_a_generator() -> None:
    vesta.manual_seed(11)
    first = vesta.rand(4, device="cuda")
    assert vesta.cuda.initial_seed() == 11
    state = vesta.cuda.get_rng_state()
    second = vesta.rand(4, device="cuda")
    assert first.tolist() != second.tolist()
    vesta.cuda.set_rng_state(state)
    same(vesta.rand(4, device="cuda"), second.cpu())
    same(first, vesta.manual_seed(11) and vesta.rand(4))  # draws on one device do not advance the other's generator
    vesta.cuda.manual_seed(12)
    other = vesta.rand(4, device="cuda")
    vesta.manual_seed(12)
    same(vesta.rand(4, device="cuda"), other.cpu())
    assert vesta.equal(vesta.rand(4), other.cpu())
    if vesta.cuda.device_count() > 1:
        vesta.manual_seed(12)
        assert vesta.equal(vesta.rand(4, device="cuda:1").cpu(), other.cpu())
        vesta.cuda.manual_seed_all(13)
        states = vesta.cuda.get_rng_state_all()
        assert len(states) == vesta.cuda.device_count() and vesta.equal(states[0], states[1])
        vesta.cuda.set_rng_state_all(states)
        assert vesta.equal(vesta.rand(4, device="cuda:1").cpu(), vesta.rand(4, device="cuda:0").cpu())


def test_a_generator_belongs_to_a_device() -> None:
    g, c = vesta.Generator(), vesta.Generator(device="cuda")
    assert g.device == vesta.device("cpu") and c.device == vesta.device("cuda:0")
    for call in (
        lambda: vesta.rand(3, generator=c), lambda: vesta.rand(3, generator=g, device="cuda"),
        lambda: vesta.randperm(3, generator=g, device="cuda"), lambda: vesta.randperm(3, generator=c),
        lambda: vesta.ones(3, device="cuda").bernoulli(generator=g),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match="expected a generator of the tensor's device"):
            call()
    with pytest.raises(RuntimeError):
        vesta.Generator(device="cuda:63")
    with pytest.raises(RuntimeError):
        vesta.Generator(device="meta")


def test_sequences() -> None:
    for dtype in (None, *INTEGERS, *FLOATS):
        for start, end, step in ((0, 10, 1), (-3, 97, 7), (5, -20, -2), (0, 0, 1), (0, 100, 1)):
            if dtype == vesta.uint8 and min(start, end) < 0:
                continue
            want = vesta.arange(start, end, step, dtype=dtype)
            same(vesta.arange(start, end, step, dtype=dtype, device="cuda"), want)
        for start, end, steps in ((0, 10, 5), (3, 90, 101), (7, 7, 1), (0, 1, 0), (100, 1, 8)):
            same(
                vesta.linspace(start, end, steps, dtype=dtype, device="cuda"),
                vesta.linspace(start, end, steps, dtype=dtype),
            )
    same(vesta.arange(0.1, 5, 0.37, device="cuda"), vesta.arange(0.1, 5, 0.37))
    same(vesta.linspace(-1.7, 3.3, 777, device="cuda"), vesta.linspace(-1.7, 3.3, 777))
    for dtype in COMPLEX:
        want = vesta.linspace(1 + 2j, -3 + 0.5j, 9, dtype=dtype)
        same(vesta.linspace(1 + 2j, -3 + 0.5j, 9, dtype=dtype, device="cuda"), want)
    same(vesta.eye(3, 5, device="cuda"), vesta.eye(3, 5))


def test_distributions_are_the_cpus_and_one_launch() -> None:
    from vesta import _C_cuda

    draws: dict[str, Any] = {
        "exponential_": lambda t, g: t.exponential_(1.5, generator=g),
        "geometric_": lambda t, g: t.geometric_(0.3, generator=g),
        "cauchy_": lambda t, g: t.cauchy_(0.5, 2.0, generator=g),
        "log_normal_": lambda t, g: t.log_normal_(0.2, 0.5, generator=g),
    }
    for name, draw in draws.items():
        for dtype in FLOATS + (INTEGERS if name == "geometric_" else []):
            limit = {vesta.float64: 1e-12, vesta.float32: 2e-5, vesta.float16: 2e-3}.get(dtype, 1e-2)
            for shape in SHAPES:
                want, got = both(lambda d, g, s=shape, t=dtype, f=draw: f(vesta.empty(s, dtype=t, device=d), g))
                assert got.device.type == "cuda" and got.dtype == dtype and got.shape == want.shape
                a, b = got.cpu().double(), want.double()
                if name == "cauchy_":  # beside a pole of the tangent an error of the angle is large
                    a, b = a.atan(), b.atan()
                assert vesta.allclose(a, b, rtol=limit, atol=limit), (name, dtype, shape)
            want, got = both(lambda d, g, t=dtype, f=draw: f(vesta.empty(8, 6, dtype=t, device=d).mT, g))
            assert got.stride() == want.stride()
        x = vesta.empty(1000, device="cuda")
        before = dict(_C_cuda.counters())["launches"]
        draw(x, None)
        assert dict(_C_cuda.counters())["launches"] == before + 1
        with pytest.raises(RuntimeError, match="leaf"):
            draw(vesta.zeros(3, device="cuda", requires_grad=True), None)
        leaf = vesta.ones(3, device="cuda")
        view = leaf[:2]
        leaf.requires_grad_()
        with pytest.raises(RuntimeError, match="a view of a leaf"):
            draw(view, None)
        assert leaf.eq(1).all()
        y = vesta.zeros(3, device="cuda", requires_grad=True) * 1
        draw(y, None)
        y.sum().backward()
