"""Small pictures of tensors: 2-d data in colours, images as they are."""

from __future__ import annotations

import vesta
from vesta import _C, Tensor

from . import png

#: The largest side of a picture in cells, of an image in pixels, and of each image of a batch; a picture of a few cells
#: is enlarged to about ``SIDE`` pixels.
CELLS, PIXELS, BATCH_PIXELS, SIDE = 96, 128, 48, 160
#: How many images of a batch are shown.
BATCH = 8
#: Colours from the lowest value to the highest, between which are the others; then NaN and the infinities.
_ANCHORS = "440154 482878 3e4989 31688e 26828e 1f9e89 35b779 6ece58 b5de2b fde725"
_COLOURS, NAN, INFINITE = 254, 254, 255
NAN_COLOUR, INFINITE_COLOUR = "ff00ff", "ff4500"


def palette() -> bytes:
    """Returns 256 colours: 254 for values, NaN's and that of the infinities."""
    anchors = [bytes.fromhex(colour) for colour in _ANCHORS.split()]
    colours = bytearray()
    for i in range(_COLOURS):
        place = i / (_COLOURS - 1) * (len(anchors) - 1)
        below = min(int(place), len(anchors) - 2)
        part = place - below
        colours += bytes(round(a + (b - a) * part) for a, b in zip(anchors[below], anchors[below + 1]))
    return bytes(colours) + bytes.fromhex(NAN_COLOUR) + bytes.fromhex(INFINITE_COLOUR)


def of(values: Tensor, steps: list[int], places: dict[str, Tensor]) -> tuple[bytes, str] | None:
    """Returns a PNG of a dense, real tensor on the CPU, and what it shows; None where there is nothing to see.

    ``values`` are elements that are ``steps`` apart in the tensor, whose NaNs and infinities are at ``places``.

    2-d data [H, W] is drawn in colours. [3, H, W], [1, H, W], [4, H, W] and the same with the channels last are images
    where both sides have 8 pixels or more, and [N, C, H, W] a row of up to 8 of them.
    """
    sizes = tuple(values.shape)
    if 0 in sizes:
        return None
    if len(sizes) == 2 and min(sizes) > 1:
        return _cells(
            values, steps, places
        ), f"{_side(sizes[0], CELLS)} x {_side(sizes[1], CELLS)} of {sizes[0]} x {sizes[1]} values"
    if len(sizes) == 3:
        image = _channels_last(values)
        return None if image is None else (_image(_reduced(image, PIXELS)), "image")
    if len(sizes) == 4:
        images = [_channels_last(image) for image in values[:BATCH]]
        if images[0] is not None:
            row = vesta.cat([_reduced(image, BATCH_PIXELS) for image in images], dim=1)  # type: ignore[arg-type]
            return _image(row), f"{len(images)} of {sizes[0]} images"
    return None


def _step(size: int, most: int) -> int:
    """Returns how far apart the elements of a dimension are taken, so that there are at most ``most``."""
    return -(-size // most)


def _side(size: int, most: int) -> int:
    """Returns how many elements are taken."""
    return -(-size // _step(size, most))


def _cells(values: Tensor, apart: list[int], places: dict[str, Tensor]) -> bytes:
    """Draws 2-d data: every n-th row and column; a cell is NaN's colour where any element that it stands for is NaN."""
    rows, columns = (_step(size, CELLS) for size in values.shape)
    shown = values[::rows, ::columns].to(vesta.float64)
    finite = shown.isfinite()
    known = shown[finite]
    low, high = (known.min().item(), known.max().item()) if known.numel() else (0.0, 0.0)
    half = low / 2, high / 2  # high - low may overflow
    scaled = (shown / 2 - half[0]) / (half[1] - half[0]) if high > low else vesta.full_like(shown, 0.5)
    colours = (scaled.nan_to_num(0.0).clamp(0, 1) * (_COLOURS - 1)).round().to(vesta.int64)
    if values.is_floating_point():
        for name, colour in (("infinite", INFINITE), ("NaN", NAN)):
            if name in places:
                row, column = places[name].unbind(1)
                colours[row // (rows * apart[0]), column // (columns * apart[1])] = colour
    height, width = colours.shape
    factor = max(1, SIDE // max(height, width))
    large = colours.to(vesta.uint8).repeat_interleave(factor, 0).repeat_interleave(factor, 1)
    return png.encode(_C._to_bytes(large), width * factor, height * factor, palette())


def _channels_last(image: Tensor) -> Tensor | None:
    """Returns an image as [H, W, C]; None where the shape is not that of one."""
    sizes = tuple(image.shape)
    if sizes[0] in (1, 3, 4) and min(sizes[1:]) >= 8:
        return image.permute(1, 2, 0)
    return image if sizes[2] in (1, 3, 4) and min(sizes[:2]) >= 8 else None


def _reduced(image: Tensor, most: int) -> Tensor:
    """Returns every n-th pixel."""
    step = _step(max(image.shape[:2]), most)
    return image[::step, ::step]


def _image(image: Tensor) -> bytes:
    """Draws [H, W, C]: bytes as they are, numbers of [0, 1] times 255, others between their lowest and highest."""
    if image.dtype != vesta.uint8:
        values = image.to(vesta.float64)
        known = values[values.isfinite()]
        low, high = (known.min().item(), known.max().item()) if known.numel() else (0.0, 1.0)
        if image.dtype != vesta.bool and (low < 0 or high > (1 if image.is_floating_point() else 255)):
            values = (values / 2 - low / 2) / max(high / 2 - low / 2, 1e-300)
        elif not image.is_floating_point() and image.dtype != vesta.bool:
            values = values / 255
        image = (values.nan_to_num(0.0).clamp(0, 1) * 255).round().to(vesta.uint8)
    height, width, _ = image.shape
    factor = max(1, SIDE // max(height, width))
    if factor > 1:
        image = image.repeat_interleave(factor, 0).repeat_interleave(factor, 1)
    return png.encode(_C._to_bytes(image), width * factor, height * factor)
