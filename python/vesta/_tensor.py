"""Methods of ``Tensor`` that need no speed: copies, pickling, printing, compositions of other methods."""

from __future__ import annotations

import _thread
import os

from . import _C, _functions
from ._arguments import checked, expect
from ._C import Tensor
from ._overridable import overridable, overridable_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
    from weakref import WeakValueDictionary

    from numpy.typing import NDArray

    from vesta._C._types import DType, Ints, MemoryFormat, Number, Shape
    from vesta.storage import TypedStorage, UntypedStorage

    from .cuda import Stream
else:  # for get_type_hints()
    NDArray = list
    Any = DType = Ints = MemoryFormat = Number = Shape = Stream = TypedStorage = UntypedStorage = object
    WeakValueDictionary = object


class _Storage:
    """The pickled form of the memory under one or more tensors: aliases in one pickle stay aliases."""

    __slots__ = ("__weakref__", "bytes")

    def __init__(self, values: Tensor) -> None:
        self.bytes = values

    def __reduce__(self) -> tuple[Any, ...]:
        return _load_storage, (_C._to_bytes(self.bytes),)


#: The storages that are being pickled, by their key, once there are some; the pickler keeps them until it is done.
_storages: WeakValueDictionary[int, _Storage] | None = None
_storages_lock = _thread.RLock()
os.register_at_fork(after_in_child=_storages_lock._at_fork_reinit)  # type: ignore[attr-defined]


def _storage_of(values: Tensor) -> _Storage:
    """Returns the pickled form of the memory under a tensor: one for all tensors over it, in all threads."""
    global _storages
    from weakref import WeakValueDictionary

    key = _C._storage_key(values)
    with _storages_lock:
        if _storages is None:
            _storages = WeakValueDictionary()
        found = _storages.get(key)
        if found is None:
            found = _storages[key] = _Storage(values)
    return found


def _load_storage(data: bytes) -> _Storage:
    return _Storage(_C._from_bytes(data))


def _rebuild(
    cls: type,
    storage: _Storage,
    geometry: tuple[Any, ...],
    requires_grad: bool,
    state: dict[str, Any],
    device: str = "cpu",
) -> Tensor:
    """Makes a tensor from its pickled parts, on the device where it was."""
    return _finish(cls, _C._over(storage.bytes, *geometry).to(device), requires_grad, state)


def _rebuild_sparse(cls: type, parts: tuple[Any, ...], requires_grad: bool, state: dict[str, Any]) -> Tensor:
    """Makes a sparse tensor from its pickled parts."""
    return _finish(cls, _C._private._sparse_coo(*parts), requires_grad, state)


def _rebuild_compressed(cls: type, parts: tuple[Any, ...], requires_grad: bool, state: dict[str, Any]) -> Tensor:
    """Makes a compressed matrix from its pickled parts."""
    return _finish(cls, _C._private._sparse_compressed(*parts), requires_grad, state)


def compressed_parts(matrix: Tensor) -> tuple[Any, ...]:
    """Returns both indices, values and sizes of a matrix in CSR or CSC."""
    by_rows = matrix.layout is _C.sparse_csr
    indices = (_C._private._compressed_part(matrix, by_rows, plain) for plain in (False, True))
    return (*indices, matrix.detach().values(), matrix.size())


def _rebuild_meta(cls: type, geometry: tuple[Any, ...], requires_grad: bool, state: dict[str, Any]) -> Tensor:
    """Makes a tensor without memory from its pickled parts."""
    dtype, size, stride = geometry
    return _finish(cls, _C._ops.empty_strided(size, stride, dtype=dtype, device="meta"), requires_grad, state)


def _finish(cls: type, made: Tensor, requires_grad: bool, state: dict[str, Any]) -> Tensor:
    """Gives a new tensor its class, its flag and its attributes."""
    if cls is not Tensor:
        made = Tensor._make_subclass(cls, made, False)
    if requires_grad:
        made.requires_grad_()
    if state:
        made.__dict__.update(state)
    return made


def _geometry(self: Tensor) -> tuple[Any, ...]:
    return self.dtype, tuple(self.shape), self.stride(), self.storage_offset()


def _make_generator(device: str, state: Tensor) -> Any:
    """Makes a generator that continues where the pickled or copied one was."""
    generator = _C.Generator(device)
    generator.set_state(state)
    return generator


def _reduce_generator(generator: Any) -> tuple[Any, ...]:
    return _make_generator, (str(generator.device), generator.get_state())


def __reduce_ex__(self: Tensor, protocol: int) -> tuple[Any, ...]:
    if self.is_sparse:  # the result of an operation is pickled without its history, as a leaf that requires grad
        parts = (self._indices(), self._values(), tuple(self.shape), self.is_coalesced())
        return _rebuild_sparse, (type(self), parts, self.requires_grad, dict(self.__dict__))
    if self.layout is not _C.strided:
        parts = (*compressed_parts(self), self.layout is _C.sparse_csr)
        return _rebuild_compressed, (type(self), parts, self.requires_grad, dict(self.__dict__))
    if self.is_meta:
        return _rebuild_meta, (type(self), _geometry(self)[:3], self.requires_grad, dict(self.__dict__))
    host = self.detach().cpu()
    storage = _storage_of(_C._storage_bytes(host))
    parts = (type(self), storage, _geometry(host), self.requires_grad, dict(self.__dict__))
    return _rebuild, parts if self.device.type == "cpu" else (*parts, str(self.device))


def __copy__(self: Tensor) -> Tensor:
    """Returns another object over the same memory, with the same attributes; always a leaf, as PyTorch's copies are."""
    return _finish(type(self), self.detach(), self.requires_grad, self.__dict__)


def __deepcopy__(self: Tensor, memo: dict[Any, Any]) -> Tensor:
    from copy import deepcopy

    if not isinstance(memo, dict):
        raise TypeError(f"__deepcopy__: expected a dict, got {type(memo).__name__} (memo).")
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment. "
            "Use .detach().clone()."
        )
    if self.layout is not _C.strided:
        made = memo[id(self)] = _finish(type(self), self.detach().clone(), self.requires_grad, {})
        made.__dict__.update(deepcopy(self.__dict__, memo))
        return made
    whole = _C._storage_bytes(self)
    key = ("vesta storage", _C._storage_key(self))  # tensors that share memory share its copy
    if key not in memo:
        memo[key] = whole.clone()
    made = _finish(type(self), _C._over(memo[key], *_geometry(self)), self.requires_grad, {})
    if self.grad is not None:
        made.grad = deepcopy(self.grad, memo)
    memo[id(self)] = made
    made.__dict__.update(deepcopy(self.__dict__, memo))
    return made


def __format__(self: Tensor, spec: str) -> str:
    if self.dim() == 0 and not self.is_meta:
        return format(self.item(), spec)
    return object.__format__(self, spec)


def __array_wrap__(self: Tensor, array: Any, context: Any = None, return_scalar: bool = False) -> Tensor:
    """Returns a tensor as the result of a NumPy function with a tensor argument."""
    if isinstance(array, Tensor) or not hasattr(array, "ndim"):
        raise TypeError(f"__array_wrap__: expected a NumPy array, got {type(array).__name__} (array).")
    return _C.from_numpy(array.copy() if array.ndim == 0 else array)


def _repr_html_(self: Tensor) -> str | None:
    """Returns how a notebook shows the tensor (``vesta.notebook``)."""
    from .notebook import rendered
    from .notebook.tensors import tensor_html

    return rendered(tensor_html, self)


def to_numpy(self: Tensor) -> NDArray[Any]:
    """Returns the values as a NumPy array over the tensor's memory: ``numpy()`` under the name that matplotlib, pandas
    and xarray look for.

    With it a library that does not know Vesta converts a tensor at once. Without it matplotlib iterates over the rows
    of a tensor [100, 2] and draws 100 series, where an array has 2.

    Raises:
        RuntimeError: the tensor requires grad. Use ``.detach()``.
        TypeError: it is on a GPU, sparse or of dtype ``bfloat16``, which NumPy has not.

    Example::

        >>> import vesta
        >>> vesta.ones(2).to_numpy()
        array([1., 1.], dtype=float32)
    """
    _functions._expect_tensor("to_numpy", self)
    if self.layout is not _C.strided:
        raise TypeError("to_numpy: expected a dense tensor, got a sparse one. Use .to_dense().")
    return self.numpy()


def __complex__(self: Tensor) -> complex:
    """Returns the only element as a complex number. ValueError: there is not exactly one."""
    expect("complex", "input", self, Tensor, "Tensor")
    if self.numel() != 1:
        raise _C.ArgumentError(
            f"complex: only one element tensors can be converted to Python scalars, got shape {list(self.shape)}. "
            "Use .tolist() for all elements."
        )
    return complex(self.item())


#: The function that ``__torch_function__`` of this thread runs. (``threading`` has the class from there.)
_running = _thread._local()


@classmethod
def __torch_function__(cls: type, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Runs ``func`` itself; results of a subclass's operations are of that subclass."""
    if not isinstance(types, (tuple, list, set, frozenset)) or not all(isinstance(kind, type) for kind in types):
        raise TypeError(f"__torch_function__: expected a tuple of classes, got {types!r:.80} (types).")
    if not callable(func):
        raise TypeError(f"__torch_function__: expected a function, got {type(func).__name__} (func).")
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    enabled = _C._set_torch_function_enabled(False)
    outer, _running.function = getattr(_running, "function", None), func
    try:
        if func is outer and not enabled:  # another library's: it asks again, whatever is enabled here
            raise TypeError(
                f"{getattr(func, '__name__', func)}: expected tensors of that library, got a vesta.Tensor. Convert it: "
                "vesta.to_torch(t) or vesta.from_torch(t), which copy nothing."
            )
        result = func(*args, **(kwargs or {}))
    finally:
        _running.function = outer
        _C._set_torch_function_enabled(enabled)
    return result if func in _UNCONVERTED else _as_class(result, cls)


#: Whose results keep their class: the very tensors that the object holds.
_UNCONVERTED = (Tensor.grad.__get__, Tensor._base.__get__)


def _as_class(result: Any, cls: type) -> Any:
    if isinstance(result, Tensor):
        return result if isinstance(result, cls) else result.as_subclass(cls)
    if isinstance(result, (tuple, list)) and any(isinstance(item, Tensor) for item in result):
        items = [_as_class(item, cls) for item in result]
        return type(result)(*items) if hasattr(result, "_fields") else type(result)(items)  # a named tuple, or any
    return result


def type_(
    self: Tensor, dtype: Any = None, non_blocking: bool = False, *, memory_format: MemoryFormat | None = None
) -> Any:
    """Returns the values in ``dtype``, or as a type: ``vesta.LongTensor``, ``"vesta.cuda.FloatTensor"``, device
    included. ``vesta.Tensor`` is the CPU's type of the default dtype.

    Without ``dtype``, the name of the tensor's own type.

    Example::

        >>> import vesta
        >>> vesta.tensor([1]).type(), vesta.tensor([1]).type(vesta.float32)
        ('vesta.LongTensor', tensor([1.]))
    """
    from . import tensor_types

    _functions._expect_tensor("type", self)
    if dtype is None:
        name = tensor_types.NAMES[str(self.dtype).rsplit(".", 1)[1]]
        package = tensor_types.PACKAGE
        return f"{package}.cuda.{name}" if self.is_cuda else f"{package}.{name}"
    if isinstance(dtype, str):
        dtype = tensor_types.by_name(dtype)
    elif dtype is Tensor:
        dtype = tensor_types.of_default_dtype()
    if isinstance(dtype, tensor_types.TensorType):
        if self.device.type == dtype.device_type:
            return self.to(dtype.dtype, non_blocking=non_blocking, memory_format=memory_format)
        return self.to(dtype.device_type, dtype.dtype, non_blocking=non_blocking, memory_format=memory_format)
    return self.to(dtype, non_blocking=non_blocking, memory_format=memory_format)


def share_memory_(self: Tensor) -> Tensor:
    """Moves the memory under the tensor, and with it every view, to shared memory; other processes then write to it.

    Does nothing if it is there already, or on a GPU. A tensor in shared memory cannot be resized.
    """
    _functions._expect_tensor("share_memory_", self)
    if self.is_sparse:
        for part in (self._indices(), self._values()):
            share_memory_(part)
        return self
    if self.is_meta:
        raise NotImplementedError("share_memory_: expected a tensor with memory, got a meta tensor.")
    if self.device.type == "cpu":
        _C._shared.share(self)
    return self


def narrow_copy(self: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Returns a copy of what ``narrow`` shows.

    Example::

        >>> import vesta
        >>> vesta.arange(4).narrow_copy(0, 1, 2)
        tensor([1, 2])
    """
    expect("narrow_copy", "input", self, Tensor, "Tensor")
    return self.narrow(dim, start, length).clone(memory_format=_C.contiguous_format)


def is_nonzero(self: Tensor) -> bool:
    """Returns whether the only element is not zero. RuntimeError: other than one element.

    Example::

        >>> import vesta
        >>> vesta.tensor([2.0]).is_nonzero()
        True
    """
    _functions._expect_tensor("is_nonzero", self)
    if self.numel() != 1:
        raise RuntimeError(
            f"is_nonzero: Boolean value of Tensor with {'more than one value' if self.numel() else 'no values'} is "
            f"ambiguous, got shape {list(self.shape)}. Use .any() or .all()."
        )
    return bool(self)


def is_shared(self: Tensor) -> bool:
    """Returns whether the memory under the tensor is shared memory; always True on a GPU."""
    _functions._expect_tensor("is_shared", self)
    return self.is_cuda or (self.device.type == "cpu" and _C._shared.is_shared(self))


def _with_data(tensor: Tensor, data: Tensor) -> Tensor:
    """Puts a tensor over other memory, as a change of its values: what has saved it for backward refuses then."""
    from .autograd import no_grad

    tensor.data = data
    with no_grad():
        return tensor.unsqueeze_(0).squeeze_(0)  # raises the version


def set_(
    self: Tensor,
    source: Tensor | TypedStorage | UntypedStorage | None = None,
    storage_offset: int = 0,
    size: Shape | None = None,
    stride: Shape | None = None,
) -> Tensor:
    """Makes the tensor one over another storage: a tensor's, or a part of a storage; without one it becomes empty.

    Args:
        source: a tensor of the same dtype, or a storage.
        storage_offset: where the first element is, in elements.
        size, stride: those of the part; without them all elements of a storage, the geometry of a tensor.

    Raises:
        TypeError, RuntimeError: the source is of another kind or dtype, or the part lies outside of it.

    Example::

        >>> import vesta
        >>> x = vesta.empty(0)
        >>> x.set_(vesta.arange(6.0).untyped_storage(), 1, (2, 2))
        tensor([[1., 2.],
                [3., 4.]])
    """
    from vesta.storage import TypedStorage, UntypedStorage

    expect("set_", "input", self, Tensor, "Tensor")
    expect("set_", "source", source, (Tensor, TypedStorage, UntypedStorage, type(None)), "Tensor, storage or None")
    if _C.is_grad_enabled() and (self.requires_grad or getattr(source, "requires_grad", False)):
        which = "input, a leaf or a result" if self.requires_grad else "source"
        raise RuntimeError(
            f"set_: expected tensors that require no grad, since gradients do not pass from one storage to another "
            f"({which}). Write under no_grad(), or pass .detach()."
        )
    if source is None:
        return _with_data(self, self.detach().new_empty(0))
    if isinstance(source, Tensor):
        if source.dtype != self.dtype:
            raise RuntimeError(f"set_: expected a source of {self.dtype}, got {source.dtype} (source).")
        if size is None:
            return _with_data(self, source.detach())
        if isinstance(storage_offset, int):
            storage_offset += source.storage_offset()  # an offset counts from where the source begins
        source = source.untyped_storage()
    storage = getattr(source, "_untyped_storage", source)
    if size is None:
        size = (storage.nbytes() // self.element_size() - storage_offset,)
    expect("set_", "size", size, (tuple, list), "a tuple of integers")
    expect("set_", "storage_offset", storage_offset, int, "int")
    if stride is None:
        stride, step = [], 1
        for length in reversed(size):
            stride.insert(0, step)
            step *= max(length, 1)
    last = storage_offset + sum((length - 1) * step for length, step in zip(size, stride))
    if min(*size, *stride, storage_offset, 0) < 0 or (
        0 not in size and (last + 1) * self.element_size() > storage.nbytes()
    ):
        raise RuntimeError(
            f"set_: expected a part of the storage's {storage.nbytes()} bytes, got size {list(size)}, stride "
            f"{list(stride)} and storage_offset {storage_offset} of {self.dtype}."
        )
    return _with_data(self, _C._over(storage._bytes, self.dtype, tuple(size), tuple(stride), storage_offset))


def _stream_type() -> type:
    from .cuda.streams import Stream

    return Stream


def record_stream(self: Tensor, s: Stream) -> None:
    """Records that work on the stream ``s`` (a vesta.cuda.Stream) uses the tensor, whose memory waits for it."""
    if not isinstance(s, _stream_type()):
        raise TypeError(f"record_stream(): argument 's' must be vesta.cuda.Stream, not {type(s).__name__}")
    if s.device != self.device:
        raise RuntimeError(f"record_stream: expected a stream of {self.device}, where the tensor is, got {s}.")
    self._record_stream(s.stream_id)


def cuda_array_interface(self: Tensor) -> dict[str, Any]:
    """Returns the dict by which other libraries read a CUDA tensor's memory (CUDA Array Interface, version 2, as
    PyTorch's).

    Raises AttributeError for a tensor not on CUDA, so that ``hasattr`` is False, and RuntimeError for a tensor that
    requires grad.
    """
    if not self.is_cuda:
        raise AttributeError(
            f"__cuda_array_interface__: expected a CUDA tensor, got one on {self.device}. Use .cuda() first."
        )
    if self.requires_grad:
        raise RuntimeError(
            "__cuda_array_interface__: expected no gradient, got a tensor that requires grad. " "Use .detach()."
        )
    size = self.element_size()
    if self.dtype == _C.bfloat16:
        raise TypeError("__cuda_array_interface__: expected a dtype that NumPy has, got vesta.bfloat16.")
    kind = "b" if self.dtype == _C.bool else "c" if self.is_complex() else "f" if self.is_floating_point() else "i"
    if self.dtype == _C.uint8:
        kind = "u"
    strides = None if self.is_contiguous() else tuple(step * size for step in self.stride())
    address = self.data_ptr() if self.numel() else 0
    return {
        "typestr": f"{'|' if size == 1 else '<'}{kind}{size}",
        "shape": tuple(self.shape),
        "strides": strides,
        "data": (address, False),
        "version": 2,
    }


def norm(
    self: Tensor,
    p: Number | str | None = "fro",
    dim: Ints | None = None,
    keepdim: bool = False,
    dtype: DType | None = None,
) -> Tensor:
    """``vesta.norm`` of this tensor.

    Example::

        >>> import vesta
        >>> vesta.tensor([3.0, 4.0]).norm()
        tensor(5.)
    """
    return _functions.norm(self, p, dim, keepdim, dtype=dtype)


def unique(
    self: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """``vesta.unique`` of this tensor.

    Example::

        >>> import vesta
        >>> vesta.tensor([3, 1, 3]).unique()
        tensor([1, 3])
    """
    from ._shape_functions import unique as function

    return function(self, sorted, return_inverse, return_counts, dim)


def unique_consecutive(
    self: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """``vesta.unique_consecutive`` of this tensor.

    Example::

        >>> import vesta
        >>> vesta.tensor([3, 3, 1]).unique_consecutive()
        tensor([3, 1])
    """
    from ._shape_functions import unique_consecutive as function

    return function(self, return_inverse, return_counts, dim)


def nonzero_static(self: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """``vesta.nonzero_static`` of this tensor.

    Example::

        >>> import vesta
        >>> vesta.tensor([0, 5, 7]).nonzero_static(size=1)
        tensor([[1]])
    """
    from ._shape_functions import nonzero_static as function

    return function(self, size=size, fill_value=fill_value)


def to_sparse_coo(self: Tensor) -> Tensor:
    """Returns the sparse tensor of this one's elements that are not 0; a sparse tensor itself.

    Example::

        >>> import vesta
        >>> vesta.tensor([0.0, 5.0]).to_sparse_coo().indices()
        tensor([[1]])
    """
    return Tensor.to_sparse(self)


_to_coordinates = Tensor.to_sparse


@checked
def to_sparse(
    self: Tensor,
    sparse_dim: int | None = None,
    *,
    layout: _C.layout | None = None,
    blocksize: tuple[int, int] | None = None,
    dense_dim: int | None = None,
) -> Tensor:
    """Returns the sparse tensor of this one's elements that are not 0.

    Args:
        sparse_dim: how many of the first dimensions are sparse; all of them if absent. Only for ``sparse_coo``.
        layout: ``sparse_coo`` (if absent), or for matrices ``sparse_csr`` or ``sparse_csc``.
        blocksize: None: there are no layouts of blocks.
        dense_dim: how many of the last dimensions are not sparse.

    Raises:
        RuntimeError: numbers of dimensions that do not fit.

    Example::

        >>> import vesta
        >>> vesta.tensor([[0.0, 5.0]]).to_sparse(layout=vesta.sparse_csr).col_indices()
        tensor([1])
    """
    if blocksize is not None:
        raise NotImplementedError(f"to_sparse: expected None, got {blocksize!r} (blocksize): Vesta has no such layout.")
    if layout not in (None, _C.sparse_coo, _C.sparse_csr, _C.sparse_csc):
        raise RuntimeError(f"to_sparse: expected sparse_coo, sparse_csr or sparse_csc, got {layout!r} (layout).")
    if dense_dim is not None:
        if sparse_dim is not None:
            raise TypeError("to_sparse: expected one of sparse_dim and dense_dim, got both.")
        if layout not in (None, _C.sparse_coo) and self.dim() - dense_dim != 2:
            raise RuntimeError(f"to_sparse: expected a matrix beside dense_dim={dense_dim}, got {list(self.shape)}.")
        sparse_dim = None if self.layout is not _C.strided else self.dim() - dense_dim
    if layout in (None, _C.sparse_coo):
        return _to_coordinates(self, sparse_dim)
    if self.layout is _C.strided and dense_dim is None and self.dim() > 2:
        raise NotImplementedError("to_sparse: expected a matrix, got a batch of them; say dense_dim=... otherwise.")
    return _C._private._compress(self, layout is _C.sparse_csr)


@checked
def to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """Returns this matrix with the layout ``sparse_csr``: compressed by rows.

    Example::

        >>> import vesta
        >>> vesta.tensor([[0.0, 5.0], [6.0, 0.0]]).to_sparse_csr().crow_indices()
        tensor([0, 1, 2])
    """
    return Tensor.to_sparse(self, layout=_C.sparse_csr, dense_dim=dense_dim)


@checked
def to_sparse_csc(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """Returns this matrix with the layout ``sparse_csc``: compressed by columns.

    Example::

        >>> import vesta
        >>> vesta.tensor([[0.0, 5.0], [6.0, 0.0]]).to_sparse_csc().row_indices()
        tensor([1, 0])
    """
    return Tensor.to_sparse(self, layout=_C.sparse_csc, dense_dim=dense_dim)


def __dir__(self: Tensor) -> list[str]:
    """Returns the names of attributes; those of CUDA's interface only where the tensor is on such a device."""
    names = {*dir(type(self)), *self.__dict__}
    return sorted(names if self.device.type == "cuda" else names - {"__cuda_array_interface__"})


def _part(name: str) -> property:
    """Makes the property ``real`` or ``imag``: ``vesta.real`` and ``vesta.imag`` of this tensor, which can be set."""
    part = getattr(_C._ops, name)

    def read(self: Tensor) -> Tensor:
        return part(self)

    def write(self: Tensor, value: Any) -> None:
        part(self).copy_(value)

    return overridable_property(read, write, doc=part.__doc__)


def install() -> None:
    """Puts these methods into ``Tensor``."""
    methods = (
        __reduce_ex__,
        __copy__,
        __deepcopy__,
        __format__,
        __array_wrap__,
        _repr_html_,
        to_numpy,
        __complex__,
        norm,
        unique,
        unique_consecutive,
        narrow_copy,
        record_stream,
        share_memory_,
        is_nonzero,
        is_shared,
        set_,
        to_sparse,
        to_sparse_coo,
        to_sparse_csc,
        to_sparse_csr,
        __dir__,
        nonzero_static,
    )
    for method in methods:
        setattr(Tensor, method.__name__, method)
    public = (method for method in methods if not method.__name__.startswith("_"))
    overridable(type_, __complex__, __deepcopy__, __dir__, __format__, __reduce_ex__, *public)
    Tensor.__torch_function__ = __torch_function__
    type_.__name__, type_.__qualname__ = "type", "Tensor.type"
    Tensor.type = type_
    Tensor.__array_priority__ = 1000  # a tensor on the right-hand side takes precedence over NumPy's operators
    Tensor.real = _part("real")
    Tensor.imag = _part("imag")
    Tensor.__cuda_array_interface__ = property(cuda_array_interface)
    _C.Generator.__reduce__ = _reduce_generator  # type: ignore[method-assign]
