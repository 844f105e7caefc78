"""The HTML of a dataset or a loader: its length, what it is made of, and what its tensors are like."""

from __future__ import annotations

from typing import Any

from vesta import Tensor

from . import markup
from .tensors import _summary

#: How many attributes and parts are shown, and how deep datasets of datasets are followed.
ATTRIBUTES, PARTS, DEPTH = 12, 8, 4
_OF_LOADERS = ("batch_size", "sampler", "num_workers", "drop_last", "pin_memory", "collate_fn")


def dataset_html(value: Any, dataset: type, stream: type) -> str:
    """Returns the HTML of a dataset or a ``DataLoader``; ``dataset`` and ``stream`` are the classes of datasets.

    Of a dataset of the user's own class, or of the loader's, the first sample is made; random states are put back.
    """
    return markup.block(*_parts(value, (dataset, stream), 0, True))


def _parts(value: Any, kinds: tuple[type, type], depth: int, sampled: bool) -> list[str]:
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
        inner = {name: item for name, item in attributes.items() if isinstance(item, kinds[0])}
        for name, item in attributes.items():
            if isinstance(item, (list, tuple, dict)) and name in ("datasets", "tensors"):
                pairs = item.items() if isinstance(item, dict) else enumerate(item)
                inner.update((f"{name}[{key!r}]", part) for key, part in list(pairs)[:PARTS])
        others = [(name, item) for name, item in attributes.items() if name not in (*inner, "datasets", "tensors")]
        parts.append(markup.rows((name, _brief(item)) for name, item in others[:ATTRIBUTES]))
        if len(others) > ATTRIBUTES:
            parts.append(markup.folded(f"… {len(others) - ATTRIBUTES} more", ""))
        if sampled and length and _is_own(value, kinds[1]):
            parts.append(markup.rows([("first sample", _first_sample(value))]))
    for name, item in inner.items():
        if isinstance(item, kinds[0]) and depth < DEPTH:
            parts.append(
                markup.folded(
                    markup.text(name), "".join(_parts(item, kinds, depth + 1, sampled and loader)), is_open=depth == 0
                )
            )
        else:
            parts.append(markup.rows([(name, _brief(item))]))
    return parts


def _is_own(value: Any, stream: type) -> bool:
    """Returns whether samples are made by a class of the user's, and by number."""
    return not isinstance(value, stream) and not type(value).__module__.startswith("vesta.")


def _first_sample(dataset: Any) -> str:
    """Returns what a sample is made of, or what it raises."""
    from vesta._summary.state import left_as_it_was

    with left_as_it_was([], []):
        try:
            return _structure(dataset[0], 0)
        except Exception as error:  # what a user's class raises is told, and nothing more
            return f"{type(error).__name__}: {str(error)[:200]}"


def _structure(value: Any, depth: int) -> str:
    """Returns kinds, shapes and dtypes of what is in a sample."""
    if isinstance(value, (list, tuple, dict)) and depth < DEPTH:
        pairs = value.items() if isinstance(value, dict) else zip(getattr(value, "_fields", ()) or [""] * PARTS, value)
        told = [
            f"{key}: {_structure(part, depth + 1)}" if key != "" else _structure(part, depth + 1) for key, part in pairs
        ]
        told = told[:PARTS] + [f"… {len(value) - PARTS} more"] * (len(value) > PARTS)
        kind = "" if type(value) in (list, tuple, dict) else type(value).__name__
        left, right = "[]" if isinstance(value, list) else "{}" if isinstance(value, dict) else "()"
        return f"{kind}{left}{', '.join(told)}{right}"
    if isinstance(value, (bool, int, float, complex, str, bytes)):
        return f"{type(value).__name__} {repr(value)[:40]}"
    return f"Tensor {_brief(value)}" if isinstance(value, Tensor) else _brief(value)


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
