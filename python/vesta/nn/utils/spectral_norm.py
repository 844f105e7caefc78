"""Spectral normalization by a hook: the older form, under which checkpoints have ``weight_orig``, ``weight_u``,
``weight_v``.
"""

from __future__ import annotations

from typing import Any, TypeVar

import vesta
from vesta import Tensor
from vesta._arguments import expect
from vesta.nn import functional as F
from vesta.nn.modules.module import Module
from vesta.nn.modules.utils import count
from vesta.nn.parameter import Parameter
from vesta.nn.utils.parametrizations import _first, _output_dim, _weight

__all__ = ["SpectralNorm", "remove_spectral_norm", "spectral_norm"]

M = TypeVar("M", bound=Module)


class SpectralNorm:
    """The hook that divides the weight by its spectral norm before each forward."""

    _version = 1

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if count("spectral_norm", "n_power_iterations", n_power_iterations) <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """Returns the weight as a matrix [size of dim, rest]."""
        return _first(weight, self.dim).reshape(weight.size(self.dim), -1)

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """Returns the weight divided by its norm; the power iteration changes both vectors in place."""
        weight = getattr(module, f"{self.name}_orig")
        u, v = getattr(module, f"{self.name}_u"), getattr(module, f"{self.name}_v")
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with vesta.no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(vesta.mv(matrix.t(), u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(vesta.mv(matrix, v), dim=0, eps=self.eps))
                u, v = u.clone(), v.clone()  # a later forward changes the buffers
        return weight / vesta.dot(u, vesta.mv(matrix, v))

    def remove(self, module: Module) -> None:
        """Puts the computed weight back as a parameter."""
        with vesta.no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        delattr(module, self.name)
        for part in ("u", "v", "orig"):
            delattr(module, f"{self.name}_{part}")
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))

    @staticmethod
    def apply(module: Module, name: str, n_power_iterations: int, dim: int, eps: float) -> SpectralNorm:
        """Moves the weight to ``weight_orig`` and registers the hook."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        function = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = _weight("spectral_norm", module, name)
        with vesta.no_grad():
            matrix = function.reshape_weight_to_matrix(weight)
            starts = [weight.new_empty((size,)).normal_(0, 1) for size in matrix.shape]
            u, v = (F.normalize(start, dim=0, eps=eps) for start in starts)
        delattr(module, name)
        module.register_parameter(f"{name}_orig", weight)
        setattr(module, name, weight.detach())  # an attribute, until the first forward computes it
        module.register_buffer(f"{name}_u", u)
        module.register_buffer(f"{name}_v", v)
        module.register_forward_pre_hook(function)
        module._register_state_dict_hook(SpectralNormStateDictHook(function))
        return function


class SpectralNormStateDictHook:
    """The hook that notes the format's version in a ``state_dict``, as PyTorch does."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(self, module: Module, state_dict: Any, prefix: str, local_metadata: dict[str, Any]) -> None:
        versions = local_metadata.setdefault("spectral_norm", {})
        versions[f"{self.fn.name}.version"] = self.fn._version


def spectral_norm(
    module: M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> M:
    """Divides a weight by its spectral norm (the largest singular value) in each forward, by a hook.

    Miyato et al., "Spectral normalization for generative adversarial networks", 2018. New programs use
    ``parametrizations.spectral_norm``.

    Args:
        n_power_iterations: power iterations in each training forward.
        eps: keeps norms from zero.
        dim: the dimension of outputs; default: 0, but 1 for transposed convolutions.

    Example::

        >>> import vesta
        >>> layer = vesta.nn.utils.spectral_norm(vesta.nn.Linear(20, 40))
        >>> layer.weight_u.shape
        vesta.Size([40])
    """
    expect("spectral_norm", "module", module, Module, "Module")
    expect("spectral_norm", "dim", dim, (int, type(None)), "int or None")
    expect("spectral_norm", "eps", eps, (int, float), "float")
    dim = _output_dim(module) if dim is None else dim
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Makes the weight an ordinary parameter again.

    Example::

        >>> import vesta
        >>> layer = vesta.nn.utils.spectral_norm(vesta.nn.Linear(2, 2))
        >>> layer = vesta.nn.utils.remove_spectral_norm(layer)
        >>> sorted(layer.state_dict())
        ['bias', 'weight']
    """
    expect("remove_spectral_norm", "module", module, Module, "Module")
    for key, hook in list(module._forward_pre_hooks.items()):
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            break
    else:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    for key, hook in list(module._state_dict_hooks.items()):
        if isinstance(hook, SpectralNormStateDictHook) and hook.fn.name == name:
            del module._state_dict_hooks[key]
    return module
