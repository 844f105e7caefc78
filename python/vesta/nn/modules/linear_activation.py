"""A linear layer and the activation behind it as one op, on CUDA, where nothing sees what lies between."""

from __future__ import annotations

from typing import Any

from vesta import _C, Tensor
from vesta._C import _private
from vesta.nn.modules import hooks
from vesta.nn.modules.activation import GELU, ReLU
from vesta.nn.modules.linear import Linear
from vesta.nn.modules.module import Module
from vesta.nn.modules.unwinding import name_module
from vesta.nn.parameter import Parameter

__all__ = ["call", "may_join", "uses_gelu"]

_FORWARD = {kind: kind.forward for kind in (Linear, ReLU, GELU)}  # a program may put another one in its place
_PLAIN = (Tensor, Parameter)


def may_join(input: Any) -> bool:
    """Returns whether a chain that begins with this input may join layers: nothing takes its calls over or watches."""
    return (
        type(input) is Tensor
        and input.is_cuda
        and not _C.is_anomaly_enabled()
        and not _C._has_torch_function(())
        and not (hooks.any_global and hooks.any_hook())
    )


def uses_gelu(linear: Module, activation: Module) -> bool | None:
    """Returns whether the activation behind ``linear`` is a gelu with tanh; None unless one op computes both."""
    kind = type(activation)
    if type(linear) is not Linear or not (kind is ReLU or (kind is GELU and activation.approximate == "tanh")):
        return None
    for module in (linear, activation):
        if module._has_hooks or "forward" in module.__dict__ or type(module).forward is not _FORWARD[type(module)]:
            return None
    if type(linear.weight) not in _PLAIN or (linear.bias is not None and type(linear.bias) not in _PLAIN):
        return None  # a subclass may take calls over
    return kind is GELU


def call(linear: Module, use_gelu: bool, input: Tensor) -> Tensor:
    """Runs both; errors and profiles name the linear layer."""
    observer = hooks._observer[:]
    token = observer[0](linear) if observer else None
    try:
        return _private._linear_activation(input, linear.weight, linear.bias, use_gelu)
    except Exception as error:
        name_module(error, linear)
        raise
    finally:
        if observer:
            observer[1](token)
