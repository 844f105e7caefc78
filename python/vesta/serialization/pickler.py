"""The pickle inside a .pt file, as PyTorch writes it: tensors as calls of PyTorch's functions, storages by reference.

Note [Names that are not imported]
A pickler writes a class or function by its name, after importing it to see that the name is right; C's does so without
exception. PyTorch is not there to be imported, so that the pickler is Python's (``pickle._Pickler``, which writes the
same bytes), and ``save_global`` writes the names of ``vesta`` as those of ``torch``. A state dict has few objects; for
long lists of numbers C's pickler writes the items.
"""

from __future__ import annotations

import copyreg
import pickle
from collections import OrderedDict
from collections.abc import Callable
from types import FunctionType
from typing import Any

import vesta.nn  # noqa: F401  # whole, before parts of it: other threads may import it
from vesta import _C, Tensor
from vesta._tensor import compressed_parts
from vesta.nn.modules.conv import Conv2d
from vesta.nn.modules.module import Module
from vesta.nn.modules.registry import Registry
from vesta.nn.parameter import Buffer, Parameter
from vesta.storage import TypedStorage, UntypedStorage

from .torch_names import STORAGE_NAMES, TorchGlobal, torch_name_of

__all__ = ["Storages", "dump"]

_globals: dict[tuple[str, str], TorchGlobal] = {}


def _named(module: str, name: str) -> TorchGlobal:
    """Returns the one object for a name of PyTorch."""
    return _globals.setdefault((module, name), TorchGlobal(module, name))


class Storages:
    """The storages that a pickle refers to, each once, in the order of their first use.

    Args:
        describe: ``describe(key, storage_type, location, numel)`` returns how the pickle refers to a storage.
        key_of: returns the name of a storage from its number.
    """

    def __init__(self, describe: Callable[..., tuple[Any, ...]], key_of: Callable[[int], str]) -> None:
        self.describe, self.key_of = describe, key_of
        self.found: dict[str, tuple[UntypedStorage, Any]] = {}
        self._keys: dict[Any, str] = {}
        self._dtypes: dict[Any, Any] = {}

    def refer(self, storage: UntypedStorage, dtype: Any, kind: TorchGlobal) -> tuple[Any, ...]:
        """Returns the reference to a storage. RuntimeError: tensors of two dtypes have it."""
        from .locations import location_tag

        place = (_C._storage_key(storage._bytes), storage._bytes.storage_offset())
        address = (place, storage.device) if storage.nbytes() else object()
        if self._dtypes.setdefault(address, dtype) != dtype:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        key = self._keys.get(address)
        if key is None:
            key = self._keys[address] = self.key_of(len(self._keys))
            self.found[key] = (storage, dtype)
        return self.describe(key, kind, location_tag(storage), storage.nbytes() // dtype.itemsize)


def _object_state(obj: Any) -> Any:
    """Returns the attributes of a tensor: a dict, or a pair with a dict of its slots; empty if there are none."""
    slots = {name: getattr(obj, name) for name in copyreg._slotnames(type(obj)) if hasattr(obj, name)}
    attributes = dict(obj.__dict__)
    return (attributes, slots) if slots else attributes


def _plain_tensor(tensor: Tensor) -> tuple[Any, ...]:
    """Reduces a tensor to PyTorch's function and its arguments."""
    if tensor.is_meta:
        size, stride = tuple(tensor.shape), tensor.stride()
        return _named("torch._utils", "_rebuild_meta_tensor_no_storage"), (
            tensor.dtype,
            size,
            stride,
            tensor.requires_grad,
        )
    if tensor.is_sparse:
        parts = (tensor._indices(), tensor._values(), tensor.size(), tensor.is_coalesced())
        return _named("torch._utils", "_rebuild_sparse_tensor"), (tensor.layout, parts)
    if tensor.layout is not _C.strided:
        return _named("torch._utils", "_rebuild_sparse_tensor"), (tensor.layout, compressed_parts(tensor))
    storage = TypedStorage(wrap_storage=UntypedStorage._of(tensor.detach()), dtype=tensor.dtype)
    arguments = (
        storage,
        tensor.storage_offset(),
        tuple(tensor.shape),
        tuple(tensor.stride()),
        tensor.requires_grad,
        OrderedDict(),
    )
    return _named("torch._utils", "_rebuild_tensor_v2"), arguments


def _reduce_tensor(tensor: Tensor) -> tuple[Any, ...]:
    function, arguments = _plain_tensor(tensor)
    state = _object_state(tensor)
    if type(tensor) is Tensor and not state:
        return function, arguments
    kind: type = type(tensor)
    if isinstance(tensor, Buffer):  # PyTorch's buffers are tensors with a mark
        kind, state = Tensor, {**tensor.__dict__, "_is_buffer": True}
    return _named("torch._tensor", "_rebuild_from_type_v2"), (function, kind, arguments, state)


def _reduce_parameter(parameter: Parameter) -> tuple[Any, ...]:
    state = _object_state(parameter)
    if type(parameter) is not Parameter:
        return _reduce_tensor(parameter)
    parts = (parameter.detach(), parameter.requires_grad, OrderedDict())
    if state:
        return _named("torch._utils", "_rebuild_parameter_with_state"), (*parts, state)
    return _named("torch._utils", "_rebuild_parameter"), parts


def _reduce_size(size: Any) -> tuple[Any, ...]:
    return _named("torch", "Size"), (tuple(size),)


def _reduce_device(device: Any) -> tuple[Any, ...]:
    where = (device.type,) if device.index is None else (device.type, device.index)
    return _named("torch", "device"), where


def _reduce_layout(layout: Any) -> tuple[Any, ...]:
    return _named("torch.serialization", "_get_layout"), (str(layout).replace("vesta.", "torch."),)


def _reduce_dtype(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


def _reduce_module(module: Module) -> Any:
    """Reduces a module as PyTorch does: its tables are plain dicts, and their entries are no attributes besides."""
    parts = list(module.__reduce_ex__(2))
    if len(parts) > 2 and isinstance(parts[2], dict) and isinstance(parts[2].get("_parameters"), Registry):
        tables = {name: dict(table) for name, table in parts[2].items() if isinstance(table, Registry)}
        mirrored = {name for table in tables.values() for name in table}
        kept = {name: value for name, value in parts[2].items() if name not in mirrored and name != "_has_hooks"}
        parts[2] = {**kept, **tables}
        if isinstance(module, Conv2d):
            parts[2] = {**_convolution_of_pytorch(module), **parts[2]}
    return tuple(parts)


def _convolution_of_pytorch(layer: Conv2d) -> dict[str, Any]:
    """Returns the attributes that PyTorch's convolutions have besides Vesta's."""
    if isinstance(layer.padding, str):
        whole = [step * (width - 1) for step, width in zip(layer.dilation, layer.kernel_size)]
        sides = [(n // 2, n - n // 2) if layer.padding == "same" else (0, 0) for n in reversed(whole)]
        padding: Any = [n for side in sides for n in side]
    else:
        padding = tuple(n for n in reversed(layer.padding) for _ in range(2))
    return {"transposed": False, "output_padding": (0, 0), "_reversed_padding_repeated_twice": padding}


_REDUCERS: dict[type, Callable[[Any], Any]] = {
    Tensor: _reduce_tensor,
    Parameter: _reduce_parameter,
    Buffer: _reduce_tensor,
    _C.Size: _reduce_size,
    _C.device: _reduce_device,
    _C.layout: _reduce_layout,
    _C.dtype: _reduce_dtype,
    _C.memory_format: _reduce_dtype,
}
#: Methods that a subclass inherits; one with a method of its own is reduced by that.
_INHERITED = (Tensor.__reduce_ex__, Parameter.__reduce_ex__, Buffer.__reduce_ex__)


class _Reducers(dict):
    """How objects are reduced, by type: Vesta's, then those of ``copyreg`` or of another pickler."""

    def __init__(self, others: Any) -> None:
        super().__init__(_REDUCERS)
        self.others = others

    def __missing__(self, kind: type) -> Any:
        if issubclass(kind, Tensor) and kind.__reduce_ex__ in _INHERITED:
            return _reduce_parameter if issubclass(kind, Parameter) else _reduce_tensor
        if issubclass(kind, Module) and kind.__reduce_ex__ is object.__reduce_ex__:
            return _reduce_module
        return self.others[kind]

    def get(self, kind: type, default: Any = None) -> Any:
        """Returns the reducer of a type."""
        try:
            return self[kind]
        except KeyError:
            return default


def _reference_of(obj: Any, storages: Storages) -> Any:
    """Returns the reference to a storage, None for any other object."""
    if type(obj) is TypedStorage:
        return storages.refer(obj._untyped_storage, obj.dtype, _named("torch", STORAGE_NAMES[obj.dtype]))
    if type(obj) is UntypedStorage:
        return storages.refer(obj, _C.uint8, _named("torch.storage", "UntypedStorage"))
    return None


def _save_global(pickler: Any, obj: Any, module: str, name: str) -> None:
    """Writes a name; protocols below 4 as a line each, later ones as two texts."""
    if pickler.proto >= 4:
        pickler.save(module)
        pickler.save(name)
        pickler.write(pickle.STACK_GLOBAL)
    else:
        pickler.write(pickle.GLOBAL + module.encode() + b"\n" + name.encode() + b"\n")
    pickler.memoize(obj)


def _python_pickler(base: Any, storages: Storages) -> type:
    """Returns a subclass of a pickler written in Python that writes PyTorch's names."""

    class Pickler(base):
        dispatch = dict(base.dispatch)

        def save_storage(self, obj: Any) -> None:  # instead of persistent_id, which would do more for every object
            self.save_pers(_reference_of(obj, storages))

        def save_global(self, obj: Any, name: str | None = None) -> None:
            name = name or getattr(obj, "__qualname__", None) or obj.__name__
            module = getattr(obj, "__module__", None)
            if isinstance(module, str) and (module == "vesta" or module.startswith("vesta.")):
                _save_global(self, obj, torch_name_of(module, name), name)
            else:
                super().save_global(obj, name)

        def save_torch_global(self, obj: TorchGlobal) -> None:
            _save_global(self, obj, obj.module, obj.name)

        def save_list(self, obj: list[Any]) -> None:
            if len(obj) > 100 and self.bin and set(map(type, obj)) <= {int, float, bool}:
                self.write(pickle.EMPTY_LIST)
                self.memoize(obj)
                self.write(_numbers(obj, self.proto))
            else:
                super().save_list(obj)

        dispatch[TypedStorage] = dispatch[UntypedStorage] = save_storage
        dispatch[TorchGlobal] = save_torch_global
        dispatch[list] = save_list
        if dispatch.get(FunctionType) is pickle._Pickler.save_global:  # type: ignore[attr-defined]
            dispatch[FunctionType] = save_global

    return Pickler


def _numbers(values: list[Any], protocol: int) -> bytes:
    """Returns the opcodes that append numbers to a list, written in C."""
    whole = pickle.dumps(values, min(protocol, 3))
    return whole[whole.index(b"q\x00") + 2 : -1]  # without header, list, memo and end


def _foreign_pickler(base: Any, storages: Storages) -> type:
    """Returns a subclass of a pickler written in C: its files have Vesta's own names, and only Vesta loads them."""

    class Pickler(base):
        def persistent_id(self, obj: Any) -> Any:
            return _reference_of(obj, storages)

    return Pickler


def dump(obj: Any, file: Any, pickle_module: Any, protocol: int, storages: Storages) -> None:
    """Writes the pickle of ``obj`` to ``file``; ``storages`` collects the storages that it refers to."""
    if type(protocol) is not int or not -1 <= protocol <= pickle.HIGHEST_PROTOCOL:
        raise ValueError(
            f"save: expected a protocol of 0 to {pickle.HIGHEST_PROTOCOL}, got {protocol!r} (pickle_protocol)."
        )
    base = pickle_module.Pickler
    if base is pickle.Pickler:
        base = pickle._Pickler  # type: ignore[attr-defined]
    in_python = hasattr(base, "dispatch") and issubclass(base, pickle._Pickler)  # type: ignore[attr-defined]
    pickler = (_python_pickler if in_python else _foreign_pickler)(base, storages)(file, protocol=protocol)
    pickler.dispatch_table = _Reducers(getattr(pickler, "dispatch_table", copyreg.dispatch_table))
    pickler.dump(obj)
