"""Whether layers of transformers may leave padding out in evaluation, as PyTorch's do."""

from __future__ import annotations

from vesta._arguments import expect

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]

_enabled = True


def get_fastpath_enabled() -> bool:
    """Returns whether ``nn.TransformerEncoder`` gives 0 at padded places in evaluation, as its documentation says."""
    return _enabled


def set_fastpath_enabled(value: bool) -> None:
    """Sets whether ``nn.TransformerEncoder`` gives 0 at padded places in evaluation."""
    global _enabled
    expect("set_fastpath_enabled", "value", value, bool, "bool")
    _enabled = value
