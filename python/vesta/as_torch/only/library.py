"""``torch.library``: operators of a program, made of its Python functions; what is for compilers does nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import vesta
from vesta.as_torch.only import ops

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "impl",
    "impl_abstract",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
    "triton_op",
    "wrap_triton",
]

#: Keys of kernels that compute with values; the others are for tracing, gradients and the like.
_COMPUTE = ("CPU", "CUDA", "cpu", "cuda", "default", "CompositeExplicitAutograd", "CompositeImplicitAutograd", "")


class CustomOpDef(ops.Operator):
    """An operator that runs a function of the program, with its gradient if one is registered."""

    def __init__(self, name: str, function: Callable[..., Any] | None) -> None:
        super().__init__(name, self._run)
        self._kernels: dict[str, Callable[..., Any]] = {}
        if function is not None:
            self._kernels["default"] = function
        self._backward: Any = None
        self._setup: Any = None
        ops.define(name, self)

    def _kernel(self, args: Any) -> Callable[..., Any]:
        device = next((value.device.type for value in args if isinstance(value, vesta.Tensor)), "cpu")
        for key in (device, device.upper(), *_COMPUTE):
            if key in self._kernels:
                return self._kernels[key]
        raise NotImplementedError(f"{self.__name__}: expected a kernel for {device}, found none. Register one.")

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        kernel = self._kernel([*args, *kwargs.values()])
        if self._backward is None:
            return kernel(*args, **kwargs)
        backward, setup = self._backward, self._setup

        class Run(vesta.autograd.Function):
            @staticmethod
            def forward(ctx: Any, *inputs: Any) -> Any:
                output = kernel(*inputs, **kwargs)
                if setup is not None:
                    setup(ctx, inputs, output)
                return output

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                return backward(ctx, *grads)

        return Run.apply(*args)

    def register_autograd(self, backward: Callable[..., Any], /, *, setup_context: Any = None) -> None:
        """Gives the operator a gradient: ``backward(ctx, *grads)`` after ``setup_context(ctx, inputs, output)``."""
        self._backward, self._setup = backward, setup_context

    def register_kernel(self, device_types: Any, fn: Any = None, /) -> Any:
        """Gives the operator a function for some device types; a decorator without ``fn``."""
        if fn is None:
            return lambda fn: self.register_kernel(device_types, fn)
        for key in [device_types] if isinstance(device_types, str) else device_types or ["default"]:
            self._kernels[key] = fn
        return fn

    def register_fake(self, fn: Any, /) -> Any:
        """Returns ``fn``: shapes are those of the results."""
        return fn

    register_vmap = register_torch_dispatch = register_autocast = register_fake

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """A context without the function of a device type."""
        removed = None if enabled else self._kernels.pop(device_type, None)
        try:
            yield
        finally:
            if removed is not None:
                self._kernels[device_type] = removed


def custom_op(
    name: str,
    fn: Any = None,
    /,
    *,
    mutates_args: Any = (),
    device_types: Any = None,
    schema: Any = None,
    tags: Any = None,
) -> Any:
    """Makes an operator ``namespace::name`` of a function; a decorator without ``fn``.

    Example::

        >>> import vesta.as_torch
        >>> vesta.as_torch.install()
        >>> import torch
        >>> @torch.library.custom_op("mine::double", mutates_args=())
        ... def double(x: torch.Tensor) -> torch.Tensor:
        ...     return 2 * x
        >>> torch.ops.mine.double(torch.ones(1))
        tensor([2.])
    """
    if fn is None:
        return lambda fn: custom_op(name, fn, mutates_args=mutates_args, device_types=device_types)
    made = CustomOpDef(name, None if device_types else fn)
    if device_types:
        made.register_kernel(device_types, fn)
    return made


triton_op = custom_op


def _operator(op: Any) -> CustomOpDef:
    """Returns the operator of a name or of ``torch.ops``, made if it is new."""
    if isinstance(op, CustomOpDef):
        return op
    name = op.partition(".")[0] if isinstance(op, str) else op.__name__
    found = ops._defined.get(name)
    return found if isinstance(found, CustomOpDef) else CustomOpDef(name, None)


def define(qualname: str, schema: Any = None, *, lib: Any = None, tags: Any = ()) -> Any:
    """Declares an operator, which ``impl`` gives functions."""
    _operator(qualname.partition("(")[0])


def impl(qualname: Any, types: Any, func: Any = None, *, lib: Any = None) -> Any:
    """Gives an operator a function for device types or a dispatch key; a decorator without ``func``."""
    if isinstance(qualname, Library):  # an older form: impl(library, name, key)
        library, name = qualname, types
        return lambda fn: library.impl(name, fn, func or "") or fn
    if func is None:
        return lambda func: impl(qualname, types, func)
    _operator(qualname).register_kernel(types, func)
    return func


register_kernel = impl


def register_fake(op: Any, func: Any = None, /, *, lib: Any = None, **_: Any) -> Any:
    """Returns ``func``: shapes are those of the results."""
    return (lambda func: func) if func is None else func


impl_abstract = register_fake


def register_vmap(op: Any, func: Any = None, /, *, lib: Any = None) -> Any:
    """Returns ``func``."""
    return (lambda func: func) if func is None else func


def register_torch_dispatch(op: Any, torch_dispatch_class: Any, func: Any = None, /, *, lib: Any = None) -> Any:
    """Returns ``func``."""
    return (lambda func: func) if func is None else func


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Any = None) -> None:
    """Does nothing: the operator runs in the dtypes that it is given."""


def register_autograd(op: Any, backward: Any, /, *, setup_context: Any = None, lib: Any = None) -> None:
    """Gives an operator a gradient; see ``CustomOpDef.register_autograd``."""
    _operator(op).register_autograd(backward, setup_context=setup_context)


def fallthrough_kernel(*args: Any) -> None:
    """Stands for no kernel; cannot be called."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def wrap_triton(kernel: Any, /) -> Any:
    """Returns the kernel."""
    return kernel


class Library:
    """Operators of a namespace, defined one by one.

    Args:
        ns: the namespace.
        kind: "DEF", "IMPL" or "FRAGMENT"; accepted alike.
        dispatch_key: the key of ``impl`` without one.
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Declares the operator of a schema ``name(Tensor x) -> Tensor``; returns its name."""
        name = schema.partition("(")[0].strip()
        _operator(f"{self.ns}::{name}" if "::" not in name else name)
        return name

    def impl(self, op_name: Any, fn: Any, dispatch_key: str = "", **_: Any) -> None:
        """Gives an operator a function for a dispatch key; keys that only a compiler would use are left out."""
        name = op_name if isinstance(op_name, str) else op_name.__name__
        name = (name if "::" in name else f"{self.ns}::{name}").partition(".")[0]
        key = dispatch_key or self.dispatch_key
        if key in _COMPUTE and self.ns != "aten":
            _operator(name).register_kernel(key or "default", fn)

    def fallback(self, fn: Any, dispatch_key: str = "", **_: Any) -> None:
        """Does nothing."""

    def _register_fake(self, op_name: Any, fn: Any, *args: Any, **kwargs: Any) -> None:
        """Does nothing."""
