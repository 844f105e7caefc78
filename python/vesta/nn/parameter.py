"""Tensors that a module owns: ``Parameter`` (trained) and ``Buffer`` (state that is not trained)."""

from __future__ import annotations

from typing import Any

import vesta
from vesta import _C, Tensor
from vesta._arguments import expect
from vesta._names import listing
from vesta._types import Device, DType

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "is_lazy"]


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
    _prints_as = "tensor"

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
        text = super().__repr__()
        return "Parameter containing:\n" + (text if type(self) is Parameter else f"Parameter({text})")

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
    _prints_as = "tensor"

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


#: Methods that say or change what an uninitialized tensor has: its dtype and its device.
_ALLOWED = frozenset(
    "half float double char short int long cuda cpu to get_device is_floating_point is_complex detach requires_grad_ "
    "bfloat16 data_ptr __get__ __set__".split()
)


class UninitializedTensorMixin:
    """The part of a tensor that has dtype and device, but no shape yet: everything but moving and casting raises."""

    __torch_function__: Any = _C._disabled_torch_function_impl  # until there is one: see _refuse
    cls_to_become: type[Tensor]

    def materialize(self, shape: Any, device: Device | None = None, dtype: DType | None = None) -> None:
        """Gives the tensor a shape; its values are not initialized, and its class is an ordinary one then.

        Args:
            device, dtype: others than those it was created with.
        """
        device = self.data.device if device is None else device  # type: ignore[attr-defined]
        dtype = self.data.dtype if dtype is None else dtype  # type: ignore[attr-defined]
        self.data = vesta.empty(shape, device=device, dtype=dtype)
        self.__class__ = self.cls_to_become  # type: ignore[assignment]

    @property
    def shape(self) -> Any:
        """Raises: there is no shape yet."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call "
            "`forward` to initialize the parameters before accessing their attributes."
        )

    def share_memory_(self) -> Any:
        """Raises: there is no memory yet."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters "
            "before calling `module.share_memory()`."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol: int) -> tuple[Any, ...]:
        tensor: Any = self
        return _rebuild_uninitialized, (type(self), tensor.requires_grad, tensor.data.device, tensor.data.dtype)


def _rebuild_uninitialized(cls: Any, requires_grad: bool, device: Any, dtype: Any) -> Any:
    return cls(requires_grad=requires_grad, device=device, dtype=dtype)


def is_lazy(param: Any) -> bool:
    """Returns whether a parameter or buffer has no shape yet.

    Example::

        >>> import vesta
        >>> vesta.nn.parameter.is_lazy(vesta.nn.LazyLinear(2).weight)
        True
    """
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet; ``materialize`` gives it one.

    Args:
        requires_grad, device, dtype: as those of a tensor.

    Example::

        >>> import vesta
        >>> weight = vesta.nn.UninitializedParameter()
        >>> weight.materialize((2, 3))
        >>> type(weight).__name__, weight.shape
        ('Parameter', vesta.Size([2, 3]))
    """

    cls_to_become = Parameter

    def __new__(
        cls, requires_grad: bool = True, device: Device | None = None, dtype: DType | None = None
    ) -> UninitializedParameter:
        _C._see_torch_function()
        return Tensor._make_subclass(cls, vesta.empty(0, device=device, dtype=dtype), requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> UninitializedParameter:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return memo[id(self)]


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape is not known yet; ``materialize`` gives it one.

    Args:
        requires_grad, device, dtype: as those of a tensor.
        persistent: whether it is part of ``state_dict``.

    Example::

        >>> import vesta
        >>> mean = vesta.nn.UninitializedBuffer()
        >>> mean.materialize((4,))
        >>> mean.shape
        vesta.Size([4])
    """

    cls_to_become = Tensor
    persistent = True

    def __new__(
        cls,
        requires_grad: bool = False,
        device: Device | None = None,
        dtype: DType | None = None,
        persistent: bool = True,
    ) -> UninitializedBuffer:
        _C._see_torch_function()
        buffer = Tensor._make_subclass(cls, vesta.empty(0, device=device, dtype=dtype), requires_grad)
        buffer.persistent = persistent
        return buffer

    def __deepcopy__(self, memo: dict[int, Any]) -> UninitializedBuffer:
        if id(self) not in memo:
            data = self.data
            memo[id(self)] = type(self)(self.requires_grad, data.device, data.dtype, self.persistent)
        return memo[id(self)]


def _refuse(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """The ``__torch_function__`` of tensors without a shape. They get it here, behind their classes: from the creation
    of a class with one on, calls look at their arguments, and these classes exist in every program."""
    name = getattr(func, "__name__", str(func))
    if name not in _ALLOWED:
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {name}. This error happens when you are using a "
            f"`LazyModule` or explicitly manipulating `vesta.nn.parameter.{cls.__name__}` objects. When using "
            "LazyModules call `forward` with a dummy batch to initialize the parameters before calling functions."
        )
    return _C._disabled_torch_function_impl(func, types, args, kwargs or {})


UninitializedTensorMixin.__torch_function__ = classmethod(_refuse)


__dir__ = listing(globals())
