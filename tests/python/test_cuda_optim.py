"""Fused optimizer steps on a CUDA device: the CPU's bits, for any mix of tensors, and one launch for all of them."""

from __future__ import annotations

from typing import Any

import pytest
import vesta
from vesta import _C, nn, optim

pytestmark = pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a GPU or the build tree's emulated device")

FLOATS = [vesta.float16, vesta.bfloat16, vesta.float32, vesta.float64]
SHAPES = [(1,), (3,), (4097,), (33, 7), (0,), (5, 4, 3), ()]


def train(make: Any, device: str, dtype: Any, shapes: list, steps: int = 4) -> list[vesta.Tensor]:
    """Returns parameters and state after some steps with gradients from a seed."""
    g = vesta.Generator().manual_seed(1)
    parameters = [nn.Parameter(vesta.randn(s, generator=g).to(dtype).to(device)) for s in shapes]
    optimizer = make(parameters)
    for _ in range(steps):
        for p in parameters:
            grad = vesta.randn(p.shape, generator=g).to(dtype)
            p.grad = grad.mT.contiguous().mT.to(device) if grad.dim() > 1 else grad.to(device)
        optimizer.step()
    state = [s for p in parameters for s in optimizer.state[p].values() if isinstance(s, vesta.Tensor)]
    return [t.detach().cpu() for t in [*parameters, *state]]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("make", [
    lambda p: optim.SGD(p, lr=0.1), lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.2, weight_decay=0.1),
    lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True), lambda p: optim.SGD(p, lr=0.1, maximize=True),
    lambda p: optim.Adam(p, lr=0.01), lambda p: optim.Adam(p, lr=0.01, weight_decay=0.1, maximize=True),
    lambda p: optim.Adam(p, lr=0.01, amsgrad=True), lambda p: optim.AdamW(p, lr=0.01, amsgrad=True),
    lambda p: optim.AdamW(p, lr=0.01, weight_decay=0.3, betas=(0.5, 0.7), eps=1e-3),
    lambda p: optim.RMSprop(p), lambda p: optim.RMSprop(p, alpha=0.9, weight_decay=0.1, maximize=True),
    lambda p: optim.RMSprop(p, eps=0.1, momentum=0.9, centered=True),
    lambda p: optim.Adagrad(p, lr=0.1, lr_decay=0.1, weight_decay=0.1), lambda p: optim.Adadelta(p, weight_decay=0.1),
    lambda p: optim.Adamax(p, lr=0.1, eps=1e-3), lambda p: optim.NAdam(p, lr=0.1, eps=1e-3, weight_decay=0.1),
    lambda p: optim.RAdam(p, lr=0.1, betas=(0.9, 0.6), eps=1e-3), lambda p: optim.ASGD(p, lr=0.1, t0=1, lambd=0.1),
    lambda p: optim.Rprop(p, lr=0.1, maximize=True),
])  # fmt: skip
def test_steps_have_the_bits_of_the_cpu(make: Any, dtype: Any) -> None:
    want, got = (train(make, device, dtype, SHAPES) for device in ("cpu", "cuda"))
    assert len(want) == len(got)
    for a, b in zip(want, got):
        assert a.dtype == b.dtype and vesta.equal(a, b)


def test_strides_of_dimensions_of_size_1_make_no_copies() -> None:
    from vesta import _C_cuda

    weights = [vesta.randn(8, 4, 1, 1), vesta.randn(1, 4, 3, 3)]
    parameters = [w.cuda().to(memory_format=vesta.channels_last).requires_grad_() for w in weights]
    for p in parameters:
        p.grad = p.detach().clone()
    optimizer = optim.SGD(parameters, lr=0.1, momentum=0.9)
    optimizer.step()
    for other in ((4, 1, 4, 4), (4, 1, 1, 1)):  # the second as from a file written with another layout
        state = optimizer.state[parameters[0]]
        state["momentum_buffer"] = state["momentum_buffer"].as_strided((8, 4, 1, 1), other)
        launches = dict(_C_cuda.counters())["launches"]
        optimizer.step()
        assert dict(_C_cuda.counters())["launches"] == launches + 1


def test_many_tensors_of_several_dtypes() -> None:
    for count in (40, 400):
        want, got = (
            train(lambda p: optim.AdamW(p, lr=0.1), d, vesta.float32, [(i % 5 + 1,) for i in range(count)], 2)
            for d in ("cpu", "cuda")
        )
        assert all(vesta.equal(a, b) for a, b in zip(want, got))
    g = vesta.Generator().manual_seed(2)
    parameters = [vesta.randn(9, generator=g).to(d) for d in FLOATS * 2]
    copies = [p.cuda() for p in parameters]
    for list_ in (parameters, copies):
        _C._fused_sgd_(list_, [p.clone() for p in list_], [], 0.0, 0.0, 0.5, 0.0, False, False, True)
    assert all(vesta.equal(a, b.cpu()) for a, b in zip(parameters, copies))


def adam(device: str, steps_on: str, shapes: Any = ((5,), (6, 2))) -> list[vesta.Tensor]:
    """Runs three bare Adam steps with the step counts on a device of their own."""
    g = vesta.Generator().manual_seed(4)
    p = [vesta.randn(s, generator=g).to(device) for s in shapes]
    grads = [vesta.randn(s, generator=g).to(device) for s in shapes]
    m, v = [vesta.zeros_like(t) for t in p], [vesta.zeros_like(t) for t in p]
    steps = [vesta.tensor(float(i), device=steps_on) for i in range(len(p))]
    for _ in range(3):
        _C._fused_adam_(p, grads, m, v, [], steps, 0.01, 0.9, 0.999, 0.0, 1e-8, False, False)
    return [t.cpu() for t in [*p, *m, *v, *steps]]


def test_counts_of_steps_may_lie_on_the_device() -> None:
    want, got, there = adam("cpu", "cpu"), adam("cuda", "cpu"), adam("cuda", "cuda")
    for a, b, c in zip(want, got, there):
        assert vesta.equal(a, b) and vesta.equal(a, c)
    assert [t.item() for t in there[-2:]] == [3.0, 4.0]


@pytest.mark.parametrize("op", ["_fused_adam_", "_fused_adamax_", "_fused_radam_", "_fused_adagrad_"])
def test_numbers_that_are_counted_on_the_device_have_the_same_bits(op: str) -> None:
    """In double, where the last bit of a power shows; few and many steps."""
    steps = [0.0, 1.0, 4.0, 5.0, 6.0, 99.0, 12345.0, 16777215.0]

    def parameters(device: str, steps_on: str) -> list[vesta.Tensor]:
        def some(n: int) -> list[vesta.Tensor]:
            return [vesta.full((n,), i + 1.0, dtype=vesta.float64, device=device) for i, _ in enumerate(steps)]

        counts = [vesta.tensor(step, device=steps_on) for step in steps]
        p, grads, a, b = (some(3) for _ in range(4))
        numbers: dict[str, list] = {
            "_fused_adam_": [a, b, [], counts, 0.01, 0.9, 0.9995, 0.0, 1e-8, False, False],
            "_fused_adamax_": [a, b, counts, 0.01, 0.9, 0.9995, 1e-8, 0.0, False],
            "_fused_radam_": [a, b, counts, 0.01, 0.9, 0.9995, 1e-8, 0.0, False, False],
            "_fused_adagrad_": [a, counts, 0.01, 0.001, 0.0, 1e-8, False],
        }
        getattr(_C, op)(p, grads, *numbers[op])
        return [t.cpu() for t in p]

    want = parameters("cpu", "cpu")
    for other in (parameters("cuda", "cpu"), parameters("cuda", "cuda")):
        assert all(vesta.equal(x, y) for x, y in zip(want, other))


def test_unaligned_parameters() -> None:
    for device in ("cpu", "cuda"):
        memory = vesta.arange(100.0).to(device)
        p = memory[1:90]
        _C._fused_sgd_([p], [vesta.ones(89, device=device)], [], 0.0, 0.0, 0.5, 0.0, False, False, True)
        want = vesta.arange(100.0)
        want[1:90] -= 0.5
        assert vesta.equal(memory.cpu(), want)


def test_devices_must_agree() -> None:
    p = vesta.ones(3, device="cuda")
    with pytest.raises(RuntimeError, match=r"one device, got cuda:0 \(params\[0\]\) and cpu \(grads\[0\]\)"):
        _C._fused_sgd_([p], [vesta.ones(3)], [], 0.0, 0.0, 0.5, 0.0, False, False, True)
    with pytest.raises(RuntimeError, match=r"got cpu \(params\[0\]\) and cuda:0 \(grads\[0\]\)"):
        _C._fused_sgd_([vesta.ones(3)], [p], [], 0.0, 0.0, 0.5, 0.0, False, False, True)
    assert p.tolist() == [1.0] * 3


def test_state_that_stayed_on_the_meta_device_is_named() -> None:
    """As after to_empty() of a model whose optimizer has stepped."""
    model = vesta.nn.Linear(2, 2, device="meta")
    optimizer = vesta.optim.Adam(model.parameters())
    model(vesta.ones(1, 2, device="meta")).sum().backward()
    optimizer.step()
    model.to_empty(device="cpu")
    model(vesta.ones(1, 2)).sum().backward()
    with pytest.raises(ValueError, match=r"Adam: expected exp_avg of parameter 0 of group 0 .* on cpu, got .* on meta"):
        optimizer.step()


def test_averages_of_models_are_updated_in_place() -> None:
    """One launch a parameter, and the count; the CPU's values."""
    from vesta import _C_cuda
    from vesta.optim import swa_utils

    for rule in (swa_utils.get_ema_multi_avg_fn(0.9), None):
        found = []
        for device in ("cpu", "cuda"):
            vesta.manual_seed(1)
            model = vesta.nn.Sequential(vesta.nn.Linear(4, 5), vesta.nn.Linear(5, 3)).to(device)
            average = swa_utils.AveragedModel(model, multi_avg_fn=rule)
            for step in range(3):
                with vesta.no_grad():
                    for p in model.parameters():
                        p.add_(vesta.full_like(p, step + 1))
                before = dict(_C_cuda.counters())["launches"]
                average.update_parameters(model)
                launches = dict(_C_cuda.counters())["launches"] - before
                assert device == "cpu" or step == 0 or launches <= 4 + 4, launches
            found.append([p.detach().cpu() for p in average.module.parameters()])
        for a, b in zip(*found):
            assert vesta.allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("dtype", [vesta.bfloat16, vesta.float32], ids=str)
@pytest.mark.parametrize("make, shape", [
    (lambda p: optim.Muon(p, lr=0.1), (6, 9)), (lambda p: optim.Muon(p, lr=0.1, nesterov=False, momentum=0.0), (9, 6)),
    (lambda p: optim.Adafactor(p, lr=0.1, weight_decay=0.1), (3, 4, 5)), (lambda p: optim.Adafactor(p, d=2.0), (7,)),
])  # fmt: skip
def test_parameters_of_one_shape_are_updated_as_each_alone(make: Any, shape: Any, dtype: Any, device: str) -> None:
    together = train(make, device, dtype, [shape, shape, shape])
    per_parameter = (len(together) - 3) // 3
    for i in range(3):
        g = vesta.Generator().manual_seed(1)
        drawn = [vesta.randn(shape, generator=g).to(dtype) for _ in range(3 + 4 * 3)]
        alone = nn.Parameter(drawn[i].to(device))
        optimizer = make([alone])
        for step in range(4):
            alone.grad = drawn[3 + 3 * step + i].to(device)
            optimizer.step()
        state = [s for s in optimizer.state[alone].values() if isinstance(s, vesta.Tensor)]
        of_this = [together[i], *together[3 + per_parameter * i : 3 + per_parameter * (i + 1)]]
        for a, b in zip(of_this, [alone, *state]):
            assert vesta.equal(a, b.detach().cpu())


@pytest.mark.parametrize("make, most", [(optim.Muon, 60), (optim.Adafactor, 40)])
def test_launches_do_not_grow_with_the_parameters_of_a_shape(make: Any, most: int) -> None:
    from vesta import _C_cuda

    for count in (2, 9):
        parameters = [nn.Parameter(vesta.randn(8, 12).cuda()) for _ in range(count)]
        optimizer = make(parameters)
        for _ in range(2):
            for p in parameters:
                p.grad = vesta.ones_like(p)
            before = dict(_C_cuda.counters())
            optimizer.step()
            after = dict(_C_cuda.counters())
        assert after["launches"] - before["launches"] <= most
