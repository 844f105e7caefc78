"""Functions of one variable, with the source that calls them and their first and second derivative."""

from __future__ import annotations

import numpy as np

sigmoid = lambda x: 1 / (1 + np.exp(-x))
one, zero = np.ones_like, np.zeros_like
UNARY: dict[str, tuple] = {
    "{0}.sin()": (np.sin, np.cos, lambda x: -np.sin(x)),
    "m.cos({0})": (np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x)),
    "{0}.tanh()": (np.tanh, lambda x: 1 - np.tanh(x) ** 2, lambda x: -2 * np.tanh(x) * (1 - np.tanh(x) ** 2)),
    "{0}.sigmoid()": (
        sigmoid,
        lambda x: sigmoid(x) * (1 - sigmoid(x)),
        lambda x: sigmoid(x) * (1 - sigmoid(x)) * (1 - 2 * sigmoid(x)),
    ),
    "{0}.exp()": (np.exp, np.exp, np.exp),
    "-{0}": (lambda x: -x, lambda x: -one(x), zero),
    "{0}.square()": (np.square, lambda x: 2 * x, lambda x: 2 * one(x)),
    "{0}**3": (lambda x: x**3, lambda x: 3 * x**2, lambda x: 6 * x),
    "m.sqrt({0} * {0} + 0.25)": (
        lambda x: np.sqrt(x * x + 0.25),
        lambda x: x / np.sqrt(x * x + 0.25),
        lambda x: 0.25 / (x * x + 0.25) ** 1.5,
    ),
    "({0} * {0} + 0.5).log()": (
        lambda x: np.log(x * x + 0.5),
        lambda x: 2 * x / (x * x + 0.5),
        lambda x: (2 * (x * x + 0.5) - 4 * x * x) / (x * x + 0.5) ** 2,
    ),
    "m.reciprocal({0} * {0} + 0.5)": (
        lambda x: 1 / (x * x + 0.5),
        lambda x: -2 * x / (x * x + 0.5) ** 2,
        lambda x: (6 * x * x - 1) / (x * x + 0.5) ** 3,
    ),
    "m.nn.functional.softplus({0})": (
        lambda x: np.log1p(np.exp(x)),
        sigmoid,
        lambda x: sigmoid(x) * (1 - sigmoid(x)),
    ),
    "2.5 * {0}": (lambda x: 2.5 * x, lambda x: 2.5 * one(x), zero),
    "1.5 - {0}": (lambda x: 1.5 - x, lambda x: -one(x), zero),
    "{0} / 3.0": (lambda x: x / 3.0, lambda x: one(x) / 3.0, zero),
    "Cube.apply({0})": (lambda x: x**3, lambda x: 3 * x**2, lambda x: 6 * x),
    "packed(m, lambda x: x * x.sin(), {0})": (
        lambda x: x * np.sin(x),
        lambda x: np.sin(x) + x * np.cos(x),
        lambda x: 2 * np.cos(x) - x * np.sin(x),
    ),
    "{0}.clone()": (lambda x: x.copy(), one, zero),
    "{0}.contiguous().mul(1.0)": (lambda x: x.copy(), one, zero),
}
#: In-place functions of one variable, by method.
UNARY_WRITES = {
    "sin_": UNARY["{0}.sin()"],
    "tanh_": UNARY["{0}.tanh()"],
    "sigmoid_": UNARY["{0}.sigmoid()"],
    "exp_": UNARY["{0}.exp()"],
    "neg_": UNARY["-{0}"],
    "square_": UNARY["{0}.square()"],
}
#: Functions with a corner: source, f, the slope, and where the corners are.
CORNERED: dict[str, tuple] = {
    "{0}.relu()": (lambda x: np.maximum(x, 0), lambda x: (x > 0) * 1.0, (0,)),
    "{0}.abs()": (np.abs, np.sign, (0,)),
    "{0}.clamp(-1, 1.5)": (lambda x: np.clip(x, -1, 1.5), lambda x: ((x > -1) & (x < 1.5)) * 1.0, (-1, 1.5)),
    "m.nn.functional.leaky_relu({0}, 0.1)": (
        lambda x: np.where(x > 0, x, 0.1 * x),
        lambda x: np.where(x > 0, 1.0, 0.1),
        (0,),
    ),
}
CORNERED_WRITES = {"relu_": CORNERED["{0}.relu()"], "abs_": CORNERED["{0}.abs()"]}
LOG = (np.log, lambda x: 1 / x, lambda x: -1 / x**2)
ROOT = (np.sqrt, lambda x: 0.5 / np.sqrt(x), lambda x: -0.25 * x**-1.5)
