"""Optimizers against their formulas in plain Python numbers, state dicts, hooks, bad arguments, schedules."""

from __future__ import annotations

import copy
import math
import pickle

import pytest
import vesta
from vesta import nn, optim
from vesta.optim import lr_scheduler

GRADS = [0.5, -1.0, 2.0, 0.25, -0.5]


def sgd(p: float, lr=1e-3, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, maximize=False) -> float:
    """Computes SGD on one number over GRADS."""
    buffer = None
    for g in GRADS:
        g = (-g if maximize else g) + weight_decay * p
        if momentum:
            buffer = g if buffer is None else momentum * buffer + (1 - dampening) * g
            g = g + momentum * buffer if nesterov else buffer
        p -= lr * g
    return p


def adam(p: float, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, amsgrad=False, decoupled=False) -> float:
    """Computes Adam on one number over GRADS."""
    m = v = top = 0.0
    for t, g in enumerate(GRADS, 1):
        if decoupled:
            p *= 1 - lr * weight_decay
        else:
            g += weight_decay * p
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g * g
        top = max(top, v) if amsgrad else v
        p -= lr * m / (1 - betas[0] ** t) / (math.sqrt(top / (1 - betas[1] ** t)) + eps)
    return p


def run(make, start: float = 1.5, dtype=None) -> float:
    """Returns the value of one parameter after steps with GRADS."""
    parameter = nn.Parameter(vesta.tensor([start], dtype=dtype or vesta.float64))
    optimizer = make([parameter])
    for g in GRADS:
        parameter.grad = vesta.tensor([g], dtype=parameter.dtype)
        optimizer.step()
    return parameter.item()


@pytest.mark.parametrize("options", [
    {"lr": 0.1}, {"lr": 0.1, "momentum": 0.9}, {"lr": 0.1, "momentum": 0.9, "dampening": 0.5, "weight_decay": 0.1},
    {"lr": 0.1, "momentum": 0.9, "nesterov": True}, {"lr": 0.1, "maximize": True},
])  # fmt: skip
def test_sgd_follows_its_formula(options: dict) -> None:
    assert run(lambda p: optim.SGD(p, **options)) == pytest.approx(sgd(1.5, **options), rel=1e-12)


@pytest.mark.parametrize("options", [{}, {"lr": 0.1, "betas": (0.5, 0.6)}, {"weight_decay": 0.1}, {"amsgrad": True}])
def test_adam_follows_its_formula(options: dict) -> None:
    assert run(lambda p: optim.Adam(p, **options)) == pytest.approx(adam(1.5, **options), rel=1e-9)
    decay = options.get("weight_decay", 1e-2)
    expected = adam(1.5, **{**options, "weight_decay": decay}, decoupled=True)
    assert run(lambda p: optim.AdamW(p, **options)) == pytest.approx(expected, rel=1e-9)


def rmsprop(
    p: float, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=False, maximize=False
) -> float:
    """Computes RMSprop on one number over GRADS."""
    v = mean = b = 0.0
    for g in GRADS:
        g = (-g if maximize else g) + weight_decay * p
        v = alpha * v + (1 - alpha) * g * g
        mean = alpha * mean + (1 - alpha) * g
        b = momentum * b + g / (math.sqrt(v - mean * mean if centered else v) + eps)
        p -= lr * b
    return p


@pytest.mark.parametrize("options", [
    {}, {"lr": 0.1, "alpha": 0.5, "eps": 0.1}, {"weight_decay": 0.1, "momentum": 0.9}, {"centered": True},
    {"momentum": 0.5, "centered": True, "maximize": True},
])  # fmt: skip
def test_rmsprop_follows_its_formula(options: dict) -> None:
    assert run(lambda p: optim.RMSprop(p, **options)) == pytest.approx(rmsprop(1.5, **options), rel=1e-9)


def test_rmsprop_goes_on_from_its_state() -> None:
    """The state has PyTorch's names, and an optimizer that loads it takes the same steps."""
    a, b = weights(1)[0], weights(1)[0]
    first, second = (optim.RMSprop([p], momentum=0.9, centered=True, eps=0.1) for p in (a, b))
    step_all(first)
    assert set(first.state[a]) == {"step", "square_avg", "momentum_buffer", "grad_avg"}
    b.data = a.data.clone()
    second.load_state_dict(first.state_dict())
    step_all(first, 2.0), step_all(second, 2.0)
    assert a.tolist() == b.tolist() and second.state[b]["step"].item() == 2.0


def weights(count: int = 3) -> list[nn.Parameter]:
    return [nn.Parameter(vesta.ones(2, 2) * (i + 1)) for i in range(count)]


def step_all(optimizer: optim.Optimizer, value: float = 1.0, skip: int | None = None) -> None:
    for i, parameter in enumerate(optimizer.param_groups[0]["params"]):
        parameter.grad = None if i == skip else vesta.ones(2, 2) * value
    optimizer.step()


def test_parameters_without_a_gradient_are_left_alone() -> None:
    """A parameter that gets a gradient later starts its own step count; the others continue theirs."""
    parameters = weights()
    optimizer = optim.Adam(parameters, lr=0.1)
    step_all(optimizer, skip=1)
    assert parameters[1].tolist() == [[2.0, 2.0], [2.0, 2.0]] and len(optimizer.state) == 2
    step_all(optimizer)
    assert [optimizer.state[p]["step"].item() for p in parameters] == [2.0, 1.0, 2.0]


def test_changes_between_steps_count() -> None:
    """Changed options, parameters and state are used from the next step on."""
    parameters = weights(1)
    optimizer = optim.SGD(parameters, lr=1.0, momentum=0.5)
    step_all(optimizer)
    optimizer.state[parameters[0]]["momentum_buffer"] = vesta.zeros(2, 2)
    optimizer.param_groups[0]["lr"] = 0.5
    step_all(optimizer)
    assert parameters[0].tolist() == [[-0.5, -0.5], [-0.5, -0.5]]
    replacement = nn.Parameter(vesta.zeros(2, 2))
    optimizer.param_groups[0]["params"][0] = replacement
    step_all(optimizer)
    assert replacement.tolist() == [[-0.5, -0.5], [-0.5, -0.5]] and parameters[0].tolist()[0][0] == -0.5


def test_groups_have_their_own_options() -> None:
    a, b = weights(2)
    optimizer = optim.SGD([{"params": [a]}, {"params": b, "lr": 0.5}], lr=1.0)
    a.grad, b.grad = vesta.ones(2, 2), vesta.ones(2, 2)
    optimizer.step()
    assert a.tolist()[0] == [0.0, 0.0] and b.tolist()[0] == [1.5, 1.5]
    optimizer.add_param_group({"params": weights(1), "momentum": 0.9})
    assert [group["momentum"] for group in optimizer.param_groups] == [0, 0, 0.9]
    optimizer.zero_grad()
    assert a.grad is None and b.grad is None


def test_state_dict_has_pytorchs_layout() -> None:
    model = nn.Linear(2, 2)
    optimizer = optim.Adam(model.named_parameters())
    model(vesta.ones(1, 2)).sum().backward()
    optimizer.step()
    state = optimizer.state_dict()
    assert list(state) == ["state", "param_groups"] and list(state["state"]) == [0, 1]
    assert set(state["state"][0]) == {"step", "exp_avg", "exp_avg_sq"}
    group = state["param_groups"][0]
    assert group["params"] == [0, 1] and group["param_names"] == ["weight", "bias"] and group["lr"] == 1e-3
    assert optim.SGD(weights(), lr=0.1).state_dict()["state"] == {}
    assert repr(optim.SGD(weights(1), lr=0.1)).startswith("SGD (\nParameter Group 0\n    dampening: 0\n")


@pytest.mark.parametrize("way", ["load", "pickle", "deepcopy"])
def test_training_goes_on_from_saved_state(way: str) -> None:
    parameters = weights()
    optimizer = optim.AdamW(parameters, lr=0.1)
    step_all(optimizer, 0.5)
    if way == "load":
        copies = [nn.Parameter(p.detach().clone()) for p in parameters]
        other = optim.AdamW(copies, lr=9.0)
        other.load_state_dict(optimizer.state_dict())
    else:
        other = copy.deepcopy(optimizer) if way == "deepcopy" else pickle.loads(pickle.dumps(optimizer))
        copies = other.param_groups[0]["params"]
    step_all(other, 2.0)
    assert parameters[0].tolist() != copies[0].tolist()
    step_all(optimizer, 2.0)
    assert [p.tolist() for p in parameters] == [p.tolist() for p in copies]


def test_loading_is_all_or_nothing() -> None:
    parameters = weights(2)
    optimizer = optim.Adam([("first", parameters[0]), ("second", parameters[1])], lr=0.1)
    step_all(optimizer)
    good = copy.deepcopy(optimizer.state_dict())
    before = optimizer.state[parameters[0]]["exp_avg"].tolist()

    def broken(change) -> dict:
        state = copy.deepcopy(good)
        change(state)
        state["state"][0]["exp_avg"] = vesta.zeros(2, 2)
        return state

    for change, message in (
        (lambda s: s["state"][1].update(exp_avg=vesta.ones(3)), "exp_avg of 'second'"),
        (lambda s: s["param_groups"][0].update(params=[0]), "doesn't match the size"),
        (lambda s: s["param_groups"].append({"params": []}), "different number of parameter groups"),
        (lambda s: s["state"].update({7: {}}), "parameters 0 to 1"),
    ):
        with pytest.raises(ValueError, match=message):
            optimizer.load_state_dict(broken(change))
        assert optimizer.state[parameters[0]]["exp_avg"].tolist() == before
    with pytest.raises(TypeError):
        optimizer.load_state_dict({})
    optimizer.load_state_dict(good)
    step_all(optimizer)
    assert good["state"][0]["step"].item() == 1.0  # training does not change the loaded dict


@pytest.mark.differs
def test_bad_arguments() -> None:
    p = weights(1)[0]
    for error, wrong in (
        (TypeError, lambda: optim.SGD(p)), (TypeError, lambda: optim.SGD([1])),
        (TypeError, lambda: optim.SGD([{"params": {p}}])), (ValueError, lambda: optim.SGD([])),
        (ValueError, lambda: optim.SGD([p, p])), (ValueError, lambda: optim.SGD([{"params": [p]}, {"params": [p]}])),
        (ValueError, lambda: optim.SGD([p * 2])), (ValueError, lambda: optim.SGD([p], lr=-1.0)),
        (ValueError, lambda: optim.SGD([p], nesterov=True)), (ValueError, lambda: optim.Adam([p], betas=(1.0, 0.9))),
        (ValueError, lambda: optim.Adam([p], lr=float("nan"))), (ValueError, lambda: optim.Adam([("a", p), p])),
        (NotImplementedError, lambda: optim.Adam([p], capturable=True)),
    ):  # fmt: skip
        with pytest.raises(error):
            wrong()


def test_closures_hooks_and_own_steps() -> None:
    parameter, seen = weights(1)[0], []

    class Loud(optim.SGD):
        def step(self, closure=None):
            seen.append("step")
            return super().step(closure)

    optimizer = Loud([parameter], lr=1.0)
    optimizer.register_step_pre_hook(lambda *args: seen.append("before"))
    handle = optimizer.register_step_post_hook(lambda *args: seen.append("after"))

    def closure():
        optimizer.zero_grad()
        loss = (parameter * 2).sum()
        loss.backward()
        return loss

    with vesta.no_grad():
        assert optimizer.step(closure).item() == 8.0
    assert seen == ["before", "step", "after"] and parameter.tolist()[0] == [-1.0, -1.0]
    handle.remove()
    optimizer.step()
    assert seen[3:] == ["before", "step"]

    class Plain(optim.Optimizer):
        def step(self) -> None:
            with vesta.no_grad():
                for p in self.param_groups[0]["params"]:
                    p.add_(1.0)

    Plain([parameter], {}).step()
    assert parameter.requires_grad


# ---- schedules ----


def rates(make, steps: int = 6, lr: float = 1.0) -> list[float]:
    optimizer = optim.SGD(weights(1), lr=lr)
    schedule = make(optimizer)
    found = schedule.get_last_lr()[:]
    for _ in range(steps):
        optimizer.step()
        schedule.step()
        found += schedule.get_last_lr()
    return found


@pytest.mark.parametrize("make, expected", [
    (lambda o: lr_scheduler.LambdaLR(o, lambda t: 1 / (1 + t)), [1 / (1 + t) for t in range(7)]),
    (lambda o: lr_scheduler.StepLR(o, 2, 0.5), [1, 1, 0.5, 0.5, 0.25, 0.25, 0.125]),
    (lambda o: lr_scheduler.MultiStepLR(o, [1, 4, 4], 0.1), [1, 0.1, 0.1, 0.1, 1e-3, 1e-3, 1e-3]),
    (lambda o: lr_scheduler.ExponentialLR(o, 0.5), [0.5**t for t in range(7)]),
    (lambda o: lr_scheduler.ConstantLR(o, 0.5, 2), [0.5, 0.5, 1, 1, 1, 1, 1]),
    (lambda o: lr_scheduler.LinearLR(o, 0.2, 1.0, 4), [0.2, 0.4, 0.6, 0.8, 1, 1, 1]),
    (lambda o: lr_scheduler.PolynomialLR(o, 4, 2.0), [(1 - min(t, 4) / 4) ** 2 for t in range(7)]),
    (lambda o: lr_scheduler.CosineAnnealingLR(o, 6), [(1 + math.cos(math.pi * t / 6)) / 2 for t in range(7)]),
    (lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 2), [1, 0.5, 1, 0.5, 1, 0.5, 1]),
    (lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.LinearLR(o, 0.5, total_iters=2),
                                             lr_scheduler.ExponentialLR(o, 0.5)], [3]),
     [0.5, 0.75, 1, 1, 0.5, 0.25, 0.125]),
])  # fmt: skip
def test_schedules_follow_their_formulas(make, expected: list[float]) -> None:
    assert rates(make) == pytest.approx(expected, abs=1e-12)


def test_one_cycle_moves_rate_and_momentum() -> None:
    optimizer = optim.SGD(weights(1), lr=0.1, momentum=0.9)
    schedule = lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=10)
    seen = []
    for _ in range(9):
        optimizer.step()
        schedule.step()
        seen.append((optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["momentum"]))
    assert seen[1] == pytest.approx((1.0, 0.85)) and seen[-1] == pytest.approx((0.04 / 1e4, 0.95))
    with pytest.raises(ValueError, match="total_steps"):
        lr_scheduler.OneCycleLR(optimizer, max_lr=1.0)


def test_plateau_waits_and_saves() -> None:
    optimizer = optim.SGD(weights(1), lr=1.0)
    schedule = lr_scheduler.ReduceLROnPlateau(optimizer, patience=1, factor=0.5, min_lr=0.3)
    for metric, expected in ((1.0, 1.0), (1.0, 1.0), (1.0, 0.5), (0.5, 0.5), (0.6, 0.5), (0.6, 0.3)):
        schedule.step(vesta.tensor(metric))
        assert schedule.get_last_lr() == [expected]
    other = lr_scheduler.ReduceLROnPlateau(optimizer)
    other.load_state_dict(schedule.state_dict())
    assert other.best == 0.5 and other.factor == 0.5


def test_schedule_before_optimizer_warns() -> None:
    schedule = lr_scheduler.StepLR(optim.SGD(weights(1), lr=1.0), 1)
    with pytest.warns(UserWarning, match=r"before `optimizer.step\(\)`"):
        schedule.step()


def test_hooks_see_the_optimizer_among_the_arguments() -> None:
    parameter, seen = weights(1)[0], []
    parameter.grad = vesta.ones_like(parameter)
    optimizer = optim.SGD([parameter], lr=1.0)
    optimizer.register_step_pre_hook(lambda owner, args, kwargs: seen.append((owner, args, kwargs)) or (args, kwargs))
    optimizer.register_step_post_hook(lambda owner, args, kwargs: seen.append((owner, args, kwargs)))
    optimizer.step()
    assert seen == [(optimizer, (optimizer,), {})] * 2


def test_groups_print_and_load_in_their_order() -> None:
    a, b = weights(2)
    optimizer = optim.SGD([{"params": [a], "lr": 0.5, "name": "first"}, {"params": [b]}], lr=0.1)
    order = ["lr", "name", *[name for name in optimizer.defaults if name != "lr"], "params"]
    assert list(optimizer.state_dict()["param_groups"][0]) == order
    optimizer.load_state_dict(optimizer.state_dict())
    assert list(optimizer.state_dict()["param_groups"][0]) == order
    assert "weight_decay: 0\n\nParameter Group 1\n" in repr(optimizer)


def test_parameters_may_be_a_set_as_long_as_it_is_no_groups() -> None:
    a, b = weights(2)
    optimizer = optim.SGD({a, b} - {b}, lr=0.1)
    assert optimizer.param_groups[0]["params"] == [a]
    with pytest.raises(TypeError, match="ordered collections"):
        optim.SGD([{"params": {a}}], lr=0.1)


def test_schedules_know_that_they_are_in_a_step() -> None:
    seen = []

    class Own(optim.lr_scheduler.LRScheduler):
        def get_lr(self) -> list[float]:
            seen.append((self._get_lr_called_within_step, self._is_initial))
            return [group["lr"] for group in self.optimizer.param_groups]

    optimizer = optim.SGD(weights(1), lr=1.0, momentum=0.9)
    schedule = Own(optimizer)
    optimizer.step()
    schedule.step()
    schedule.get_lr()
    assert seen == [(True, True), (True, False), (False, False)]
    last = ["base_lrs", "last_epoch", "_step_count", "_is_initial", "_get_lr_called_within_step", "_last_lr"]
    assert list(schedule.state_dict()) == last
    one = optim.lr_scheduler.OneCycleLR(optimizer, 1.0, total_steps=4)
    own = ["total_steps", "_schedule_phases", "_anneal_func_type", "cycle_momentum", "use_beta1"]
    assert list(one.state_dict()) == own + last
    warm = optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 2)
    assert list(warm.state_dict())[-6:] == last
    cyclic = optim.lr_scheduler.CyclicLR(optimizer, 0.1, 1.0)
    assert list(cyclic.state_dict())[-7:] == [*last, "_scale_fn_custom"]


def test_a_subclass_reduces_rates_its_own_way() -> None:
    class Noting(vesta.optim.lr_scheduler.ReduceLROnPlateau):
        def _reduce_lr(self, epoch: int) -> None:
            epochs.append(epoch)
            super()._reduce_lr(epoch)

    epochs: list[int] = []
    optimizer = vesta.optim.SGD([vesta.ones(1, requires_grad=True)], lr=1.0)
    schedule = Noting(optimizer, factor=0.5, patience=0)
    for _ in range(3):
        schedule.step(1.0)
    assert epochs == [2, 3] and optimizer.param_groups[0]["lr"] == 0.25
