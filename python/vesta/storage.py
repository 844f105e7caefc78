"""Storages: the memory under tensors, as ``vesta.load`` hands it to ``map_location`` and ``vesta.save`` takes it."""

from __future__ import annotations

import operator
from typing import Any, SupportsIndex

import vesta
from vesta._names import listing
from vesta._types import Device, DType, Layout

from . import _C
from ._arguments import expect
from ._C import Tensor

__all__ = ["TypedStorage", "UntypedStorage"]


class UntypedStorage:
    """A block of bytes on a device, shared with every tensor over it.

    Args:
        nbytes: the number of bytes, not initialised.
        device: where they are.

    Example::

        >>> import vesta
        >>> storage = vesta.UntypedStorage(8)
        >>> storage.nbytes(), storage.device
        (8, device(type='cpu'))
    """

    __slots__ = ("_bytes",)
    _bytes: Tensor

    def __init__(self, nbytes: int = 0, *, device: Device | None = None) -> None:
        self._bytes = _C._ops.empty((nbytes,), dtype=_C.uint8, device=device)

    @classmethod
    def _of(cls, values: Tensor) -> UntypedStorage:
        """Makes the storage under a tensor."""
        made = cls.__new__(cls)
        made._bytes = _C._storage_bytes(values)
        return made

    @property
    def device(self) -> _C.device:
        """The device of the bytes."""
        return self._bytes.device

    @property
    def is_cuda(self) -> bool:
        """Whether the bytes are on a GPU."""
        return self._bytes.is_cuda

    def nbytes(self) -> int:
        """Returns the number of bytes."""
        return self._bytes.numel()

    def size(self) -> int:
        """Returns the number of bytes."""
        return self._bytes.numel()

    def __len__(self) -> int:
        return self._bytes.numel()

    def __getitem__(self, index: int | slice) -> Any:
        """Returns a byte, or a storage over a part of the bytes."""
        if isinstance(index, slice):
            if index.step not in (None, 1):
                raise RuntimeError(f"storage: expected a slice of step 1, got {index.step} (index).")
            part = UntypedStorage.__new__(UntypedStorage)
            part._bytes = self._bytes[index]
            return part
        return self._bytes[index].item()

    @staticmethod
    def from_file(filename: str, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """Returns the first ``nbytes`` bytes of a file, mapped into memory: a page is read when it is first used.

        Args:
            filename: the file's path.
            shared: whether what is written goes to the file, which is then made, or made larger, where it has to be.
            nbytes: how many bytes; the file must have them unless ``shared``.

        Raises:
            OSError: the file cannot be opened.
            RuntimeError: the file has fewer bytes.
            ValueError: ``nbytes`` is negative.

        A mapped file that another program makes shorter ends the process (SIGBUS) where the rest is read.

        Example::

            >>> import tempfile, vesta
            >>> file = tempfile.NamedTemporaryFile()
            >>> storage = vesta.UntypedStorage.from_file(file.name, shared=True, nbytes=4)
            >>> storage.tolist()
            [0, 0, 0, 0]
        """
        import mmap
        import os

        expect("from_file", "nbytes", nbytes, SupportsIndex, "an int")
        nbytes = operator.index(nbytes)
        if nbytes < 0:
            raise ValueError(f"from_file: expected a number of bytes of at least 0, got {nbytes} (nbytes).")
        if nbytes == 0:
            return UntypedStorage(0)
        descriptor = os.open(filename, os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY, 0o666)
        try:
            if os.fstat(descriptor).st_size < nbytes:
                if not shared:
                    raise RuntimeError(f"from_file: expected a file of {nbytes} bytes, {filename} has fewer (nbytes).")
                os.ftruncate(descriptor, nbytes)
            mapped = mmap.mmap(descriptor, nbytes, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)
        finally:
            os.close(descriptor)
        storage = UntypedStorage.__new__(UntypedStorage)
        storage._bytes = _C.frombuffer(mapped, dtype=_C.uint8)
        return storage

    def element_size(self) -> int:
        """Returns 1."""
        return 1

    def data_ptr(self) -> int:
        """Returns the address of the first byte."""
        return self._bytes.data_ptr()

    def tolist(self) -> list[int]:
        """Returns the bytes as a list."""
        return self._bytes.tolist()

    def untyped(self) -> UntypedStorage:
        """Returns itself."""
        return self

    def clone(self) -> UntypedStorage:
        """Returns a copy."""
        return self._of(self._bytes.clone())

    def to(self, device: Device, non_blocking: bool = False) -> UntypedStorage:
        """Returns the bytes on ``device``; the storage itself if it is there."""
        moved = self._bytes.to(device, non_blocking=non_blocking)
        return self if moved is self._bytes else self._of(moved)

    def cpu(self) -> UntypedStorage:
        """Returns the bytes in host memory."""
        return self.to("cpu")

    def cuda(self, device: Device | None = None, non_blocking: bool = False) -> UntypedStorage:
        """Returns the bytes on a GPU, the current one if ``device`` is None."""
        moved = self._bytes.cuda(device, non_blocking=non_blocking)
        return self if moved is self._bytes else self._of(moved)

    def __repr__(self) -> str:
        return f"UntypedStorage(nbytes={self.nbytes()}, device={str(self.device)!r})"


class TypedStorage:
    """A block of elements of a dtype: a storage as old files name it.

    Args:
        wrap_storage: the bytes.
        dtype: of the elements.
    """

    __slots__ = ("_untyped_storage", "dtype")

    def __init__(self, *, wrap_storage: UntypedStorage, dtype: vesta.dtype, _internal: bool = False) -> None:
        self._untyped_storage, self.dtype = wrap_storage, dtype

    @property
    def device(self) -> _C.device:
        """The device of the elements."""
        return self._untyped_storage.device

    @property
    def is_cuda(self) -> bool:
        """Whether the elements are on a GPU."""
        return self._untyped_storage.is_cuda

    def untyped(self) -> UntypedStorage:
        """Returns the bytes."""
        return self._untyped_storage

    def nbytes(self) -> int:
        """Returns the number of bytes."""
        return self._untyped_storage.nbytes()

    def element_size(self) -> int:
        """Returns the bytes of an element."""
        return self.dtype.itemsize

    def size(self) -> int:
        """Returns the number of elements."""
        return self.nbytes() // self.dtype.itemsize

    def __len__(self) -> int:
        return self.size()

    def data_ptr(self) -> int:
        """Returns the address of the first element."""
        return self._untyped_storage.data_ptr()

    def _tensor(self) -> Tensor:
        return _C._over(self._untyped_storage._bytes, self.dtype, (self.size(),), (1,), 0)

    def __getitem__(self, index: int) -> Any:
        return self._tensor()[index].item()

    def tolist(self) -> list[Any]:
        """Returns the elements as a list."""
        return self._tensor().tolist()

    def to(self, device: Device, non_blocking: bool = False) -> TypedStorage:
        """Returns the elements on ``device``."""
        return TypedStorage(wrap_storage=self._untyped_storage.to(device, non_blocking), dtype=self.dtype)

    def cpu(self) -> TypedStorage:
        """Returns the elements in host memory."""
        return self.to("cpu")

    def cuda(self, device: Device | None = None, non_blocking: bool = False) -> TypedStorage:
        """Returns the elements on a GPU, the current one if ``device`` is None."""
        return TypedStorage(wrap_storage=self._untyped_storage.cuda(device, non_blocking), dtype=self.dtype)

    def __repr__(self) -> str:
        return f"TypedStorage(dtype={self.dtype}, size={self.size()}, device={str(self.device)!r})"


class _StorageType(type):
    """The metaclass of storages by dtype: ``isinstance`` tests the dtype, a call makes a TypedStorage.

    ``S(n)`` has n elements without values, ``S([1, 2])`` copies a sequence.
    """

    dtype: Any

    def __call__(cls, *args: Any, device: Any = None) -> TypedStorage:
        if len(args) > 1:
            raise TypeError(f"{cls.__name__}: expected a size or a sequence, got {len(args)} arguments.")
        data = args[0] if args else 0
        size = isinstance(data, int)
        made = _C._ops.empty((data,), dtype=cls.dtype, device=device) if size else None
        values = _C.tensor(data, dtype=cls.dtype, device=device) if made is None else made
        return TypedStorage(wrap_storage=UntypedStorage._of(values), dtype=cls.dtype)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype == cls.dtype


#: The classes of storages by dtype: ``vesta.FloatStorage``.
CLASSES = {
    name: _StorageType(name, (), {"dtype": dtype, "__module__": "vesta", "__doc__": _StorageType.__doc__})
    for name, dtype in (
        ("DoubleStorage", _C.float64),
        ("FloatStorage", _C.float32),
        ("HalfStorage", _C.float16),
        ("BFloat16Storage", _C.bfloat16),
        ("LongStorage", _C.int64),
        ("IntStorage", _C.int32),
        ("ShortStorage", _C.int16),
        ("CharStorage", _C.int8),
        ("ByteStorage", _C.uint8),
        ("BoolStorage", _C.bool),
        ("ComplexDoubleStorage", _C.complex128),
        ("ComplexFloatStorage", _C.complex64),
    )
}


def from_file(
    filename: str,
    shared: bool | None = None,
    size: int | None = 0,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Device | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Returns a tensor of one dimension over the beginning of a file, as ``UntypedStorage.from_file`` maps it.

    Args:
        filename: the file's path.
        shared: whether what is written goes to the file, which is then made, or made larger, where it has to be.
        size: the number of elements; None is 0.
        dtype: the default dtype unless given.
        layout: strided, the only one of mapped memory.
        device: the CPU, where mapped memory is.
        pin_memory: accepted for PyTorch's sake; mapped memory is not pinned.

    Raises:
        OSError: the file cannot be opened.
        RuntimeError: the file has fewer bytes, or ``device`` is not the CPU.

    Example::

        >>> import tempfile, vesta
        >>> file = tempfile.NamedTemporaryFile()
        >>> vesta.from_file(file.name, shared=True, size=2).fill_(3.0)
        tensor([3., 3.])
        >>> vesta.from_file(file.name, size=1)
        tensor([3.])
    """
    kind = _C.get_default_dtype() if dtype is None else dtype
    if device is not None and vesta.device(device).type != "cpu":
        raise RuntimeError(f"from_file: expected the CPU, got {device} (device).")
    if layout not in (None, _C.strided):
        raise RuntimeError(f"from_file: expected vesta.strided, got {layout} (layout).")
    size = 0 if size is None else size
    expect("from_file", "size", size, SupportsIndex, "an int")
    mapped = UntypedStorage.from_file(filename, bool(shared), operator.index(size) * kind.itemsize)._bytes
    return mapped.view(kind).requires_grad_(requires_grad)


__dir__ = listing(globals())
