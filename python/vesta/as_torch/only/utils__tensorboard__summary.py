"""``torch.utils.tensorboard.summary``: tensorboardX's functions that make records, of tensors too."""

from __future__ import annotations

from typing import Any

from vesta.utils.tensorboard import _package, _plain

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    _package()
    from tensorboardX import summary

    function = getattr(summary, name)
    if not callable(function):
        return function

    def record(*args: Any, **kwargs: Any) -> Any:
        return function(*map(_plain, args), **{key: _plain(value) for key, value in kwargs.items()})

    record.__name__, record.__doc__ = name, function.__doc__
    return record
