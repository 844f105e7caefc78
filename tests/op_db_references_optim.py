"""Optimizers in NumPy: STEPS steps with the same gradient, by the formulas of the papers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

STEPS = 3


def sgd(
    params: list,
    grads: list,
    lr: float,
    momentum: float = 0.0,
    dampening: float = 0.0,
    weight_decay: float = 0.0,
    nesterov: bool = False,
    maximize: bool = False,
) -> list[np.ndarray]:
    """Steps as in Sutskever et al. 2013, in PyTorch's form: buffer = momentum * buffer + g, p -= lr * buffer."""
    made = []
    for p, gradient in zip(params, grads):
        buffer = None
        for _ in range(STEPS):
            g = (-gradient if maximize else gradient) + weight_decay * p
            if momentum:
                buffer = g if buffer is None else momentum * buffer + (1 - dampening) * g
                g = g + momentum * buffer if nesterov else buffer
            p = p - lr * g
        made.append(p)
    return made


def adam(
    params: list,
    grads: list,
    lr: float,
    betas: tuple = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    amsgrad: bool = False,
    maximize: bool = False,
    decoupled: bool = False,
) -> list[np.ndarray]:
    """Steps as in Kingma and Ba 2015; ``decoupled`` decays the weights separately (Loshchilov and Hutter 2019)."""
    made = []
    for p, gradient in zip(params, grads):
        first = second = largest = np.zeros_like(p)
        for step in range(1, STEPS + 1):
            g = -gradient if maximize else gradient
            if decoupled:
                p = p * (1 - lr * weight_decay)
            else:
                g = g + weight_decay * p
            first = betas[0] * first + (1 - betas[0]) * g
            second = betas[1] * second + (1 - betas[1]) * g * g
            largest = np.maximum(largest, second)
            root = np.sqrt((largest if amsgrad else second) / (1 - betas[1] ** step)) + eps
            p = p - lr * first / (1 - betas[0] ** step) / root
        made.append(p)
    return made


def rmsprop(
    params: list,
    grads: list,
    lr: float,
    alpha: float = 0.99,
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    momentum: float = 0.0,
    centered: bool = False,
    maximize: bool = False,
) -> list[np.ndarray]:
    """Steps as in Hinton's lecture 6e, 2012; ``centered`` subtracts the square of the mean gradient (Graves 2013)."""
    made = []
    for p, gradient in zip(params, grads):
        square = mean = buffer = np.zeros_like(p)
        for _ in range(STEPS):
            g = (-gradient if maximize else gradient) + weight_decay * p
            square = alpha * square + (1 - alpha) * g * g
            mean = alpha * mean + (1 - alpha) * g
            buffer = momentum * buffer + g / (np.sqrt(square - mean * mean if centered else square) + eps)
            p = p - lr * buffer
        made.append(p)
    return made


def stepped(rule: Callable[..., np.ndarray]) -> Callable[..., list[np.ndarray]]:
    """Makes of ``rule(p, g, t, state, **options)``, which returns the new p, a function of lists."""

    def run(params: list, grads: list, weight_decay: float = 0.0, maximize: bool = False, **options: Any) -> list:
        made = []
        for p, gradient in zip(params, grads):
            state: dict[str, Any] = {}
            decoupled = options.get("decoupled_weight_decay", False)
            for t in range(1, STEPS + 1):
                if decoupled:
                    p = p * (1 - options["lr"] * weight_decay)
                g = (-gradient if maximize else gradient) + (0.0 if decoupled else weight_decay) * p
                p = rule(p, g, t, state, **{k: v for k, v in options.items() if k != "decoupled_weight_decay"})
            made.append(p)
        return made

    return run


def mean(state: dict[str, Any], name: str, value: Any, beta: float) -> Any:
    """Moves a running mean that starts at 0."""
    state[name] = beta * state.get(name, 0.0) + (1 - beta) * value
    return state[name]


@stepped
def adagrad(p, g, t, s, lr, lr_decay=0.0, initial_accumulator_value=0.0, eps=1e-10):
    s["sum"] = s.get("sum", initial_accumulator_value) + g * g
    return p - lr / (1 + (t - 1) * lr_decay) * g / (np.sqrt(s["sum"]) + eps)


@stepped
def adadelta(p, g, t, s, lr, rho=0.9, eps=1e-6):
    square = mean(s, "square", g * g, rho)
    delta = np.sqrt(s.get("change", 0.0) + eps) / np.sqrt(square + eps) * g
    mean(s, "change", delta * delta, rho)
    return p - lr * delta


@stepped
def adamax(p, g, t, s, lr, betas=(0.9, 0.999), eps=1e-8):
    first = mean(s, "first", g, betas[0])
    s["largest"] = np.maximum(betas[1] * s.get("largest", 0.0), np.abs(g) + eps)
    return p - lr / (1 - betas[0] ** t) * first / s["largest"]


@stepped
def nadam(p, g, t, s, lr, betas=(0.9, 0.999), eps=1e-8, momentum_decay=4e-3):
    mu, after = (betas[0] * (1 - 0.5 * 0.96 ** (k * momentum_decay)) for k in (t, t + 1))
    s["product"] = float(np.float32(s.get("product", 1.0)) * np.float32(mu))  # kept in float32, as in PyTorch
    first, second = mean(s, "first", g, betas[0]), mean(s, "second", g * g, betas[1])
    step = after * first / (1 - s["product"] * after) + (1 - mu) * g / (1 - s["product"])
    return p - lr * step / (np.sqrt(second / (1 - betas[1] ** t)) + eps)


@stepped
def radam(p, g, t, s, lr, betas=(0.9, 0.999), eps=1e-8):
    first, second = mean(s, "first", g, betas[0]), mean(s, "second", g * g, betas[1])
    first = first / (1 - betas[0] ** t)
    longest = 2 / (1 - betas[1]) - 1
    length = longest - 2 * t * betas[1] ** t / (1 - betas[1] ** t)
    if length <= 5:
        return p - lr * first
    rectified = np.sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length))
    return p - lr * first * rectified * np.sqrt(1 - betas[1] ** t) / (np.sqrt(second) + eps)


@stepped
def asgd(p, g, t, s, lr, lambd=1e-4, alpha=0.75, t0=1e6):
    eta = float(np.float32(lr / (1 + lambd * lr * (t - 1)) ** alpha))  # kept in float32, as in PyTorch
    return p * (1 - lambd * eta) - eta * g


@stepped
def rprop(p, g, t, s, lr, etas=(0.5, 1.2), step_sizes=(1e-6, 50.0)):
    turn = np.sign(g * s.get("previous", np.zeros_like(g)))
    size = s.get("size", np.full_like(g, lr)) * np.where(turn > 0, etas[1], np.where(turn < 0, etas[0], 1.0))
    s["size"] = np.clip(size, *step_sizes)
    s["previous"] = np.where(turn < 0, 0.0, g)
    return p - np.sign(s["previous"]) * s["size"]


def list_ops(grads: list[np.ndarray]) -> list[np.ndarray]:
    """Returns a list divided by 4, a list of zeros, and the greatest magnitudes of the given one."""
    norms = np.array([np.abs(g).max(initial=0) for g in grads])
    return [*(g / 4 for g in grads), *(np.zeros_like(g) for g in grads), norms]
