"""The HTML of a dataset or a loader: its length, what it is made of, and what its tensors are like."""

from __future__ import annotations

from typing import Any

from vesta import Tensor

from . import markup
from .tensors import _summary

#: How many attributes and parts are shown, and how deep datasets of datasets are followed.
ATTRIBUTES, PARTS, DEPTH = 12, 8, 4
_OF_LOADERS = ("batch_size", "sampler", "num_workers", "drop_last", "pin_memory", "collate_fn")


def dataset_html(value: Any) -> str:
    """Returns the HTML of a dataset or a ``DataLoader``. No sample is made: that may take long or read random
    numbers."""
    return markup.block(*_parts(value, 0))


def _parts(value: Any, depth: int) -> list[str]:
    length = _length(value)
    loader = hasattr(value, "batch_sampler") and hasattr(value, "collate_fn")
    unit = "batches" if loader else "samples"
    parts = [markup.head(type(value).__name__, "" if length is None else f"{markup.count(length)} {unit}")]
    if loader:
        names = [(name, getattr(value, name, None)) for name in _OF_LOADERS]
        parts.append(markup.rows((name, _brief(item)) for name, item in names))
        inner = {"dataset": value.dataset}
    else:
        attributes = {name: item for name, item in vars(value).items() if not name.startswith("_")}
        inner = {name: item for name, item in attributes.items() if _is_dataset(item)}
        for name, item in attributes.items():
            if isinstance(item, (list, tuple, dict)) and name in ("datasets", "tensors"):
                pairs = item.items() if isinstance(item, dict) else enumerate(item)
                inner.update((f"{name}[{key!r}]", part) for key, part in list(pairs)[:PARTS])
        others = [(name, item) for name, item in attributes.items() if name not in (*inner, "datasets", "tensors")]
        parts.append(markup.rows((name, _brief(item)) for name, item in others[:ATTRIBUTES]))
        if len(others) > ATTRIBUTES:
            parts.append(markup.folded(f"… {len(others) - ATTRIBUTES} more", ""))
    for name, item in inner.items():
        if _is_dataset(item) and depth < DEPTH:
            parts.append(markup.folded(markup.text(name), "".join(_parts(item, depth + 1)), is_open=depth == 0))
        else:
            parts.append(markup.rows([(name, _brief(item))]))
    return parts


def _is_dataset(value: Any) -> bool:
    from vesta.utils.data import Dataset

    return isinstance(value, Dataset)


def _length(value: Any) -> int | None:
    try:
        return len(value)
    except Exception:  # a stream has none, and a user's __len__ may raise
        return None


def _brief(value: Any) -> str:
    """Returns a line about an attribute, whose ``repr`` may be large."""
    if isinstance(value, Tensor):
        return _summary(value)
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if isinstance(shape, tuple) and dtype is not None:
        return f"{type(value).__name__} {list(shape)} {dtype}"
    if isinstance(value, (list, tuple, dict, set)):
        return f"{type(value).__name__} of {markup.count(len(value))}"
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    return getattr(value, "__qualname__", type(value).__name__)
