"""Collation of a list of samples into a batch, and its error messages."""

from __future__ import annotations

import contextlib
import copy
import math
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, MutableMapping, MutableSequence, Sequence, Sized
from typing import Any, overload

import vesta
from vesta import Tensor
from vesta._arguments import is_pytorchs

__all__ = ["collate", "default_collate", "default_collate_fn_map", "default_convert"]

_SMALL = 1 << 10  # bytes up to which a batch does not need a block of shared memory
_KINDS = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
default_collate_err_msg_format = _KINDS  #: PyTorch's name for it
#: NumPy dtypes whose arrays are not numbers; for programs' own functions.
np_str_obj_array_pattern = re.compile(r"[SaUO]")


class _Batch(threading.local):
    """What is known about the batch that is being collated in this thread."""

    indices: Sequence[Any] | None = None  # indices of its samples in the dataset
    empty: Callable[..., Tensor] | None = None  # makes the tensor that samples are stacked into


_batch = _Batch()


@contextlib.contextmanager
def samples_named(indices: Sequence[Any]) -> Iterator[None]:
    """Makes errors of collation name samples by their indices in the dataset."""
    _batch.indices = indices
    try:
        yield
    finally:
        _batch.indices = None


def stack_into(empty: Callable[..., Tensor] | None) -> None:
    """Makes default collation write into tensors of ``empty(shape, dtype)``; None: into new ones."""
    _batch.empty = empty


class CollateError(Exception):
    """The base of errors that name a field and samples that cannot be stacked. The raised classes also derive from
    RuntimeError and others."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.path: list[Any] = []  # keys from the batch down to the field

    def __str__(self) -> str:
        field = "".join(key if str(key).startswith(".") else f"[{_quoted(key)}]" for key in self.path)
        return f"batch{field}: {self.args[0]}"


def _quoted(key: Any) -> str:
    return f'"{key}"' if isinstance(key, str) else repr(key)


class CollateMismatchError(CollateError, RuntimeError):
    """Raised for samples of different shapes, dtypes, lengths or types."""


class CollateKeyError(CollateError, KeyError):
    """Raised for samples of different keys."""

    __str__ = CollateError.__str__


class CollateTypeError(CollateError, TypeError):
    """Raised for samples of which no batch can be made."""


def _name(batch: Sequence[Any], position: int) -> str:
    """Returns the name of a sample, by its index in the dataset if known."""
    indices = _batch.indices
    known = indices is not None and len(indices) == len(batch)
    return f"sample {indices[position]}" if known else f"sample {position} of the batch"  # type: ignore[index]


def _differing(batch: Sequence[Any], of: Callable[[Any], Any]) -> int | None:
    """Returns the first position whose property differs from the first sample's; None if all agree."""
    first = of(batch[0])
    return next((i for i, sample in enumerate(batch) if of(sample) != first), None)


def _refuse(batch: Sequence[Any], of: Callable[[Any], Any], what: str, then: str = "") -> None:
    """Raises if samples differ in a property called ``what``."""
    other = _differing(batch, of)
    if other is not None:
        first, second = of(batch[0]), of(batch[other])
        raise CollateMismatchError(f"{_name(batch, 0)} has {what} {first}, {_name(batch, other)} {second}{then}")


def _kind_of(value: Any) -> str:
    return type(value).__name__


def _is_text_array(value: Any) -> bool:
    """Returns whether a NumPy array holds strings or Python objects, which cannot become a tensor."""
    return value.dtype.kind in "SUOaMmV"


def _is_numpy(value: Any) -> bool:
    """Returns whether a value is of a NumPy type, without importing NumPy."""
    kind = type(value)
    return kind.__module__ == "numpy" and kind.__name__ not in ("str_", "bytes_", "string_")


def default_convert(data: Any) -> Any:
    """Converts NumPy arrays and PyTorch's tensors to tensors, also inside dicts, lists and tuples; anything else is
    unchanged.

    Example::

        >>> import vesta
        >>> vesta.utils.data.default_convert({"a": [1, "x"]})
        {'a': [1, 'x']}
    """
    if isinstance(data, Tensor):
        return data
    if _is_numpy(data):
        return data if _is_text_array(data) else vesta.as_tensor(data)
    if is_pytorchs(type(data)):
        return vesta.from_torch(data)
    if isinstance(data, Mapping):
        return _mapping(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple):
        values = [default_convert(value) for value in data]
        return type(data)(*values) if hasattr(data, "_fields") else values
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _sequence(data, [default_convert(value) for value in data])
    return data


def _mapping(model: Mapping, values: dict) -> Any:
    """Makes a mapping of ``model``'s class, with its further attributes; a dict if the class does not allow it."""
    if type(model) is dict:
        return values
    try:
        if isinstance(model, MutableMapping):
            clone = copy.copy(model)
            clone.update(values)
            return clone
        return type(model)(values)  # type: ignore[call-arg]
    except TypeError:
        return values


def _sequence(model: Sequence, values: list) -> Any:
    """Makes a sequence of ``model``'s class, with its further attributes; a list if the class does not allow it."""
    if type(model) is list:
        return values
    try:
        if isinstance(model, MutableSequence):
            clone = copy.copy(model)
            for i, value in enumerate(values):
                clone[i] = value
            return clone
        return type(model)(values)  # type: ignore[call-arg]
    except TypeError:
        return values


def collate(batch: Any, *, collate_fn_map: dict[Any, Callable[..., Any]] | None = None) -> Any:
    """Makes a batch from samples, by the type of the first one: by a function of the map, or member by member.

    Args:
        batch: a list of samples.
        collate_fn_map: a map from a type, or a tuple of types, to ``f(batch, collate_fn_map=...)``. A subclass uses the
            first entry that fits.

    Example::

        >>> import vesta
        >>> from vesta.utils.data.collate import collate
        >>> collate([{"a": 1}, {"a": 2}], collate_fn_map={int: lambda batch, *, collate_fn_map: sum(batch)})
        {'a': 3}
    """
    if isinstance(batch, Sized) and not len(batch):
        raise IndexError("default_collate: expected at least one sample, got none (batch).")
    first = batch[0]
    kind = type(first)
    if collate_fn_map is not None:
        function = collate_fn_map.get(kind)
        if function is None and _is_numpy_kind(kind):
            _add_numpy()
        if function is None:
            function = next((f for of, f in collate_fn_map.items() if isinstance(first, of)), None)
        if function is not None:
            return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        return _mapping(first, {key: _field(key, _members(batch, key), collate_fn_map) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        named = zip(first._fields, zip(*batch))
        return kind(*(_field(f".{name}", members, collate_fn_map) for name, members in named))
    if isinstance(first, Sequence):
        _check_lengths(batch)
        values = [_field(i, members, collate_fn_map) for i, members in enumerate(zip(*batch))]
        return values if isinstance(first, tuple) else _sequence(first, values)
    if is_pytorchs(kind):  # samples of a dataset that was written for PyTorch
        if (other := _differing(batch, type)) is not None:
            raise CollateMismatchError(f"{_name(batch, 0)} has type {kind}, {_name(batch, other)} {type(batch[other])}")
        return collate(vesta.from_torch(list(batch)), collate_fn_map=collate_fn_map)
    raise CollateTypeError(_KINDS.format(kind))


def _check_lengths(batch: Sequence[Any]) -> None:
    """Raises unless all samples are sequences of one length."""
    try:
        if len(set(map(len, batch))) == 1:
            return
    except TypeError:
        _refuse(batch, _kind_of, "type")
        raise
    _refuse(batch, len, "length", " (each element in list of batch should be of equal size)")


def _members(batch: Sequence[Mapping], key: Any) -> list[Any]:
    """Returns one entry of every sample."""
    try:
        return [sample[key] for sample in batch]
    except (KeyError, TypeError, IndexError):
        for i, sample in enumerate(batch):
            if not isinstance(sample, Mapping):
                raise CollateTypeError(f"{_name(batch, 0)} is a mapping, {_name(batch, i)} {type(sample)}") from None
            if key not in sample:
                raise CollateKeyError(f"{_name(batch, 0)} has key {_quoted(key)}, {_name(batch, i)} has not") from None
        raise


def _field(key: Any, members: Sequence[Any], collate_fn_map: Any) -> Any:
    """Collates one field; an error on the way gets the field's name."""
    try:
        return collate(members, collate_fn_map=collate_fn_map)
    except CollateError as error:
        error.path.insert(0, key)
        raise


def batch_memory(shape: tuple[int, ...], like: Tensor) -> Tensor | None:
    """Makes the tensor into which a batch is written, in a worker; None if any will do."""
    count = math.prod(shape)
    if _batch.empty is None or like.device.type != "cpu" or like.requires_grad or count * like.element_size() <= _SMALL:
        return None
    return _batch.empty(shape, like.dtype)


def _stacked(tensors: Sequence[Tensor]) -> Tensor:
    """Stacks tensors, in a worker directly into shared memory."""
    first = tensors[0]
    if _batch.empty is None:
        return vesta.stack(tensors, 0)
    dtype = first.dtype
    for tensor in tensors:
        if tensor.dtype != dtype or tensor.requires_grad or tensor.shape != first.shape:
            return vesta.stack(tensors, 0)
    memory = batch_memory((len(tensors), *first.shape), first)
    return vesta.stack(tensors, 0) if memory is None else vesta.stack(tensors, 0, out=memory)


def collate_tensor_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Tensor:
    """Stacks tensors of one shape."""
    try:
        return _stacked(batch)
    except Exception:
        if not all(isinstance(sample, Tensor) for sample in batch):
            _refuse(batch, _kind_of, "type")
        _refuse(batch, lambda sample: tuple(sample.shape), "shape", " (stack expects each tensor to be equal size)")
        _refuse(batch, lambda sample: str(sample.device), "device")
        raise


def collate_numpy_array_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Any:
    """Stacks NumPy arrays of one shape."""
    if _is_text_array(batch[0]):
        raise CollateTypeError(_KINDS.format(batch[0].dtype))
    return collate([vesta.as_tensor(sample) for sample in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Tensor:
    """Makes a tensor [N] from NumPy scalars."""
    if _is_text_array(batch[0]):
        raise CollateTypeError(_KINDS.format(batch[0].dtype))
    return _numbers(batch, lambda: vesta.as_tensor(list(batch)))


def collate_float_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Tensor:
    """Makes a float64 tensor [N] from Python numbers."""
    return _numbers(batch, lambda: vesta.tensor(list(batch), dtype=vesta.float64))


def collate_int_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Tensor:
    """Makes a tensor [N] from Python integers."""
    return _numbers(batch, lambda: vesta.tensor(list(batch)))


def _numbers(batch: Sequence[Any], make: Callable[[], Tensor]) -> Tensor:
    try:
        made = make()
    except Exception:
        _refuse(batch, _kind_of, "type")
        raise
    if made.dim() != 1:  # a list among the numbers
        _refuse(batch, _kind_of, "type")
    return made


def collate_str_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Any:
    """Returns text unchanged."""
    return batch


#: The functions of ``default_collate`` by type. Add a type to extend it; NumPy's types are added when they first occur.
default_collate_fn_map: dict[Any, Callable[..., Any]] = {
    Tensor: collate_tensor_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def _is_numpy_kind(kind: type) -> bool:
    return "numpy" in sys.modules and any(base.__module__ == "numpy" for base in kind.__mro__)


def _add_numpy() -> None:
    """Adds NumPy's types to the map, after tensors as in PyTorch."""
    numpy = sys.modules["numpy"]
    if numpy.ndarray in default_collate_fn_map:
        return
    entries = list(default_collate_fn_map.items())
    ours = [(numpy.ndarray, collate_numpy_array_fn)]
    ours.append(((numpy.bool_, numpy.number, numpy.object_), collate_numpy_scalar_fn))
    default_collate_fn_map.clear()
    default_collate_fn_map.update([*entries[:1], *ours, *entries[1:]])


@overload
def default_collate(batch: Sequence[Tensor | float]) -> Tensor: ...
@overload
def default_collate(batch: Sequence[tuple[Tensor | float, ...]]) -> list[Tensor]: ...
@overload
def default_collate(batch: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]: ...
@overload
def default_collate(batch: Any) -> Any: ...
def default_collate(batch: Any) -> Any:
    """Stacks samples: tensors [...] to [N, ...], numbers to [N]; dicts, lists and tuples member by member.

    Strings do not change; tuples become lists; a Python float becomes float64, as in PyTorch. An entry in
    ``default_collate_fn_map`` adds another type.

    Raises:
        TypeError: a sample is of a kind that cannot be stacked.
        RuntimeError: lists of different lengths, or tensors of different shapes: the field and two samples are named.

    Example::

        >>> import vesta
        >>> vesta.utils.data.default_collate([{"a": 1, "b": "x"}, {"a": 2, "b": "y"}])
        {'a': tensor([1, 2]), 'b': ['x', 'y']}
    """
    if isinstance(batch, (str, bytes)) or not hasattr(batch, "__getitem__") or isinstance(batch, type):
        raise TypeError(f"default_collate: expected a list of samples, got {type(batch).__name__} (batch).")
    return collate(batch, collate_fn_map=default_collate_fn_map)
