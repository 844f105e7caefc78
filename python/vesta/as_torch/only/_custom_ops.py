"""``torch._custom_ops``: the names that ``torch.library`` had before PyTorch 2.4."""

from __future__ import annotations

from typing import Any

from vesta import library

__all__ = ["custom_op", "impl", "impl_abstract", "impl_backward", "impl_save_for_backward"]


def custom_op(qualname: str, func_or_schema: Any = None) -> Any:
    """Declares an operator by its schema or a prototype, which is returned; a decorator without either."""
    if isinstance(func_or_schema, str):
        library.define(qualname, func_or_schema)
        return lambda fn: fn
    if func_or_schema is None:
        return lambda fn: custom_op(qualname, fn)
    library.define(qualname, library.infer_schema(func_or_schema, mutates_args=()))
    return func_or_schema


def impl(qualname: str, *, device_types: Any = ("cpu", "cuda"), func: Any = None) -> Any:
    """Gives an operator a function for some types of devices; a decorator without ``func``."""
    return library.impl(qualname, device_types, func)


def impl_abstract(qualname: str, *, func: Any = None) -> Any:
    """Returns ``func``: shapes are those of the results."""
    return library.register_fake(qualname, func)


def impl_save_for_backward(qualname: str, *, func: Any = None) -> Any:
    """Refuses: ``torch.library.register_autograd`` gives an operator its gradient."""
    raise NotImplementedError("impl_save_for_backward: use torch.library.register_autograd instead.")


def impl_backward(qualname: str, output_differentiability: Any = None, *, func: Any = None) -> Any:
    """Refuses: ``torch.library.register_autograd`` gives an operator its gradient."""
    raise NotImplementedError("impl_backward: use torch.library.register_autograd instead.")
