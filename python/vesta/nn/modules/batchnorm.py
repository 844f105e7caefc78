"""Batch normalization."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import vesta
from vesta import Tensor
from vesta._arguments import checked, expect
from vesta._types import Device, DType
from vesta.nn import functional as F
from vesta.nn import init
from vesta.nn.modules.lazy import LazyModuleMixin
from vesta.nn.modules.module import Module
from vesta.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter, is_lazy

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "SyncBatchNorm",
]


class _NormBase(Module):
    """The common part of normalizations per channel: parameters and running statistics."""

    _version = 2
    _load_defers = True
    _dims: tuple[int, ...]
    _expected: str
    num_features: int
    # None without them:
    weight: Parameter | Any
    bias: Parameter | Any
    running_mean: Tensor | Any
    running_var: Tensor | Any
    num_batches_tracked: Tensor | Any

    if TYPE_CHECKING:
        __getattr__: None  # a slip in an attribute's name is an error

    @checked
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
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
        """Resets the running statistics: mean 0, variance 1, no batch seen."""
        if self.track_running_stats:
            self.running_mean.zero_()  # type: ignore[union-attr]
            self.running_var.fill_(1)  # type: ignore[union-attr]
            self.num_batches_tracked.zero_()  # type: ignore[union-attr]

    def reset_parameters(self) -> None:
        """Resets the running statistics and sets weight 1, bias 0."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        expect(type(self).__name__, "input", input, Tensor, "Tensor")
        if input.dim() not in self._dims:
            raise ValueError(f"expected {self._expected} input (got {input.dim()}D input)")

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


class _BatchNorm(_NormBase):
    """The common part of batch normalizations; a subclass defines its inputs."""

    def _count_batch(self) -> float:
        """Counts a batch in training; returns its weight in the running statistics."""
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # a plain average over all batches
                momentum = 1.0 if self.num_batches_tracked.is_meta else 1.0 / float(self.num_batches_tracked)
        return momentum

    def forward(self, input: Tensor) -> Tensor:
        """Normalises ``input`` and, in training, updates the running statistics."""
        self._check_input_dim(input)
        momentum = self._count_batch()
        update = self.training and self.track_running_stats
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


class BatchNorm1d(_BatchNorm):
    """The normalisation of each of C features over the batch: (x - mean) / sqrt(var + eps) * weight + bias.

    Ioffe and Szegedy, "Batch normalization", 2015.

    Args:
        num_features: C.
        eps: added to the variance.
        momentum: the weight of the new batch in the running statistics; ``None`` averages over all batches.
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
    """The normalisation of each of C channels over batch and image; arguments as for ``BatchNorm1d``.

    Shapes: input and output [N, C, H, W].

    Example::

        >>> import vesta
        >>> vesta.nn.BatchNorm2d(3)(vesta.randn(2, 3, 8, 8)).shape
        vesta.Size([2, 3, 8, 8])
    """

    _dims, _expected = (4,), "4D"


class BatchNorm3d(_BatchNorm):
    """The normalisation of each of C channels over batch and volume; arguments as for ``BatchNorm1d``.

    Shapes: input and output [N, C, D, H, W].

    Example::

        >>> import vesta
        >>> vesta.nn.BatchNorm3d(3)(vesta.randn(2, 3, 4, 4, 4)).shape
        vesta.Size([2, 3, 4, 4, 4])
    """

    _dims, _expected = (5,), "5D"


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """The common part of normalizations that take ``num_features`` from their first input."""

    weight: Any
    bias: Any

    @checked
    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        where = {"device": device, "dtype": dtype}
        super().__init__(0, eps, momentum, False, False, **where)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(**where)
            if bias:
                self.bias = UninitializedParameter(**where)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**where)
            self.running_var = UninitializedBuffer(**where)
            self.num_batches_tracked = vesta.tensor(0, dtype=vesta.int64, device=device)

    def reset_parameters(self) -> None:
        """Resets everything, once it has shapes."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:  # type: ignore[override]
        """Gives the parameters the shapes that ``input`` [N, num_features, ...] wants."""
        self._check_input_dim(input)
        if self.has_uninitialized_params():
            self.num_features = input.shape[1]
            for value in (self.weight, self.bias, self.running_mean, self.running_var):
                if is_lazy(value):
                    value.materialize((self.num_features,))
            self.reset_parameters()
        if self.num_features == 0:  # the shapes came from a state_dict
            values = (self.weight, self.running_mean)
            self.num_features = next((value.shape[0] for value in values if value is not None), input.shape[1])


class LazyBatchNorm1d(_LazyNormBase, BatchNorm1d):
    """``BatchNorm1d`` that takes ``num_features`` from its first input; the other arguments are the same.

    Example::

        >>> import vesta
        >>> layer = vesta.nn.LazyBatchNorm1d()
        >>> _ = layer(vesta.randn(2, 5, 3))
        >>> layer.num_features
        5
    """

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNormBase, BatchNorm2d):
    """``BatchNorm2d`` that takes ``num_features`` from its first input; the other arguments are the same.

    Example::

        >>> import vesta
        >>> layer = vesta.nn.LazyBatchNorm2d()
        >>> _ = layer(vesta.randn(2, 5, 3, 3))
        >>> layer.num_features
        5
    """

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNormBase, BatchNorm3d):
    """``BatchNorm3d`` that takes ``num_features`` from its first input; the other arguments are the same.

    Example::

        >>> import vesta
        >>> layer = vesta.nn.LazyBatchNorm3d()
        >>> _ = layer(vesta.randn(2, 5, 3, 3, 3))
        >>> layer.num_features
        5
    """

    cls_to_become = BatchNorm3d


class SyncBatchNorm(_BatchNorm):
    """Batch normalization with the mean and variance of the batches of all processes together.

    In training, with a process group, each forward gathers the ranks' statistics and each backward their gradients, so
    all ranks must call it in the same order. In evaluation, or alone, it is ``BatchNorm``. Ranks may have batches of
    different sizes, and empty ones. It works on the CPU, too. Arguments as for ``BatchNorm1d``, and ``process_group``
    (None: the default one).

    Shapes: input and output [N, C, ...].

    Example::

        >>> import vesta
        >>> model = vesta.nn.Sequential(vesta.nn.Conv2d(3, 8, 3), vesta.nn.BatchNorm2d(8))
        >>> vesta.nn.SyncBatchNorm.convert_sync_batchnorm(model)[1].num_features
        8
    """

    @checked
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Device | None = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        expect("SyncBatchNorm", "input", input, Tensor, "Tensor")
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    def forward(self, input: Tensor) -> Tensor:
        """Normalises ``input`` with the statistics of all ranks and updates the running ones."""
        dist = vesta.distributed
        alone = not self.training or not dist.is_initialized() or dist.get_world_size(self.process_group) == 1
        if alone:
            return super().forward(input)
        self._check_input_dim(input)
        momentum = self._count_batch()
        mean, var, count = self._statistics(input)
        if self.track_running_stats:
            with vesta.no_grad():
                unbiased = var * (count / max(count - 1, 1))
                for running, batch in ((self.running_mean, mean), (self.running_var, unbiased)):
                    running.mul_(1 - momentum).add_(batch.to(running.dtype), alpha=momentum)  # type: ignore[union-attr]
        shape = [1, -1] + [1] * (input.dim() - 2)
        scale = 1 / (var + self.eps).sqrt()
        if self.weight is not None:
            scale = scale * self.weight
        output = (input.to(mean.dtype) - mean.view(shape)) * scale.view(shape)
        if self.bias is not None:
            output = output + self.bias.view(shape)
        return output.to(input.dtype)

    def _statistics(self, input: Tensor) -> tuple[Tensor, Tensor, float]:
        """Returns mean and variance of each channel over all ranks, and the number of values per channel.

        Each rank sends its mean and its variance, and they are combined by their sizes (Chan, Golub, LeVeque 1979):
        no cancellation, and one collective.
        """
        wide = input.float() if input.dtype in (vesta.float16, vesta.bfloat16) else input
        channels, own = input.size(1), input.numel() // input.size(1)
        if own:
            rows = wide.transpose(0, 1).reshape(channels, -1)
            mean = rows.mean(1)
            spread = (rows - mean.view(-1, 1)).square().mean(1)
        else:  # this rank takes part without values; its gradient is zero
            mean = spread = wide.reshape(channels, -1).sum(1)
        number = vesta.full((1,), float(own), dtype=mean.dtype, device=mean.device)
        from vesta.distributed.nn.functional import all_gather

        parts = vesta.stack(all_gather(vesta.cat([mean, spread, number]), self.process_group))
        counts = parts[:, -1:].detach()
        total = float(counts.sum().item())
        if total <= 1:
            raise ValueError(
                f"Expected more than 1 value per channel when training, got input size {list(input.shape)}"
            )
        share = counts / total
        means, spreads = parts[:, :channels], parts[:, channels : 2 * channels]
        mean = (means * share).sum(0)
        return mean, ((spreads + (means - mean).square()) * share).sum(0), total

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Returns ``module`` with every batch normalization in it replaced, parameters and buffers kept."""
        result = module
        if isinstance(module, _BatchNorm):
            result = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            if module.affine:
                result.weight, result.bias = module.weight, module.bias
            result.running_mean, result.running_var = module.running_mean, module.running_var
            result.num_batches_tracked = module.num_batches_tracked
            result.training = module.training
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result
