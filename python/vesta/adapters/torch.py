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

import importlib
import sys
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
    ``torch.nn.Parameter``                  a ``vesta.nn.Parameter`` over the same memory; gradients stay behind
    ``torch.nn.Module``                     a ``vesta.nn.Module`` that runs it: same parameters, same names, and
                                            gradients pass through (once; not twice differentiable)
    dict, list, tuple, named tuple          one of its class with its members converted: state dicts of modules,
                                            optimizers, schedulers and scalers, batches
    ``torch.dtype``, ``device``, ``Size``   Vesta's
    anything else                           itself
    ======================================  =======================================================================

    A tensor that occurs twice is converted once, so that tied weights stay tied.

    Args:
        obj: a tensor, a module, or any nesting of dicts, lists and tuples of them.
        copy: whether tensors get memory of their own.

    Raises:
        TypeError: a tensor that Vesta has no counterpart of: its dtype (``uint16``, ``float8``), its layout (sparse,
            nested, quantized). The message says where in ``obj`` it is.
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
        obj: a tensor, a module, or any nesting of dicts, lists and tuples of them.
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
    if tensor.is_conj() or tensor.is_neg():  # DLPack has no word for it
        tensor = tensor.resolve_conj().resolve_neg()
    if tensor.device.type == "meta":
        dtype = getattr(target, str(tensor.dtype).rpartition(".")[2])
        return target.empty_strided(tuple(tensor.shape), tuple(tensor.stride()), dtype=dtype, device="meta")
    return target.from_dlpack(tensor)


class Exchange:
    """One conversion from the library ``source`` to ``target``; both have PyTorch's names."""

    def __init__(self, source: Any, target: Any, name: str, copy: bool) -> None:
        if not isinstance(copy, bool):
            raise TypeError(f"{name}: expected True or False, got {copy!r} (copy).")
        self.source, self.target, self.name, self.copy = source, target, name, copy
        self.done: dict[int, tuple[Any, Any]] = {}  # by id: the original, and what it became
        self.open: set[int] = set()  # the containers that are being converted

    def converted(self, obj: Any, place: str) -> Any:
        """Returns the counterpart of ``obj``, which stands at ``place`` in what the user gave."""
        source = self.source
        if isinstance(obj, source.Tensor):
            return self.once(obj, lambda: self.tensor(obj, place))
        if isinstance(obj, source.nn.Module):
            return self.once(obj, lambda: self.module(obj, place))
        if isinstance(obj, source.Size):
            return self.target.Size(obj)
        if isinstance(obj, (MutableMapping, list, tuple)):
            return self.container(obj, place)
        if isinstance(obj, source.dtype):
            return self.dtype(obj, place)
        if isinstance(obj, source.optim.Optimizer):
            raise TypeError(f"{self.name}: expected an optimizer's state_dict(), got the optimizer ({place}).")
        if isinstance(obj, source.device):
            return self.target.device(str(obj))
        return obj

    def once(self, obj: Any, make: Callable[[], Any]) -> Any:
        """Returns what ``make`` made of ``obj`` when it was first met."""
        if id(obj) not in self.done:
            self.done[id(obj)] = obj, make()
        return self.done[id(obj)][1]

    def container(self, obj: Any, place: str) -> Any:
        if id(obj) in self.open:
            raise ValueError(f"{self.name}: expected dicts, lists and tuples that do not contain themselves ({place}).")
        self.open.add(id(obj))
        try:
            if isinstance(obj, MutableMapping):
                return self.mapping(obj, {k: self.converted(v, f"{place}[{k!r}]") for k, v in obj.items()})
            members = [self.converted(value, f"{place}[{i}]") for i, value in enumerate(obj)]
        finally:
            self.open.discard(id(obj))
        if type(obj) is list:
            return members
        return type(obj)(*members) if hasattr(obj, "_fields") else type(obj)(members)

    @staticmethod
    def mapping(obj: MutableMapping, members: dict) -> MutableMapping:
        """Makes a mapping of the class of ``obj``, with its attributes: the ``_metadata`` of a state dict."""
        if type(obj) is dict:
            return members
        made = shallow_copy(obj)
        for key, value in members.items():
            made[key] = value
        vars_of = getattr(made, "__dict__", None)
        for key, value in getattr(obj, "__dict__", {}).items():
            if vars_of is not None and key not in vars_of:
                vars_of[key] = value
        return made

    def dtype(self, dtype: Any, place: str) -> Any:
        found = getattr(self.target, str(dtype).rpartition(".")[2], None)
        if found is None:
            raise TypeError(f"{self.name}: expected a dtype that {self.target.__name__} has, got {dtype} ({place}).")
        return found

    def tensor(self, tensor: Any, place: str) -> Any:
        source, target = self.source, self.target
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
        try:
            shared = share(tensor.clone() if self.copy else tensor, target)
        except Exception as error:
            kind = BufferError if isinstance(error, BufferError) else TypeError
            raise kind(f"{self.name}: {error} ({place})") from error
        if isinstance(tensor, source.nn.Parameter):
            return target.nn.Parameter(shared, requires_grad=tensor.requires_grad)
        return shared.requires_grad_() if tensor.requires_grad else shared

    def module(self, module: Any, place: str) -> Any:
        if self.copy:
            raise ValueError(
                f"{self.name}: expected copy=False for a module, which runs on its own parameters ({place})."
            )
        return importlib.import_module(f"{__package__}.torch_modules").module_of(module, self, place)


__dir__ = listing(globals())
