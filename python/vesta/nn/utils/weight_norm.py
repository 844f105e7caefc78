"""Weight normalization by a hook: the older form, under which checkpoints have ``weight_g`` and ``weight_v``."""

from __future__ import annotations

import warnings
from typing import Any, TypeVar

from vesta import Tensor
from vesta._arguments import expect
from vesta.nn.modules.module import Module
from vesta.nn.parameter import Parameter
from vesta.nn.utils.parametrizations import _weight, norm_except_dim

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]

M = TypeVar("M", bound=Module)


class WeightNorm:
    """The hook that computes the weight before each forward."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Tensor:
        """Returns g * v / |v|."""
        g, v = getattr(module, f"{self.name}_g"), getattr(module, f"{self.name}_v")
        return v * (g / norm_except_dim(v, self.dim))

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """Splits the weight and registers the hook."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        function = WeightNorm(name, dim)
        weight = _weight("weight_norm", module, name)
        del module._parameters[name]
        module.register_parameter(f"{name}_g", Parameter(norm_except_dim(weight, function.dim).detach()))
        module.register_parameter(f"{name}_v", Parameter(weight.detach()))
        setattr(module, name, function.compute_weight(module))
        module.register_forward_pre_hook(function)
        return function

    def remove(self, module: Module) -> None:
        """Puts the computed weight back as a parameter."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[f"{self.name}_g"], module._parameters[f"{self.name}_v"]
        setattr(module, self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Splits a weight into ``weight_g`` (lengths) and ``weight_v`` (directions); a hook computes g * v / |v|. Warns.

    Salimans and Kingma, "Weight normalization", 2016. New programs use ``parametrizations.weight_norm``.

    Args:
        dim: the dimension whose entries have a length each; None: one length for all.

    Example::

        >>> import vesta, warnings
        >>> warnings.simplefilter("ignore")
        >>> layer = vesta.nn.utils.weight_norm(vesta.nn.Linear(20, 40))
        >>> layer.weight_g.shape
        vesta.Size([40, 1])
    """
    warnings.warn(
        "`nn.utils.weight_norm` is deprecated in favor of `nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    expect("weight_norm", "module", module, Module, "Module")
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Makes the weight an ordinary parameter again.

    Example::

        >>> import vesta
        >>> layer = vesta.nn.utils.weight_norm(vesta.nn.Linear(2, 2))
        >>> layer = vesta.nn.utils.remove_weight_norm(layer)
        >>> sorted(layer.state_dict())
        ['bias', 'weight']
    """
    expect("remove_weight_norm", "module", module, Module, "Module")
    for key, hook in list(module._forward_pre_hooks.items()):
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
