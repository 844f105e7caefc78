"""Batch normalization in evaluation as part of the layer before it."""

from __future__ import annotations

import copy
from typing import Any

import vesta
from vesta import Tensor
from vesta._arguments import checked, expect
from vesta.nn.modules.module import Module
from vesta.nn.parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _fused(
    weight: Tensor, bias: Tensor | None, mean: Tensor, var: Tensor, eps: float, gamma: Any, beta: Any, dim: int
) -> tuple[Parameter, Parameter]:
    """Returns weight * s and (bias - mean) * s + beta with s = gamma / sqrt(var + eps), s along ``dim`` of the
    weight."""
    with vesta.no_grad():
        wide = bias.dtype if bias is not None else weight.dtype
        bias = vesta.zeros_like(mean) if bias is None else bias
        scale = (var + eps).rsqrt() * (vesta.ones_like(mean) if gamma is None else gamma)
        shape = [1] * weight.dim()
        shape[dim] = -1
        new_weight = (weight * scale.reshape(shape)).to(weight.dtype)
        new_bias = (bias - mean) * scale + (vesta.zeros_like(mean) if beta is None else beta)
    return Parameter(new_weight, weight.requires_grad), Parameter(new_bias.to(wide), bias.requires_grad)


def _checked(op: str, layer: Module, bn: Module) -> None:
    for name, module in (("layer", layer), ("bn", bn)):
        expect(op, name, module, Module, "Module")
        if module.training:
            raise AssertionError("Fusion only for eval! Call eval() on both modules first.")
    if getattr(bn, "running_mean", None) is None or bn.running_var is None:
        raise AssertionError("fusion needs a batch normalization with running statistics (track_running_stats=True)")


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """Returns a convolution that does what ``conv`` and ``bn`` do one after the other, in evaluation.

    Args:
        transpose: ``conv`` is a transposed convolution.

    Example::

        >>> import vesta
        >>> conv, bn = vesta.nn.Conv2d(3, 4, 3).eval(), vesta.nn.BatchNorm2d(4).eval()
        >>> fused = vesta.nn.utils.fuse_conv_bn_eval(conv, bn)
        >>> x = vesta.randn(1, 3, 8, 8)
        >>> bool(vesta.allclose(fused(x), bn(conv(x)), atol=1e-5))
        True
    """
    _checked("fuse_conv_bn_eval", conv, bn)
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


@checked
def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Returns weight and bias of ``fuse_conv_bn_eval``: weight * s and (bias - mean) * s + b, s = w / sqrt(var +
    eps).

    Example::

        >>> import vesta
        >>> mean, var, scale, shift = vesta.zeros(1), vesta.ones(1), vesta.tensor([2.0]), vesta.tensor([3.0])
        >>> w, b = vesta.nn.utils.fuse_conv_bn_weights(vesta.ones(1, 1, 1), None, mean, var, 0.0, scale, shift)
        >>> w, b
        (Parameter containing:
        tensor([[[2.]]]), Parameter containing:
        tensor([3.]))
    """
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 1 if transpose else 0)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """Returns a linear layer that does what ``linear`` and ``bn`` do one after the other, in evaluation.

    Example::

        >>> import vesta
        >>> linear, bn = vesta.nn.Linear(3, 4).eval(), vesta.nn.BatchNorm1d(4).eval()
        >>> fused = vesta.nn.utils.fuse_linear_bn_eval(linear, bn)
        >>> x = vesta.randn(5, 3)
        >>> bool(vesta.allclose(fused(x), bn(linear(x)), atol=1e-5))
        True
    """
    _checked("fuse_linear_bn_eval", linear, bn)
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


@checked
def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """Returns weight and bias of ``fuse_linear_bn_eval``.

    Example::

        >>> import vesta
        >>> mean, var, scale, shift = vesta.zeros(1), vesta.ones(1), vesta.tensor([2.0]), vesta.tensor([3.0])
        >>> w, b = vesta.nn.utils.fuse_linear_bn_weights(vesta.ones(1, 1), None, mean, var, 0.0, scale, shift)
        >>> w, b
        (Parameter containing:
        tensor([[2.]]), Parameter containing:
        tensor([3.]))
    """
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 0)
