"""A convolution with a bias and the relu behind it as one op, on CUDA, where no gradient is recorded and nothing sees
what lies between: cuDNN computes both in one graph."""

from __future__ import annotations

import vesta
from vesta import Tensor
from vesta.nn.modules import hooks
from vesta.nn.modules.activation import ReLU
from vesta.nn.modules.conv import Conv2d
from vesta.nn.modules.module import Module
from vesta.nn.modules.unwinding import name_module
from vesta.nn.parameter import Parameter

__all__ = ["call", "joins"]

_METHODS = {  # a program may put another one in its place
    Conv2d: {name: getattr(Conv2d, name) for name in ("forward", "_conv_forward")},
    ReLU: {"forward": ReLU.forward},
}
_PLAIN = (Tensor, Parameter)


def joins(convolution: Module, activation: Module, input: Tensor) -> bool:
    """Returns whether one op computes both layers of an input for which ``may_join`` holds."""
    if type(convolution) is not Conv2d or type(activation) is not ReLU:
        return False
    for module in (convolution, activation):
        if module._has_hooks:
            return False
        for name, method in _METHODS[type(module)].items():
            if name in module.__dict__ or getattr(type(module), name) is not method:
                return False
    weight, bias = convolution.weight, convolution.bias
    if bias is None or type(weight) not in _PLAIN or type(bias) not in _PLAIN:
        return False  # a subclass may take calls over
    if vesta.is_grad_enabled() and (input.requires_grad or weight.requires_grad or bias.requires_grad):
        return False  # relu keeps its own result, and cuDNN's gradients are those of a convolution alone
    return (
        convolution.padding_mode == "zeros"
        and not isinstance(convolution.padding, str)
        and input.dim() == weight.dim() == 4
        and input.size(1) == convolution.in_channels
        and (input.dtype == weight.dtype == bias.dtype or vesta.is_autocast_enabled("cuda"))
    )


def call(convolution: Conv2d, input: Tensor) -> Tensor:
    """Runs both; errors and profiles name the convolution."""
    observer = hooks._observer[:]
    token = observer[0](convolution) if observer else None
    try:
        return vesta.cudnn_convolution_relu(
            input,
            convolution.weight,
            convolution.bias,
            convolution.stride,
            convolution.padding,
            convolution.dilation,
            convolution.groups,
        )
    except Exception as error:
        name_module(error, convolution)
        raise
    finally:
        if observer:
            observer[1](token)
