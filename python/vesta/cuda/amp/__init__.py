"""PyTorch's older names of ``vesta.amp`` for CUDA; they warn and name the newer one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import vesta.amp
from vesta import _C
from vesta._names import listing
from vesta._types import DType

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


def _renamed(name: str, instead: str) -> None:
    warnings.warn(
        f"`vesta.cuda.amp.{name}` is deprecated. Please use `vesta.amp.{instead}` instead.",
        FutureWarning,
        stacklevel=3,
    )


class autocast(vesta.amp.autocast):
    """The older name of ``vesta.amp.autocast("cuda", ...)``. Deprecated."""

    def __init__(self, enabled: bool = True, dtype: DType = _C.float16, cache_enabled: bool = True) -> None:
        _renamed("autocast(args...)", "autocast('cuda', args...)")
        super().__init__("cuda", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(vesta.amp.GradScaler):
    """The older name of ``vesta.amp.GradScaler("cuda", ...)``. Deprecated."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        _renamed("GradScaler(args...)", "GradScaler('cuda', args...)")
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def custom_fwd(fwd: Callable[..., Any] | None = None, *, cast_inputs: Any = None) -> Any:
    """Does the same as ``vesta.amp.custom_fwd(args..., device_type="cuda")``. Deprecated."""
    _renamed("custom_fwd(args...)", "custom_fwd(args..., device_type='cuda')")
    return vesta.amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable[..., Any] | None = None) -> Any:
    """Does the same as ``vesta.amp.custom_bwd(args..., device_type="cuda")``. Deprecated."""
    _renamed("custom_bwd(args...)", "custom_bwd(args..., device_type='cuda')")
    return vesta.amp.custom_bwd(bwd, device_type="cuda")


__dir__ = listing(globals())
