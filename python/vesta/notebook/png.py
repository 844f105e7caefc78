"""PNG files, written by the standard library alone (ISO/IEC 15948)."""

from __future__ import annotations

import struct
import zlib

#: The colour type of the header, by bytes in a pixel; one byte with a palette is type 3.
_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}


def encode(pixels: bytes, width: int, height: int, palette: bytes | None = None) -> bytes:
    """Returns a PNG of 8 bits a sample.

    Args:
        pixels: rows from top to bottom, of ``width`` pixels of 1 (grey, or number of a colour of ``palette``), 2 (grey
            and alpha), 3 (red, green, blue) or 4 bytes.
        width, height: at least 1.
        palette: at most 256 colours of three bytes.

    Raises:
        ValueError: the pixels are not as many as ``width`` and ``height`` say.

    Example::

        >>> encode(bytes([0, 255]), 2, 1)[1:4]
        b'PNG'
    """
    samples = len(pixels) // max(width * height, 1)
    if width < 1 or height < 1 or samples not in _TYPES or samples * width * height != len(pixels):
        raise ValueError(f"encode: expected {width} x {height} pixels of 1 to 4 bytes, got {len(pixels)} bytes.")
    line = samples * width
    raw = b"".join(b"\0" + pixels[start : start + line] for start in range(0, len(pixels), line))  # 0: no filter
    kind = 3 if palette else _TYPES[samples]
    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    parts = [_chunk(b"IHDR", header)]
    if palette:
        parts.append(_chunk(b"PLTE", palette))
    return b"".join([b"\x89PNG\r\n\x1a\n", *parts, _chunk(b"IDAT", zlib.compress(raw, 9)), _chunk(b"IEND", b"")])


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
