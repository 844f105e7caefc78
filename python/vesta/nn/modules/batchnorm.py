"""Batch normalization."""

from __future__ import annotations

from typing import Any

import vesta
from vesta import Tensor
from vesta.nn import functional as F
from vesta.nn import init
from vesta.nn.modules.module import Module
from vesta.nn.parameter import Parameter

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d"]


class _BatchNorm(Module):
    """What the three have in common; a subclass says which inputs it takes."""

    _version = 2
    _load_defers = True
    _dims: tuple[int, ...]
    _expected: str
    num_features: int
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        where = {"device": device, "dtype": dtype}
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self.register_parameter("weight", Parameter(vesta.empty((num_features,), **where)) if affine else None)
        self.register_parameter("bias", Parameter(vesta.empty((num_features,), **where)) if affine and bias else None)
        tracked = track_running_stats
        self.register_buffer("running_mean", vesta.zeros((num_features,), **where) if tracked else None)
        self.register_buffer("running_var", vesta.ones((num_features,), **where) if tracked else None)
        steps = vesta.tensor(0, dtype=vesta.int64, device=device) if tracked else None
        self.register_buffer("num_batches_tracked", steps)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forgets the running statistics: mean 0, variance 1, no batch seen."""
        if self.track_running_stats:
            self.running_mean.zero_()  # type: ignore[union-attr]
            self.running_var.fill_(1)  # type: ignore[union-attr]
            self.num_batches_tracked.zero_()  # type: ignore[union-attr]

    def reset_parameters(self) -> None:
        """Forgets the running statistics and sets weight 1, bias 0."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in self._dims:
            raise ValueError(f"expected {self._expected} input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        """Normalises ``input`` and, in training, updates the running statistics."""
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        update = self.training and self.track_running_stats
        if update and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # a plain average over all batches
                momentum = 1.0 / float(self.num_batches_tracked)
        own_statistics = self.training or (self.running_mean is None and self.running_var is None)
        keep = update or not self.training
        return F.batch_norm(
            input,
            self.running_mean if keep else None,
            self.running_var if keep else None,
            self.weight,
            self.bias,
            own_statistics,
            momentum,
            self.eps,
        )

    def extra_repr(self) -> str:
        """Returns the constructor's arguments."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *rest: Any
    ) -> None:
        version = local_metadata.get("version")
        key = prefix + "num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            state_dict[key] = vesta.tensor(0, dtype=vesta.int64)  # older checkpoints did not count
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class BatchNorm1d(_BatchNorm):
    """Normalises each of C features over the batch: (x - mean) / sqrt(var + eps) * weight + bias.

    Ioffe and Szegedy, "Batch normalization", 2015.

    Args:
        num_features: C.
        eps: added to the variance.
        momentum: share of the new batch in the running statistics; ``None`` averages over all batches.
        affine: whether there are ``weight`` and ``bias`` [C].
        track_running_stats: whether there are ``running_mean`` and ``running_var`` [C], used in evaluation.
        bias: whether there is a ``bias`` if ``affine``.

    Shapes: input and output [N, C] or [N, C, L].

    Example::

        >>> import vesta
        >>> vesta.nn.BatchNorm1d(100)(vesta.randn(20, 100)).shape
        vesta.Size([20, 100])
    """

    _dims, _expected = (2, 3), "2D or 3D"


class BatchNorm2d(_BatchNorm):
    """Normalises each of C channels over batch and image; arguments as for ``BatchNorm1d``.

    Shapes: input and output [N, C, H, W].

    Example::

        >>> import vesta
        >>> vesta.nn.BatchNorm2d(3)(vesta.randn(2, 3, 8, 8)).shape
        vesta.Size([2, 3, 8, 8])
    """

    _dims, _expected = (4,), "4D"


class BatchNorm3d(_BatchNorm):
    """Normalises each of C channels over batch and volume; arguments as for ``BatchNorm1d``.

    Shapes: input and output [N, C, D, H, W].

    Example::

        >>> import vesta
        >>> vesta.nn.BatchNorm3d(3)(vesta.randn(2, 3, 4, 4, 4)).shape
        vesta.Size([2, 3, 4, 4, 4])
    """

    _dims, _expected = (5,), "5D"
