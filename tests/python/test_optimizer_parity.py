"""The optimizers of both languages: the same steps, states and names from the same gradients."""

from __future__ import annotations

from typing import Any

import pytest
import vesta
from vesta import Tensor, optim

cpp = vesta._C.cpp_nn

#: Names and options in C++'s terms.
ROWS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5, "maximize": True}),
    ("Adam", {"lr": 0.1, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.1, "beta1": 0.5, "beta2": 0.9, "amsgrad": True}),
    ("AdamW", {"lr": 0.1}),
    ("RMSprop", {"lr": 0.1, "momentum": 0.5, "centered": True}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5}),
    ("Adadelta", {"lr": 0.5, "rho": 0.8}),
    ("Adamax", {"lr": 0.1, "maximize": True}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"lr": 0.1, "weight_decay": 0.1, "beta2": 0.9}),
    ("ASGD", {"lr": 0.1, "t0": 2}),
    ("Rprop", {"lr": 0.1, "min_step": 0.01, "max_step": 0.15}),
]
#: Python's tuples, from C++'s numbers.
PAIRS = {
    "betas": ("beta1", "beta2", (0.9, 0.999)),
    "etas": ("etaminus", "etaplus", (0.5, 1.2)),
    "step_sizes": ("min_step", "max_step", (1e-6, 50)),
}


def python_options(options: dict[str, Any]) -> dict[str, Any]:
    """Returns the options in Python's terms."""
    given = dict(options)
    for name, (first, second, default) in PAIRS.items():
        if first in given or second in given:
            given[name] = (given.pop(first, default[0]), given.pop(second, default[1]))
    return given


def parameters() -> list[Tensor]:
    vesta.manual_seed(3)
    return [vesta.randn(3, 4).requires_grad_(), vesta.randn(5).requires_grad_(), vesta.randn(2).requires_grad_()]


def give_gradients(params: list[Tensor], seed: int) -> None:
    """Gives gradients to all parameters but the last, which gets its first one in the third step."""
    vesta.manual_seed(seed)
    for i, p in enumerate(params):
        grad = vesta.randn_like(p).detach()
        p.grad = grad if i < 2 or seed > 1 else None


def same_bits(a: Tensor, b: Tensor) -> bool:
    return a.dtype == b.dtype and a.detach().numpy().tobytes() == b.detach().numpy().tobytes()


@pytest.mark.parametrize(("name", "options"), ROWS, ids=[f"{name}-{len(options)}" for name, options in ROWS])
def test_steps_and_states(name: str, options: dict[str, Any]) -> None:
    mine, theirs = parameters(), parameters()
    python, other = getattr(optim, name)(mine, **python_options(options)), getattr(cpp, name)(theirs, **options)
    for step in range(6):
        give_gradients(mine, step)
        give_gradients(theirs, step)
        python.step()
        other.step()
        assert all(same_bits(p, q) for p, q in zip(mine, theirs)), step
    states = other.state_dict()
    for i, kept in python.state_dict()["state"].items():
        for key, value in kept.items():
            if isinstance(value, Tensor):
                assert same_bits(value, states[f"state.{i}.{key}"]), key


@pytest.mark.parametrize(("name", "options"), ROWS, ids=[f"{name}-{len(options)}" for name, options in ROWS])
def test_a_state_dict_continues(name: str, options: dict[str, Any]) -> None:
    """Another optimizer of the class, with other options, takes over where the first stopped."""
    params, other = parameters(), parameters()
    first, second = getattr(cpp, name)(params, **options), getattr(cpp, name)(other)
    for step in range(3):
        give_gradients(params, step)
        first.step()
    for p, q in zip(params, other):
        q.detach().copy_(p.detach())
    second.load_state_dict({key: value.clone() for key, value in first.state_dict().items()})
    for step in range(3, 6):
        give_gradients(params, step)
        give_gradients(other, step)
        first.step()
        second.step()
    assert all(same_bits(p, q) for p, q in zip(params, other))


def test_state_dicts_that_do_not_fit() -> None:
    optimizer = cpp.Adam(parameters())
    for wrong in (
        {"state.9.exp_avg": vesta.zeros(5)},
        {"state.0.exp_avg": vesta.zeros(5)},
        {"param_groups.0.speed": vesta.tensor(1.0)},
        {"param_groups.1.lr": vesta.tensor(1.0)},
        {"lr": vesta.tensor(1.0)},
    ):
        with pytest.raises(ValueError, match="load_state_dict"):
            optimizer.load_state_dict({"param_groups.0.lr": vesta.tensor(5.0), **wrong})
    assert float(optimizer.state_dict()["param_groups.0.lr"]) == 1e-3
