"""einops: the backend by which its functions take Vesta's tensors, and its layers.

Importing this module imports einops. ``register()`` makes the backend known; the layers need no registration.
"""

from __future__ import annotations

from typing import Any

from einops import EinopsError
from einops._backends import AbstractBackend
from einops.layers import RearrangeMixin, ReduceMixin
from einops.layers._einmix import _EinmixMixin

import vesta
from vesta import Tensor, nn
from vesta._names import listing

__all__ = ["EinMix", "Rearrange", "Reduce", "register"]


def register() -> None:
    """Makes ``rearrange``, ``reduce``, ``repeat``, ``einsum``, ``pack`` and ``unpack`` of einops work on tensors."""
    from einops import _backends

    _backends._loaded_backends.setdefault("vesta", VestaBackend())


class VestaBackend(AbstractBackend):  # type: ignore[misc]
    """What einops does with a tensor, in Vesta's operations."""

    framework_name = "vesta"

    def is_appropriate_type(self, tensor: Any) -> bool:
        """Returns whether ``tensor`` is Vesta's, or of a subclass."""
        return isinstance(tensor, Tensor)

    def from_numpy(self, x: Any) -> Tensor:
        """Returns a tensor over the array's memory."""
        return vesta.from_numpy(x)

    def to_numpy(self, x: Tensor) -> Any:
        """Returns the values as an array, without history and on the CPU."""
        return x.detach().cpu().numpy()

    def arange(self, start: int, stop: int) -> Tensor:
        """Returns the integers of [start, stop)."""
        return vesta.arange(start, stop)

    def reduce(self, x: Tensor, operation: str, axes: Any) -> Tensor:
        """Returns ``x`` reduced over ``axes`` by "min", "max", "sum", "mean", "prod", "any" or "all"."""
        if operation in ("min", "max"):  # the gradient of equal extremes is shared
            return getattr(x, f"a{operation}")(dim=tuple(axes))
        if operation in ("sum", "mean"):
            return getattr(x, operation)(dim=tuple(axes))
        if operation not in ("prod", "any", "all"):
            raise EinopsError(f"reduce: expected min, max, sum, mean, prod, any or all, got {operation!r} (reduction).")
        for axis in sorted(axes, reverse=True):  # these take one dimension at a time
            x = getattr(x, operation)(dim=axis)
        return x

    def transpose(self, x: Tensor, axes: Any) -> Tensor:
        """Returns a view of ``x`` with its dimensions in the order ``axes``."""
        return x.permute(tuple(axes))

    def stack_on_zeroth_dimension(self, tensors: list[Tensor]) -> Tensor:
        """Returns the tensors, all of one shape, stacked along a new first dimension."""
        return vesta.stack(tensors)

    def add_axis(self, x: Tensor, new_position: int) -> Tensor:
        """Returns a view of ``x`` with a dimension of size 1 more."""
        return x.unsqueeze(new_position)

    def add_axes(self, x: Tensor, n_axes: int, pos2len: dict[int, int]) -> Tensor:
        """Returns a view of ``x`` with dimensions of the given sizes at the given places; no memory is taken."""
        sizes = [-1] * n_axes
        for position, length in pos2len.items():
            x = x.unsqueeze(position)
            sizes[position] = length
        return x.expand(sizes)

    def tile(self, x: Tensor, repeats: Any) -> Tensor:
        """Returns ``x`` repeated along each dimension."""
        return x.repeat(tuple(repeats))

    def concat(self, tensors: list[Tensor], axis: int) -> Tensor:
        """Returns the tensors one behind the other along ``axis``."""
        return vesta.cat(tensors, dim=axis)

    def is_float_type(self, x: Tensor) -> bool:
        """Returns whether the dtype is a floating one."""
        return x.is_floating_point()

    def layers(self) -> Any:
        """Returns the module that holds the layers."""
        import sys

        return sys.modules[__name__]

    def einsum(self, pattern: str, *x: Tensor) -> Tensor:
        """Returns the sum of products that ``pattern`` says."""
        return vesta.einsum(pattern, *x)


class Rearrange(RearrangeMixin, nn.Module):  # type: ignore[misc]
    """``einops.rearrange`` as a layer."""

    def forward(self, input: Tensor) -> Tensor:
        """Returns ``input`` rearranged by the pattern."""
        register()
        return self._apply_recipe(input)


class Reduce(ReduceMixin, nn.Module):  # type: ignore[misc]
    """``einops.reduce`` as a layer."""

    def forward(self, input: Tensor) -> Tensor:
        """Returns ``input`` reduced by the pattern."""
        register()
        return self._apply_recipe(input)


class EinMix(_EinmixMixin, nn.Module):  # type: ignore[misc]
    """``einops.layers.torch.EinMix``: a linear layer over the dimensions that a pattern names."""

    def _create_parameters(self, weight_shape: Any, weight_bound: float, bias_shape: Any, bias_bound: float) -> None:
        self.weight = nn.Parameter(vesta.empty(weight_shape).uniform_(-weight_bound, weight_bound))
        self.bias = None
        if bias_shape is not None:
            self.bias = nn.Parameter(vesta.empty(bias_shape).uniform_(-bias_bound, bias_bound))

    def _create_rearrange_layers(
        self, pre_pattern: str | None, pre_lengths: Any, post_pattern: str | None, post_lengths: Any
    ) -> None:
        self.pre_rearrange = Rearrange(pre_pattern, **pre_lengths) if pre_pattern is not None else None
        self.post_rearrange = Rearrange(post_pattern, **post_lengths) if post_pattern is not None else None

    def forward(self, input: Tensor) -> Tensor:
        """Returns the products and sums of ``input`` and the weight, with the bias added."""
        if self.pre_rearrange is not None:
            input = self.pre_rearrange(input)
        result = vesta.einsum(self.einsum_pattern, input, self.weight)
        if self.bias is not None:
            result = result + self.bias
        return result if self.post_rearrange is None else self.post_rearrange(result)


__dir__ = listing(globals())
