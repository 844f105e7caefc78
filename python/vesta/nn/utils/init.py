"""Modules without initial values."""

from __future__ import annotations

from typing import Any

from vesta.nn import init
from vesta.nn.modules.module import Module

__all__ = ["skip_init"]


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Module:
    """Returns a module whose parameters are not initialized, for values that are loaded anyway.

    Args:
        module_cls: a class whose constructor takes ``device``.
        args, kwargs: the constructor's arguments.

    Example::

        >>> import vesta
        >>> vesta.nn.utils.skip_init(vesta.nn.Linear, 5, 1)
        Linear(in_features=5, out_features=1, bias=True)
    """
    import inspect

    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    with init.skipped():
        return module_cls(*args, **kwargs)
