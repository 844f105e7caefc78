"""Parametrizations: a tensor of a module that is computed from others each time it is read.

``register_parametrization(module, "weight", f)`` moves the parameter to ``module.parametrizations.weight.original``,
gives
the module a class of its own, and that class a property ``weight`` that returns ``f(original)``.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import vesta
from vesta import Tensor
from vesta._arguments import expect
from vesta._names import listing
from vesta.nn.modules.container import ModuleDict, ModuleList
from vesta.nn.modules.module import Module
from vesta.nn.parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

_caching = 0
_cache: dict[tuple[int, str], Tensor] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Inside of this context, a parametrized tensor is computed when it is read first, and kept.

    Example::

        >>> import vesta
        >>> layer = vesta.nn.utils.parametrizations.weight_norm(vesta.nn.Linear(2, 2))
        >>> with vesta.nn.utils.parametrize.cached():
        ...     layer.weight is layer.weight
        True
    """
    global _caching
    _caching += 1
    try:
        yield
    finally:
        _caching -= 1
        if not _caching:
            _cache.clear()


def _put(module: Module, name: str, tensor: Tensor) -> None:
    """Registers a parameter, or a buffer."""
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _same_kind(what: str, tensor: Any, shape: Any, dtype: Any, advice: str = "") -> None:
    """Raises unless ``tensor`` is a tensor of a shape and a dtype."""
    if not isinstance(tensor, Tensor):
        raise ValueError(f"{what} must return a tensor. Got {type(tensor).__name__}.{advice}")
    if tensor.dtype != dtype:
        raise ValueError(f"{what} may not change the dtype of the tensor, got {tensor.dtype} for {dtype}.{advice}")
    if tensor.shape != shape:
        raise ValueError(
            f"{what} may not change the shape of the tensor, got {list(tensor.shape)} for {list(shape)}.{advice}"
        )


_UNSAFE = " If you need to change it, register the parametrization with unsafe=True."


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, and the tensors it is computed from: ``original``, or ``original0``, ....

    Args:
        modules: functions of a tensor, the first of which may take several tensors.
        original: the tensor as it is now; ``right_inverse`` of the modules gives the ones it is computed from.
        unsafe: do not check that dtype and shape stay the same.
    """

    original: Tensor

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        expect("ParametrizationList", "modules", modules, (Sequence, ModuleList), "a sequence of modules")
        expect("ParametrizationList", "original", original, Tensor, "Tensor")
        for module in modules:
            expect("ParametrizationList", "modules", module, Module, "a sequence of modules")
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        new: Any = original
        with vesta.no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    with suppress(NotImplementedError):  # without an inverse, the tensor stays as it is
                        new = module.right_inverse(new)
        if not isinstance(new, (Tensor, Sequence)):
            raise ValueError(
                f"'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got "
                f"{type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        shape, dtype = original.shape, original.dtype
        if self.is_tensor:
            if new.dtype != original.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype, got "
                    f"{new.dtype} for {original.dtype}."
                )
            if new is not original:
                original.data = new.detach()
            _put(self, "original", original)
        else:
            for i, tensor in enumerate(new):
                if not isinstance(tensor, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got element "
                        f"{i} of the sequence with type {type(tensor).__name__}."
                    )
                if isinstance(original, Parameter):
                    tensor = Parameter(tensor, original.requires_grad)
                tensor.requires_grad_(original.requires_grad)
                _put(self, f"original{i}", tensor)
        if not self.unsafe:
            _same_kind("Registering a parametrization", self(), shape, dtype, _UNSAFE)

    def right_inverse(self, value: Tensor) -> None:
        """Sets the original tensors so that ``value`` is computed from them."""
        with vesta.no_grad():
            new: Any = value
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse, so that the tensor "
                        "cannot be set."
                    )
                new = module.right_inverse(new)
            originals = (
                [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]
            )
            given = [new] if self.is_tensor else list(new)
            if len(given) != self.ntensors:
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors of length {self.ntensors}, got {len(given)}"
                )
            for original, tensor in zip(originals, given):
                if not isinstance(tensor, Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor, but got {type(tensor).__name__}")
                if tensor.dtype != original.dtype:
                    raise ValueError(
                        f"The tensor returned by `right_inverse` has dtype {tensor.dtype}, the original "
                        f"{original.dtype}"
                    )
                original.data = tensor.detach()

    def forward(self) -> Tensor:
        """Returns the tensor that is computed from the originals."""
        originals = (
            (self.original,) if self.is_tensor else (getattr(self, f"original{i}") for i in range(self.ntensors))
        )
        functions = iter(self)
        x = next(functions)(*originals)
        for function in functions:
            x = function(x)
        return x


def _property_of(name: str) -> property:
    """Returns the property that stands for a parametrized tensor."""

    def get(self: Any) -> Tensor:
        if not _caching:
            return self.parametrizations[name]()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = self.parametrizations[name]()
        return _cache[key]

    def put(self: Any, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(get, put)


def _own_class(module: Module) -> None:
    """Gives a module a class of its own, in which properties can be put."""
    cls = type(module)

    def getstate(self: Any) -> Any:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). Save the state_dict, or "
            "remove "
            "the parametrizations first."
        )

    def deepcopy(self: Any, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        replica = self.__new__(type(self))
        memo[id(self)] = replica
        replica.__setstate__(copy.deepcopy(self.__dict__, memo))
        _own_class_of(replica, type(self))
        return replica

    own = type(f"Parametrized{cls.__name__}", (cls,), {"__getstate__": getstate, "__deepcopy__": deepcopy})
    module.__class__ = own


def _own_class_of(replica: Module, cls: type) -> None:
    """Gives a copy a class of its own, too: removing its parametrization must leave the first module's alone."""
    replica.__class__ = type(cls.__name__, cls.__bases__, dict(vars(cls)))


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Makes a parameter or buffer of ``module`` computed: ``parametrization(original)`` whenever it is read.

    If ``parametrization`` has a method ``right_inverse``, the tensor keeps its value, and can be assigned to.

    Args:
        tensor_name: the parameter or buffer; or one that is parametrized already, to add a further function.
        parametrization: a module; its training mode follows the module's.
        unsafe: allow it to change dtype and shape.

    Raises:
        ValueError: there is no such tensor, or dtype or shape change.

    Example::

        >>> import vesta
        >>> class Symmetric(vesta.nn.Module):
        ...     def forward(self, x):
        ...         return (x + x.mT) / 2
        >>> layer = vesta.nn.Linear(3, 3)
        >>> _ = vesta.nn.utils.parametrize.register_parametrization(layer, "weight", Symmetric())
        >>> bool((layer.weight == layer.weight.mT).all())
        True
    """
    for name, value in (("module", module), ("parametrization", parametrization)):
        expect("register_parametrization", name, value, Module, "Module")
    expect("register_parametrization", "tensor_name", tensor_name, str, "str")
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        chain: Any = module.parametrizations[tensor_name]  # type: ignore[attr-defined]
        if not unsafe:
            present = getattr(module, tensor_name)
            _same_kind("Registering a parametrization", parametrization(present), present.shape, present.dtype, _UNSAFE)
            if hasattr(parametrization, "right_inverse"):
                _same_kind("'right_inverse'", parametrization.right_inverse(present), present.shape, present.dtype)
        chain.append(parametrization)
        chain.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        if original is None:
            raise ValueError(f"Module '{module}' has no value for '{tensor_name}'")
        chain = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _own_class(module)
            module.parametrizations = ModuleDict()
        setattr(type(module), tensor_name, _property_of(tensor_name))
        module.parametrizations[tensor_name] = chain  # type: ignore[attr-defined]
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element '{tensor_name}'"
        )
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Returns whether a module has a parametrized tensor, or this one."""
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Makes a parametrized tensor an ordinary parameter or buffer again.

    Args:
        leave_parametrized: keep the computed value; else the original one, if it is a single tensor.

    Example::

        >>> import vesta
        >>> layer = vesta.nn.utils.parametrizations.weight_norm(vesta.nn.Linear(2, 2))
        >>> _ = vesta.nn.utils.parametrize.remove_parametrizations(layer, "weight")
        >>> sorted(layer.state_dict())
        ['bias', 'weight']
    """
    expect("remove_parametrizations", "tensor_name", tensor_name, str, "str")
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    chain: Any = module.parametrizations[tensor_name]  # type: ignore[attr-defined]
    if chain.is_tensor:
        original = chain.original
        if leave_parametrized:
            with vesta.no_grad():
                value = getattr(module, tensor_name)
            if value.dtype != original.dtype:
                raise RuntimeError(
                    f"Calling remove_parametrizations() with leave_parametrized=True needs one dtype, got "
                    f"{value.dtype} and "
                    f"{original.dtype}."
                )
            original.data = value.detach()
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value.detach()) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence "
            "of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]  # type: ignore[attr-defined]
    _put(module, tensor_name, original)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """Returns the class that a module had before its tensors were parametrized."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Gives ``to_module`` the parametrizations of ``from_module``, and the values they are computed from.

    Args:
        tensor_name: only this tensor's.
    """
    if not is_parametrized(from_module):
        return to_module
    names = list(from_module.parametrizations) if tensor_name is None else [tensor_name]  # type: ignore[call-overload]
    for name in names:
        if not is_parametrized(from_module, name):
            raise ValueError(f"Module {from_module} does not have a parametrization on {name}")
        chain: Any = from_module.parametrizations[name]  # type: ignore[attr-defined]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach().clone()))
        for function in chain:
            register_parametrization(to_module, name, function, unsafe=True)
        other: Any = to_module.parametrizations[name]  # type: ignore[attr-defined]
        kept = ["original"] if chain.is_tensor else [f"original{i}" for i in range(chain.ntensors)]
        for original in kept:
            if hasattr(other, original):
                setattr(other, original, getattr(chain, original))
    return to_module


__dir__ = listing(globals())
