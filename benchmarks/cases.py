"""The cases of compare_torch.py, written once for both libraries: `lib` is `vesta` or `torch`.

A case is a function of `lib` that prepares its data and returns the function to be timed. Cases of one family are
grouped together; the name says what is measured.
"""

from __future__ import annotations

from typing import Any, Callable

Case = Callable[[Any], Callable[[], Any]]
CASES: dict[str, dict[str, Case]] = {}


def case(family: str, name: str) -> Callable[[Case], Case]:
    """Registers a case in the table."""

    def enter(function: Case) -> Case:
        CASES.setdefault(family, {})[name] = function
        return function

    return enter


# ---- small: the cost of one call on 8 floats ----


@case("small", "a + b")
def _(lib):
    a, b = lib.rand(8), lib.rand(8)
    return lambda: a + b


@case("small", "a + b, recorded")
def _(lib):
    a, b = lib.rand(8).requires_grad_(), lib.rand(8)
    return lambda: a + b


@case("small", "(w * x).sum().backward()")
def _(lib):
    w, x = lib.rand(8).requires_grad_(), lib.rand(8)

    def run():
        w.grad = None
        (w * x).sum().backward()

    return run


@case("small", "x * 2.0")
def _(lib):
    x = lib.rand(8)
    return lambda: x * 2.0


@case("small", "x.exp()")
def _(lib):
    x = lib.rand(8)
    return lambda: x.exp()


@case("small", "x.view(2, 4)")
def _(lib):
    x = lib.rand(8)
    return lambda: x.view(2, 4)


@case("small", "x[3]")
def _(lib):
    x = lib.rand(8)
    return lambda: x[3]


@case("small", "8x8 @ 8x8")
def _(lib):
    a, b = lib.rand(8, 8), lib.rand(8, 8)
    return lambda: a @ b


@case("small", "x.sum()")
def _(lib):
    x = lib.rand(8)
    return lambda: x.sum()


@case("small", "zeros(8)")
def _(lib):
    zeros = lib.zeros
    return lambda: zeros(8)


@case("small", "nn.Linear(8, 8)(x)")
def _(lib):
    layer, x = lib.nn.Linear(8, 8), lib.rand(4, 8)
    return lambda: layer(x)


@case("small", "nn.Linear(8, 8)(x), no_grad")
def _(lib):
    layer, x = lib.nn.Linear(8, 8), lib.rand(4, 8)
    for p in layer.parameters():
        p.requires_grad_(False)
    return lambda: layer(x)


# ---- large: element-wise ops and sums ----

MILLION = 1 << 20


def _elementwise(name: str, make: Callable[[Any, Any, Any], Any]) -> None:
    for label, n in (("1M", MILLION), ("16M", 16 * MILLION)):

        def prepare(lib, n=n, make=make):
            x, y = lib.rand(n), lib.rand(n)
            return lambda: make(lib, x, y)

        case("large", f"{name}, {label} floats")(prepare)


_elementwise("x + y", lambda lib, x, y: x + y)
_elementwise("x * 2", lambda lib, x, y: x * 2.0)
_elementwise("exp", lambda lib, x, y: x.exp())
_elementwise("tanh", lambda lib, x, y: x.tanh())
_elementwise("sigmoid", lambda lib, x, y: x.sigmoid())
_elementwise("gelu", lambda lib, x, y: lib.nn.functional.gelu(x))
_elementwise("relu", lambda lib, x, y: x.relu())
_elementwise("x < y", lambda lib, x, y: x < y)
_elementwise("sum", lambda lib, x, y: x.sum())


@case("large", "sum(0), 4096x4096")
def _(lib):
    x = lib.rand(4096, 4096)
    return lambda: x.sum(0)


@case("large", "sum(1), 4096x4096")
def _(lib):
    x = lib.rand(4096, 4096)
    return lambda: x.sum(1)


@case("large", "x.t().contiguous(), 4096x4096")
def _(lib):
    x = lib.rand(4096, 4096)
    return lambda: x.t().contiguous()


@case("large", "softmax(-1), 4096x1024")
def _(lib):
    x = lib.rand(4096, 1024)
    return lambda: x.softmax(-1)


# ---- dense: products and convolutions ----


@case("dense", "matmul 1024")
def _(lib):
    a, b = lib.rand(1024, 1024), lib.rand(1024, 1024)
    return lambda: a @ b


@case("dense", "matmul 128")
def _(lib):
    a, b = lib.rand(128, 128), lib.rand(128, 128)
    return lambda: a @ b


@case("dense", "conv 3x3, 64 -> 64, 16x56x56")
def _(lib):
    x, layer = lib.rand(16, 64, 56, 56), lib.nn.Conv2d(64, 64, 3, padding=1)
    for p in layer.parameters():
        p.requires_grad_(False)
    return lambda: layer(x)


@case("dense", "conv 5x5, 6 -> 16, 64x12x12")
def _(lib):
    x, layer = lib.rand(64, 6, 12, 12), lib.nn.Conv2d(6, 16, 5)
    for p in layer.parameters():
        p.requires_grad_(False)
    return lambda: layer(x)


# ---- training steps ----


def _training(lib, model, x, y):
    optimizer = lib.optim.Adam(model.parameters(), lr=1e-3)
    loss_of = lib.nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()

    return step


@case("training", "MLP 64-64-64-10, tanh, batch 32, Adam")
def _(lib):
    nn = lib.nn
    model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10))
    return _training(lib, model, lib.rand(32, 64), lib.randint(0, 10, (32,)))


@case("training", "LeNet 28x28, batch 64, Adam")
def _(lib):
    nn = lib.nn
    model = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip
    return _training(lib, model, lib.rand(64, 1, 28, 28), lib.randint(0, 10, (64,)))
