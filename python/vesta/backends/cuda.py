"""``vesta.backends.cuda.matmul.allow_tf32`` and its relatives: how CUDA devices may compute products and attention.

``vesta.backends.cuda.allow_nondeterministic`` lets a device use algorithms whose last bits change from run to run.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from vesta import _C
from vesta._deprecated import deprecated
from vesta._names import listing
from vesta.cuda import native

from . import switch
from .setting import Setting
from .switch import Switch

__all__ = ["cufft_plan_cache", "flags", "is_built", "matmul", "preferred_linalg_library", "sdp_kernel"]

if TYPE_CHECKING:
    allow_nondeterministic: bool


class _Cuda(ModuleType):
    allow_nondeterministic = Switch(
        3,
        "Whether a CUDA device may use algorithms whose bits change from run to run: additions in any order in "
        "index_add, index_put (accumulate), scatter_add, the backward of embedding, indexing and max pooling, and "
        "cuDNN's for the backward of convolutions. False at first; vesta.use_deterministic_algorithms(True) wins.",
    )


class _Matmul:
    """Settings of matrix products."""

    __slots__ = ()
    allow_tf32 = Switch(0, "Whether float32 products may use TF32: faster, 10 bits of factors kept. False at first.")
    allow_relu_epilogue = Switch(
        6,
        "Whether the relu after a linear layer may be cuBLASLt's, which makes zeros of NaN: one pass over the "
        "activations less. False at first.",
    )
    allow_fp16_reduced_precision_reduction = Setting(True, "Whether float16 sums may be rounded. They are float32.")
    allow_bf16_reduced_precision_reduction = Setting(True, "Whether bfloat16 sums may be rounded. They are float32.")
    allow_fp16_accumulation = Setting(False, "Whether float16 products may be summed in float16. They are not.")
    fp32_precision = Setting("none", "How float32 products may be rounded; allow_tf32 is the switch that counts.")


class _PlanCache:
    """The plans of cuFFT that a device keeps: the current one, or with an index another. Without a device, none."""

    __slots__ = ("_device",)

    def __init__(self, device: Any = None) -> None:
        self._device = device

    @property
    def size(self) -> int:
        """The number of plans."""
        return native.native().fft_plan_count(native.index(self._device)) if is_built() else 0

    @property
    def max_size(self) -> int:
        """The number of plans that are kept. The one that was not used for longest is given up first."""
        return native.native().fft_plan_limit(native.index(self._device)) if is_built() else 0

    @max_size.setter
    def max_size(self, value: int) -> None:
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"cufft_plan_cache: expected int, got {type(value).__name__} (max_size).")
        native.native().set_fft_plan_limit(native.index(self._device), value)

    def clear(self) -> None:
        """Gives up all plans."""
        if is_built():
            native.native().clear_fft_plans(native.index(self._device))

    def __getitem__(self, device: Any) -> _PlanCache:
        number, extension = native.index(device, optional=False), native.if_there()
        count = extension.device_count() if extension else 0
        if not 0 <= number < count:
            raise RuntimeError(
                f"cufft_plan_cache: expected 0 <= device index < {count}, but got device with index {number}"
            )
        return _PlanCache(number)


matmul = _Matmul()
cufft_plan_cache = _PlanCache()
#: Kinds of kernels for attention that may be chosen. There is one kind beside cuDNN's, whatever is set here.
_attention = {"flash": True, "mem_efficient": True, "math": True}
_CUDNN_ATTENTION = 5  # the number of the switch


def is_built() -> bool:
    """Returns whether there is a CUDA library to load; ``vesta.cuda.is_available()`` tells whether it has a device."""
    import vesta

    return vesta.cuda.is_available()


def enable_flash_sdp(enabled: bool) -> None:
    """Records whether attention may use a kernel of the kind "flash"."""
    _attention["flash"] = bool(enabled)


def flash_sdp_enabled() -> bool:
    """Returns what ``enable_flash_sdp`` has set."""
    return _attention["flash"]


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Records whether attention may use a memory-efficient kernel."""
    _attention["mem_efficient"] = bool(enabled)


def mem_efficient_sdp_enabled() -> bool:
    """Returns what ``enable_mem_efficient_sdp`` has set."""
    return _attention["mem_efficient"]


def enable_math_sdp(enabled: bool) -> None:
    """Records whether attention may be computed by its formula."""
    _attention["math"] = bool(enabled)


def math_sdp_enabled() -> bool:
    """Returns what ``enable_math_sdp`` has set."""
    return _attention["math"]


def enable_cudnn_sdp(enabled: bool) -> None:
    """Sets whether attention may use cuDNN, where it computes the same. It may at first."""
    _C._product_switch(_CUDNN_ATTENTION, bool(enabled))


def cudnn_sdp_enabled() -> bool:
    """Returns what ``enable_cudnn_sdp`` has set."""
    return bool(_C._product_switch(_CUDNN_ATTENTION))


@deprecated("vesta.backends.cuda.sdp_kernel", "vesta.nn.attention.sdpa_kernel")
@contextlib.contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[None]:
    """Sets inside a ``with`` block which kernels attention may use.

    Example::

        >>> import vesta
        >>> with vesta.backends.cuda.sdp_kernel(enable_flash=False):
        ...     vesta.backends.cuda.flash_sdp_enabled()
        False
    """
    before, cudnn = dict(_attention), cudnn_sdp_enabled()
    _attention.update(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient)
    enable_cudnn_sdp(enable_cudnn)
    try:
        yield
    finally:
        _attention.update(before)
        enable_cudnn_sdp(cudnn)


def preferred_linalg_library(backend: Any = None) -> str:
    """Returns "default": there is one library for decompositions on a device, whatever is asked for."""
    return "default"


def preferred_blas_library(backend: Any = None) -> str:
    """Returns "cublas": matrix products on a device are cuBLAS's."""
    return "cublas"


@contextlib.contextmanager
def flags(allow_nondeterministic: bool = False) -> Iterator[None]:
    """Sets ``allow_nondeterministic`` inside a ``with`` block.

    Example::

        >>> import vesta
        >>> with vesta.backends.cuda.flags(allow_nondeterministic=True):
        ...     vesta.backends.cuda.allow_nondeterministic
        True
    """
    module = sys.modules[__name__]
    before = module.allow_nondeterministic
    try:
        module.allow_nondeterministic = allow_nondeterministic
        yield
    finally:
        module.allow_nondeterministic = before


switch.install(__name__, _Cuda)


__dir__ = listing(globals())
