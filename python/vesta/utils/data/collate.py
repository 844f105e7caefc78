"""How a list of samples becomes a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import vesta
from vesta import Tensor

__all__ = ["default_collate", "default_convert"]


def _is_numpy(value: Any) -> bool:
    """Whether a value is NumPy's, without importing NumPy."""
    return type(value).__module__ == "numpy"


def _from_numpy(value: Any) -> Tensor:
    if not hasattr(value, "__array__") or value.dtype.kind in "SUOMmV":
        raise TypeError(
            "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found "
            f"{getattr(value, 'dtype', type(value))}"
        )
    return vesta.as_tensor(value)


def _rebuilt(kind: Any, values: Any, otherwise: Any) -> Any:
    """Makes a container of the user's own class from ``values``; ``otherwise`` where its constructor takes no such."""
    try:
        return kind(values)
    except TypeError:
        return otherwise


def default_convert(data: Any) -> Any:
    """Turns NumPy arrays into tensors, inside of dicts, lists and tuples too; leaves anything else as it is."""
    if isinstance(data, Tensor):
        return data
    if _is_numpy(data):
        return _from_numpy(data) if data.dtype.kind not in "SUOMmV" else data
    if isinstance(data, Mapping):
        converted = {key: default_convert(value) for key, value in data.items()}
        return _rebuilt(type(data), converted, converted)
    if isinstance(data, tuple):
        values = [default_convert(value) for value in data]
        return type(data)(*values) if hasattr(data, "_fields") else values
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        values = [default_convert(value) for value in data]
        return _rebuilt(type(data), values, values)
    return data


def default_collate(batch: Sequence[Any]) -> Any:
    """Stacks samples: tensors [...] to [N, ...], numbers to [N]; dicts, lists and tuples member by member.

    Strings stay a list; tuples become lists; a Python float becomes float64, as in PyTorch.

    Raises:
        TypeError: a sample is of a kind that cannot be stacked.
        RuntimeError: lists of different lengths, or tensors of different shapes.

    Example::

        >>> import vesta
        >>> vesta.utils.data.default_collate([{"a": 1, "b": "x"}, {"a": 2, "b": "y"}])
        {'a': tensor([1, 2]), 'b': ['x', 'y']}
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return vesta.stack(list(batch), 0)
    if _is_numpy(first):
        return vesta.stack([_from_numpy(sample) for sample in batch], 0)
    if isinstance(first, float):
        return vesta.tensor(list(batch), dtype=vesta.float64)
    if isinstance(first, int):  # bool too
        return vesta.tensor(list(batch))
    if isinstance(first, (str, bytes)):
        return list(batch)
    if isinstance(first, Mapping):
        collated = {key: default_collate([sample[key] for sample in batch]) for key in first}
        return _rebuilt(type(first), collated, collated)
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        values = [default_collate(members) for members in zip(*batch)]
        if isinstance(first, tuple):
            return type(first)(*values) if hasattr(first, "_fields") else values
        return _rebuilt(type(first), values, values)
    raise TypeError(
        f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {type(first)}"
    )
