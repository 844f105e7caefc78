"""The HTML of a tensor: what it is, statistics, where its NaNs are, a picture, its values."""

from __future__ import annotations

from typing import Any

import vesta
from vesta import Tensor

from . import markup, pictures

#: How many elements are read: of larger tensors, every n-th along each dimension. Fewer are brought from a GPU.
READ, READ_FROM_DEVICE = 1 << 20, 1 << 16
#: Up to how many elements a tensor is searched for NaNs as a whole.
SEARCHED = 1 << 26
#: Characters of the values.
VALUES = 3000


def tensor_html(t: Tensor) -> str:
    """Returns the HTML of a tensor of any kind."""
    kind = type(t).__name__ if type(t) is not Tensor else "Tensor"
    parts = [markup.head(kind, _summary(t))]
    if t.is_sparse:
        parts.append(markup.rows([("stored values", _stored(t)), *_statistics(t._values().detach())]))
    elif t.numel():
        sample, steps = _sample(t.detach())
        read = [] if sample.numel() == t.numel() else [("of a sample of", f"{markup.count(sample.numel())} elements")]
        marked, apart = _not_finite(t.detach(), sample, steps)
        parts.append(markup.rows([*_statistics(sample), *read, *_told(marked, apart)]))
        places = {name: _places(mask, apart) for name, mask in marked.items()}
        shown = pictures.of(sample.abs() if sample.is_complex() else sample, steps, places)
        if shown is not None:
            png, alt = shown
            parts.append(f"<div>{markup.picture(png, f'magnitude: {alt}' if sample.is_complex() else alt)}</div>")
    parts.append(markup.folded("values", markup.verbatim(repr(t), VALUES)))
    return markup.block(*parts)


def _summary(t: Tensor) -> str:
    """Returns shape, dtype, device and memory in a line."""
    shape = " × ".join(map(str, t.shape)) or "0-d"
    told = [f"[{shape}]", str(t.dtype), str(t.device), markup.size(t.numel() * t.element_size())]
    if t.is_sparse:
        told[-1] = "sparse"
    elif not t.is_contiguous():
        told.append(f"strides {tuple(t.stride())}")
    if t.requires_grad:
        told.append("requires_grad" if t.is_leaf else f"grad_fn={type(t.grad_fn).__name__}")
    return " · ".join(told)


def _stored(t: Tensor) -> str:
    return f"{markup.count(t._nnz())} of {markup.count(t.numel())}"


def _sample(t: Tensor) -> tuple[Tensor, list[int]]:
    """Returns the elements that are read, on the CPU, and how far apart they are along each dimension."""
    most = READ if t.device.type == "cpu" else READ_FROM_DEVICE
    sizes, steps = list(t.shape), [1] * t.dim()
    while _product(sizes) > most:
        d = max(range(len(sizes)), key=sizes.__getitem__)
        steps[d] *= 2
        sizes[d] = -(-t.shape[d] // steps[d])
    return t[tuple(slice(None, None, step) for step in steps)].cpu(), steps


def _product(sizes: list[int]) -> int:
    product = 1
    for size in sizes:
        product *= size
    return product


def _statistics(t: Tensor) -> list[tuple[str, Any]]:
    """Returns names and values, of the finite elements."""
    if not t.numel():
        return []
    if t.dtype == vesta.bool:
        true = int(t.sum().item())
        return [("True", f"{markup.count(true)} ({100 * true / t.numel():.3g} %)")]
    size = t.abs() if t.is_complex() else t
    values = size.to(vesta.float64)
    if not (t.is_floating_point() or t.is_complex()):
        return [("min … max", f"{t.min().item()} … {t.max().item()}"), ("mean ± std", _spread(values))]
    known = values[values.isfinite()]
    found: list[tuple[str, Any]] = []
    if known.numel():
        of = " of |x|" if t.is_complex() else ""
        found += [(f"min … max{of}", f"{known.min().item():.5g} … {known.max().item():.5g}")]
        found += [(f"mean ± std{of}", _spread(known))]
    return found


def _not_finite(t: Tensor, sample: Tensor, steps: list[int]) -> tuple[dict[str, Tensor], list[int]]:
    """Returns where NaNs and infinities are, as bools, by name; and how far apart these bools are.

    The whole tensor is looked at, by one sum where all is well; of a very large one the sample.
    """
    if not (t.is_floating_point() or t.is_complex()):
        return {}, steps
    if t.numel() <= SEARCHED:
        if bool(t.sum().isfinite()):
            return {}, steps
        whole = {"NaN": t.isnan(), "infinite": t.isinf()}
        if all(int(mask.sum().item()) <= READ for mask in whole.values()):  # places of more would take much memory
            return {name: mask for name, mask in whole.items() if bool(mask.any())}, [1] * t.dim()
    found = {"NaN": sample.isnan(), "infinite": sample.isinf()}
    return {name: mask for name, mask in found.items() if bool(mask.any())}, steps


def _spread(values: Tensor) -> str:
    mean = f"{values.mean().item():.5g}"
    return f"{mean} ± {values.std().item():.5g}" if values.numel() > 1 else mean


def _places(mask: Tensor, steps: list[int]) -> Tensor:
    """Returns the places [n, d] in the tensor where ``mask``, of elements that are ``steps`` apart, is True."""
    places = mask.nonzero().cpu()
    return places * vesta.tensor(steps, dtype=vesta.int64, device="cpu") if steps else places


def _told(marked: dict[str, Tensor], steps: list[int]) -> list[tuple[str, str]]:
    """Returns how many elements are NaN or infinite, and where."""
    found = []
    for name, mask in marked.items():
        number = markup.count(int(mask.sum().item()))
        found.append((name, f"{number} of {markup.count(mask.numel())}: {_where(_places(mask, steps))}"))
    return found


def _where(places: Tensor) -> str:
    """Returns the first places, and between which places of each dimension all of them are."""
    if places.shape[1] == 0:
        return "the value"
    first = ", ".join(str(place) for place in places[:4].tolist())
    if len(places) <= 4:
        return f"at {first}"
    ends = zip(places.amin(0).tolist(), places.amax(0).tolist())
    return f"first at {first}; within [{', '.join(f'{a}:{b + 1}' if a != b else str(a) for a, b in ends)}]"
