"""What distributions are written with: broadcasting of parameters, probabilities and logits, lazy attributes.

The file has PyTorch's name, since programs import from it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import vesta
from vesta import Tensor

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

#: The Euler-Mascheroni constant.
euler_constant = 0.57721566490153286060

_NUMBERS = (bool, int, float)


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Returns numbers and tensors as tensors of one shape; numbers take dtype and device of the first tensor.

    Raises:
        ValueError: a value is neither a number nor a tensor.

    Example::

        >>> import vesta
        >>> vesta.distributions.utils.broadcast_all(1.0, vesta.zeros(2))
        (tensor([1., 1.]), tensor([0., 0.]))
    """
    for value in values:
        if not isinstance(value, (Tensor, *_NUMBERS)):
            raise ValueError(
                "Input arguments must all be instances of Number, vesta.Tensor or objects implementing "
                f"__torch_function__, got {type(value).__name__}."
            )
    first = next((v for v in values if isinstance(v, Tensor)), None)
    like = {"dtype": vesta.get_default_dtype()} if first is None else {"dtype": first.dtype, "device": first.device}
    return vesta.broadcast_tensors(*(v if isinstance(v, Tensor) else vesta.tensor(v, **like) for v in values))


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    """Draws from the standard normal distribution."""
    return vesta.randn(shape, dtype=dtype, device=device)


def _sum_rightmost(value: Any, dims: int) -> Any:
    """Sums the last ``dims`` dimensions."""
    return value if dims == 0 else value.sum(tuple(range(-dims, 0)))


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Returns probabilities: the sigmoid of log odds, or else the softmax over the last dimension."""
    return vesta.sigmoid(logits) if is_binary else vesta.softmax(logits, -1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Clamps probabilities to [eps, 1 - eps] of their dtype, so that their logarithms are finite."""
    eps = vesta.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Returns log odds of probabilities, or else their logarithms; probabilities are clamped by ``clamp_probs``."""
    clamped = clamp_probs(probs)
    return clamped.log() - (-clamped).log1p() if is_binary else clamped.log()


class lazy_property:
    """Decorates a method as an attribute that is computed when it is first read, with recording on, and then kept."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        functools.update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with vesta.enable_grad():
            value = self.wrapped(instance)
        vars(instance)[self.wrapped.__name__] = value
        return value


def _tril_mask(n: int, diag: int, device: Any) -> Tensor:
    """Returns the mask [n, n] of elements on and below diagonal ``diag``."""
    return vesta.ones(n, n, dtype=vesta.bool, device=device).tril(diag)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Returns the elements on and below a diagonal, row by row: [..., n, n] becomes [..., m].

    Raises:
        ValueError: the matrix has no such diagonal.
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    places = _tril_mask(n, diag, mat.device).reshape(-1).nonzero().reshape(-1)
    return mat.reshape(*mat.shape[:-2], n * n).index_select(-1, places)


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Fills the elements on and below a diagonal, row by row, the others with 0: [..., m] becomes [..., n, n].

    Raises:
        ValueError: no n has m such elements.
    """
    m = vec.shape[-1]
    n = round((-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * m + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2)
    mask = _tril_mask(n, diag, vec.device).reshape(-1)
    places = mask.nonzero().reshape(-1)
    if places.numel() != m:
        raise ValueError(
            f"The size of last dimension is {m} which cannot be expressed as the lower triangular part of a square "
            "D x D matrix."
        )
    index = places.expand(vec.shape)
    return vec.new_zeros((*vec.shape[:-1], n * n)).scatter_add(-1, index, vec).reshape(*vec.shape[:-1], n, n)
