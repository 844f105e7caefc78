"""Clipping of gradients before an optimizer's step."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import vesta
from vesta import _C, Tensor
from vesta._arguments import checked, expect
from vesta._deprecated import deprecated
from vesta._tensor_lists import by_device

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]


def _listed(op: str, name: str, tensors: Any) -> list[Tensor]:
    """Returns the tensors of an iterable, or the one that was given."""
    if isinstance(tensors, Tensor):
        return [tensors]
    expect(op, name, tensors, Iterable, "tensors")
    listed = list(tensors)
    for tensor in listed:
        expect(op, name, tensor, Tensor, "tensors")
    return listed


def _gradients(op: str, parameters: Any) -> list[Tensor]:
    return [parameter.grad for parameter in _listed(op, "parameters", parameters) if parameter.grad is not None]


def _norm(tensor: Tensor, norm_type: float) -> Tensor:
    """Returns the p-norm of all elements; float32 at least, since the squares of 16-bit floats overflow."""
    if tensor.dtype in (vesta.float16, vesta.bfloat16):
        tensor = tensor.to(vesta.float32)
    if norm_type == math.inf:
        return tensor.abs().amax() if tensor.numel() else tensor.sum()
    if norm_type == 2.0 and not tensor.is_complex():
        return (tensor * tensor).sum().sqrt()
    return (tensor.abs() ** norm_type).sum() ** (1.0 / norm_type)


def _check_foreach(tensors: list[Tensor], foreach: bool | None) -> None:
    """Refuses ``foreach=True`` where PyTorch has no ops over lists; the results do not depend on it."""
    for tensor in tensors if foreach else ():
        if tensor.device.type not in ("cpu", "cuda"):
            raise RuntimeError(
                f"foreach=True was passed, but can't use the foreach API on {tensor.device.type} tensors"
            )


def _total_norm(tensors: list[Tensor], norm_type: float) -> Tensor:
    """Returns the norm of all tensors, on the first one's device: with one call for each device where possible."""
    device = tensors[0].device
    groups = by_device(tensors) if norm_type in (1.0, 2.0, math.inf) else None
    if groups is not None:
        norms = [_C._list_norms([t.detach() for t in group], norm_type, True) for group in groups.values()]
    else:
        norms = [_norm(tensor.detach(), norm_type) for tensor in tensors]
    if len(norms) == 1:
        return norms[0]
    return _norm(vesta.stack([norm.to(device) for norm in norms]), norm_type)


@checked
def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Returns the norm of all tensors as if they were one vector, a 0-d tensor.

    Args:
        norm_type: p of the p-norm, or ``inf``.
        error_if_nonfinite: raise ``RuntimeError`` on NaN or infinity.
        foreach: accepted for PyTorch's sake; makes no difference, but True raises ``RuntimeError`` for tensors that
            are neither on the CPU nor on a GPU.

    Example::

        >>> import vesta
        >>> vesta.nn.utils.get_total_norm([vesta.tensor([3.0]), vesta.tensor([4.0])])
        tensor(5.)
    """
    tensors = _listed("get_total_norm", "tensors", tensors)
    if not tensors:
        return vesta.tensor(0.0)
    norm_type = float(norm_type)
    if norm_type == 0 or math.isnan(norm_type):
        raise ValueError(f"get_total_norm: expected a number but 0, got {norm_type} (norm_type).")
    _check_foreach(tensors, foreach)
    total = _total_norm(tensors, norm_type)
    if error_if_nonfinite and not math.isfinite(float(total)):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


@checked
def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales all gradients in place so that their total norm is at most ``max_norm``; returns their norm before.

    Args:
        parameters: an iterable of tensors, or one; those without a gradient are skipped.
        norm_type, error_if_nonfinite, foreach: as for ``get_total_norm``.

    Example::

        >>> import vesta
        >>> weight = vesta.nn.Parameter(vesta.zeros(2))
        >>> weight.grad = vesta.tensor([3.0, 4.0])
        >>> vesta.nn.utils.clip_grad_norm_(weight, 1.0)
        tensor(5.)
    """
    grads = _gradients("clip_grad_norm_", parameters)
    with vesta.no_grad():
        total = get_total_norm(grads, norm_type, error_if_nonfinite, foreach)
        _scale(grads, max_norm, total)
    return total


def _scale(grads: list[Tensor], max_norm: float, total: Tensor) -> None:
    """Multiplies by min(max_norm / (total + 1e-6), 1), which stays on the device: the host does not wait."""
    groups = by_device(grads)
    if groups is not None and by_device([total]) is not None and total.numel() == 1:
        wide = total if total.dtype == vesta.float64 else total.to(vesta.float32)
        for device, group in groups.items():
            _C._list_mul_(group, wide.to(device), float(max_norm), True)
        return
    factor = (float(max_norm) / (total + 1e-6)).clamp(max=1.0)
    for grad in grads:
        grad.mul_(factor.to(grad.device))  # in its own dtype: a 16-bit one would round it


@checked
def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scales all gradients in place by max_norm / total_norm, if that is less than 1.

    Args:
        parameters: an iterable of tensors, or one; those without a gradient are skipped.
        total_norm: the gradients' norm, as ``get_total_norm`` gives it.
        foreach: accepted for PyTorch's sake; makes no difference.

    Example::

        >>> import vesta
        >>> weight = vesta.nn.Parameter(vesta.zeros(2))
        >>> weight.grad = vesta.tensor([3.0, 4.0])
        >>> vesta.nn.utils.clip_grads_with_norm_(weight, 2.5, vesta.tensor(5.0))
        >>> weight.grad
        tensor([1.5000, 2.0000])
    """
    grads = _gradients("clip_grads_with_norm_", parameters)
    _check_foreach(grads, foreach)
    with vesta.no_grad():
        _scale(grads, max_norm, total_norm)


@deprecated("vesta.nn.utils.clip_grad_norm", "vesta.nn.utils.clip_grad_norm_")
def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Does the same as ``clip_grad_norm_``, under its old name; warns.

    Example::

        >>> import vesta
        >>> layer = vesta.nn.Linear(2, 1)
        >>> layer(vesta.ones(1, 2)).sum().backward()
        >>> vesta.nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
        tensor(1.7321)
    """
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


@checked
def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Clamps every element of every gradient to [-clip_value, clip_value], in place.

    Example::

        >>> import vesta
        >>> weight = vesta.nn.Parameter(vesta.zeros(2))
        >>> weight.grad = vesta.tensor([3.0, -0.5])
        >>> vesta.nn.utils.clip_grad_value_(weight, 1.0)
        >>> weight.grad
        tensor([ 1.0000, -0.5000])
    """
    bound = float(clip_value)
    with vesta.no_grad():
        for grad in _gradients("clip_grad_value_", parameters):
            grad.clamp_(-bound, bound)
