"""Choices of how attention is computed, masks that are made of functions, and attention with functions of scores.

``flex_attention`` and ``bias`` are imported when they are first asked for.
"""

from __future__ import annotations

import contextlib
import enum
import importlib
from collections.abc import Iterable, Iterator
from typing import Any

from vesta._names import listing

__all__ = ["SDPBackend", "bias", "flex_attention", "sdpa_kernel"]


class SDPBackend(enum.IntEnum):
    """PyTorch's kernels of ``scaled_dot_product_attention``. Vesta has one, which needs memory linear in length.

    Example::

        >>> import vesta
        >>> vesta.nn.attention.SDPBackend.MATH.value
        0
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


_chosen: list[SDPBackend] = []


def sdpa_kernel(
    backends: list[SDPBackend] | SDPBackend, set_priority: bool = False
) -> contextlib.AbstractContextManager[None]:
    """Returns a context in which attention is to be computed by some of PyTorch's kernels.

    Vesta's kernel computes what each of them does, so the choice changes nothing.

    Args:
        backends: one or several of ``SDPBackend``.
        set_priority: whether their order is that of preference.

    Raises:
        AssertionError: ``backends`` is something else, as in PyTorch.

    Example::

        >>> import vesta
        >>> from vesta.nn.attention import SDPBackend, sdpa_kernel
        >>> q = vesta.ones(1, 1, 2, 4)
        >>> with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):
        ...     vesta.nn.functional.scaled_dot_product_attention(q, q, q).shape
        vesta.Size([1, 1, 2, 4])
    """
    given = [backends] if isinstance(backends, SDPBackend) else backends
    assert isinstance(given, Iterable) and not isinstance(
        given, (str, bytes)
    ), f"sdpa_kernel: expected an SDPBackend or a list of them, got {backends!r} (backends)."
    given = list(given)
    assert all(
        isinstance(one, SDPBackend) for one in given
    ), f"sdpa_kernel: expected an SDPBackend or a list of them, got {backends!r} (backends)."
    return _choice(list(dict.fromkeys(given)))


@contextlib.contextmanager
def _choice(backends: list[SDPBackend]) -> Iterator[None]:
    before = list(_chosen)
    _chosen[:] = backends
    try:
        yield
    finally:
        _chosen[:] = before


def _cur_sdpa_kernel_backends(with_priority: bool = False) -> list[SDPBackend]:
    """Returns the kernels that the innermost ``sdpa_kernel`` names; outside of one, all."""
    return list(_chosen) or [one for one in SDPBackend if one >= 0]


def __getattr__(name: str) -> Any:
    if name not in ("bias", "flex_attention"):
        raise AttributeError(f"module 'vesta.nn.attention' has no attribute {name!r}")
    return importlib.import_module("." + name, __name__)


__dir__ = listing(globals())
