"""Training runs and schedules that both libraries make, from the same start; the results in plain data."""

from __future__ import annotations

import random
import warnings
from typing import Any, Callable

#: Optimizers with their options.
OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.1, "weight_decay": 0.1, "amsgrad": True}),
    ("AdamW", {"lr": 0.1}),
    ("RMSprop", {"momentum": 0.5, "centered": True}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.8, "weight_decay": 0.1, "maximize": True}),
    ("Adagrad", {}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5}),
    ("Adamax", {}),
    ("Adamax", {"betas": (0.5, 0.6), "weight_decay": 0.3}),
    ("ASGD", {}),
    ("ASGD", {"lr": 0.1, "lambd": 0.1, "t0": 2, "alpha": 0.5, "weight_decay": 0.1}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {}),
    ("RAdam", {"lr": 0.1, "betas": (0.9, 0.9), "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("Rprop", {}),
    ("Rprop", {"lr": 0.1, "etas": (0.4, 1.5), "step_sizes": (1e-3, 0.2)}),
    ("Adafactor", {}),
    ("Adafactor", {"lr": 0.3, "weight_decay": 0.1, "d": 2.0, "beta2_decay": -0.5, "eps": (1e-10, 1e-2)}),
    ("Muon", {"lr": 0.01}),
    ("Muon", {"lr": 0.01, "nesterov": False, "adjust_lr_fn": "match_rms_adamw"}),
    ("Muon", {"lr": 0.01, "adjust_lr_fn": "spectral_unclamped"}),
    ("LBFGS", {}),
    ("LBFGS", {"lr": 0.5, "max_iter": 4, "history_size": 3}),
    ("LBFGS", {"line_search_fn": "strong_wolfe", "max_iter": 5}),
    ("LBFGS", {"line_search_fn": "strong_wolfe", "history_size": 2, "lr": 3.0}),
]

_CYCLE = {"base_lr": 0.1, "max_lr": 1.0, "step_size_up": 3, "step_size_down": 4}
#: Schedules with their arguments.
SCHEDULES: list[tuple[str, dict[str, Any]]] = [
    *(("CyclicLR", {**_CYCLE, "mode": mode, "gamma": 0.9}) for mode in ("triangular", "triangular2", "exp_range")),
    ("StepLR", {"step_size": 3}),
    ("MultiStepLR", {"milestones": [2, 5, 5]}),
    ("ConstantLR", {}),
    ("LinearLR", {}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("PolynomialLR", {"power": 2.0}),
    ("CosineAnnealingLR", {"T_max": 4}),
    ("CosineAnnealingWarmRestarts", {"T_0": 3, "T_mult": 2, "eta_min": 0.01}),
    ("OneCycleLR", {"max_lr": 1.0, "total_steps": 20}),
    ("OneCycleLR", {"max_lr": 1.0, "total_steps": 20, "three_phase": True, "anneal_strategy": "linear"}),
    ("SWALR", {"swa_lr": 0.05, "anneal_epochs": 4}),
    ("SWALR", {"swa_lr": 0.05, "anneal_epochs": 0}),
    ("SWALR", {"swa_lr": [0.05], "anneal_epochs": 5, "anneal_strategy": "linear"}),
]


def name_of(case: tuple[str, dict[str, Any]]) -> str:
    """Returns a case as a call."""
    return f"{case[0]}({', '.join(f'{key}={value}' for key, value in case[1].items())})"


def _tensor(lib: Any, *shape: int) -> Any:
    dice = random.Random(repr(shape))
    count = 1
    for size in shape:
        count *= size
    return lib.tensor([dice.gauss(0, 1) for _ in range(count)], dtype=lib.float64).reshape(shape)


def train(lib: Any, name: str, options: dict[str, Any], steps: int = 6) -> dict[str, Any]:
    """Trains a small model in float64; returns its parameters after each step, and what the optimizer's state holds."""
    weight, bias = lib.nn.Parameter(_tensor(lib, 4, 3)), lib.nn.Parameter(_tensor(lib, 3))
    x, y = _tensor(lib, 10, 4), _tensor(lib, 10, 3)
    parameters = [weight] if name == "Muon" else [weight, bias]
    optimizer = getattr(lib.optim, name)(parameters, **options)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = ((x @ weight + bias - y) ** 2).mean() + (weight**4).sum() * 0.1
        loss.backward()
        return loss

    after = []
    for _ in range(steps):
        if name == "LBFGS":
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
        after.append([float(f"{v:.12g}") for p in parameters for v in p.detach().reshape(-1).tolist()])
    saved = optimizer.state_dict()
    state = {
        key: [str(value.dtype).partition(".")[2], list(value.shape)] if isinstance(value, lib.Tensor) else None
        for key, value in saved["state"][0].items()
    }
    return {"after": after, "state": state, "options": sorted(saved["param_groups"][0])}


def rates(lib: Any, name: str, arguments: dict[str, Any], steps: int = 12) -> list[list[float]]:
    """Returns learning rate and momentum before each step."""
    optimizer = lib.optim.SGD([lib.nn.Parameter(lib.ones(1))], lr=0.5, momentum=0.9)
    make: Callable[..., Any] = getattr(lib.optim.swa_utils if name == "SWALR" else lib.optim.lr_scheduler, name)
    schedule = make(optimizer, **arguments)
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(steps):
            group = optimizer.param_groups[0]
            seen.append([float(f"{group[key]:.12g}") for key in ("lr", "momentum")])
            optimizer.step()
            schedule.step()
    return seen
