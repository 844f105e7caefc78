"""Numerical analysis over samples: ``gradient``, ``histogram``, ``histogramdd``; ``unravel_index``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Any

from . import _C, return_types
from ._arguments import checked, expect, python_number, python_numbers
from ._C import Tensor, _ops


@checked
def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Returns the coordinates of flat indices in a tensor of this shape: a tensor of ``indices``' shape per dimension.

    Args:
        indices: integers from ``-numel`` to ``numel - 1``.
        shape: sizes, or one size.

    Raises:
        ValueError: an index outside of the shape, a negative size. TypeError: other dtypes.

    Example::

        >>> import vesta
        >>> vesta.unravel_index(vesta.tensor([5, 2]), (2, 3))
        (tensor([1, 0]), tensor([2, 2]))
    """
    if indices.dtype.is_floating_point or indices.dtype.is_complex or indices.dtype == _C.bool:
        raise TypeError(f"unravel_index: expected an integer dtype, got {indices.dtype} (indices).")
    sizes = [shape] if isinstance(shape, Integral) else list(shape)
    for n in sizes:
        expect("unravel_index", "shape", n, Integral, "int")
    if any(n < 0 for n in sizes):
        raise ValueError(f"unravel_index: 'shape' cannot have negative values, but got {tuple(sizes)}")
    numel = math.prod(sizes)
    if indices.numel() and not indices.is_meta and not bool(((indices >= -numel) & (indices < numel)).all()):
        raise ValueError(f"unravel_index: indices must be within the {numel} elements of shape {tuple(sizes)}")
    rest = _ops.where(indices < 0, indices + numel, indices)
    found = []
    for n in reversed(sizes):
        found.append(rest % max(n, 1))  # of a shape without elements there are no indices
        rest = rest // max(n, 1)
    return tuple(part.to(_C.int64) for part in reversed(found))


def _spacings(spacing: Any, dims: list[int], input: Tensor) -> list[Any]:
    """Returns the distance between samples, or their coordinates, along each dimension."""
    if spacing is None:
        return [1] * len(dims)
    wanted = "a number, a list of numbers, or a list of tensors"
    if isinstance(spacing, (Real, complex)) or (isinstance(spacing, Tensor) and spacing.dim() == 0):
        return [spacing] * len(dims)
    if isinstance(spacing, Tensor):
        raise TypeError(
            f"gradient: expected {wanted}, got a Tensor of shape {list(spacing.shape)} (spacing). "
            "Coordinates stand in a list: [spacing]."
        )
    expect("gradient", "spacing", spacing, Iterable, wanted)
    given = list(spacing)
    for value in given:
        expect("gradient", "spacing", value, Tensor if isinstance(given[0], Tensor) else (Real, complex), wanted)
    if len(given) != len(dims):
        raise RuntimeError(
            f"gradient: expected spacing to be unspecified, a scalar or a list of length equal to 'self.dim() = "
            f"{len(dims)}', since dim argument was not given or has {len(dims)} dimensions, but got {len(given)}"
        )
    for value, d in zip(given, dims):
        if isinstance(value, Tensor) and value.shape != (input.shape[d],):
            raise RuntimeError(
                f"gradient: expected {input.shape[d]} coordinates for dimension {d}, got {list(value.shape)} (spacing)."
            )
    return given


@checked
def gradient(
    input: Tensor,
    *,
    spacing: float | Tensor | Sequence[float | Tensor] | None = None,
    dim: int | Sequence[int] | None = None,
    edge_order: int = 1,
) -> tuple[Tensor, ...]:
    """Returns the derivatives of sampled values along dimensions, by central differences: a tensor like ``input`` each.

    Fornberg, "Generation of finite difference formulas on arbitrarily spaced grids", 1988.

    Args:
        spacing: the distance of samples (1 for None), or one per dimension, or their coordinates (a vector for each).
        dim: one dimension or several; all of them without it.
        edge_order: at the ends, differences of one side: 1 takes two samples, 2 takes three.

    Raises:
        RuntimeError: a dimension of fewer than ``edge_order + 1`` samples, a repeated dimension, another order.

    Example::

        >>> import vesta
        >>> vesta.gradient(vesta.tensor([1.0, 2.0, 4.0, 8.0]))
        (tensor([1.0000, 1.5000, 3.0000, 4.0000]),)
    """
    if input.dtype == _C.uint8:
        raise NotImplementedError("gradient: expected values with a sign, got uint8 (input). Convert them with .to().")
    if edge_order not in (1, 2):
        raise RuntimeError(f"gradient: only supports edge_order=1 and edge_order=2, got {edge_order}.")
    edge_order, dim = python_number(edge_order), python_numbers(dim)
    expect("gradient", "dim", dim, (Integral, tuple, list, type(None)), "int or a list of ints")
    asked = range(input.dim()) if dim is None else [dim] if isinstance(dim, Integral) else list(dim)
    dims = []
    for d in asked:
        expect("gradient", "dim", d, Integral, "int")
        if not -input.dim() <= d < input.dim():
            raise IndexError(f"gradient: expected a dimension from {-input.dim()} to {input.dim() - 1}, got {d} (dim).")
        dims.append(d % input.dim())
    if len(set(dims)) != len(dims):
        raise RuntimeError(f"gradient: expected each dimension once, got {tuple(asked)} (dim).")
    made = []
    for d, space in zip(dims, _spacings(spacing, dims, input)):
        if input.shape[d] <= edge_order:
            raise RuntimeError(
                f"gradient: expected each dimension size to be at least edge_order+1, got {list(input.shape)} and "
                f"edge_order={edge_order}."
            )
        made.append(_slopes(input, d, space, edge_order))
    return tuple(made)


def _slopes(input: Tensor, d: int, space: Any, edge_order: int) -> Tensor:
    x, n = input.movedim(d, -1), input.shape[d]
    if isinstance(space, Tensor) and space.dim():
        steps = space[1:] - space[:-1]  # of each interval
        before, after = steps[:-1], steps[1:]
        middle = (
            -after / (before * (before + after)) * x[..., :-2]
            + (after - before) / (before * after) * x[..., 1:-1]
            + before / (after * (before + after)) * x[..., 2:]
        )
        first, last = steps[:2], steps[-2:].flip(0)
    else:
        middle = (x[..., 2:] - x[..., :-2]) / (2 * space)
        first = last = [space, space]

    def end(values: list[Tensor], gaps: Any, sign: int) -> Tensor:
        """The slope at values[0]; ``values`` go inwards."""
        a = gaps[0]
        if edge_order == 1:
            return (values[1] - values[0] if sign > 0 else values[0] - values[1]) / a
        b = gaps[1]
        outer = -(2 * a + b) / (a * (a + b)) * values[0]
        return sign * (outer + (a + b) / (a * b) * values[1] - a / (b * (a + b)) * values[2])

    near = [x[..., i : i + 1] for i in range(edge_order + 1)]
    far = [x[..., n - 1 - i : n - i] for i in range(edge_order + 1)]
    return _ops.cat([end(near, first, 1), middle, end(far, last, -1)], -1).movedim(-1, d)


def _numbers(op: str, name: str, values: Iterable[Any], count: int = 2) -> list[float]:
    """Returns so many numbers of an argument as floats."""
    given = list(values)
    for value in given:
        expect(op, name, value, (Real, Tensor), "numbers")
    if len(given) != count:
        raise RuntimeError(f"{op}: expected {count} elements in {name}, got {len(given)}.")
    return [float(value) for value in given]


def _edges(op: str, bins: Any, values: Tensor, range: Sequence[float] | None) -> Tensor:
    """Returns the edges of bins along one axis: given ones, or so many of equal width."""
    if isinstance(bins, Tensor):
        if bins.dim() != 1 or bins.numel() < 1:
            raise RuntimeError(f"{op}: bins tensor should have one dimension, got {list(bins.shape)}.")
        if bins.dtype != values.dtype:
            raise RuntimeError(f"{op}: input tensor and bins tensors should have the same dtype, got {bins.dtype}.")
        return bins
    if not isinstance(bins, Integral):
        raise TypeError(f"{op}: expected an int or a tensor of edges, got {type(bins).__name__} (bins).")
    if bins < 1:
        raise RuntimeError(f"{op}: bins must be > 0, got {bins}.")
    if range is not None:
        low, high = _numbers(op, "range", range)
        if not high >= low:
            raise RuntimeError(f"{op}: min should not exceed max, but got min {low} max {high}.")
    elif values.numel() == 0:
        low, high = 0.0, 1.0
    else:
        low, high = float(values.min()), float(values.max())
    if not abs(high - low) < float("inf"):
        raise RuntimeError(f"{op}: dimension range of [{low}, {high}] is not finite.")
    if low == high:
        low, high = low - 0.5, high + 0.5
    return _ops.linspace(low, high, bins + 1, dtype=values.dtype, device=values.device)


def _counted(op: str, points: Tensor, edges: list[Tensor], weight: Tensor | None, density: bool) -> Tensor:
    """Counts rows ``[N, D]`` in the boxes that the edges make; the last box of an axis has both its edges."""
    shape = [len(e) - 1 for e in edges]
    place = _ops.zeros(len(points), dtype=_C.int64, device=points.device)
    inside = _ops.ones(len(points), dtype=_C.bool, device=points.device)
    for axis, e in enumerate(edges):
        x = points[:, axis].contiguous()
        number = _ops.searchsorted(e, x, right=True) - 1
        number = number - (x == e[-1]).to(_C.int64)
        inside = inside & (x >= e[0]) & (x <= e[-1])
        place = place * shape[axis] + number.clamp(0, max(shape[axis] - 1, 0))
    amount = _ops.ones(len(points), dtype=points.dtype, device=points.device) if weight is None else weight.reshape(-1)
    amount = _ops.where(inside, amount, 0.0)
    total = 1
    for n in shape:
        total *= n
    hist = _ops.zeros(total, dtype=points.dtype, device=points.device).index_add(0, place, amount).reshape(shape)
    if density:
        hist = hist / hist.sum()
        for axis, e in enumerate(edges):
            width = (e[1:] - e[:-1]).reshape([-1 if a == axis else 1 for a in range(len(edges))])
            hist = hist / width
    return hist


def _expect_points(op: str, input: Tensor, weight: Any) -> None:
    if input.dtype not in (_C.float32, _C.float64):
        raise NotImplementedError(f"{op}: expected an input of dtype float32 or float64, got {input.dtype}.")
    if weight is not None and weight.dtype != input.dtype:
        raise RuntimeError(
            f"{op}: if weight tensor is provided, input tensor and weight tensor should have the same dtype, but got "
            f"input {input.dtype} and weight {weight.dtype}"
        )


@checked
def histogram(
    input: Tensor,
    bins: int | Tensor = 100,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
    out: Sequence[Tensor] | None = None,
) -> return_types.histogram:
    """Counts the values of a tensor in bins. The last bin has both its edges, the others the left one.

    Args:
        input: float32 or float64, of any shape.
        bins: how many, of equal width; or their edges, an ascending vector.
        range: the least and the largest edge; those of the values without it.
        weight: of ``input``'s shape: what a value counts.
        density: divides by the sum and by the widths, so that the integral is 1.

    Returns:
        a named tuple: ``hist [bins]`` and ``bin_edges [bins + 1]``, of the input's dtype.

    Raises:
        RuntimeError: no bins, a range that is not finite or turned round, a weight of another shape.

    Example::

        >>> import vesta
        >>> vesta.histogram(vesta.tensor([1.0, 2.0, 1.0]), bins=2).hist
        tensor([2., 1.])
    """
    _expect_points("histogram", input, weight)
    if weight is not None and weight.shape != input.shape:
        raise RuntimeError(
            f"histogram: expected a weight of the input's shape {list(input.shape)}, got {list(weight.shape)}."
        )
    values = input.detach().reshape(-1)
    edges = _edges("histogram", bins, values, range)
    hist = _counted("histogram", values.unsqueeze(-1), [edges], weight, density)
    if input.requires_grad:
        from ._without_derivative import marked

        hist = marked("histogram", input, hist)
    if out is None:
        return return_types.histogram(hist, edges)
    return return_types.histogram(*_C._write_out("histogram", (hist, edges), out))


@checked
def histogramdd(
    input: Tensor,
    bins: int | Sequence[Any],
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> return_types.histogramdd:
    """Counts points ``[*, D]`` in boxes: ``histogram`` in D dimensions.

    Args:
        bins: how many along every dimension, a list of D such numbers, or a list of D vectors of edges.
        range: the least and the largest edge of each dimension, one after the other: 2 D numbers.
        weight: ``[*]``: what a point counts.
        density: divides by the sum and by the volumes.

    Returns:
        a named tuple: ``hist``, of D dimensions, and ``bin_edges``, a tuple of D vectors.

    Raises:
        RuntimeError: fewer than 2 dimensions, bins or a range that do not fit D.

    Example::

        >>> import vesta
        >>> vesta.histogramdd(vesta.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 0.5]]), bins=[2, 2]).hist
        tensor([[0., 1.],
                [1., 1.]])
    """
    _expect_points("histogramdd", input, weight)
    if input.dim() < 2:
        raise RuntimeError("histogramdd: input tensor should have at least 2 dimensions")
    points = input.detach().flatten(0, -2)
    axes = points.shape[1]
    each = [bins] * axes if isinstance(bins, Integral) else list(bins)
    if len(each) != axes:
        raise RuntimeError(
            f"histogramdd: expected {axes} sequences of bins or numbers of them, got {len(each)} (bins)."
        )
    limits = None if range is None else _numbers("histogramdd", "range", range, 2 * axes)
    edges = []
    for axis, wanted in enumerate(each):
        pair = None if limits is None else limits[2 * axis : 2 * axis + 2]
        edges.append(_edges("histogramdd", wanted, points[:, axis], pair))
    return return_types.histogramdd(_counted("histogramdd", points, edges, weight, density), tuple(edges))
