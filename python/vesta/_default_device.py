"""The device on which factories make tensors that are given none.

Factories are functions of C++ that know no default device. While there is one other than the CPU, the package's names
of factories are wrapped; without one nothing is, and a call costs nothing more.
"""

from __future__ import annotations

import functools
import threading
from typing import Any

import vesta
from vesta._types import Device

from . import _C

__all__ = ["get_default_device", "set_default_device"]

#: The factories. Those with a parameter's name leave a tensor, given for it, on its device.
_FACTORIES: dict[str, str | None] = {
    **dict.fromkeys(
        (
            "arange empty empty_strided eye full linspace logspace ones rand randint randn randperm range "
            "scalar_tensor tensor tril_indices triu_indices zeros"
        ).split()
    ),
    "as_tensor": "data",
    "asarray": "obj",
}
_plain: dict[str, Any] = {}
_thread = threading.local()
_process_device: Any = None


def get_default_device() -> _C.device:
    """Returns the device on which tensors are made by default.

    Example::

        >>> import vesta
        >>> vesta.get_default_device()
        device(type='cpu')
    """
    device = _current()
    if device is None:
        return _C.device("cpu")
    if device.type == "cuda" and device.index is None and vesta.cuda.is_available():
        return _C.device("cuda", vesta.cuda.current_device())
    return device


def _current() -> Any:
    entered = getattr(_thread, "devices", None)
    return entered[-1] if entered else _process_device


def set_default_device(device: Device | None) -> None:
    """Sets the device on which factories (``ones``, ``tensor``, ``arange``, ...) make tensors that are given none.

    It holds for calls by the package's name, ``vesta.ones(2)``; a function that was imported as a name of its own
    before (``from vesta import ones``) keeps the CPU. ``with vesta.device("cuda"):`` does the same inside a block.

    Args:
        device: a device or its name; None: the CPU.

    Raises:
        RuntimeError: there is no device of the name; one that is not in this machine is an error of the next factory.

    Example::

        >>> import vesta
        >>> vesta.set_default_device("cpu")
        >>> vesta.ones(2).device
        device(type='cpu')
    """
    global _process_device
    wanted = None if device is None else _C.device(device)
    _process_device = None if wanted is None or wanted.type == "cpu" else wanted
    _wrap_or_unwrap()


def _wrap_or_unwrap() -> None:
    """Wraps the factories while any thread has a default device; the wrappers look at the thread's own."""
    wanted = _process_device is not None or _entered > 0
    if wanted and not _plain:
        for name, kept in _FACTORIES.items():
            factory = getattr(vesta, name, None)
            shown = name in vars(vesta)  # an older name comes from the module's __getattr__ at every use
            if callable(factory) and not getattr(factory, "__refuses__", False):
                _plain[name] = factory if shown else None
                vars(vesta)[name] = _on_default_device(factory, kept)
    elif not wanted and _plain:
        for name, factory in _plain.items():
            if factory is None:
                del vars(vesta)[name]
            else:
                vars(vesta)[name] = factory
        _plain.clear()


def _on_default_device(factory: Any, kept: str | None) -> Any:
    """Makes a factory give the default device, unless a tensor is given for its parameter ``kept``."""

    @functools.wraps(factory)
    def make(*args: Any, **kwargs: Any) -> Any:
        device = _current()
        if device is not None and kwargs.get("device") is None and kwargs.get("out") is None:
            given = (args[0] if args else kwargs.get(kept)) if kept else None
            if not isinstance(given, _C.Tensor):
                kwargs["device"] = device
        return factory(*args, **kwargs)

    return make


_entered = 0
_lock = threading.Lock()


def enter(self: Any) -> Any:
    """Makes a device the default one of this thread: ``with vesta.device("cuda"):``."""
    global _entered
    if not isinstance(self, _C.device):
        raise TypeError(f"device.__enter__: expected a device, got {type(self).__name__}.")
    with _lock:
        _entered += 1
        _wrap_or_unwrap()
    if not hasattr(_thread, "devices"):
        _thread.devices = []
    _thread.devices.append(self)
    return self


def leave(self: Any, *error: Any) -> None:
    global _entered
    if not getattr(_thread, "devices", None):
        raise RuntimeError("device.__exit__: expected a device that this thread entered, got none.")
    _thread.devices.pop()
    with _lock:
        _entered -= 1
        _wrap_or_unwrap()


def decorate(self: Any, fn: Any) -> Any:
    """Decorates a function so that it runs with the device as the default one."""
    if not callable(fn):
        raise TypeError(f"device: expected a function to decorate, got {type(fn).__name__}.")

    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        with self:
            return fn(*args, **kwargs)

    return run
