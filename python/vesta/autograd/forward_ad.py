"""Derivatives in forward mode, with ``torch.autograd.forward_ad``'s names.

A dual tensor is a point that is recorded with its tangent. The tangent of a result is found when it is asked for, as
the derivative of v^T J with respect to v ("double vjp"), so the tape must record: under ``no_grad()`` a result has no
tangent.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import vesta
from vesta import Tensor
from vesta._arguments import expect
from vesta._names import listing

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]

#: The points and tangents of the level that is open, or None. PyTorch has one level too.
_duals: list[tuple[Tensor, Tensor, Tensor]] | None = None


class UnpackedDualTensor(NamedTuple):
    """A value and its derivative in the direction of the tangents; None if it does not depend on a dual tensor."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Opens a level; ``dual_level`` does it as a context. RuntimeError: one is open.

    Example::

        >>> import vesta.autograd.forward_ad as fwAD
        >>> level = fwAD.enter_dual_level()
        >>> fwAD.exit_dual_level(level=level)
    """
    global _duals
    if _duals is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _duals = []
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Closes the level: tangents are forgotten. RuntimeError: none is open.

    Example::

        >>> import vesta.autograd.forward_ad as fwAD
        >>> level = fwAD.enter_dual_level()
        >>> fwAD.exit_dual_level(level=level)
    """
    global _duals
    if _duals is None or level not in (None, 0):
        raise RuntimeError("Trying to exit a forward AD level that was not the last one that was created.")
    _duals = None


class dual_level:
    """The context in which dual tensors exist.

    Example::

        >>> import vesta
        >>> import vesta.autograd.forward_ad as fwAD
        >>> with fwAD.dual_level():
        ...     x = fwAD.make_dual(vesta.tensor(3.0), vesta.tensor(1.0))
        ...     fwAD.unpack_dual(x * x).tangent
        tensor(6.)
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exception: Any) -> None:
        exit_dual_level(level=0)


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Returns ``tensor`` as a point with a tangent.

    Args:
        tensor: of a floating-point or complex dtype, any shape.
        tangent: of the same shape; it is converted to the dtype of the tensor. A complex one needs a complex tensor.

    Raises:
        RuntimeError: outside of a level, or a tangent of another shape.
        ValueError: a tensor or a tangent of integers, or a complex tangent of real values.

    Example::

        >>> import vesta
        >>> import vesta.autograd.forward_ad as fwAD
        >>> with fwAD.dual_level():
        ...     x = fwAD.make_dual(vesta.tensor([1.0, 2.0]), vesta.tensor([1.0, 0.0]))
        ...     fwAD.unpack_dual(x.exp())
        UnpackedDualTensor(primal=tensor([2.7183, 7.3891]), tangent=tensor([2.7183, 0.0000]))
    """
    if _duals is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    expect("make_dual", "tensor", tensor, Tensor, "Tensor")
    expect("make_dual", "tangent", tangent, Tensor, "Tensor")
    if not (tensor.is_floating_point() or tensor.is_complex()):
        raise ValueError(f"Expected primal to be floating point or complex, but got: {tensor.dtype}")
    if not (tangent.is_floating_point() or tangent.is_complex()):
        raise ValueError(f"Expected tangent to be floating point or complex, but got: {tangent.dtype}")
    if tangent.is_complex() and not tensor.is_complex():
        raise ValueError(f"make_dual: expected a real tangent of {tensor.dtype} values, got {tangent.dtype} (tangent).")
    if tangent.shape != tensor.shape:
        raise RuntimeError(
            f"make_dual: expected a tangent of shape {list(tensor.shape)}, got {list(tangent.shape)} (tangent)."
        )
    tangent = tangent.to(tensor.dtype)
    with vesta.enable_grad():
        point = tensor.view_as(tensor) if tensor.requires_grad else tensor.detach().requires_grad_()
        dual = point.view_as(point)
    _duals.append((point, dual, tangent))
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Returns the value of a tensor and its tangent, or None for it.

    Outside of a level there are no tangents.

    Example::

        >>> import vesta
        >>> import vesta.autograd.forward_ad as fwAD
        >>> with fwAD.dual_level():
        ...     x = fwAD.make_dual(vesta.tensor([1.0, 2.0]), vesta.tensor([1.0, 0.0]))
        ...     fwAD.unpack_dual(x.exp())
        UnpackedDualTensor(primal=tensor([2.7183, 7.3891]), tangent=tensor([2.7183, 0.0000]))
    """
    expect("unpack_dual", "tensor", tensor, Tensor, "Tensor")
    if not _duals or not tensor.requires_grad:
        return UnpackedDualTensor(tensor, None)
    for _, dual, tangent in _duals:
        if dual is tensor:
            return UnpackedDualTensor(tensor.detach(), tangent)
    with vesta.enable_grad():
        seed = vesta.zeros_like(tensor).requires_grad_()
        inputs = [point for point, _, _ in _duals]
        first = vesta.autograd.grad(tensor, inputs, seed, create_graph=True, allow_unused=True)
        reached = [(g, tangent) for g, (_, _, tangent) in zip(first, _duals) if g is not None]
        if not reached:
            return UnpackedDualTensor(tensor, None)
        linear = [(g, tangent) for g, tangent in reached if g.requires_grad]
        found = None
        if linear:
            outer = any(tangent.requires_grad for _, tangent in linear)
            found = vesta.autograd.grad(
                [g for g, _ in linear],
                seed,
                [tangent for _, tangent in linear],
                create_graph=outer,
                retain_graph=True,
                allow_unused=True,
            )[0]
        return UnpackedDualTensor(tensor.detach(), vesta.zeros_like(tensor) if found is None else found)


__dir__ = listing(globals())
