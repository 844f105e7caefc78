"""An operation of one's own, twice: in C++ (and CUDA), compiled when it is needed, and in Python.

python examples/extension/squared_relu.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import vesta
from vesta.utils import cpp_extension

SOURCES = Path(__file__).parent


def in_cpp() -> Any:
    """Compiles the operation, which takes some seconds the first time, and returns it."""
    cuda = vesta.cuda.is_available()
    sources = [SOURCES / "squared_relu.cpp", *([SOURCES / "squared_relu.cu"] if cuda else [])]
    flags = ["-DWITH_CUDA"] if cuda else []
    return cpp_extension.load("squared_relu", sources, extra_cflags=flags).squared_relu


@vesta.library.custom_op("examples::squared_relu", mutates_args=())
def squared_relu(x: vesta.Tensor) -> vesta.Tensor:
    """Returns max(x, 0)^2, elementwise: So et al., "Primer", 2021."""
    return x.relu().square()


def _save(ctx: Any, inputs: tuple[vesta.Tensor], output: vesta.Tensor) -> None:
    ctx.save_for_backward(inputs[0])


def _backward(ctx: Any, grad: vesta.Tensor) -> vesta.Tensor:
    x: vesta.Tensor = ctx.saved_tensors[0]
    return grad * 2 * x.relu()


squared_relu.register_autograd(_backward, setup_context=_save)


def main() -> None:
    compiled = in_cpp()
    for device in ("cpu", "cuda") if vesta.cuda.is_available() else ("cpu",):
        x = vesta.randn(3, 4, device=device, dtype=vesta.float64, requires_grad=True)
        for name, op in (("C++", compiled), ("Python", squared_relu)):
            right = vesta.equal(op(x), x.relu() ** 2) and vesta.autograd.gradcheck(op, (x,))
            print(f"{name} on {device}: {'right' if right else 'wrong'}, gradient included")


if __name__ == "__main__":
    main()
