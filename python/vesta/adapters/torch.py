"""PyTorch in the same process: tensors, state dicts and modules of one library for the other.

Tensors share their memory (DLPack): what one library writes the other sees, and nothing is copied. Neither library's
tape sees the other's operations; modules carry gradients across (``torch_modules.py``). ``docs/moving.md`` shows how to
move a project over with these two functions.

Example::

    >>> import vesta
    >>> import torch  # doctest: +SKIP
    >>> x = vesta.from_torch(torch.ones(2))  # doctest: +SKIP
    >>> x.add_(1), vesta.to_torch(x)  # doctest: +SKIP
    (tensor([2., 2.]), tensor([2., 2.]))
"""

from __future__ import annotations

import dataclasses
import importlib
import sys
import weakref
from collections import deque
from collections.abc import Callable, MutableMapping
from copy import copy as shallow_copy
from types import ModuleType
from typing import Any

import vesta
from vesta._names import listing

__all__ = ["from_torch", "to_torch"]


def from_torch(obj: Any, *, copy: bool = False) -> Any:
    """Returns ``obj`` with Vesta's tensors in place of PyTorch's, which share their memory. ``obj`` is unchanged.

    ======================================  =======================================================================
    in ``obj``                              becomes
    ======================================  =======================================================================
    ``torch.Tensor``                        a tensor over the same memory: same values, dtype, shape, strides and
                                            device; it requires grad if the original, a leaf, does
    ``torch.nn.Parameter``                  a ``vesta.nn.Parameter`` over the same memory, the same one each time;
                                            gradients stay behind
    ``torch.nn.Module``                     a ``vesta.nn.Module`` that runs it: same parameters, same names, and
                                            gradients pass through (once; not twice differentiable)
    dict, list, tuple, named tuple, set,    one of its class with its members converted: state dicts of modules,
    deque, dataclass, ``PackedSequence``    optimizers, schedulers and scalers, batches
    ``torch.dtype``, ``device``, ``Size``   Vesta's
    anything else                           itself
    ======================================  =======================================================================

    A tensor that occurs twice is converted once, so that tied weights stay tied. Values that PyTorch conjugates or
    negates only when they are read are computed, into memory of their own.

    Args:
        obj: a tensor, a module, or any nesting of the containers above.
        copy: whether tensors get memory of their own.

    Raises:
        TypeError: a tensor that Vesta has no counterpart of: its dtype (``uint16``, ``float8``), its layout (sparse,
            nested, quantized); a module that cannot be run from outside (scripted, or distributed by itself). The
            message says where in ``obj`` it is.
        RuntimeError: a tensor that is the result of operations on PyTorch's tape. Use ``.detach()``.

    Example::

        >>> model.load_state_dict(vesta.from_torch(torch_model.state_dict()))  # doctest: +SKIP
        <All keys matched successfully>
    """
    torch: Any = sys.modules.get("torch")  # without it there is nothing of PyTorch's in obj
    if torch is None or torch.Tensor is vesta.Tensor:
        return obj
    return Exchange(torch, vesta, "from_torch", copy).converted(obj, "obj")


def to_torch(obj: Any, *, copy: bool = False) -> Any:
    """Returns ``obj`` with PyTorch's tensors in place of Vesta's: ``from_torch`` the other way round.

    Args:
        obj: a tensor, a module, or any nesting of the containers that ``from_torch`` names.
        copy: whether tensors get memory of their own.

    Raises:
        ImportError: PyTorch is not installed.
        TypeError: a sparse tensor. Use ``.to_dense()``.
        BufferError: a tensor over memory that is read-only, such as an array's. Use ``copy=True``.
        RuntimeError: a tensor that is the result of operations on the tape. Use ``.detach()``.

    Example::

        >>> torch.save(vesta.to_torch(model.state_dict()), "model.pt")  # doctest: +SKIP
    """
    try:
        torch: Any = importlib.import_module("torch")
    except ImportError as error:
        raise ImportError("to_torch: expected PyTorch to be installed: pip install torch.") from error
    if torch.Tensor is vesta.Tensor:
        return obj
    return Exchange(vesta, torch, "to_torch", copy).converted(obj, "obj")


def share(tensor: Any, target: ModuleType) -> Any:
    """Returns a tensor of the library ``target`` over the memory of a dense tensor of the other one, without
    history."""
    tensor = tensor.detach()
    if str(tensor.layout).rpartition(".")[2] != "strided":
        raise TypeError(
            f"expected a dense tensor, got {tensor.layout}: use .to_dense(), or sparse=False in an Embedding"
        )
    if tensor.is_conj() or tensor.is_neg():  # DLPack has no word for it
        tensor = tensor.resolve_conj().resolve_neg()
    if tensor.device.type == "meta":
        dtype = getattr(target, str(tensor.dtype).rpartition(".")[2])
        return target.empty_strided(tuple(tensor.shape), tuple(tensor.stride()), dtype=dtype, device="meta")
    return target.from_dlpack(tensor)


class _Twins:
    """The parameters of both libraries that stand for each other, while both live."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref, weakref.ref]] = {}

    def of(self, parameter: Any) -> Any:
        """Returns the twin of a parameter; None if it has none, or no longer shares its memory."""
        one, other = self._known.get(id(parameter), (None, None))
        if one is None or other is None or one() is not parameter:
            return None
        twin = other()
        same = twin is not None and twin.data_ptr() == parameter.data_ptr() and tuple(twin.shape) == parameter.shape
        return twin if same else None

    def tie(self, a: Any, b: Any) -> None:
        """Makes two parameters twins."""
        for one, other in ((a, b), (b, a)):
            key = id(one)
            self._known[key] = weakref.ref(one, lambda _, key=key: self._known.pop(key, None)), weakref.ref(other)


twins = _Twins()


class Exchange:
    """One conversion from the library ``source`` to ``target``; both have PyTorch's names."""

    def __init__(self, source: Any, target: Any, name: str, copy: bool = False) -> None:
        if not isinstance(copy, bool):
            raise TypeError(f"{name}: expected True or False, got {copy!r} (copy).")
        self.source, self.target, self.name, self.copy = source, target, name, copy
        self.done: dict[int, tuple[Any, Any]] = {}  # by id: the original, and what it became
        self.parts: dict[int, tuple[Any, Any]] = {}  # the same for modules inside of modules
        self.open: set[int] = set()  # the containers that are being converted

    def converted(self, obj: Any, place: str) -> Any:
        """Returns the counterpart of ``obj``, which stands at ``place`` in what the user gave."""
        source = self.source
        if isinstance(obj, source.Tensor):
            return self.once(self.done, obj, lambda: self.tensor(obj, place))
        if isinstance(obj, source.nn.Module):
            return self.once(self.done, obj, lambda: self.module(obj, place))
        if isinstance(obj, source.Size):
            return self.target.Size(obj)
        if isinstance(obj, (MutableMapping, list, tuple, set, frozenset, deque)):
            return self.container(obj, place)
        if isinstance(obj, source.dtype):
            return self.dtype(obj, place)
        if isinstance(obj, source.device):
            return self.target.device(str(obj))
        if isinstance(obj, source.optim.Optimizer):
            raise TypeError(f"{self.name}: expected an optimizer's state_dict(), got the optimizer ({place}).")
        if dataclasses.is_dataclass(obj) and not isinstance(obj, type):
            made = shallow_copy(obj)
            for field in dataclasses.fields(obj):
                if hasattr(obj, field.name):
                    value = self.converted(getattr(obj, field.name), f"{place}.{field.name}")
                    object.__setattr__(made, field.name, value)
            return made
        return obj

    @staticmethod
    def once(done: dict[int, tuple[Any, Any]], obj: Any, make: Callable[[], Any]) -> Any:
        """Returns what ``make`` made of ``obj`` when it was first met."""
        if id(obj) not in done:
            done[id(obj)] = obj, make()
        return done[id(obj)][1]

    def container(self, obj: Any, place: str) -> Any:
        if id(obj) in self.open:
            raise ValueError(f"{self.name}: expected dicts, lists and tuples that do not contain themselves ({place}).")
        self.open.add(id(obj))
        try:
            if isinstance(obj, MutableMapping):
                members: Any = {k: self.converted(v, f"{place}[{k!r}]") for k, v in obj.items()}
            else:
                members = [self.converted(value, f"{place}[{i}]") for i, value in enumerate(obj)]
        finally:
            self.open.discard(id(obj))
        return self.rebuilt(obj, members, place)

    def rebuilt(self, obj: Any, members: Any, place: str) -> Any:
        """Makes a container of the class of ``obj``, of converted members."""
        if type(obj) is list:
            return members
        try:
            if isinstance(obj, MutableMapping):
                return self.mapping(obj, members)
            if isinstance(obj, self.source.nn.utils.rnn.PackedSequence):
                return self.target.nn.utils.rnn.PackedSequence(*members)
            if isinstance(obj, deque):
                return type(obj)(members, obj.maxlen)
            return type(obj)(*members) if hasattr(obj, "_fields") else type(obj)(members)
        except TypeError as error:
            raise TypeError(
                f"{self.name}: expected a {type(obj).__name__} that can be made of its members ({place}): {error}"
            ) from error

    @staticmethod
    def mapping(obj: MutableMapping, members: dict) -> MutableMapping:
        """Makes a mapping of the class of ``obj``, with its attributes: the ``_metadata`` of a state dict."""
        if type(obj) is dict:
            return members
        if not isinstance(obj, dict):
            return type(obj)(members)  # type: ignore[call-arg]
        made = shallow_copy(obj)
        for key, value in members.items():
            made[key] = value
        for key, value in getattr(obj, "__dict__", {}).items():
            getattr(made, "__dict__", {}).setdefault(key, value)
        return made

    def dtype(self, dtype: Any, place: str) -> Any:
        found = getattr(self.target, str(dtype).rpartition(".")[2], None)
        if found is None:
            raise TypeError(f"{self.name}: expected a dtype that {self.target.__name__} has, got {dtype} ({place}).")
        return found

    def tensor(self, tensor: Any, place: str) -> Any:
        source, target = self.source, self.target
        if source.nn.parameter.is_lazy(tensor):
            raise TypeError(f"{self.name}: expected a tensor with a shape, got an uninitialized one ({place}).")
        if tensor.layout != source.strided or getattr(tensor, "is_nested", False):
            kind = "nested" if getattr(tensor, "is_nested", False) else tensor.layout
            raise TypeError(f"{self.name}: expected a dense tensor, got {kind} ({place}). Use .to_dense().")
        if getattr(tensor, "is_quantized", False):
            raise TypeError(f"{self.name}: expected a plain tensor, got a quantized one ({place}). Use .dequantize().")
        if tensor.requires_grad and not tensor.is_leaf:
            raise RuntimeError(
                f"{self.name}: expected a leaf, got a result of operations on the tape of {source.__name__} ({place}). "
                "Use .detach(); gradients cross between the libraries in modules only."
            )
        self.dtype(tensor.dtype, place)
        is_parameter = isinstance(tensor, source.nn.Parameter)
        twin = twins.of(tensor) if is_parameter and not self.copy else None
        if twin is not None:
            return twin
        try:
            shared = share(tensor.clone() if self.copy else tensor, target)
        except Exception as error:
            kind = BufferError if isinstance(error, BufferError) else TypeError
            raise kind(f"{self.name}: {error} ({place})") from error
        if not is_parameter:
            return shared.requires_grad_() if tensor.requires_grad else shared
        made = target.nn.Parameter(shared, requires_grad=tensor.requires_grad)
        if not self.copy:
            twins.tie(tensor, made)
        return made

    def module(self, module: Any, place: str) -> Any:
        if self.copy:
            raise ValueError(
                f"{self.name}: expected copy=False for a module, which runs on its own parameters ({place})."
            )
        script = getattr(getattr(self.source, "jit", None), "ScriptModule", ())
        if isinstance(module, script):
            raise TypeError(f"{self.name}: expected a module written in Python, got a scripted one ({place}).")
        for path, part in module.named_modules():
            if type(part).__name__ in ("DistributedDataParallel", "FullyShardedDataParallel"):
                raise TypeError(
                    f"{self.name}: expected a module that is not distributed, got {type(part).__name__} "
                    f"({place}{'.' + path if path else ''}), whose hooks would not run. Convert the module inside, and "
                    f"distribute the result with {self.target.__name__}."
                )
        return importlib.import_module(f"{__package__}.torch_modules").module_of(module, self, place)


__dir__ = listing(globals())
