"""What tensors are made of in files: PyTorch's functions by their names, with every number checked.

A file may claim anything. Sizes, strides and offsets must be integers that stay inside the storage before a tensor is
made over it; nothing here allocates what a file claims.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NoReturn

import vesta
import vesta.nn  # whole, before parts of it: other threads may import it
from vesta import _C, Tensor
from vesta.nn.parameter import Buffer, Parameter
from vesta.storage import TypedStorage, UntypedStorage

__all__ = [
    "LegacyTensorType",
    "_get_layout",
    "_rebuild_device_tensor_from_cpu_tensor",
    "_rebuild_device_tensor_from_numpy",
    "_rebuild_from_type_v2",
    "_rebuild_meta_tensor_no_storage",
    "_rebuild_parameter",
    "_rebuild_parameter_with_state",
    "_rebuild_sparse_tensor",
    "_rebuild_tensor",
    "_rebuild_tensor_v2",
    "_rebuild_tensor_v3",
    "device",
    "size",
]


class _Pending(threading.local):
    """Tensors with marks, and sparse ones, which are finished later, since their values are not read yet; None: now."""

    marked: list[Any] | None = None
    sparse: list[Any] | None = None


pending = _Pending()
#: What is run when a file calls an allowed name, by what the name stands for; ``safe_globals.calls`` fills it.
checked_calls: dict[Any, Callable[..., Any]] = {}
_LARGEST = (1 << 63) - 1


def _fail(expected: str, got: str) -> NoReturn:
    raise RuntimeError(f"load: expected {expected}, got {got} in the file. It is damaged.")


def _numbers(values: Any, what: str) -> tuple[int, ...]:
    """Returns a file's sizes or strides; RuntimeError if they are none."""
    if not isinstance(values, (tuple, list)) or len(values) > 64:
        _fail(f"{what} as a tuple of at most 64 integers", f"{type(values).__name__}")
    for value in values:
        if type(value) is not int or not 0 <= value <= _LARGEST:
            _fail(f"{what} of 0 to 2**63 - 1", f"{value!r:.40}")
    return tuple(values)


def _over(storage: Any, dtype: Any, offset: Any, sizes: Any, strides: Any) -> Tensor:
    """Makes a tensor over a storage of the file."""
    if isinstance(storage, TypedStorage):
        storage = storage._untyped_storage
    if not isinstance(storage, UntypedStorage):
        _fail("a storage under a tensor", f"{type(storage).__name__}")
    if type(dtype) is not _C.dtype:
        getattr(dtype, "refuse", lambda: _fail("a dtype", type(dtype).__name__))()
    sizes, strides = _numbers(sizes, "sizes"), _numbers(strides, "strides")
    if len(sizes) != len(strides):
        _fail("as many strides as sizes", f"sizes {list(sizes)} and strides {list(strides)}")
    (offset,) = _numbers((offset,), "an offset")
    count, last = 1, offset
    for length, step in zip(sizes, strides):
        count *= length
        last += (length - 1) * step
    if count > _LARGEST:
        _fail("fewer than 2**63 elements", f"sizes {list(sizes)}")
    if count and (last + 1) * dtype.itemsize > storage.nbytes():
        _fail(
            f"a tensor inside its storage of {storage.nbytes()} bytes",
            f"sizes {list(sizes)}, strides {list(strides)} and offset {offset} of {dtype}, which need "
            f"{(last + 1) * dtype.itemsize} bytes,",
        )
    inside = count or offset * dtype.itemsize <= storage.nbytes()
    return _C._over(storage._bytes, dtype, sizes, strides, offset if inside else 0)


def _wants_grad(tensor: Tensor, requires_grad: Any) -> Tensor:
    if requires_grad:
        if not (tensor.is_floating_point() or tensor.is_complex()):
            _fail("a floating-point or complex dtype where a gradient is wanted", str(tensor.dtype))
        tensor.requires_grad_()
    return tensor


def _resolve(tensor: Tensor, metadata: Any) -> Tensor:
    """Applies the conjugation or negation that PyTorch keeps as a mark: Vesta's tensors have their values in memory."""
    if not metadata:
        return tensor
    if not isinstance(metadata, dict):
        _fail("a dict of marks", type(metadata).__name__)
    if pending.marked is not None:
        pending.marked.append((tensor, metadata))
        return tensor
    return resolved(tensor, metadata)


def resolved(tensor: Tensor, metadata: dict[str, Any]) -> Tensor:
    """Returns the conjugated or negated values."""
    if metadata.get("conj") and tensor.is_complex():
        tensor = tensor.conj()
    return -tensor if metadata.get("neg") else tensor


def _dtype_of(storage: Any) -> Any:
    return storage.dtype if isinstance(storage, TypedStorage) else _C.uint8


def _rebuild_tensor(storage: Any, storage_offset: Any, size: Any, stride: Any) -> Tensor:
    return _over(storage, _dtype_of(storage), storage_offset, size, stride)


def _rebuild_tensor_v2(
    storage: Any,
    storage_offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    backward_hooks: Any,
    metadata: Any = None,
) -> Tensor:
    made = _over(storage, _dtype_of(storage), storage_offset, size, stride)
    return _wants_grad(_resolve(made, metadata) if metadata else made, requires_grad)


def _rebuild_tensor_v3(
    storage: Any,
    storage_offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    backward_hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> Tensor:
    return _wants_grad(_resolve(_over(storage, dtype, storage_offset, size, stride), metadata), requires_grad)


def _rebuild_sparse_tensor(layout: Any, data: Any) -> Tensor:
    if layout in (_C.sparse_csr, _C.sparse_csc):
        return _rebuild_compressed(layout, data)
    if layout is not _C.sparse_coo:
        raise NotImplementedError(
            "load: expected a sparse tensor of the layout sparse_coo, sparse_csr or sparse_csc, got another one in the "
            "file."
        )
    if not isinstance(data, tuple) or len(data) not in (3, 4) or not all(isinstance(t, Tensor) for t in data[:2]):
        _fail("indices, values and sizes of a sparse tensor", type(data).__name__)
    from vesta.sparse import sparse_coo_tensor

    is_coalesced = len(data) == 4 and data[3] is True
    parts = data[0], data[1], _numbers(data[2], "sizes")
    if pending.sparse is None:
        return sparse_coo_tensor(*parts, is_coalesced=is_coalesced)
    pending.sparse.append((parts, is_coalesced))
    return _C._private._sparse_coo(*parts, is_coalesced)  # over indices that are yet to be read


def _rebuild_compressed(layout: Any, data: Any) -> Tensor:
    if not isinstance(data, tuple) or len(data) != 4 or not all(isinstance(t, Tensor) for t in data[:3]):
        _fail("indices, values and sizes of a compressed matrix", type(data).__name__)
    from vesta.sparse import sparse_compressed_tensor

    if pending.sparse is not None:
        raise NotImplementedError("load: expected no compressed matrix in a file of the older format, got one.")
    return sparse_compressed_tensor(*data[:3], _numbers(data[3], "sizes"), layout=layout)


def _parameter(data: Any, requires_grad: Any) -> Parameter:
    if not isinstance(data, Tensor):
        _fail("a tensor in a parameter", type(data).__name__)
    if requires_grad and not (data.is_floating_point() or data.is_complex()):
        _fail("a floating-point or complex dtype where a gradient is wanted", str(data.dtype))
    return Parameter(data, bool(requires_grad))


def _rebuild_parameter(data: Any, requires_grad: Any, backward_hooks: Any) -> Parameter:
    return _parameter(data, requires_grad)


def _rebuild_parameter_with_state(data: Any, requires_grad: Any, backward_hooks: Any, state: Any) -> Parameter:
    return _set_state(_parameter(data, requires_grad), state)


def _set_state(made: Any, state: Any) -> Any:
    """Sets the attributes of a tensor: a dict, or a dict and one of slots."""
    parts = state if isinstance(state, tuple) and len(state) == 2 else (state,)
    for part in parts:
        if part is not None and not isinstance(part, dict):
            _fail("a dict of attributes", type(part).__name__)
        for name, value in (part or {}).items():
            if not isinstance(name, str) or (name.startswith("__") and name.endswith("__")):
                _fail("names of attributes", repr(name)[:40])
            setattr(made, name, value)
    return made


def _rebuild_from_type_v2(func: Any, new_type: Any, args: Any, state: Any) -> Any:
    if not callable(func) or func is _rebuild_from_type_v2 or not isinstance(args, tuple):
        _fail("a function that makes a tensor, and its arguments", f"{type(func).__name__} and {type(args).__name__}")
    made = checked_calls.get(func, func)(
        *args
    )  # what a file may call with any arguments, else what the program has allowed
    if not isinstance(made, Tensor) or not isinstance(new_type, type) or not issubclass(new_type, Tensor):
        _fail("a tensor and its class", f"{type(made).__name__} and {getattr(new_type, '__name__', 'no class')}")
    if new_type is Tensor and isinstance(state, dict) and state.get("_is_buffer"):
        made = Buffer(made)
        state = {name: value for name, value in state.items() if name != "_is_buffer"}
    elif type(made) is not new_type:
        made = made.as_subclass(new_type)
    if hasattr(type(made), "__setstate__"):
        made.__setstate__(state)
        return made
    return _set_state(made, state)


def _rebuild_meta_tensor_no_storage(dtype: Any, size: Any, stride: Any, requires_grad: Any) -> Tensor:
    made = vesta.empty_strided(_numbers(size, "sizes"), _numbers(stride, "strides"), dtype=dtype, device="meta")
    return _wants_grad(made, requires_grad)


def _rebuild_device_tensor_from_cpu_tensor(data: Any, dtype: Any, device: Any, requires_grad: Any) -> Tensor:
    if not isinstance(data, Tensor):
        _fail("a tensor", type(data).__name__)
    return _wants_grad(data.detach().to(device, dtype), requires_grad)


def _rebuild_device_tensor_from_numpy(data: Any, dtype: Any, device: Any, requires_grad: Any) -> Tensor:
    return _wants_grad(_C.from_numpy(data).to(device, dtype), requires_grad)


def _get_layout(name: Any) -> Any:
    """Returns the layout of a name."""
    names = ("strided", "sparse_coo", "sparse_csr", "sparse_csc")
    layouts = {known: getattr(_C, known) for known in names}
    found = layouts.get(name.removeprefix("torch.").removeprefix("vesta.")) if isinstance(name, str) else None
    if found is None:
        raise NotImplementedError(f"load: expected a layout of {names}, got {name!r:.40} in the file.")
    return found


def size(values: Any = ()) -> Any:
    """Makes a ``vesta.Size``."""
    return _C.Size(_numbers(values, "sizes"))


def device(kind: Any, index: Any = None) -> Any:
    """Makes a ``vesta.device``."""
    if not isinstance(kind, str) or not isinstance(index, (int, type(None))):
        _fail("a device", f"{type(kind).__name__} and {type(index).__name__}")
    return _C.device(kind) if index is None else _C.device(kind, index)


class LegacyTensorType:
    """A class of tensors by dtype in a file (``torch.FloatTensor``): only what files of old versions do with it."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype

    def __call__(self, *args: Any) -> Tensor:
        if args:
            _fail(f"a tensor class of {self.dtype} called without arguments", f"{len(args)} arguments")
        return vesta.empty(0, dtype=self.dtype)
