"""What nobody holds any more is freed at once: models, optimizers and their state lie in no cycle that would wait for
the garbage collector, which runs by the number of Python objects and knows nothing of gigabytes."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Iterator
from typing import Any, Callable

import pytest
import vesta
from vesta import nn

OPTIMIZERS = sorted(
    name
    for name, kind in vars(vesta.optim).items()
    if isinstance(kind, type) and issubclass(kind, vesta.optim.Optimizer) and name not in ("Optimizer", "SparseAdam")
)
SCHEDULERS: dict[str, tuple[Any, ...]] = {
    "StepLR": (1,),
    "OneCycleLR": (0.1, 10),
    "ReduceLROnPlateau": (),
    "LambdaLR": (lambda epoch: 1.0,),
    "CyclicLR": (0.1, 0.2),
    "CosineAnnealingLR": (10,),
    "ExponentialLR": (0.9,),
}
rows = (2, 4)
MODULES: dict[str, tuple[Callable[[], nn.Module], Callable[[nn.Module], Any]]] = {
    "Sequential": (
        lambda: nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU(inplace=True), nn.Dropout()),
        lambda m: m(vesta.rand(rows)),
    ),
    "Conv2d": (lambda: nn.Conv2d(3, 4, 3), lambda m: m(vesta.rand(1, 3, 8, 8))),
    "Embedding": (lambda: nn.Embedding(4, 4), lambda m: m(vesta.tensor([1, 2]))),
    "LSTM": (lambda: nn.LSTM(4, 4, 2, bidirectional=True), lambda m: m(vesta.rand(3, 2, 4))[0]),
    "TransformerEncoderLayer": (lambda: nn.TransformerEncoderLayer(8, 2), lambda m: m(vesta.rand(3, 2, 8))),
    "LazyLinear": (lambda: nn.LazyLinear(4), lambda m: m(vesta.rand(rows))),
    "weight_norm": (
        lambda: nn.utils.parametrizations.weight_norm(nn.Linear(4, 4)),
        lambda m: m(vesta.rand(rows)),
    ),
    "spectral_norm": (
        lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4)),
        lambda m: m(vesta.rand(rows)),
    ),
}


@pytest.fixture(autouse=True)
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def watch(**things: Any) -> dict[str, Any]:
    return {name: weakref.ref(thing) for name, thing in things.items()}


def left(watched: dict[str, Any]) -> list[str]:
    return [name for name, thing in watched.items() if thing() is not None]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer(name: str) -> None:
    def use() -> dict[str, Any]:
        net = nn.Linear(4, 4, bias=False)
        optimizer = getattr(vesta.optim, name)(net.parameters(), lr=0.1)

        def closure() -> Any:
            optimizer.zero_grad()
            loss = net(vesta.rand(rows)).square().sum()
            loss.backward()
            return loss

        for _ in range(2):
            optimizer.step(closure)
        tensors = [t for entry in optimizer.state.values() for t in entry.values() if isinstance(t, vesta.Tensor)]
        state = {f"state {i}": t for i, t in enumerate(tensors)}
        return watch(net=net, weight=net.weight, grad=net.weight.grad, optimizer=optimizer, **state)

    assert left(use()) == []


def test_an_optimizer_that_was_loaded_and_copied() -> None:
    def use() -> dict[str, Any]:
        net = nn.Linear(4, 4)
        first, second = (vesta.optim.Adam(net.parameters()) for _ in range(2))
        net(vesta.rand(rows)).sum().backward()
        first.step()
        second.load_state_dict(first.state_dict())
        second.step()
        twin = copy.deepcopy(second)
        return watch(net=net, weight=net.weight, first=first, second=second, twin=twin)

    assert left(use()) == []


@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_scheduler(name: str) -> None:
    def use() -> dict[str, Any]:
        net = nn.Linear(4, 4)
        optimizer = vesta.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        scheduler = getattr(vesta.optim.lr_scheduler, name)(optimizer, *SCHEDULERS[name])
        net(vesta.rand(rows)).sum().backward()
        optimizer.step()
        scheduler.step(*((1.0,) if name == "ReduceLROnPlateau" else ()))
        return watch(net=net, weight=net.weight, optimizer=optimizer, scheduler=scheduler)

    assert left(use()) == []


@pytest.mark.parametrize("name", MODULES)
def test_a_module(name: str) -> None:
    def use() -> dict[str, Any]:
        make, call = MODULES[name]
        net = make()
        y = call(net)
        y.sum().backward()
        weight = next(net.parameters())
        return watch(net=net, y=y, weight=weight, grad=weight.grad)

    assert left(use()) == []


def test_a_module_with_hooks() -> None:
    def use() -> dict[str, Any]:
        net = nn.Linear(4, 4)
        net.register_forward_hook(lambda *_: None)
        net.register_full_backward_hook(lambda *_: None)
        y = net(vesta.rand(rows).requires_grad_())
        y.sum().backward()
        return watch(net=net, y=y, weight=net.weight)

    assert left(use()) == []


def test_a_scaler() -> None:
    def use() -> dict[str, Any]:
        net = nn.Linear(4, 4)
        optimizer, scaler = vesta.optim.Adam(net.parameters()), vesta.amp.GradScaler("cpu")
        first, (second, third) = scaler.scale(net(vesta.rand(rows)).sum()), scaler.scale([vesta.ones(1), vesta.ones(2)])
        first.backward()
        scaler.step(optimizer)
        scaler.update()
        return watch(net=net, weight=net.weight, scaler=scaler, first=first, second=second, third=third)

    assert left(use()) == []


def test_functions_of_ones_own() -> None:
    class Double(vesta.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x * 2
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    def use(backward: bool) -> dict[str, Any]:
        x = vesta.rand(3).requires_grad_()
        y = Double.apply(x)
        if backward:
            y.sum().backward()
        return watch(x=x, y=y)

    assert left(use(True)) == [] and left(use(False)) == []


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader(workers: int) -> None:
    def use() -> dict[str, Any]:
        data = vesta.utils.data.TensorDataset(vesta.rand(8, 2))
        loader = vesta.utils.data.DataLoader(data, 2, shuffle=True, num_workers=workers)
        batches = iter(loader)
        first = next(batches)[0]
        list(batches)
        return watch(data=data, loader=loader, batches=batches, first=first)

    assert left(use()) == []


def test_transforms_of_functions() -> None:
    def use() -> dict[str, Any]:
        net = nn.Linear(4, 4)
        weights = dict(net.named_parameters())
        grads = vesta.func.grad(lambda w, x: vesta.func.functional_call(net, w, (x,)).sum())(weights, vesta.rand(rows))
        y = vesta.vmap(net)(vesta.rand(3, 4))
        z = vesta.utils.checkpoint.checkpoint(net, vesta.rand(rows), use_reentrant=False)
        z.sum().backward()
        return watch(net=net, weight=net.weight, grad=grads["weight"], y=y, z=z)

    assert left(use()) == []
