"""Measures the error of functions of float32 tensors in units in the last place, against the same function of float64.

    .venv/bin/python benchmarks/accuracy.py [--torch-python VENV/bin/python] [--samples N] [NAME ...]

A unit in the last place (ULP) is the distance of float32 numbers at the exact result; 0.5 is a correctly rounded one.
Arguments are drawn from the range that is printed, a third evenly, the rest with evenly drawn exponents. Rows have 1000
elements. docs/accuracy.md has the table; tests/python/test_accuracy.py holds the library to it.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Case:
    """A function, the ranges of its arguments, and whether its gradient is measured instead."""

    call: Callable[..., Any]  # of the library and its tensors
    ranges: tuple[tuple[float, float], ...]
    gradient: bool = False


ALL = (-3.0e38, 3.0e38)
POSITIVE = (1.2e-38, 3.0e38)  # normal numbers

CASES = {
    "exp": Case(lambda lib, x: lib.exp(x), ((-87.0, 88.0),)),
    "exp2": Case(lambda lib, x: lib.exp2(x), ((-125.0, 127.0),)),
    "expm1": Case(lambda lib, x: lib.expm1(x), ((-87.0, 88.0),)),
    "log": Case(lambda lib, x: lib.log(x), (POSITIVE,)),
    "log2": Case(lambda lib, x: lib.log2(x), (POSITIVE,)),
    "log10": Case(lambda lib, x: lib.log10(x), (POSITIVE,)),
    "log1p": Case(lambda lib, x: lib.log1p(x), ((-0.999, 3.0e38),)),
    "sqrt": Case(lambda lib, x: lib.sqrt(x), (POSITIVE,)),
    "rsqrt": Case(lambda lib, x: lib.rsqrt(x), (POSITIVE,)),
    "x ** y": Case(lambda lib, x, y: lib.pow(x, y), ((1e-3, 1e3), (-10.0, 10.0))),
    "x ** 3": Case(lambda lib, x: x**3, ((-1e12, 1e12),)),
    "sin": Case(lambda lib, x: lib.sin(x), ((-1e5, 1e5),)),
    "cos": Case(lambda lib, x: lib.cos(x), ((-1e5, 1e5),)),
    "tan": Case(lambda lib, x: lib.tan(x), ((-1e5, 1e5),)),
    "asin": Case(lambda lib, x: lib.asin(x), ((-1.0, 1.0),)),
    "acos": Case(lambda lib, x: lib.acos(x), ((-1.0, 1.0),)),
    "atan": Case(lambda lib, x: lib.atan(x), (ALL,)),
    "atan2": Case(lambda lib, y, x: lib.atan2(y, x), ((-1e10, 1e10), (-1e10, 1e10))),
    "sinh": Case(lambda lib, x: lib.sinh(x), ((-88.0, 88.0),)),
    "cosh": Case(lambda lib, x: lib.cosh(x), ((-88.0, 88.0),)),
    "tanh": Case(lambda lib, x: lib.tanh(x), ((-20.0, 20.0),)),
    "asinh": Case(lambda lib, x: lib.asinh(x), ((-1e18, 1e18),)),
    "acosh": Case(lambda lib, x: lib.acosh(x), ((1.0, 1e18),)),
    "atanh": Case(lambda lib, x: lib.atanh(x), ((-0.9999, 0.9999),)),
    "hypot": Case(lambda lib, x, y: lib.hypot(x, y), ((-1e18, 1e18), (-1e18, 1e18))),
    "sigmoid": Case(lambda lib, x: lib.sigmoid(x), ((-87.0, 87.0),)),
    "logsigmoid": Case(lambda lib, x: lib.nn.functional.logsigmoid(x), ((-1e4, 87.0),)),
    "softplus": Case(lambda lib, x: lib.nn.functional.softplus(x), ((-87.0, 1e4),)),
    "silu": Case(lambda lib, x: lib.nn.functional.silu(x), ((-80.0, 1e4),)),
    "mish": Case(lambda lib, x: lib.nn.functional.mish(x), ((-80.0, 1e4),)),
    "elu": Case(lambda lib, x: lib.nn.functional.elu(x), ((-1e4, 1e4),)),
    "gelu": Case(lambda lib, x: lib.nn.functional.gelu(x), ((-10.0, 1e4),)),
    "gelu, gradient": Case(lambda lib, x: lib.nn.functional.gelu(x), ((0.0, 12.0),), gradient=True),
    "gelu, tanh": Case(lambda lib, x: lib.nn.functional.gelu(x, approximate="tanh"), ((-3.0, 1e4),)),
    "erf": Case(lambda lib, x: lib.erf(x), ((-10.0, 10.0),)),
    "erfc": Case(lambda lib, x: lib.erfc(x), ((-9.0, 9.0),)),
    "erfinv": Case(lambda lib, x: lib.erfinv(x), ((-0.99999, 0.99999),)),
    "lgamma, x > 3": Case(lambda lib, x: lib.lgamma(x), ((3.0, 1e30),)),
    "digamma, x > 2": Case(lambda lib, x: lib.digamma(x), ((2.0, 1e30),)),
    "polygamma(1)": Case(lambda lib, x: lib.polygamma(1, x), ((1e-15, 1e30),)),
    "special.ndtr": Case(lambda lib, x: lib.special.ndtr(x), ((-12.0, 12.0),)),
    "special.i0": Case(lambda lib, x: lib.special.i0(x), ((-85.0, 85.0),)),
    "special.i1": Case(lambda lib, x: lib.special.i1(x), ((-85.0, 85.0),)),
    "logaddexp": Case(lambda lib, x, y: lib.logaddexp(x, y), ((1.0, 1e4), (1.0, 1e4))),
    "softmax": Case(lambda lib, x: rows(x).softmax(1).flatten(), ((-20.0, 20.0),)),
    "logsumexp": Case(lambda lib, x: rows(x).logsumexp(1), ((-20.0, 20.0),)),
    "sum": Case(lambda lib, x: rows(x).sum(1), ((0.0, 1.0),)),
    "mean": Case(lambda lib, x: rows(x).mean(1), ((0.0, 1.0),)),
    "var": Case(lambda lib, x: rows(x).var(1), ((-1.0, 1.0),)),
    "norm": Case(lambda lib, x: rows(x).norm(dim=1), ((-1.0, 1.0),)),
}


def rows(x: Any) -> Any:
    """Rows of 1000 elements of a vector."""
    return x[: x.shape[0] // 1000 * 1000].reshape(-1, 1000)


def draw(generator: np.random.Generator, low: float, high: float, count: int) -> np.ndarray:
    """Numbers of float32 between low and high: a third evenly, the rest with evenly drawn exponents."""
    even = generator.uniform(low, high, count // 3)
    rest = count - count // 3
    smallest = low if low > 0 else 1e-30
    magnitude = np.exp2(generator.uniform(np.log2(smallest), np.log2(max(abs(low), abs(high))), rest))
    sign = np.where(generator.random(rest) < 0.5, -1.0, 1.0) if low < 0 else 1.0
    x = np.concatenate([even, magnitude * sign]).astype(np.float32)
    generator.shuffle(x)
    return np.clip(x, np.float32(low), np.float32(high))


def evaluate(lib: Any, case: Case, arrays: list[np.ndarray]) -> np.ndarray:
    """Values of a case, or of its gradient in the first argument, in the arrays' dtype."""
    tensors = [lib.from_numpy(a.copy()) for a in arrays]
    if not case.gradient:
        return case.call(lib, *tensors).numpy()
    tensors[0].requires_grad_()
    case.call(lib, *tensors).sum().backward()
    return tensors[0].grad.numpy()


def error(lib: Any, name: str, samples: int = 300_000, seed: int = 0) -> tuple[float, float]:
    """The largest error of a case in ULP, and the first argument that has it (of rows: 0)."""
    case = CASES[name]
    generator = np.random.default_rng(seed)
    arrays = [draw(generator, low, high, samples) for low, high in case.ranges]
    got = evaluate(lib, case, arrays).astype(np.float64)
    exact = evaluate(lib, case, [a.astype(np.float64) for a in arrays])
    finite = np.abs(exact) < np.finfo(np.float32).max
    ulp = np.spacing(np.maximum(np.abs(exact), np.finfo(np.float32).tiny).clip(max=3.4e38).astype(np.float32))
    errors = np.abs(got - exact) / ulp.astype(np.float64)
    errors = np.where(finite, np.where(np.isfinite(got), errors, np.inf), 0.0)
    worst = int(errors.argmax())
    return float(errors[worst]), float(arrays[0][worst]) if len(errors) == len(arrays[0]) else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--library", default="vesta")
    parser.add_argument("--torch-python", help="an interpreter that has PyTorch")
    parser.add_argument("--samples", type=int, default=3_000_000)
    parser.add_argument("--json", action="store_true", help="print the figures alone")
    args = parser.parse_args()
    names = args.names or list(CASES)
    lib = importlib.import_module(args.library)
    here = {name: error(lib, name, args.samples) for name in names}
    if args.json:
        print(json.dumps(here))
        return
    there = {}
    if args.torch_python:
        command = [args.torch_python, __file__, "--library", "torch", "--json", "--samples", str(args.samples), *names]
        there = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    print(f"{'function':18}{'range':26}{args.library + ', ULP':>12}{'at':>14}{'torch, ULP':>14}")
    for name in names:
        low, high = CASES[name].ranges[0]
        ulp, at = here[name]
        arguments = f"[{low:g}, {high:g}]"
        other = f"{there[name][0]:14.2f}" if name in there else ""
        print(f"{name:18}{arguments:26}{ulp:12.2f}{at:14.6g}{other}")


if __name__ == "__main__":
    sys.exit(main())
