"""PyTorch's older names of ``vesta.amp`` for the CPU; they warn and name the newer one."""

from __future__ import annotations

import warnings

import vesta.amp
from vesta import _C
from vesta._names import listing
from vesta._types import DType

__all__ = ["GradScaler", "autocast"]


def _renamed(name: str) -> None:
    warnings.warn(
        f"`vesta.cpu.amp.{name}(args...)` is deprecated. Please use `vesta.amp.{name}('cpu', args...)` instead.",
        FutureWarning,
        stacklevel=3,
    )


class autocast(vesta.amp.autocast):
    """The older name of ``vesta.amp.autocast("cpu", ...)``. Deprecated."""

    def __init__(self, enabled: bool = True, dtype: DType = _C.bfloat16, cache_enabled: bool = True) -> None:
        _renamed("autocast")
        super().__init__("cpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(vesta.amp.GradScaler):
    """The older name of ``vesta.amp.GradScaler("cpu", ...)``. Deprecated."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        _renamed("GradScaler")
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


__dir__ = listing(globals())
