"""Losses on a CUDA device: the CPU's values and gradients, and as few launches as their data flow needs. A loss with
its reduction is one launch, two of more than 4096 terms, and its gradient is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import vesta
from vesta import Tensor
from vesta.nn import functional as F

pytestmark = [
    pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a GPU or the build tree's emulated device"),
    pytest.mark.filterwarnings("ignore:reduction. .mean. divides", "ignore:Using a target size"),
]

FLOATS = [vesta.float16, vesta.bfloat16, vesta.float32, vesta.float64]
LIMITS = {vesta.float16: 4e-3, vesta.bfloat16: 3e-2, vesta.float32: 2e-5, vesta.float64: 1e-12}

#: Losses of an input and a target of its shape, both within (0, 1), and their options.
TERMS: dict[str, Callable[..., Tensor]] = {
    "mse": F.mse_loss,
    "l1": F.l1_loss,
    "smooth_l1": lambda x, t, **r: F.smooth_l1_loss(x, t, beta=0.3, **r),
    "smooth_l1 of beta 0": lambda x, t, **r: F.smooth_l1_loss(x, t, beta=0, **r),
    "huber": lambda x, t, **r: F.huber_loss(x, t, delta=0.2, **r),
    "bce": F.binary_cross_entropy,
    "bce with logits": F.binary_cross_entropy_with_logits,
    "kl": F.kl_div,
    "kl of logarithms": lambda x, t, **r: F.kl_div(x, t, log_target=True, **r),
    "soft margin": F.soft_margin_loss,
    "poisson": lambda x, t, **r: F.poisson_nll_loss(x, t, **r),
}
ROUNDS_ONCE = ("mse", "l1", "smooth_l1", "smooth_l1 of beta 0", "huber")  # whose gradients have no function's rounding


def launches(run: Callable[[], Any]) -> tuple[int, Any]:
    before = dict(vesta._C_cuda.counters())["launches"]
    result = run()
    return dict(vesta._C_cuda.counters())["launches"] - before, result


def drawn(*shape: int, dtype: Any = vesta.float32, seed: int = 0) -> Tensor:
    generator = vesta.Generator().manual_seed(seed)
    return (vesta.rand(shape, generator=generator, dtype=vesta.float64) * 0.9 + 0.05).to(dtype)


def close(got: Tensor, want: Tensor, limit: float) -> None:
    assert got.device.type == "cuda" and got.dtype == want.dtype and got.shape == want.shape
    a, b = got.detach().cpu().double(), want.detach().double()
    scale = max(1e-3, b.abs().nan_to_num(0).max().item()) if b.numel() else 1
    assert vesta.allclose(a, b, rtol=limit, atol=limit * scale, equal_nan=True), (a - b).abs().max()


def both_ways(loss: Callable[..., Tensor], *operands: Tensor) -> list[Tensor]:
    """Returns a loss and the gradients of the operands that can have one."""
    leaves = [x.detach().requires_grad_(x.is_floating_point()) for x in operands]
    y = loss(*leaves)
    wanted = [x for x in leaves if x.requires_grad]
    return [y, *vesta.autograd.grad(y, wanted, vesta.ones_like(y) * 0.75)]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", TERMS)
def test_terms_are_the_cpus(name: str, dtype: Any) -> None:
    for reduction in ("mean", "sum", "none"):
        loss = lambda x, t, r=reduction: TERMS[name](x, t, reduction=r)
        for shape in ((), (3, 5), (64, 130), (7, 4, 33), (0, 4)):
            x, t = drawn(*shape, dtype=dtype), drawn(*shape, dtype=dtype, seed=1)
            want, got = both_ways(loss, x, t), both_ways(loss, x.cuda(), t.cuda())
            for a, b in zip(got, want):
                close(a, b, LIMITS[dtype] * (8 if reduction == "sum" else 1))
            if name in ROUNDS_ONCE and dtype == vesta.float32:
                assert all(vesta.equal(a.cpu(), b) for a, b in zip(got[1:], want[1:]))


@pytest.mark.parametrize("name", TERMS)
def test_terms_in_any_layout(name: str) -> None:
    for of in (
        lambda x: x.transpose(0, 2),
        lambda x: x[:, 1:],
        lambda x: x[..., ::2],
        lambda x: x[:1].expand(6, -1, -1),
        lambda x: x.contiguous(memory_format=vesta.channels_last) if x.dim() == 4 else x.flatten()[1:],
    ):
        x, t = drawn(6, 8, 40), drawn(6, 8, 40, seed=1)
        for a, b in ((of(x), of(t)), (of(x), of(t).contiguous())):
            want = both_ways(lambda x, t: TERMS[name](x, t), a, b)
            got = both_ways(lambda x, t: TERMS[name](x, t), of(x.cuda()), of(t.cuda()).reshape(b.shape))
            for g, w in zip(got, want):
                close(g, w, 2e-5)


@pytest.mark.parametrize("name", TERMS)
def test_terms_are_added_up_as_they_are_computed(name: str) -> None:
    for reduction in ("mean", "sum"):
        for n, forward in ((4096, 1), (4097, 2), (100_000, 2)):
            x, t = drawn(n).cuda().requires_grad_(), drawn(n, seed=1).cuda()
            count, y = launches(lambda: TERMS[name](x, t, reduction=reduction))  # noqa: B023
            assert count == forward, (reduction, n)
            g = vesta.ones_like(y)
            count, _ = launches(lambda: vesta.autograd.grad(y, x, g))  # noqa: B023
            assert count == 1, (reduction, n)
            t.requires_grad_()
            y = TERMS[name](x, t, reduction=reduction)
            assert launches(lambda: vesta.autograd.grad(y, [x, t], g))[0] == 1  # noqa: B023


@pytest.mark.parametrize("name", TERMS)
def test_second_derivatives_of_terms(name: str) -> None:
    def products(x: Tensor, t: Tensor) -> list[Tensor]:
        x, t = x.detach().requires_grad_(), t.detach().requires_grad_()
        g = vesta.autograd.grad(TERMS[name](x, t), [x, t], create_graph=True)
        return [*vesta.autograd.grad(sum((a * a).sum() for a in g), [x, t], allow_unused=True)]

    x, t = drawn(3, 4, dtype=vesta.float64), drawn(3, 4, dtype=vesta.float64, seed=1)
    for got, want in zip(products(x.cuda(), t.cuda()), products(x, t)):
        assert (got is None) == (want is None)
        if got is not None:
            close(got, want, 1e-12)
    inputs = (x.cuda().requires_grad_(), t.cuda().requires_grad_())
    assert vesta.autograd.gradcheck(TERMS[name], inputs)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_ranking_of_margins(dtype: Any) -> None:
    """The difference is a launch of its own; where it is the margin, the slope is 0, as that of clamp_min."""
    for shape in ((), (3, 5), (5000,)):
        x, y = drawn(*shape, dtype=dtype), drawn(*shape, dtype=dtype, seed=1)
        t = (drawn(*shape, seed=2) > 0.5).to(dtype) * 2 - 1
        for margin, reduction in ((0.0, "mean"), (0.3, "sum"), (0.3, "none")):
            loss = lambda x, y, t, m=margin, r=reduction: F.margin_ranking_loss(x, y, t, m, reduction=r)
            for got, want in zip(both_ways(loss, x.cuda(), y.cuda(), t.cuda()), both_ways(loss, x, y, t)):
                close(got, want, LIMITS[dtype] * (8 if reduction == "sum" else 1))
    x = vesta.zeros(3, device="cuda", requires_grad=True)
    zeros, sign = vesta.zeros(3, device="cuda"), vesta.tensor([1, -1, 1]).cuda()
    signs = sign.float()
    assert launches(lambda: F.margin_ranking_loss(x, zeros, signs))[0] <= 3
    F.margin_ranking_loss(x, zeros, sign, reduction="sum").backward()
    assert x.grad.eq(0).all()
    whole = vesta.arange(3).cuda()
    assert F.margin_ranking_loss(whole, whole, sign, reduction="none").eq(0).all()  # integers have a loss too


def test_terms_of_two_dtypes_and_broadcast() -> None:
    x, t = drawn(4, 5), drawn(4, 5, dtype=vesta.float64, seed=1)
    close(F.mse_loss(x.cuda(), t.cuda()), F.mse_loss(x, t), 1e-6)
    close(F.l1_loss(x.cuda(), t[:1].float().cuda()), F.l1_loss(x, t[:1].float()), 1e-6)
    z = x + 1j * drawn(4, 5, seed=2)
    close(F.l1_loss(z.cuda(), x.cuda()), F.l1_loss(z, x), 1e-6)
    assert vesta.allclose(F.mse_loss(z.cuda(), x.cuda()).cpu(), F.mse_loss(z, x), rtol=1e-6)
    with pytest.raises(ValueError, match="same shape"):
        F.mse_loss(x.cuda(), t[:1].float().cuda())


# ---- Class numbers ----


def class_cases(dtype: Any) -> Any:
    for shape in ((5, 7), (3000, 3), (5000, 3), (6, 4, 9), (2, 5, 50, 60), (3, 300)):
        classes = shape[1]
        x = drawn(*shape, dtype=dtype) * 8 - 4
        numbers = vesta.randint(0, classes, (shape[0], *shape[2:]), generator=vesta.Generator().manual_seed(3))
        numbers.view(-1)[1::4] = 1
        yield x, numbers, drawn(classes, dtype=dtype, seed=4)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_losses_of_classes_are_the_cpus(dtype: Any) -> None:
    for x, numbers, weight in class_cases(dtype):
        for weights in (None, weight):
            for reduction in ("mean", "sum", "none"):
                for name, loss in (
                    ("cross_entropy", F.cross_entropy),
                    ("nll_loss", F.nll_loss),
                    ("smooth", lambda *a, **k: F.cross_entropy(*a, label_smoothing=0.2, **k)),
                ):
                    options = {"reduction": reduction, "ignore_index": 1}
                    on_host = None if weights is None else weights
                    want = both_ways(lambda x: loss(x, numbers, on_host, **options), x)  # noqa: B023
                    there = None if weights is None else weights.cuda()
                    got = both_ways(lambda x: loss(x, numbers.cuda(), there, **options), x.cuda())  # noqa: B023
                    for a, b in zip(got, want):
                        close(a, b, 2 * LIMITS[dtype] * (20 if reduction == "sum" else 1))
                    if name == "nll_loss" and dtype == vesta.float32 and weights is None:  # a count is exact
                        assert vesta.equal(got[1].cpu(), want[1])


def test_losses_of_classes_without_rows() -> None:
    for loss in (F.cross_entropy, F.nll_loss):
        for shape in ((0, 3), (2, 3, 0)):
            x = vesta.zeros(shape, device="cuda", requires_grad=True)
            numbers = vesta.zeros((shape[0], *shape[2:]), dtype=vesta.int64, device="cuda")
            y = loss(x, numbers)
            assert y.isnan() and loss(x, numbers, reduction="sum") == 0
            y.backward()
            assert x.grad.shape == shape
        x = drawn(3, 4).cuda().requires_grad_()
        y = loss(x, vesta.full((3,), 2, device="cuda"), ignore_index=2)  # all are ignored
        assert y.isnan()
        y.backward()
        assert x.grad.eq(0).all()


def test_other_forms_of_class_numbers() -> None:
    x, numbers = drawn(6, 4), vesta.tensor([0, 3, 1, 1, 2, 0])
    for loss in (F.cross_entropy, F.nll_loss):
        close(loss(x.cuda(), numbers.to(vesta.uint8).cuda()), loss(x, numbers), 1e-6)
        close(loss(x[0].cuda(), numbers[0].cuda()), loss(x[0], numbers[0]), 1e-6)
        close(loss(x.t().contiguous().t().cuda(), numbers.cuda()), loss(x, numbers), 1e-6)
    twice = vesta.stack([numbers, numbers], 1)[:, 0].cuda()
    close(F.nll_loss(x.cuda(), twice), F.nll_loss(x, numbers), 1e-6)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_a_class_out_of_range_is_reported(reduction: str) -> None:
    for loss in (F.cross_entropy, F.nll_loss):
        for wrong in (4, -1):
            y = loss(drawn(3, 4).cuda(), vesta.tensor([1, wrong, 2]).cuda(), reduction=reduction)
            with pytest.raises(IndexError, match=rf"Target {wrong} is out of bounds"):
                y.tolist()
            vesta.cuda.synchronize()  # the device goes on


@pytest.mark.parametrize("dtype", [vesta.bfloat16, vesta.float32], ids=str)
def test_losses_of_classes_take_few_launches(dtype: Any) -> None:
    numbers = vesta.randint(0, 4, (5000,)).cuda()
    weight = drawn(4, dtype=dtype).cuda()
    for n, more in ((4096, 0), (5000, 1)):
        for w in (None, weight):
            x = drawn(n, 4, dtype=dtype).cuda().requires_grad_()
            for loss, reduction, forward in (
                (F.cross_entropy, "mean", 2 + more),
                (F.nll_loss, "mean", 1 + more),
                (F.nll_loss, "sum", 1 + more),
                (F.nll_loss, "none", 1),
            ):
                count, y = launches(lambda: loss(x, numbers[:n], w, reduction=reduction))  # noqa: B023
                assert count == forward, (loss, reduction, n)
                g = vesta.ones_like(y)
                assert launches(lambda: vesta.autograd.grad(y, x, g))[0] == 1  # noqa: B023


def test_second_derivatives_of_classes() -> None:
    def product(x: Tensor, numbers: Tensor, loss: Callable[..., Tensor]) -> list[Tensor]:
        x = x.detach().requires_grad_()
        (g,) = vesta.autograd.grad(loss(x.sin(), numbers), x, create_graph=True)
        return [*vesta.autograd.grad((g * g).sum(), x)]

    x, numbers = drawn(4, 3, dtype=vesta.float64), vesta.tensor([0, 2, 1, 1])
    for loss in (F.cross_entropy, F.nll_loss):
        want, got = product(x, numbers, loss), product(x.cuda(), numbers.cuda(), loss)
        close(got[0], want[0], 1e-12)


def test_autocast_reads_scores_as_they_are() -> None:
    x, numbers = (drawn(8, 4) * 4).bfloat16(), vesta.tensor([0, 1, 2, 3, 0, 1, 2, 3])
    with vesta.autocast("cuda", dtype=vesta.bfloat16):
        count, y = launches(lambda: F.cross_entropy(x.cuda(), numbers.cuda()))
    assert y.dtype == vesta.float32 and count == 2
    close(y, F.cross_entropy(x.float(), numbers), 1e-6)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", TERMS)
def test_a_target_within_a_batch_may_begin_anywhere(name: str, dtype: Any) -> None:
    """Its elements need not be aligned as the input's are: packs of 16 bytes are loaded only where both are."""
    x, targets = drawn(70, 8, dtype=dtype, seed=1), drawn(561, dtype=dtype, seed=2)
    want = both_ways(TERMS[name], x, targets[1:].reshape(70, 8))
    got = both_ways(TERMS[name], x.cuda(), targets.cuda()[1:].reshape(70, 8))
    for a, b in zip(got, want):
        close(a, b, LIMITS[dtype])


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_classes_of_bytes_with_weights(device: str) -> None:
    x, weight = drawn(6, 5).to(device), drawn(5, seed=1).to(device)
    classes = vesta.tensor([0, 4, 2, 1, 1, 3], device=device)
    got = F.cross_entropy(x, classes.to(vesta.uint8), weight)
    assert vesta.equal(got, F.cross_entropy(x, classes, weight))
