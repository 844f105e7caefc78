"""Operators of torchvision, whose extension is compiled against PyTorch: the commonest ones, made of Vesta's.

``torchvision.ops.nms``, ``roi_align`` and ``deform_conv2d`` call them as ``torch.ops.torchvision.NAME``; the others say
that they are not there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import vesta
from vesta import Tensor
from vesta.library.operators import OpPacket

__all__ = ["deform_conv2d", "nms", "register", "roi_align"]


def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Returns the places of boxes in the order of their scores, without those that overlap a better one.

    Args:
        dets: [N, 4] as (x1, y1, x2, y2).
        scores: [N].
        iou_threshold: boxes whose intersection over union with a better one is larger are left out.
    """
    if dets.dim() != 2 or dets.size(1) != 4 or scores.dim() != 1 or scores.size(0) != dets.size(0):
        raise RuntimeError(f"nms: expected boxes [N, 4] and scores [N], got {dets.shape} and {scores.shape}.")
    with vesta.no_grad():
        order = scores.argsort(stable=True, descending=True)
        boxes = dets[order].float() if dets.element_size() < 4 else dets[order]
        areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
        kept, left = [], vesta.arange(len(boxes), device=boxes.device)
        while left.numel():
            best, left = left[0], left[1:]
            kept.append(best)
            low, high = vesta.maximum(boxes[best, :2], boxes[left, :2]), vesta.minimum(boxes[best, 2:], boxes[left, 2:])
            shared = (high - low).clamp(min=0).prod(1)
            left = left[~(shared / (areas[best] + areas[left] - shared) > iou_threshold)]
        return order[vesta.stack(kept)] if kept else order


def roi_align(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Tensor:
    """Returns the means of points in the cells of boxes, each between four pixels linearly.

    A point more than a pixel outside of the image counts as zero, as in torchvision's extension; its own Python form
    reads the border there.

    Args:
        input: [N, C, H, W].
        rois: [K, 5], the number of the image and (x1, y1, x2, y2).
        spatial_scale: the factor from boxes to pixels.
        pooled_height, pooled_width: the cells of a box; the result is [K, C, pooled_height, pooled_width].
        sampling_ratio: points a cell in each direction; 0 or less: one for each pixel of its length, rounded up.
        aligned: whether pixel centres lie at halves; else boxes are a pixel long at least.
    """
    if input.dim() != 4 or rois.dim() != 2 or rois.size(1) != 5:
        raise RuntimeError(
            f"roi_align: expected images [N, C, H, W] and boxes [K, 5], got {input.shape}, {rois.shape}."
        )
    channels, height, width = input.shape[1:]
    shape = (len(rois), pooled_height, pooled_width, channels)
    if 0 in shape or input.numel() == 0:
        return input.new_zeros(shape).permute(0, 3, 1, 2) + 0 * input.sum()
    boxes = rois.detach().to(vesta.float64 if input.dtype is vesta.float64 else vesta.float32)
    if not ((boxes[:, 0] >= 0) & (boxes[:, 0] < len(input))).all():
        raise RuntimeError(f"roi_align: expected numbers of images below {len(input)} in the first column (rois).")
    if sampling_ratio <= 0 and not boxes.isfinite().all():
        raise RuntimeError(
            "roi_align: expected finite boxes where sampling_ratio <= 0, got infinite ones or NaN (rois)."
        )
    first = boxes[:, 1:3] * spatial_scale - 0.5 * aligned
    sizes = boxes[:, 3:] * spatial_scale - 0.5 * aligned - first
    sizes = sizes if aligned else sizes.clamp(min=1)

    def along(axis: int, cells: int, pixels: int) -> tuple[Tensor, Tensor]:
        """Returns the places of pixels that points read, [K, cells, points, 2], or -1, and their weights."""
        cell = (sizes[:, axis] / cells)[:, None, None]
        points = cell.ceil() if sampling_ratio <= 0 else vesta.full_like(cell, float(sampling_ratio))
        number = vesta.arange(max(int(points.max()), 1), device=cell.device)
        start = first[:, axis][:, None, None] + vesta.arange(cells, device=cell.device)[:, None] * cell
        at = start + (number + 0.5) * cell / points
        counts = (number < points) & (at >= -1) & (at <= pixels)
        at = at.clamp(0, pixels - 1).where(counts, 0.0)
        low = at.floor()
        places = vesta.stack([low, (low + 1).clamp(max=pixels - 1)], -1).long()
        weights = vesta.stack([1 - (at - low), at - low], -1) * (counts / points.clamp(min=1))[..., None]
        return places.where(counts[..., None], -1).flatten(2), weights.flatten(2)

    rows, of_rows = (t[:, :, None, :, None] for t in along(1, pooled_height, height))
    columns, of_columns = (t[:, None, :, None, :] for t in along(0, pooled_width, width))
    pixels = input.permute(0, 2, 3, 1).reshape(-1, channels).to(boxes.dtype)
    nowhere = len(pixels)  # a row of zeros: a point that does not count must not meet an infinite pixel
    places = ((boxes[:, 0].long() * height)[:, None, None, None, None] + rows) * width + columns
    places = places.where((rows >= 0) & (columns >= 0), nowhere)
    means = vesta.nn.functional.embedding_bag(
        places.flatten(0, 2).flatten(1),
        vesta.nn.functional.pad(pixels, (0, 0, 0, 1)),
        mode="sum",
        per_sample_weights=(of_rows * of_columns).flatten(0, 2).flatten(1),
    )
    return means.view(shape).permute(0, 3, 1, 2).contiguous().to(input.dtype)


def deform_conv2d(
    input: Tensor,
    weight: Tensor,
    offset: Tensor,
    mask: Tensor,
    bias: Tensor,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> Tensor:
    """Returns the convolution whose kernel reads at moved places, between four pixels linearly; outside are zeros.

    Args:
        input: [N, C, H, W].
        weight: [O, C / groups, kH, kW].
        offset: [N, 2 * offset_groups * kH * kW, H', W'], (y, x) for each value of the kernel.
        mask: [N, offset_groups * kH * kW, H', W'], factors; ignored without ``use_mask``.
        bias: [O].
    """
    batch, channels, height, width = input.shape
    out_channels, _, kernel_h, kernel_w = weight.shape
    points, (out_h, out_w) = kernel_h * kernel_w, offset.shape[-2:]
    where = {"dtype": input.dtype, "device": input.device}
    down = vesta.arange(out_h, **where) * stride_h - pad_h
    right = vesta.arange(out_w, **where) * stride_w - pad_w
    inside_y = (vesta.arange(kernel_h, **where) * dilation_h).repeat_interleave(kernel_w)
    inside_x = (vesta.arange(kernel_w, **where) * dilation_w).repeat(kernel_h)
    moved = offset.view(batch * offset_groups, points, 2, out_h, out_w)
    y = moved[:, :, 0] + inside_y[:, None, None] + down[:, None]
    x = moved[:, :, 1] + inside_x[:, None, None] + right
    grid = vesta.stack([(2 * x + 1) / width - 1, (2 * y + 1) / height - 1], -1).flatten(1, 2)
    parts = input.reshape(batch * offset_groups, channels // offset_groups, height, width)
    read = vesta.nn.functional.grid_sample(parts, grid, align_corners=False)
    read = read.view(batch, offset_groups, channels // offset_groups, points, out_h, out_w)
    if use_mask:
        read = read * mask.view(batch, offset_groups, 1, points, out_h, out_w)
    columns = read.reshape(batch, groups, channels // groups * points, out_h * out_w)
    product = weight.view(groups, out_channels // groups, -1) @ columns
    return product.view(batch, out_channels, out_h, out_w) + bias.view(1, -1, 1, 1)


def _absent(name: str) -> Callable[..., Any]:
    """Returns what refuses an operator."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"torchvision::{name} is not available: torchvision's extension is compiled against PyTorch."
        )

    return refuse


def register() -> None:
    """Makes the operators of ``torchvision.extension``, which has just been imported."""
    sys.modules["torchvision.extension"]._assert_has_ops = lambda: None  # type: ignore[attr-defined]
    functions = {"nms": nms, "roi_align": roi_align, "deform_conv2d": deform_conv2d}
    absent = ("roi_pool", "ps_roi_align", "ps_roi_pool", "qroi_align", "box_iou_rotated")
    functions.update({name: _absent(name) for name in absent})
    for name, function in functions.items():
        setattr(vesta.ops.torchvision, name, OpPacket(f"torchvision::{name}", function))
