"""Initial values for parameters; every function fills its tensor in place, outside of the tape, and returns it."""

from __future__ import annotations

import functools
import math
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import vesta
from vesta import _C, Generator, Tensor
from vesta._arguments import checked
from vesta._names import listing

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

_skipping = threading.local()  # has the attribute ``on`` while a module is made without initial values

_LINEAR = ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")


@contextmanager
def skipped() -> Iterator[None]:
    """Inside of this context, uniform, normal and constant values are not drawn or set: tensors stay as they are."""
    _skipping.on = True
    try:
        yield
    finally:
        del _skipping.on


@checked
def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Returns the factor by which an activation shrinks its input's deviation, inverted.

    1 for linear layers and sigmoid, 5/3 for tanh, sqrt(2) for relu, sqrt(2 / (1 + slope**2)) for leaky_relu (He et al.,
    "Delving deep into rectifiers", 2015), 3/4 for selu.

    Args:
        param: the slope of ``leaky_relu`` (default: 0.01).

    Example::

        >>> import vesta
        >>> vesta.nn.init.calculate_gain("leaky_relu", 1.0)
        1.0
    """
    gains = {"sigmoid": 1.0, "tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 0.75, **dict.fromkeys(_LINEAR, 1)}
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity not in gains:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return gains[nonlinearity]


@checked
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fills ``tensor`` from the uniform distribution on [a, b).

    Example::

        >>> import vesta
        >>> bool((vesta.nn.init.uniform_(vesta.empty(100), -1, 1).abs() <= 1).all())
        True
    """
    if hasattr(_skipping, "on"):
        return tensor
    with vesta.no_grad():
        return tensor.uniform_(a, b, generator=generator)


@checked
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fills ``tensor`` from the normal distribution.

    Example::

        >>> import vesta
        >>> vesta.nn.init.normal_(vesta.empty(2), 5.0, 0.0)
        tensor([5., 5.])
    """
    if hasattr(_skipping, "on"):
        return tensor
    with vesta.no_grad():
        return tensor.normal_(mean, std, generator=generator)


@checked
def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fills ``tensor`` from the normal distribution cut off outside of [a, b].

    By rejection: what falls outside is drawn again, from the normal distribution if [a, b] holds a large part of it,
    else uniformly from [a, b] and kept with probability density(x) / max density (Robert, "Simulation of truncated
    normal variables", 1995).

    Example::

        >>> import vesta
        >>> values = vesta.nn.init.trunc_normal_(vesta.empty(100), a=1.0, b=1.5)
        >>> bool(((values >= 1.0) & (values <= 1.5)).all())
        True
    """
    if not a < b:
        raise RuntimeError(f"trunc_normal_: expected a < b, got {a} and {b} (a, b). Swap them.")
    if not math.isfinite(mean) or not 0 < std < math.inf:
        raise ValueError(f"trunc_normal_: expected a finite mean and std > 0, got {mean} and {std} (mean, std).")
    with vesta.no_grad():
        return _C._truncated_normal_(tensor, mean, std, a, b, generator)


@checked
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fills ``tensor`` with ``val``.

    Example::

        >>> import vesta
        >>> vesta.nn.init.constant_(vesta.empty(2), 7)
        tensor([7., 7.])
    """
    if hasattr(_skipping, "on"):
        return tensor
    with vesta.no_grad():
        return tensor.fill_(val)


@checked
def ones_(tensor: Tensor) -> Tensor:
    """Fills ``tensor`` with 1.

    Example::

        >>> import vesta
        >>> vesta.nn.init.ones_(vesta.empty(2))
        tensor([1., 1.])
    """
    return constant_(tensor, 1.0)


@checked
def zeros_(tensor: Tensor) -> Tensor:
    """Fills ``tensor`` with 0.

    Example::

        >>> import vesta
        >>> vesta.nn.init.zeros_(vesta.empty(2))
        tensor([0., 0.])
    """
    return constant_(tensor, 0.0)


@checked
def eye_(tensor: Tensor) -> Tensor:
    """Fills a matrix with the identity.

    Example::

        >>> import vesta
        >>> vesta.nn.init.eye_(vesta.empty(2, 2))
        tensor([[1., 0.],
                [0., 1.]])
    """
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with vesta.no_grad():
        return tensor.copy_(vesta.eye(*tensor.shape))


@checked
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fills a convolution's weight [O, C, ...] so that it passes channels through, in each of ``groups``.

    Example::

        >>> import vesta
        >>> vesta.nn.init.dirac_(vesta.empty(1, 1, 3))
        tensor([[[0., 1., 0.]]])
    """
    if tensor.dim() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if groups < 1:
        raise ValueError(f"dirac_: expected groups >= 1, got {groups} (groups).")
    if tensor.size(0) % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = tensor.size(0) // groups
    center = tuple(size // 2 for size in tensor.shape[2:])
    with vesta.no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, tensor.size(1))):
                tensor[(group * per_group + channel, channel, *center)] = 1
    return tensor


def _fans(tensor: Tensor) -> tuple[int, int]:
    """Returns the number of inputs that reach an output (fan in) and of outputs that an input reaches (fan out)."""
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.size(1) * field, tensor.size(0) * field


_calculate_fan_in_and_fan_out = _fans  # the name under which programs import it


def _fan(tensor: Tensor, mode: str) -> int:
    modes = ("fan_in", "fan_out")
    if mode.lower() not in modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {list(modes)}")
    return _fans(tensor)[modes.index(mode.lower())]


_calculate_correct_fan = _fan


@checked
def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fills ``tensor`` uniformly from [-l, l], l = gain * sqrt(6 / (fan_in + fan_out)).

    Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks", 2010.

    Example::

        >>> import vesta
        >>> bool((vesta.nn.init.xavier_uniform_(vesta.empty(3, 3)).abs() <= 1).all())
        True
    """
    limit = gain * math.sqrt(6.0 / sum(_fans(tensor)))
    return uniform_(tensor, -limit, limit, generator)


@checked
def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fills ``tensor`` from N(0, s**2), s = gain * sqrt(2 / (fan_in + fan_out)) (Glorot and Bengio, 2010).

    Example::

        >>> import vesta
        >>> vesta.nn.init.xavier_normal_(vesta.empty(3, 4)).shape
        vesta.Size([3, 4])
    """
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_fans(tensor))), generator)


@checked
def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fills ``tensor`` uniformly from [-l, l], l = gain * sqrt(3 / fan) (He et al., 2015).

    Args:
        a: the slope of the leaky_relu that follows.
        mode: ``"fan_in"`` keeps the deviation of the forward pass, ``"fan_out"`` that of the backward pass.

    Example::

        >>> import vesta
        >>> bool((vesta.nn.init.kaiming_uniform_(vesta.empty(3, 6)).abs() <= 1).all())
        True
    """
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    limit = math.sqrt(3.0) * calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode))
    return uniform_(tensor, -limit, limit, generator)


@checked
def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fills ``tensor`` from N(0, s**2), s = gain / sqrt(fan) (He et al., 2015).

    Example::

        >>> import vesta
        >>> vesta.nn.init.kaiming_normal_(vesta.empty(3, 4)).shape
        vesta.Size([3, 4])
    """
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    return normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode)), generator)


@checked
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Fills ``tensor`` [n, ...], read as a matrix [n, m], with orthogonal rows or columns (the fewer), times ``gain``.

    By the QR decomposition of normal values, with signs so that all orthogonal matrices are equally likely: Saxe et
    al.,
    "Exact solutions to the nonlinear dynamics of learning in deep linear neural networks", 2014.

    Example::

        >>> import vesta
        >>> q = vesta.nn.init.orthogonal_(vesta.empty(3, 5))
        >>> bool(vesta.allclose(q @ q.t(), vesta.eye(3), atol=1e-6))
        True
    """
    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows, columns = tensor.size(0), tensor.numel() // tensor.size(0)
    with vesta.no_grad():
        values = tensor.new_empty((rows, columns)).normal_(0.0, 1.0, generator=generator)
        q, r = vesta.linalg.qr(values.t() if rows < columns else values)
        q = q * vesta.diag(r).sign()
        tensor.copy_((q.t() if rows < columns else q).reshape(tensor.shape))
        return tensor.mul_(gain)


@checked
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Fills a matrix from N(0, std**2) and zeroes the fraction ``sparsity`` of each column (Martens, 2010).

    Example::

        >>> import vesta
        >>> int((vesta.nn.init.sparse_(vesta.empty(4, 2), 0.5) == 0).sum())
        4
    """
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    normal_(tensor, 0.0, std, generator)
    with vesta.no_grad():
        for column in range(columns):
            tensor[vesta.randperm(rows, generator=generator)[:zeros], column] = 0
    return tensor


def _deprecated(function: Any) -> Any:
    """Returns the function under its old name, without the underscore; it warns."""
    name = function.__name__

    @functools.wraps(function)
    def old(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(
            f"`nn.init.{name[:-1]}` is now deprecated in favor of `nn.init.{name}`.", FutureWarning, stacklevel=2
        )
        return function(*args, **kwargs)

    old.__name__ = old.__qualname__ = name[:-1]
    old.__doc__ = f"Does the same as ``{name}``, under its old name; warns."
    return old


uniform, normal, constant = map(_deprecated, (uniform_, normal_, constant_))
eye, dirac, orthogonal, sparse = map(_deprecated, (eye_, dirac_, orthogonal_, sparse_))
xavier_uniform, xavier_normal = map(_deprecated, (xavier_uniform_, xavier_normal_))
kaiming_uniform, kaiming_normal = map(_deprecated, (kaiming_uniform_, kaiming_normal_))

__dir__ = listing(globals())
