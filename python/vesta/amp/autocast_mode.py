"""``autocast``, and the decorators by which a custom ``Function`` takes part in it.

The mode lives in C++ (``core/dispatch/autocast.h``); one table there (``core/ops/autocast.cpp``) says which operation
computes in which dtype.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import vesta
from vesta import _C, Tensor
from vesta._types import DType
from vesta.autograd.grad_mode import _in_context

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

F = TypeVar("F", bound=Callable[..., Any])

#: The lower dtypes of autocast.
_SUPPORTED = (_C.bfloat16, _C.float16)


def is_autocast_available(device_type: str) -> bool:
    """Returns whether there is autocast for a device type ("cpu", "cuda")."""
    return _C._is_autocast_available(_type_of(device_type))


def _type_of(device_type: Any) -> str:
    """Returns the device type of a text such as "cuda" or "cuda:0"."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    name, _, index = device_type.partition(":")
    return name if not index or index.isdigit() else device_type


def _expect_floating(dtype: Any) -> None:
    """Raises TypeError for what is no floating-point dtype; ``vesta.as_torch`` warns later, as PyTorch does."""
    if not isinstance(dtype, _C.dtype) or not dtype.is_floating_point:
        raise TypeError(f"autocast: expected dtype bfloat16 or float16, got {dtype!r} (dtype).")


class autocast:
    """A context manager and decorator that runs operations in the dtype that suits them, for the thread that enters it.

    Products and convolutions compute in ``dtype``, operations that need range or precision in float32, all others in
    the dtype of their operands. Parameters do not change, and their gradients arrive in the parameters' dtype. Wrap the
    forward pass and the loss, not ``backward()``.

    Args:
        device_type: "cuda" or "cpu".
        dtype: bfloat16 or float16. Default: float16 on CUDA, bfloat16 on the CPU, or the dtype given to
            ``set_autocast_dtype``. Another floating dtype warns and turns autocast off.
        enabled: ``False`` makes a region without autocast inside one with it.
        cache_enabled: whether a parameter is cast once for the whole context. Default: as outside the context, which
            is on at first.

    Example::

        >>> import vesta
        >>> a = vesta.ones(2, 2)
        >>> with vesta.autocast("cpu"):
        ...     b = a @ a
        >>> b.dtype, (a @ a).dtype
        (vesta.bfloat16, vesta.float32)
    """

    def __init__(
        self, device_type: str, dtype: DType | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        self.device = _type_of(device_type)
        if not _C._is_autocast_available(self.device):
            raise RuntimeError(
                f"autocast: expected device_type 'cpu' or 'cuda', got '{device_type}'. There is no autocast for it."
            )
        self.fast_dtype = _C.get_autocast_dtype(self.device) if dtype is None else dtype
        _expect_floating(self.fast_dtype)
        self._enabled = bool(enabled) and self._usable()
        self._cache_enabled = _C.is_autocast_cache_enabled() if cache_enabled is None else bool(cache_enabled)
        self._before: list[tuple[bool, Any, bool]] = []  # a stack: one object may be entered again inside itself

    def _usable(self) -> bool:
        """Returns whether the mode can be on; warns with PyTorch's message if it cannot."""
        if self.device == "cuda":
            if not vesta.cuda.is_available():
                warnings.warn("CUDA is not available. Disabling autocast.", stacklevel=3)
                return False
            if self.fast_dtype == _C.bfloat16 and not vesta.cuda.is_bf16_supported():
                raise RuntimeError("Current CUDA Device does not support bfloat16. Please switch dtype to float16.")
        if self.fast_dtype not in _SUPPORTED:
            warnings.warn(
                f"In {self.device.upper()} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{self.device.upper()} Autocast only supports dtypes of {', '.join(map(str, _SUPPORTED))} currently, "
                f"got {self.fast_dtype}.",
                stacklevel=3,
            )
            return False
        return True

    def __enter__(self) -> autocast:
        self._before.append(
            (
                _C.is_autocast_enabled(self.device),
                _C.get_autocast_dtype(self.device),
                _C.is_autocast_cache_enabled(),
            )
        )
        _C.set_autocast_enabled(self.device, self._enabled)
        if self.fast_dtype.is_floating_point:
            _C.set_autocast_dtype(self.device, self.fast_dtype)
        _C.set_autocast_cache_enabled(self._cache_enabled)
        _C.autocast_increment_nesting()
        return self

    def __exit__(self, *exc: object) -> bool:
        if _C.autocast_decrement_nesting() == 0:
            _C.clear_autocast_cache()
        enabled, dtype, cache = self._before.pop()
        _C.set_autocast_enabled(self.device, enabled)
        _C.set_autocast_dtype(self.device, dtype)
        _C.set_autocast_cache_enabled(cache)
        return False

    def _again(self) -> autocast:
        """Returns the same mode as a new object, because calls of a decorated function may overlap, in several
        threads."""
        mode = autocast.__new__(autocast)
        mode.__dict__.update(self.__dict__, _before=[])
        return mode

    def __call__(self, func: F) -> F:
        if not callable(func):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}. "
                "Did you mean to use autocast as a context manager? For example:\n"
                "    with vesta.autocast(device_type=...):\n        output = model(input)"
            )
        return _in_context(self._again, func)


# ---- custom functions ----


def _cast(value: Any, device_type: str, dtype: Any) -> Any:
    """Casts the floating tensors on a device type, also inside lists, tuples and mappings; not float64."""
    if isinstance(value, Tensor):
        fits = value.is_floating_point() and value.device.type == device_type and value.dtype != _C.float64
        return value.to(dtype) if fits else value
    if isinstance(value, (str, bytes)) or type(value).__module__ == "numpy":
        return value
    if isinstance(value, Mapping):
        return {_cast(key, device_type, dtype): _cast(entry, device_type, dtype) for key, entry in value.items()}
    if isinstance(value, Iterable):
        entries = [_cast(entry, device_type, dtype) for entry in value]
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*entries)
        return type(value)(entries) if isinstance(value, (list, tuple)) else entries
    return value


def custom_fwd(fwd: F | None = None, *, device_type: str, cast_inputs: Any = None) -> Any:
    """Decorates ``forward`` of a ``Function`` so that ``backward`` can run in the same autocast state.

    Args:
        device_type: "cuda" or "cpu".
        cast_inputs: a dtype to which floating tensors are cast if autocast is on; ``forward`` then runs with autocast
            off. ``None``: ``forward`` runs in the state it is called in.

    Example::

        >>> import vesta
        >>> class Double(vesta.autograd.Function):
        ...     @staticmethod
        ...     @vesta.amp.custom_fwd(device_type="cpu", cast_inputs=vesta.float32)
        ...     def forward(ctx, x):
        ...         return x * 2
        ...     @staticmethod
        ...     @vesta.amp.custom_bwd(device_type="cpu")
        ...     def backward(ctx, grad):
        ...         return grad * 2
        >>> with vesta.autocast("cpu"):
        ...     y = Double.apply(vesta.ones(2, dtype=vesta.bfloat16))
        >>> y.dtype
        vesta.float32
    """
    device_type = _type_of(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    forward: Callable[..., Any] = fwd

    @functools.wraps(forward)
    def decorate_fwd(*args: Any, **kwargs: Any) -> Any:
        on = _C.is_autocast_enabled(device_type)
        args[0]._dtype = _C.get_autocast_dtype(device_type)
        args[0]._fwd_used_autocast = on and cast_inputs is None
        if cast_inputs is None or not on:
            return forward(*args, **kwargs)
        with autocast(device_type, enabled=False):
            context, *inputs = args
            return forward(context, *_cast(inputs, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return decorate_fwd


def custom_bwd(bwd: F | None = None, *, device_type: str) -> Any:
    """Decorates ``backward`` of a ``Function``: it runs in the autocast state that ``forward`` ran in.

    Args:
        device_type: "cuda" or "cpu".

    Example: see ``custom_fwd``.
    """
    device_type = _type_of(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    backward: Callable[..., Any] = bwd

    @functools.wraps(backward)
    def decorate_bwd(*args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, dtype=args[0]._dtype, enabled=args[0]._fwd_used_autocast):
            return backward(*args, **kwargs)

    return decorate_bwd


# ---- PyTorch's older names, one function per device type ----


def _renamed(name: str, instead: str) -> None:
    warnings.warn(f"vesta.{name} is deprecated. Please use vesta.{instead} instead.", DeprecationWarning, stacklevel=3)


def is_autocast_cpu_enabled() -> bool:
    """Returns whether autocast is on for the CPU. Deprecated: ``is_autocast_enabled("cpu")``.

    Example::

        >>> import vesta
        >>> vesta.is_autocast_cpu_enabled()
        False
    """
    _renamed("is_autocast_cpu_enabled()", "is_autocast_enabled('cpu')")
    return _C.is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Turns autocast on or off for the CPU. Deprecated: ``set_autocast_enabled("cpu", enabled)``.

    Example::

        >>> import vesta
        >>> vesta.set_autocast_cpu_enabled(False)
    """
    _renamed("set_autocast_cpu_enabled(enabled)", "set_autocast_enabled('cpu', enabled)")
    _C.set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype() -> vesta.dtype:
    """Returns the lower dtype on the CPU. Deprecated: ``get_autocast_dtype("cpu")``.

    Example::

        >>> import vesta
        >>> vesta.get_autocast_cpu_dtype()
        vesta.bfloat16
    """
    _renamed("get_autocast_cpu_dtype()", "get_autocast_dtype('cpu')")
    return _C.get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype: vesta.dtype) -> None:
    """Sets the lower dtype on the CPU. Deprecated: ``set_autocast_dtype("cpu", dtype)``.

    Example::

        >>> import vesta
        >>> vesta.set_autocast_cpu_dtype(vesta.bfloat16)
    """
    _renamed("set_autocast_cpu_dtype(dtype)", "set_autocast_dtype('cpu', dtype)")
    _C.set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype() -> vesta.dtype:
    """Returns the lower dtype on CUDA. Deprecated: ``get_autocast_dtype("cuda")``.

    Example::

        >>> import vesta
        >>> vesta.get_autocast_gpu_dtype()
        vesta.float16
    """
    _renamed("get_autocast_gpu_dtype()", "get_autocast_dtype('cuda')")
    return _C.get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype: vesta.dtype) -> None:
    """Sets the lower dtype on CUDA. Deprecated: ``set_autocast_dtype("cuda", dtype)``.

    Example::

        >>> import vesta
        >>> vesta.set_autocast_gpu_dtype(vesta.float16)
    """
    _renamed("set_autocast_gpu_dtype(dtype)", "set_autocast_dtype('cuda', dtype)")
    _C.set_autocast_dtype("cuda", dtype)
