"""Draws the demo's picture, a loss curve beside digits with predictions, and writes it as a PNG without any library."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

Color = tuple[int, int, int]
WHITE, BLACK, GREY, LIGHT = (255, 255, 255), (40, 40, 40), (130, 130, 130), (228, 228, 228)
BLUE, PALE_BLUE, GREEN, RED = (31, 98, 173), (178, 205, 233), (22, 130, 62), (200, 30, 30)

# A 5x7 font: seven rows of five bits each, in hexadecimal.
FONT = {
    "0": "0e11191513110e", "1": "040c040404040e", "2": "0e11010204081f", "3": "1f02040201110e", "4": "02060a121f0202",
    "5": "1f101e0101110e", "6": "0608101e11110e", "7": "1f010204080808", "8": "0e11110e11110e", "9": "0e11110f01020c",
    "a": "00000e010f110f", "c": "00000e1010110e", "d": "01010d1311110f", "e": "00000e111f100e", "g": "000f11110f010e",
    "h": "10101619111111", "i": "04000c0404040e", "l": "0c04040404040e", "n": "00001619111111",
    "o": "00000e1111110e", "p": "00001e111e1010", "r": "00001619101010", "s": "00000e100e011e", "t": "08081c08080906",
    "u": "0000111111130d", ".": "00000000000c0c", "%": "18190204081303", "/": "00010204081000", " ": "00" * 7,
}  # fmt: skip


class Canvas:
    """A picture of ``width`` x ``height`` pixels, white at first."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.rows = [bytearray(WHITE * width) for _ in range(height)]

    def box(self, x: int, y: int, width: int, height: int, color: Color) -> None:
        """Fills a rectangle; the part outside the picture is ignored."""
        left, right = max(x, 0), min(x + width, self.width)
        for row in self.rows[max(y, 0) : max(y + height, 0)]:
            row[3 * left : 3 * right] = bytes(color) * max(right - left, 0)

    def line(self, points: Sequence[tuple[float, float]], color: Color, thickness: int = 2) -> None:
        """Connects points by straight lines."""
        for (x0, y0), (x1, y1) in zip(points, points[1:]):
            steps = max(int(abs(x1 - x0)), int(abs(y1 - y0)), 1)
            for i in range(steps + 1):
                x, y = x0 + (x1 - x0) * i / steps, y0 + (y1 - y0) * i / steps
                self.box(round(x - thickness / 2), round(y - thickness / 2), thickness, thickness, color)

    def text(self, x: int, y: int, text: str, color: Color = BLACK, scale: int = 2, anchor: str = "left") -> None:
        """Draws a line of text; ``x`` is its left end, its middle or its right end."""
        width = 6 * scale * len(text) - scale
        x -= {"left": 0, "middle": width // 2, "right": width}[anchor]
        for character in text:
            for j, bits in enumerate(bytes.fromhex(FONT[character])):
                for i in range(5):
                    if bits >> (4 - i) & 1:
                        self.box(x + i * scale, y + j * scale, scale, scale, color)
            x += 6 * scale

    def save(self, path: Path) -> None:
        """Writes the picture: header, rows without a filter, end (ISO/IEC 15948)."""

        def chunk(kind: bytes, data: bytes) -> bytes:
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

        header = struct.pack(">IIBBBBB", self.width, self.height, 8, 2, 0, 0, 0)
        pixels = zlib.compress(b"".join(b"\0" + bytes(row) for row in self.rows), 9)
        data = chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
        path.write_bytes(b"\x89PNG\r\n\x1a\n" + data)


def draw_curve(canvas: Canvas, x: int, y: int, width: int, height: int, losses: Sequence[float], epochs: int) -> None:
    """Draws the loss of every step, and its average over each epoch, with axes."""
    top = max(max(losses), 1e-9)

    def spot(i: float, value: float) -> tuple[float, float]:
        return x + width * i / max(len(losses) - 1, 1), y + height * (1 - value / top)

    for tick in range(5):
        level = y + height * tick // 4
        canvas.box(x, level, width, 1, LIGHT)
        canvas.text(x - 10, level - 6, f"{top * (4 - tick) / 4:.1f}", GREY, anchor="right")
    for epoch in sorted({0, epochs // 4, epochs // 2, 3 * epochs // 4, epochs}):
        canvas.text(x + width * epoch // epochs, y + height + 12, str(epoch), GREY, anchor="middle")
    canvas.line([spot(i, loss) for i, loss in enumerate(losses)], PALE_BLUE, 1)
    steps = len(losses) // epochs
    means = [sum(losses[e * steps : (e + 1) * steps]) / steps for e in range(epochs)]
    canvas.line([spot((e + 0.5) * steps, mean) for e, mean in enumerate(means)], BLUE, 3)
    canvas.text(x, y - 34, "loss", BLACK)
    canvas.text(x + width, y + height + 34, "epoch", BLACK, anchor="right")


def draw_digit(canvas: Canvas, x: int, y: int, size: int, pixels: Sequence[Sequence[float]]) -> None:
    """Draws a digit of values from 0 (paper) to 1 (ink), each as a square of ``size`` pixels."""
    for j, row in enumerate(pixels):
        for i, value in enumerate(row):
            shade = round(255 * (1 - value))
            canvas.box(x + i * size, y + j * size, size, size, (shade, shade, shade))


def draw(
    path: Path,
    losses: Sequence[float],
    epochs: int,
    digits: Sequence[Sequence[Sequence[float]]],
    predicted: Sequence[int],
    labels: Sequence[int],
    accuracy: float,
) -> None:
    """Writes the picture: ``losses`` of all steps, sixteen ``digits`` with what was ``predicted`` (green: right)."""
    canvas = Canvas(1120, 560)
    draw_curve(canvas, 90, 70, 430, 400, losses, epochs)
    canvas.text(600, 36, f"test digits and predictions {100 * accuracy:.1f}% right")
    for i, (digit, guess, label) in enumerate(zip(digits[:16], predicted, labels)):
        left, top = 610 + 124 * (i % 4), 80 + 118 * (i // 4)
        draw_digit(canvas, left, top, 10, digit)
        canvas.text(left + 88, top + 30, str(guess), GREEN if guess == label else RED, 3)
    canvas.save(path)
