"""``Variable``: the name that tensors with gradients had before PyTorch 0.4."""

from __future__ import annotations

from typing import Any

from vesta import Tensor

__all__ = ["Variable", "VariableMeta"]


class VariableMeta(type):
    """The metaclass of ``Variable``: every tensor is an instance, and a call gives a tensor."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor)

    def __call__(cls, data: Any = None, requires_grad: bool = False, volatile: bool | None = None) -> Tensor:
        if data is None:
            return Tensor()
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        made = data.detach()
        return made.requires_grad_() if requires_grad else made


class Variable(metaclass=VariableMeta):
    """A tensor over the memory of ``data``, a leaf, that requires grad if asked for.

    ``volatile`` is accepted and means nothing; use ``vesta.no_grad()``.

    Example::

        >>> import vesta
        >>> x = vesta.autograd.Variable(vesta.ones(2), requires_grad=True)
        >>> isinstance(x, vesta.autograd.Variable), x.requires_grad
        (True, True)
    """
