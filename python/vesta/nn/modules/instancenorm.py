"""Normalization of each channel of each example."""

from __future__ import annotations

import warnings
from typing import Any

from vesta import Tensor
from vesta._arguments import checked
from vesta._types import Device, DType
from vesta.nn import functional as F
from vesta.nn.modules.batchnorm import _LazyNormBase, _NormBase

__all__ = [
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]


class _InstanceNorm(_NormBase):
    """The common part of instance normalizations; a subclass defines its inputs."""

    @checked
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Device | None = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        """Normalises ``input`` and, in training, updates the running statistics, if there are any."""
        self._check_input_dim(input)
        unbatched = self._dims[0]
        place = input.dim() - unbatched
        if input.size(place) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={place} to match num_features ({self.num_features}), but got: "
                    f"{input.size(place)}."
                )
            warnings.warn(
                f"input's size at dim={place} does not match num_features. You can silence this warning by not passing "
                "in num_features, which is not used because affine=False",
                stacklevel=2,
            )
        if input.dim() == unbatched:
            return self._normalized(input.unsqueeze(0)).squeeze(0)
        return self._normalized(input)

    def _normalized(self, input: Tensor) -> Tensor:
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *rest: Any
    ) -> None:
        if local_metadata.get("version") is None and not self.track_running_stats:
            names = [prefix + name for name in ("running_mean", "running_var") if prefix + name in state_dict]
            if names:
                rest[-1].append(
                    f"Unexpected running stats buffer(s) {' and '.join(map(repr, names))} for {type(self).__name__} "
                    "with track_running_stats=False: it does not keep running statistics. Remove the names from the "
                    "state_dict, or set track_running_stats=True."
                )
                for name in names:
                    del state_dict[name]
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class InstanceNorm1d(_InstanceNorm):
    """The normalisation of each channel of each example: (x - mean) / sqrt(var + eps) * weight + bias.

    Ulyanov et al., "Instance normalization: the missing ingredient for fast stylization", 2016.

    Args:
        num_features: C.
        eps: added to the variance.
        momentum: the weight of the new batch in the running statistics.
        affine: whether there are ``weight`` and ``bias`` [C].
        track_running_stats: whether there are ``running_mean`` and ``running_var`` [C], used in evaluation.
        bias: whether there is a ``bias`` if ``affine``.

    Shapes: input and output [N, C, L] or [C, L].

    Example::

        >>> import vesta
        >>> vesta.nn.InstanceNorm1d(100)(vesta.randn(20, 100, 40)).shape
        vesta.Size([20, 100, 40])
    """

    _dims, _expected = (2, 3), "2D or 3D"


class InstanceNorm2d(_InstanceNorm):
    """``InstanceNorm1d`` for images: input and output [N, C, H, W] or [C, H, W].

    Example::

        >>> import vesta
        >>> vesta.nn.InstanceNorm2d(3)(vesta.randn(2, 3, 8, 8)).shape
        vesta.Size([2, 3, 8, 8])
    """

    _dims, _expected = (3, 4), "3D or 4D"


class InstanceNorm3d(_InstanceNorm):
    """``InstanceNorm1d`` for volumes: input and output [N, C, D, H, W] or [C, D, H, W].

    Example::

        >>> import vesta
        >>> vesta.nn.InstanceNorm3d(3)(vesta.randn(2, 3, 4, 4, 4)).shape
        vesta.Size([2, 3, 4, 4, 4])
    """

    _dims, _expected = (4, 5), "4D or 5D"


class LazyInstanceNorm1d(_LazyNormBase, InstanceNorm1d):
    """``InstanceNorm1d`` that takes ``num_features`` from its first input; the other arguments are the same.

    Example::

        >>> import vesta
        >>> layer = vesta.nn.LazyInstanceNorm1d()
        >>> _ = layer(vesta.randn(2, 5, 3))
        >>> layer.num_features
        5
    """

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNormBase, InstanceNorm2d):
    """``InstanceNorm2d`` that takes ``num_features`` from its first input; the other arguments are the same.

    Example::

        >>> import vesta
        >>> layer = vesta.nn.LazyInstanceNorm2d()
        >>> _ = layer(vesta.randn(2, 5, 3, 3))
        >>> layer.num_features
        5
    """

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNormBase, InstanceNorm3d):
    """``InstanceNorm3d`` that takes ``num_features`` from its first input; the other arguments are the same.

    Example::

        >>> import vesta
        >>> layer = vesta.nn.LazyInstanceNorm3d()
        >>> _ = layer(vesta.randn(2, 5, 3, 3, 3))
        >>> layer.num_features
        5
    """

    cls_to_become = InstanceNorm3d
