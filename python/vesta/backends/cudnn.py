"""Settings of convolutions on CUDA: ``vesta.backends.cudnn.enabled``, ``.allow_tf32`` and other attributes that scripts
set."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from vesta import _C, Tensor
from vesta.cuda.native import if_there

from . import switch
from .setting import Setting

if TYPE_CHECKING:  # of _Cudnn
    enabled: bool
    allow_tf32: bool
    benchmark: bool
    benchmark_limit: int
    deterministic: bool
    fp32_precision: str


class _Cudnn(ModuleType):
    enabled = switch.Switch(2, "Whether convolutions may go to cuDNN. True at first.")
    allow_tf32 = switch.Switch(1, "Whether float32 convolutions may use TF32. True at first.")

    benchmark_limit = Setting(10, "How many algorithms a search would try. There is no search.")
    fp32_precision = Setting("none", "How float32 convolutions may be rounded; allow_tf32 is the switch that counts.")

    @property
    def deterministic(self) -> bool:
        """Whether algorithms whose bits change from run to run are avoided: they are, unless
        ``vesta.backends.cuda.allow_nondeterministic`` is set. Setting this one does nothing."""
        return _C._product_switch(4) or not _C._product_switch(3)

    @deterministic.setter
    def deterministic(self, value: bool) -> None:
        _bool(value)

    @property
    def benchmark(self) -> bool:
        """Always False: the algorithm is the library's own first choice. Setting it does nothing."""
        return False

    @benchmark.setter
    def benchmark(self, value: bool) -> None:
        _bool(value)


def _bool(value: Any) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"expected a bool, got {type(value).__name__}. Pass True or False.")


def version() -> int | None:
    """Returns cuDNN's version in its own numbering, 91900 for 9.19; None if it is not found."""
    extension = if_there()
    return extension.cudnn_version()[0] or None if extension is not None and extension.is_available() else None


def is_available() -> bool:
    """Returns whether convolutions on CUDA can go to cuDNN; without it they run plain kernels."""
    return version() is not None


def is_acceptable(tensor: Tensor) -> bool:
    """Returns whether convolutions of such a tensor go to cuDNN: floating-point, on CUDA, and the library available and
    enabled."""
    wanted = tensor.is_cuda and tensor.is_floating_point()
    return bool(wanted and sys.modules[__name__].enabled and is_available())


@contextlib.contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
) -> Iterator[None]:
    """Sets ``enabled`` and ``allow_tf32`` inside a ``with`` block; the other arguments are accepted and change
    nothing."""
    module = sys.modules[__name__]
    before = module.enabled, module.allow_tf32
    try:
        module.enabled, module.allow_tf32 = enabled, allow_tf32
        module.benchmark, module.deterministic = benchmark, deterministic
        yield
    finally:
        module.enabled, module.allow_tf32 = before


switch.install(__name__, _Cudnn)
