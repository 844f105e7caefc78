"""Rows of a table: looked up one by one, or in bags."""

from __future__ import annotations

import warnings

import vesta
from vesta import Tensor
from vesta._arguments import called, checked, expect, python_number

__all__ = ["embedding", "embedding_bag"]


def _renorm(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> None:
    """Scales the rows that will be read to norm ``max_norm`` where theirs is larger, in place."""
    if weight.is_meta:  # which rows are read is not known, nor are they
        return
    with vesta.no_grad():
        table, rows = weight.detach(), input.reshape(-1)
        if rows.numel() == 0:
            return
        chosen = table[rows]  # a row that occurs twice is written twice, with the same numbers
        norms = vesta.norm(chosen, norm_type, 1, True)
        table[rows] = chosen * vesta.where(norms > max_norm, max_norm / (norms + 1e-7), 1.0)


def _padding_row(op: str, padding_idx: int | None, weight: Tensor, outside: str) -> int | None:
    """Returns the number of the padding row, counted from the start; ``outside`` is the error where there is none."""
    if padding_idx is None:
        return None
    padding_idx = python_number(padding_idx)
    expect(op, "padding_idx", padding_idx, int, "int or None")
    rows = weight.size(0)
    if not -rows <= padding_idx < rows:
        raise AssertionError(outside)
    return padding_idx % rows


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Returns the rows of ``weight`` [V, E] at the integers of ``input`` [...]: result [..., E].

    Args:
        padding_idx: a row that gets no gradient.
        max_norm: rows with a larger norm are first scaled down to it, in place.
        norm_type: p of that norm.
        scale_grad_by_freq: divide the gradient of a row by how often it occurs in ``input``.
        sparse: give ``weight`` a sparse gradient, which has the rows that were read only.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.embedding(vesta.tensor([[0, 2]]), vesta.zeros(3, 5)).shape
        vesta.Size([1, 2, 5])
    """
    if not isinstance(weight, Tensor):
        raise TypeError(f"embedding(): argument 'weight' (position 2) must be Tensor, not {type(weight).__name__}")
    expect("embedding", "input", input, Tensor, "Tensor")
    padding_idx = _padding_row("embedding", padding_idx, weight, "Padding_idx must be within num_embeddings")
    if max_norm is not None:
        max_norm, norm_type = python_number(max_norm), python_number(norm_type)
        expect("embedding", "max_norm", max_norm, (float, int), "float or None")
        expect("embedding", "norm_type", norm_type, (float, int), "float")
        _renorm(weight, input, max_norm, norm_type)
    return vesta.embedding(weight, input, -1 if padding_idx is None else padding_idx, scale_grad_by_freq, sparse)


@checked
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Returns sums, means or maxima of bags of rows of ``weight`` [V, E]: result [B, E].

    Args:
        input: row numbers: [B, N], a bag per line, or [N], split by ``offsets``.
        offsets: [B], where each bag of a 1-d ``input`` begins.
        max_norm, norm_type, scale_grad_by_freq, sparse: as for ``embedding``.
        mode: ``"sum"``, ``"mean"`` or ``"max"``.
        per_sample_weights: of ``input``'s shape: a factor for each row, with ``mode="sum"`` only.
        include_last_offset: ``offsets`` [B + 1] ends with the size of ``input``.
        padding_idx: a row that counts nothing.

    Example::

        >>> import vesta
        >>> table = vesta.tensor([[1.0], [2.0], [4.0]])
        >>> vesta.nn.functional.embedding_bag(vesta.tensor([0, 1, 2]), table, vesta.tensor([0, 1]), mode="sum")
        tensor([[1.],
                [6.]])
    """
    expect("embedding_bag", "input", input, Tensor, "Tensor")
    expect("embedding_bag", "weight", weight, Tensor, "Tensor")
    if weight.dtype == vesta.int64 and input.is_floating_point():
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is "
            "deprecated, and should now be `embedding_bag(input, weight, ...)`.",
            stacklevel=2,
        )
        weight, input = input, weight
    if per_sample_weights is not None:
        expect("embedding_bag", "per_sample_weights", per_sample_weights, Tensor, "Tensor or None")
        if input.shape != per_sample_weights.shape:
            raise ValueError(
                f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the "
                f"same shape as the input ({input.shape})"
            )
    if weight.dim() != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    _check_mode(mode, scale_grad_by_freq, per_sample_weights)
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                f"sequences. However, found offsets of type {type(offsets)}"
            )
        bags, length = input.shape
        bounds = [bag * length for bag in range(bags + 1)]
        input = input.reshape(-1)
        per_sample_weights = None if per_sample_weights is None else per_sample_weights.reshape(-1)
    elif input.dim() != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    elif offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    else:
        expect("embedding_bag", "offsets", offsets, Tensor, "Tensor")
        if offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
    outside = "padding_idx must be within the number of embeddings"
    padding = _padding_row("embedding_bag", padding_idx, weight, outside)
    if max_norm is not None:
        _renorm(weight, input, max_norm, norm_type)
    if offsets is not None:
        if offsets.is_meta and not (input.is_meta and weight.is_meta):
            raise RuntimeError(
                f"embedding_bag: expected all tensors on one device, got offsets on meta, input on {input.device} and "
                f"weight on {weight.device}. Move them with .to()."
            )
        bounds = _bounds(offsets, input.numel(), include_last_offset)
    given = weight, input, bounds, mode, scale_grad_by_freq, sparse, per_sample_weights, padding
    return called("embedding_bag", _bags, *given)


def _bounds(offsets: Tensor, total: int, include_last_offset: bool) -> list[int]:
    """Returns where each bag begins, and where the last one ends."""
    if offsets.is_meta:  # without values: bags of any sizes
        bags = offsets.numel() - include_last_offset
        return [total * bag // bags for bag in range(bags)] + [total] if bags > 0 else [0]
    bounds = [int(offset) for offset in offsets.tolist()]
    if not include_last_offset:
        bounds.append(total)
    elif not bounds:
        raise ValueError("include_last_offset: number of offset should be at least 1")
    if bounds[0] != 0 and len(bounds) > 1:
        raise RuntimeError(f"offsets[0] has to be 0, i.e., the first sequence starts from 0. But got {bounds[0]}")
    if any(low > high for low, high in zip(bounds, bounds[1:])) or bounds[-1] > total:
        raise ValueError(f"embedding_bag: expected increasing offsets of at most {total}, got {bounds[:-1]} (offsets).")
    return bounds


def _bags(
    weight: Tensor,
    input: Tensor,
    bounds: list[int],
    mode: str,
    scale_grad_by_freq: bool,
    sparse: bool,
    factors: Tensor | None,
    padding: int | None,
) -> Tensor:
    """Returns the sum, mean or maximum of each bag; an empty one gives zeros."""
    sizes = [high - low for low, high in zip(bounds, bounds[1:])]
    input = input[: bounds[-1]]
    factors = None if factors is None else factors[: bounds[-1]]
    rows = embedding(input, weight, padding, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)
    if padding is None and sizes and sizes[0] > 0 and sizes.count(sizes[0]) == len(sizes):
        return _equal_bags(rows.unflatten(0, (len(sizes), sizes[0])), mode, factors)
    counted = vesta.ones_like(input, dtype=weight.dtype) if padding is None else (input != padding).to(weight.dtype)
    if mode == "max":
        return _largest(rows, counted, sizes)
    repeats = vesta.tensor(sizes, dtype=vesta.int64, device="cpu")
    bag = vesta.repeat_interleave(vesta.arange(len(sizes), device="cpu"), repeats, output_size=bounds[-1]).to(
        input.device
    )
    if padding is not None or factors is not None:
        rows = rows * (counted if factors is None else counted * factors).unsqueeze(1)
    sums = weight.new_zeros((len(sizes), weight.size(1))).index_add(0, bag, rows)
    if mode == "sum":
        return sums
    counts = weight.new_zeros((len(sizes),)).index_add(0, bag, counted)
    return sums / counts.clamp(min=1).unsqueeze(1)


def _equal_bags(rows: Tensor, mode: str, factors: Tensor | None) -> Tensor:
    """Returns the sums, means or maxima of bags of one size, all of whose rows count: ``rows`` is [B, N, E]."""
    if mode == "max":
        return rows.max(1).values
    if factors is not None:
        rows = rows * factors.reshape(rows.shape[:2]).unsqueeze(2)
    sums = rows.sum(1)
    return sums if mode == "sum" else sums / rows.size(1)


def _largest(rows: Tensor, counted: Tensor, sizes: list[int]) -> Tensor:
    """Returns the maxima of bags: each is padded with minus infinities to the longest one's size."""
    width = max([1, *sizes])
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    places = [[start + i if i < size else -1 for i in range(width)] for start, size in zip(starts, sizes)]
    index = vesta.tensor(places, dtype=vesta.int64, device=rows.device).reshape(len(sizes), width)
    valid = (index >= 0).unsqueeze(-1)
    if rows.size(0):
        valid = valid & (counted[index.clamp(min=0)] > 0).unsqueeze(-1)
        padded = vesta.where(valid, rows[index.clamp(min=0)], float("-inf"))
    else:
        padded = rows.new_full((len(sizes), width, rows.size(1)), float("-inf"))
    best = padded.max(1).values
    return vesta.where(valid.any(1), best, vesta.zeros_like(best))


def _check_mode(mode: str, scale_grad_by_freq: bool, per_sample_weights: Tensor | None) -> None:
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode != "sum" and per_sample_weights is not None:
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
            f"(got mode='{mode}')."
        )
