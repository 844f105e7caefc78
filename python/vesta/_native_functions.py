"""Functions that PyTorch has in ``torch`` itself besides ``torch.nn.functional``, in the form of its native library.

There a reduction is a number (0 none, 1 mean, 2 sum), and arguments have other places. Programs that call
``torch.layer_norm`` or ``torch.kl_div`` mean these. Also tests of a tensor that are methods as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import vesta
from vesta import _C
from vesta._arguments import checked, expect
from vesta._C import Tensor, _ops
from vesta._types import Ints, Shape

_REDUCTIONS = ("none", "mean", "sum")


def _functional() -> Any:
    from vesta.nn import functional

    return functional


def _reduction(op: str, number: int) -> str:
    """Returns the name of a reduction. ValueError: there is no such number."""
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 3:
        raise ValueError(f"{op}: expected a reduction of 0 (none), 1 (mean) or 2 (sum), got {number!r} (reduction).")
    return _REDUCTIONS[number]


# ---- losses ----


def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: int = 0
) -> Tensor:
    """Returns ``nn.functional.binary_cross_entropy_with_logits`` with its reduction as a number.

    Example::

        >>> import vesta
        >>> vesta.binary_cross_entropy_with_logits(vesta.zeros(2), vesta.ones(2))
        tensor([0.6931, 0.6931])
    """
    return _functional().binary_cross_entropy_with_logits(
        input,
        target,
        weight,
        reduction=_reduction("binary_cross_entropy_with_logits", reduction),
        pos_weight=pos_weight,
    )


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """Returns ``nn.functional.cosine_embedding_loss`` with its reduction as a number.

    Example::

        >>> import vesta
        >>> vesta.cosine_embedding_loss(vesta.eye(2), vesta.ones(2, 2), vesta.ones(2))
        tensor([0.2929, 0.2929])
    """
    return _functional().cosine_embedding_loss(
        input1, input2, target, margin, reduction=_reduction("cosine_embedding_loss", reduction)
    )


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Shape,
    target_lengths: Tensor | Shape,
    blank: int = 0,
    reduction: int = 0,
    zero_infinity: bool = False,
) -> Tensor:
    """Returns ``nn.functional.ctc_loss`` with its reduction as a number.

    Example::

        >>> import vesta
        >>> log_probs = vesta.full((2, 1, 2), 0.5).log()
        >>> vesta.ctc_loss(log_probs, vesta.tensor([[1]]), (2,), (1,))
        tensor([0.2877])
    """
    return _functional().ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, _reduction("ctc_loss", reduction), zero_infinity
    )


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 0) -> Tensor:
    """Returns ``nn.functional.hinge_embedding_loss`` with its reduction as a number.

    Example::

        >>> import vesta
        >>> vesta.hinge_embedding_loss(vesta.tensor([0.5, 0.25]), vesta.tensor([1.0, -1.0]))
        tensor([0.5000, 0.7500])
    """
    return _functional().hinge_embedding_loss(
        input, target, margin, reduction=_reduction("hinge_embedding_loss", reduction)
    )


def kl_div(input: Tensor, target: Tensor, reduction: int = 0, *, log_target: bool = False) -> Tensor:
    """Returns ``nn.functional.kl_div`` with its reduction as a number.

    Example::

        >>> import vesta
        >>> p = vesta.tensor([0.5, 0.5])
        >>> vesta.kl_div(p.log(), p, reduction=2)
        tensor(0.)
    """
    pointwise = _functional().kl_div(input, target, reduction="none", log_target=log_target)
    name = _reduction("kl_div", reduction)
    return pointwise if name == "none" else pointwise.mean() if name == "mean" else pointwise.sum()


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """Returns ``nn.functional.margin_ranking_loss`` with its reduction as a number.

    Example::

        >>> import vesta
        >>> vesta.margin_ranking_loss(vesta.tensor([1.0]), vesta.tensor([3.0]), vesta.tensor([1.0]))
        tensor([2.])
    """
    return _functional().margin_ranking_loss(
        input1, input2, target, margin, reduction=_reduction("margin_ranking_loss", reduction)
    )


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    """Returns ``nn.functional.poisson_nll_loss`` with its reduction as a number.

    Example::

        >>> import vesta
        >>> vesta.poisson_nll_loss(vesta.zeros(2), vesta.ones(2), True, False, 1e-8, 1)
        tensor(1.)
    """
    return _functional().poisson_nll_loss(
        input, target, log_input, full, eps=eps, reduction=_reduction("poisson_nll_loss", reduction)
    )


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-06,
    swap: bool = False,
    reduction: int = 0,
) -> Tensor:
    """Returns ``nn.functional.triplet_margin_loss`` with its reduction as a number.

    Example::

        >>> import vesta
        >>> x = vesta.zeros(1, 2)
        >>> vesta.triplet_margin_loss(x, x, x + 3.0)
        tensor([0.])
    """
    return _functional().triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, reduction=_reduction("triplet_margin_loss", reduction)
    )


# ---- layers ----


def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Returns ``nn.functional.alpha_dropout``.

    Example::

        >>> import vesta
        >>> vesta.alpha_dropout(vesta.ones(3), 0.5, False)
        tensor([1., 1., 1.])
    """
    return _functional().alpha_dropout(input, p, train)


def alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """Does ``alpha_dropout`` in place.

    Example::

        >>> import vesta
        >>> vesta.alpha_dropout_(vesta.ones(3), 0.5, False)
        tensor([1., 1., 1.])
    """
    return _functional().alpha_dropout(input, p, train, inplace=True)


def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """Does ``dropout`` in place.

    Example::

        >>> import vesta
        >>> vesta.dropout_(vesta.ones(3), 0.5, False)
        tensor([1., 1., 1.])
    """
    return _functional().dropout(input, p, train, inplace=True)


def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Returns ``input`` [N, C, *] with whole channels set to 0, each with probability ``p``; the rest is scaled.

    Example::

        >>> import vesta
        >>> vesta.feature_dropout(vesta.ones(1, 2, 3), 0.5, False).shape
        vesta.Size([1, 2, 3])
    """
    expect("feature_dropout", "input", input, Tensor, "Tensor")
    if input.dim() < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    if not train or p == 0:
        return input * 1
    mask = vesta.ones(*input.shape[:2], *(1,) * (input.dim() - 2), dtype=input.dtype, device=input.device)
    return input * _functional().dropout(mask, p, True)


def feature_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """Does ``feature_dropout`` in place.

    Example::

        >>> import vesta
        >>> vesta.feature_dropout_(vesta.ones(1, 2, 3), 0.5, False).shape
        vesta.Size([1, 2, 3])
    """
    expect("feature_dropout_", "input", input, Tensor, "Tensor")
    return input.copy_(feature_dropout(input, p, train)) if train and p else input


def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Returns ``nn.functional.feature_alpha_dropout``.

    Example::

        >>> import vesta
        >>> vesta.feature_alpha_dropout(vesta.ones(1, 2, 3), 0.5, False).shape
        vesta.Size([1, 2, 3])
    """
    return _functional().feature_alpha_dropout(input, p, train)


def feature_alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """Does ``feature_alpha_dropout`` in place.

    Example::

        >>> import vesta
        >>> vesta.feature_alpha_dropout_(vesta.ones(1, 2, 3), 0.5, False).shape
        vesta.Size([1, 2, 3])
    """
    return _functional().feature_alpha_dropout(input, p, train, inplace=True)


def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """Returns ``nn.functional.batch_norm``, with the parameters before the statistics.

    Example::

        >>> import vesta
        >>> x = vesta.tensor([[1.0], [3.0]])
        >>> vesta.batch_norm(x, None, None, None, None, True, 0.1, 0.001, False)
        tensor([[-0.9995],
                [ 0.9995]])
    """
    return _functional().batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


@overload
def _native_batch_norm_legit(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]: ...
@overload
def _native_batch_norm_legit(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, training: bool, momentum: float, eps: float
) -> tuple[Tensor, Tensor, Tensor]: ...
def _native_batch_norm_legit(input: Any, weight: Any, bias: Any, *rest: Any, **named: Any) -> Any:
    """Returns ``native_batch_norm``: its result, the means and 1 / the deviations. Running statistics may be left out.

    Example::

        >>> import vesta
        >>> y, mean, invstd = vesta._native_batch_norm_legit(vesta.tensor([[1.0], [3.0]]), None, None, True, 0.1, 0.0)
        >>> mean
        tensor([2.])
    """
    if len(rest) + len(named) < 5:
        rest = (None, None, *rest)
    return _ops.native_batch_norm(input, weight, bias, *rest, **named)


def _native_batch_norm_legit_no_training(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns ``native_batch_norm`` of an evaluation.

    Example::

        >>> import vesta
        >>> x, zeros, ones = vesta.tensor([[1.0], [3.0]]), vesta.zeros(1), vesta.ones(1)
        >>> vesta._native_batch_norm_legit_no_training(x, None, None, zeros, ones, 0.1, 0.0)[0]
        tensor([[1.],
                [3.]])
    """
    return _ops.native_batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
    cudnn_enable: bool = True,
) -> Tensor:
    """Returns ``nn.functional.layer_norm``.

    Example::

        >>> import vesta
        >>> vesta.layer_norm(vesta.tensor([[1.0, 3.0]]), (2,))
        tensor([[-1.0000,  1.0000]])
    """
    return _functional().layer_norm(input, normalized_shape, weight, bias, eps)


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """Returns the norm over all dimensions but ``dim`` (over all of them if it is -1), which are kept with size 1.

    Example::

        >>> import vesta
        >>> vesta.norm_except_dim(vesta.tensor([[3.0, 4.0], [0.0, 1.0]]))
        tensor([[5.],
                [1.]])
    """
    expect("norm_except_dim", "v", v, Tensor, "Tensor")
    expect("norm_except_dim", "dim", dim, int, "int")
    if dim == -1:
        return vesta.norm(v, pow)
    if not -v.dim() <= dim < v.dim():
        raise IndexError(f"norm_except_dim: expected a dimension of [{-v.dim()}, {v.dim() - 1}], got {dim} (dim).")
    return vesta.norm(v, pow, [d for d in range(v.dim()) if d != dim % v.dim()], keepdim=True)


# ---- matrices ----


def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """Returns the product of matrices in the order of fewest multiplications: ``linalg.multi_dot``.

    Example::

        >>> import vesta
        >>> vesta.chain_matmul(vesta.ones(2, 3), vesta.ones(3, 4), vesta.ones(4, 1))
        tensor([[12.],
                [12.]])
    """
    if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)):
        matrices = tuple(matrices[0])
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for i, matrix in enumerate(matrices):
        expect("chain_matmul", f"matrices[{i}]", matrix, Tensor, "Tensor")
    if len(matrices) == 1:
        made = matrices[0].clone()
        return made if out is None else _C._write_out("chain_matmul", made, out, True)
    return vesta.linalg.multi_dot(matrices, out=out)


@checked
def frobenius_norm(input: Tensor, dim: Ints, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Returns the root of the sum of squares over ``dim`` (over all dimensions if it is empty).

    Example::

        >>> import vesta
        >>> vesta.frobenius_norm(vesta.tensor([[3.0, 4.0]]), (0, 1))
        tensor(5.)
    """
    expect("frobenius_norm", "dim", dim, (int, tuple, list), "an integer or a tuple of them")
    dims = [dim] if isinstance(dim, int) else list(dim)
    return vesta.linalg.vector_norm(input, 2, dims or None, keepdim, out=out)


@checked
def nuclear_norm(
    input: Tensor, dim: Ints | bool | None = None, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Returns the sums of the singular values of the matrices that two dimensions make (the last two, if None).

    ``nuclear_norm(input, keepdim)`` is taken too.

    Example::

        >>> import vesta
        >>> vesta.nuclear_norm(vesta.tensor([[3.0, 0.0], [0.0, 4.0]]))
        tensor(7.)
    """
    if isinstance(dim, bool):
        if keepdim:
            raise TypeError("nuclear_norm: expected dim and keepdim, or keepdim alone, got two of the latter.")
        dim, keepdim = None, dim
    expect("nuclear_norm", "dim", dim, (tuple, list, type(None)), "a tuple of two integers")
    return vesta.linalg.matrix_norm(input, "nuc", (-2, -1) if dim is None else tuple(dim), keepdim, out=out)


# ---- tests of a tensor, which are methods too ----


def _asked(name: str, input: Any) -> Any:
    expect(name, "input", input, Tensor, "Tensor")
    return input


def conj_physical_(input: Tensor) -> Tensor:
    """Does ``conj_physical`` in place.

    Example::

        >>> import vesta
        >>> vesta.conj_physical_(vesta.tensor([1 + 2j]))
        tensor([1.-2.j])
    """
    return _asked("conj_physical_", input).conj_physical_()


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Returns ``input.is_same_size(other)``.

    Example::

        >>> import vesta
        >>> vesta.is_same_size(vesta.ones(2), vesta.zeros(2))
        True
    """
    return _asked("is_same_size", input).is_same_size(other)


def detach(input: Tensor) -> Tensor:
    """Returns ``input.detach()``: the values without their history.

    Example::

        >>> import vesta
        >>> vesta.detach(vesta.ones(2, requires_grad=True)).requires_grad
        False
    """
    return _asked("detach", input).detach()


def detach_(input: Tensor) -> Tensor:
    """Does ``input.detach_()``: drops the history.

    Example::

        >>> import vesta
        >>> vesta.detach_(vesta.ones(2)).requires_grad
        False
    """
    return _asked("detach_", input).detach_()


def get_device(input: Tensor) -> int:
    """Returns ``input.get_device()``.

    Example::

        >>> import vesta
        >>> vesta.get_device(vesta.ones(2))
        -1
    """
    return _asked("get_device", input).get_device()


def is_conj(input: Tensor) -> bool:
    """Returns ``input.is_conj()``.

    Example::

        >>> import vesta
        >>> vesta.is_conj(vesta.ones(2))
        False
    """
    return _asked("is_conj", input).is_conj()


def is_distributed(input: Tensor) -> bool:
    """Returns ``input.is_distributed()``.

    Example::

        >>> import vesta
        >>> vesta.is_distributed(vesta.ones(2))
        False
    """
    return _asked("is_distributed", input).is_distributed()


def is_inference(input: Tensor) -> bool:
    """Returns ``input.is_inference()``.

    Example::

        >>> import vesta
        >>> vesta.is_inference(vesta.ones(2))
        False
    """
    return _asked("is_inference", input).is_inference()


def is_neg(input: Tensor) -> bool:
    """Returns ``input.is_neg()``.

    Example::

        >>> import vesta
        >>> vesta.is_neg(vesta.ones(2))
        False
    """
    return _asked("is_neg", input).is_neg()


def is_nonzero(input: Tensor) -> bool:
    """Returns ``input.is_nonzero()``.

    Example::

        >>> import vesta
        >>> vesta.is_nonzero(vesta.tensor([2.0]))
        True
    """
    return _asked("is_nonzero", input).is_nonzero()


def is_signed(input: Tensor) -> bool:
    """Returns ``input.is_signed()``.

    Example::

        >>> import vesta
        >>> vesta.is_signed(vesta.tensor([1], dtype=vesta.uint8))
        False
    """
    return _asked("is_signed", input).is_signed()


# ---- other forms of what exists ----


@checked
def binomial(count: Tensor, prob: Tensor, generator: vesta.Generator | None = None) -> Tensor:
    """Draws numbers of successes in ``count`` trials with probability ``prob`` each.

    Args:
        count: floats, whole numbers of at least 0.
        prob: floats in [0, 1], of a shape that broadcasts with ``count``'s.

    Raises:
        RuntimeError: a tensor of integers.
        ValueError: a count below 0 or a probability outside of [0, 1].

    Example::

        >>> import vesta
        >>> vesta.binomial(vesta.tensor([10.0, 3.0]), vesta.tensor([1.0, 0.0]))
        tensor([10.,  0.])
    """
    from vesta.distributions import _sampling

    for name, values in (("count", count), ("prob", prob)):
        expect("binomial", name, values, Tensor, "Tensor")
        if not values.is_floating_point():
            raise RuntimeError(f"binomial: expected a floating-point tensor, got {values.dtype} ({name}).")
    expect("binomial", "generator", generator, (_C.Generator, type(None)), "Generator or None")
    count, prob = vesta.broadcast_tensors(count, prob)
    if bool((count < 0).any()) or not bool(((prob >= 0) & (prob <= 1)).all()):
        raise ValueError("binomial: expected counts of at least 0 and probabilities in [0, 1] (count, prob).")
    made = _sampling.binomial(count, prob, generator)
    recorded = _C.is_grad_enabled() and (count.requires_grad or prob.requires_grad)
    return (count + prob).to(made.dtype).clone().copy_(made) if recorded else made  # with a gradient of zero


@checked
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Returns the convolution over time of sequences [T, N, C], with padding of ``pad`` zeros at both ends.

    Args:
        input: [T, N, C]. weight: [K, C, D]. bias: [D].

    Returns:
        [T + 2 * pad - K + 1, N, D].

    Raises:
        RuntimeError: a shape does not fit.

    Example::

        >>> import vesta
        >>> vesta.conv_tbc(vesta.ones(4, 1, 2), vesta.ones(3, 2, 1), vesta.zeros(1)).flatten()
        tensor([6., 6.])
    """
    for name, tensor, dims in (("input", input, 3), ("weight", weight, 3), ("bias", bias, 1)):
        expect("conv_tbc", name, tensor, Tensor, "Tensor")
        if tensor.dim() != dims:
            raise RuntimeError(f"conv_tbc: expected {dims} dimensions, got {list(tensor.shape)} ({name}).")
    expect("conv_tbc", "pad", pad, int, "int")
    return (
        vesta.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1).contiguous()
    )
