"""Tensors that a module owns: ``Parameter`` (trained) and ``Buffer`` (state that is not trained)."""

from __future__ import annotations

from typing import Any

import vesta
from vesta import _C, Tensor
from vesta._arguments import expect

__all__ = ["Buffer", "Parameter"]


class Parameter(Tensor):
    """A tensor that registers itself with the module it is assigned to.

    Args:
        data: values, any shape; shares their memory. An empty tensor when missing.
        requires_grad: whether ``backward`` fills ``grad``.

    Raises:
        TypeError: ``data`` is not a tensor.

    Example::

        >>> import vesta
        >>> weight = vesta.nn.Parameter(vesta.zeros(2, 3))
        >>> weight.requires_grad, weight.is_leaf
        (True, True)
    """

    __torch_function__ = _C._disabled_torch_function_impl  # results of operations are plain tensors

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = vesta.empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(
                f"Parameter: expected a Tensor, got {type(data).__name__} (data). Use vesta.tensor(data, dtype=...)."
            )
        return Tensor._make_subclass(cls, data, requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.detach().clone(), self.requires_grad)
        return memo[id(self)]

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol: int) -> tuple[Any, ...]:
        return _rebuild_parameter, (type(self), self.detach(), self.requires_grad, dict(self.__dict__))


def _rebuild_parameter(
    cls: type[Parameter], data: Tensor, requires_grad: bool, attributes: dict[str, Any]
) -> Parameter:
    """Makes a parameter from its pickled parts: values and attributes set on it."""
    parameter = cls(data, requires_grad)
    parameter.__dict__.update(attributes)
    return parameter


class Buffer(Tensor):
    """A tensor that becomes a buffer of the module it is assigned to.

    Args:
        data: values, any shape; shares their memory. An empty tensor when missing.
        persistent: whether it is part of ``state_dict``.

    Example::

        >>> import vesta
        >>> module = vesta.nn.Module()
        >>> module.steps = vesta.nn.Buffer(vesta.zeros(1))
        >>> list(module.state_dict())
        ['steps']
    """

    __torch_function__ = _C._disabled_torch_function_impl  # results of operations are plain tensors

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        if data is None:
            data = vesta.empty(0)
        expect("Buffer", "data", data, Tensor, "Tensor or None")
        buffer = Tensor._make_subclass(cls, data.detach(), data.requires_grad)
        buffer.persistent = persistent
        return buffer

    def __deepcopy__(self, memo: dict[int, Any]) -> Buffer:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.detach().clone(), persistent=self.persistent)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: int) -> tuple[Any, ...]:
        return _rebuild_buffer, (type(self), self.detach(), dict(self.__dict__))


def _rebuild_buffer(cls: type[Buffer], data: Tensor, attributes: dict[str, Any]) -> Buffer:
    """Makes a buffer from its pickled parts: values and attributes set on it."""
    buffer = cls(data)
    buffer.__dict__.update(attributes)
    return buffer
