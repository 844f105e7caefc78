"""``torch.testing._internal.common_utils``: what tests of packages take from PyTorch's own tests."""

from __future__ import annotations

import contextlib
import sys
import unittest
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import vesta
from vesta.testing import assert_close, make_tensor

__all__ = [
    "IS_LINUX",
    "IS_MACOS",
    "IS_WINDOWS",
    "TEST_CUDA",
    "TEST_NUMPY",
    "TestCase",
    "freeze_rng_state",
    "make_tensor",
    "run_tests",
    "set_default_dtype",
    "set_rng_seed",
]

IS_LINUX, IS_MACOS, IS_WINDOWS = sys.platform == "linux", False, False
TEST_NUMPY = True
TEST_CUDA = vesta.cuda.is_available()
SEED = 1234


def set_rng_seed(seed: int = SEED) -> None:
    """Seeds the generators of Vesta, of ``random`` and, where it is imported, of NumPy."""
    import random

    vesta.manual_seed(seed)
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)  # type: ignore[attr-defined]


@contextlib.contextmanager
def freeze_rng_state() -> Iterator[None]:
    """Restores the generators of the CPU and the CUDA devices at the end of the block."""
    with vesta.random.fork_rng():
        yield


@contextlib.contextmanager
def set_default_dtype(dtype: Any) -> Iterator[None]:
    """Sets the default dtype in a block."""
    before = vesta.get_default_dtype()
    vesta.set_default_dtype(dtype)
    try:
        yield
    finally:
        vesta.set_default_dtype(before)


def run_tests(argv: list[str] | None = None) -> None:
    """Runs the tests of the program's file, as ``unittest.main()``."""
    unittest.main(argv=argv or sys.argv)


class TestCase(unittest.TestCase):
    """A test case whose ``assertEqual`` compares tensors, and what contains them, by the tolerances of their dtypes."""

    precision = 0.0
    rel_tol = 0.0

    def setUp(self) -> None:
        """Seeds the generators."""
        set_rng_seed()

    def _compare(self, x: Any, y: Any, where: str, **options: Any) -> None:
        if isinstance(x, vesta.Tensor) and isinstance(y, (Sequence, int, float, complex)):
            y = vesta.as_tensor(y, dtype=x.dtype, device=x.device)
        elif isinstance(y, vesta.Tensor) and isinstance(x, (Sequence, int, float, complex)):
            x = vesta.as_tensor(x, dtype=y.dtype, device=y.device)
        if isinstance(x, Mapping) and isinstance(y, Mapping):
            unittest.TestCase.assertEqual(self, set(x), set(y), f"keys{where}")
            for key in x:
                self._compare(x[key], y[key], f"{where}[{key!r}]", **options)
        elif isinstance(x, Sequence) and isinstance(y, Sequence) and not isinstance(x, (str, bytes)):
            unittest.TestCase.assertEqual(self, len(x), len(y), f"lengths{where}")
            for i, (a, b) in enumerate(zip(x, y)):
                self._compare(a, b, f"{where}[{i}]", **options)
        elif _is_number(x) and _is_number(y):
            assert_close(x, y, msg=lambda text: f"{text}{where and f' (at {where})'}", **options)
        else:
            unittest.TestCase.assertEqual(self, x, y, where or None)

    def assertEqual(
        self,
        x: Any,
        y: Any,
        msg: Any = None,
        *,
        atol: float | None = None,
        rtol: float | None = None,
        equal_nan: bool = True,
        exact_dtype: bool = True,
        exact_device: bool = False,
        exact_layout: bool = False,
        exact_stride: bool = False,
    ) -> None:
        """Raises AssertionError unless two values are equal; of tensors and numbers, to the tolerances."""
        if isinstance(atol, (int, float)) and rtol is None:
            rtol = 0.0
        elif isinstance(rtol, (int, float)) and atol is None:
            atol = 0.0
        if atol is None and (self.precision or self.rel_tol):
            atol, rtol = self.precision, self.rel_tol
        try:
            self._compare(
                x,
                y,
                "",
                atol=atol,
                rtol=rtol,
                equal_nan=equal_nan,
                check_dtype=exact_dtype,
                check_device=exact_device,
                check_layout=exact_layout,
                check_stride=exact_stride,
            )
        except AssertionError as error:
            text = msg(str(error)) if callable(msg) else f"{error}\n{msg}" if msg else str(error)
            raise AssertionError(text) from None

    def assertNotEqual(self, x: Any, y: Any, msg: Any = None, **options: Any) -> None:
        """Raises AssertionError if ``assertEqual`` does not."""
        try:
            self.assertEqual(x, y, **options)
        except AssertionError:
            return
        raise AssertionError(msg or f"{x!r} == {y!r}")


def _is_number(value: Any) -> bool:
    """Returns whether a value is a tensor, an array or a number, which have tolerances."""
    return isinstance(value, (vesta.Tensor, int, float, complex)) or type(value).__module__ == "numpy"
