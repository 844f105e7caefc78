"""Files in the safetensors format: round trips, errors of broken files, and atomic saving."""

from __future__ import annotations

import json
import os
import struct

import numpy as np
import op_db_check as check
import pytest
import vesta
from op_db_row import DTYPES
from vesta import safetensors


def write(path, header, data: bytes = b"", length: int | None = None):
    """Writes a safetensors file by hand: 8 bytes of header length, the header, the data."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)
    return path


@pytest.mark.parametrize("dtype", list(DTYPES))
def test_safetensors_round_trip(tmp_path, dtype: str) -> None:
    """Every dtype and layout is read back bit for bit, including NaN and the sign of zero."""
    spec = DTYPES[dtype]
    edge = np.array([0.0, -0.0, np.nan, np.inf, 1.5]) if spec.bits else np.array([0, 1, 1, 0, 1])
    edge = edge.astype(spec.carrier)
    tensors = {
        "vector": check.tensor_of(edge, dtype),
        "transposed": check.tensor_of(np.ones((2, 3), spec.carrier), dtype).t(),
        "zero-d": check.tensor_of(np.array(1, spec.carrier), dtype),
        "empty": check.tensor_of(np.ones((0, 3), spec.carrier), dtype),
        'name with spaces, ünïcode and "quotes"': check.tensor_of(edge[:1], dtype),
    }
    path = tmp_path / "a.safetensors"
    safetensors.save_file(tensors, path, metadata={"note": "round trip"})
    loaded = safetensors.load_file(path)
    assert set(loaded) == set(tensors)
    for name, tensor in tensors.items():
        check.assert_same_bits(loaded[name], tensor, name)
        assert loaded[name].is_contiguous()


def test_safetensors_layout(tmp_path) -> None:
    """The file has the published format: header length, JSON with offsets that cover the data, little-endian values."""
    path = tmp_path / "a.safetensors"
    safetensors.save_file({"b": vesta.tensor([1.0, 2.0]), "a": vesta.tensor([[7]])}, path, metadata={"k": "v"})
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    assert length % 8 == 0 and header.pop("__metadata__") == {"k": "v"}
    assert header["a"]["dtype"] == "I64" and header["a"]["shape"] == [1, 1] and header["b"]["dtype"] == "F32"
    data = raw[8 + length :]
    begin, end = header["b"]["data_offsets"]
    assert struct.unpack("<2f", data[begin:end]) == (1.0, 2.0)
    assert sorted(o for entry in header.values() for o in entry["data_offsets"])[-1] == len(data) == 16


GOOD = {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}


def changed(**fields) -> dict:
    return {"a": {**GOOD["a"], **fields}}


BAD_FILES = {
    "empty file": lambda p: p.write_bytes(b""),
    "seven bytes": lambda p: p.write_bytes(b"\0" * 7),
    "no header": lambda p: p.write_bytes(struct.pack("<Q", 0)),
    "header longer than file": lambda p: write(p, GOOD, b"\0" * 8, length=10**6),
    "header of 2^64 - 1": lambda p: write(p, GOOD, b"\0" * 8, length=2**64 - 1),
    "header of 2^63": lambda p: write(p, GOOD, b"\0" * 8, length=2**63),
    "not JSON": lambda p: write(p, b"{nonsense", b"\0" * 8),
    "a list": lambda p: write(p, b"[1]", b"\0" * 8),
    "bad UTF-8": lambda p: write(p, b'{"\xff\xfe": 1}'),
    "deep nesting": lambda p: write(p, b'{"a":' * 100_000),
    "entry is no object": lambda p: write(p, {"a": 3}),
    "missing fields": lambda p: write(p, {"a": {"dtype": "F32"}}),
    "unknown dtype": lambda p: write(p, changed(dtype="F31"), b"\0" * 8),
    "dtype is no text": lambda p: write(p, changed(dtype=3), b"\0" * 8),
    "shape too large": lambda p: write(p, changed(shape=[3]), b"\0" * 8),
    "shape too small": lambda p: write(p, changed(shape=[1]), b"\0" * 8),
    "negative shape": lambda p: write(p, changed(shape=[-2]), b"\0" * 8),
    "fractional shape": lambda p: write(p, changed(shape=[2.5]), b"\0" * 8),
    "shape product wraps": lambda p: write(p, changed(shape=[2**33, 2**31 + 1]), b"\0" * 8),
    "shape is text": lambda p: write(p, changed(shape="2"), b"\0" * 8),
    "huge rank": lambda p: write(p, changed(shape=[1] * 100_000 + [2]), b"\0" * 8),
    "offsets swapped": lambda p: write(p, changed(data_offsets=[8, 0]), b"\0" * 8),
    "offsets beyond the data": lambda p: write(p, changed(data_offsets=[8, 16]), b"\0" * 8),
    "negative offsets": lambda p: write(p, changed(data_offsets=[-8, 0]), b"\0" * 8),
    "offsets of 2^64": lambda p: write(p, changed(data_offsets=[0, 2**64 + 8]), b"\0" * 8),
    "three offsets": lambda p: write(p, changed(data_offsets=[0, 4, 8]), b"\0" * 8),
    "fractional offsets": lambda p: write(p, changed(data_offsets=[0, 8.5]), b"\0" * 8),
    "truncated data": lambda p: write(p, GOOD, b"\0" * 7),
    "trailing data": lambda p: write(p, GOOD, b"\0" * 9),
    "hole": lambda p: write(p, changed(data_offsets=[8, 16]), b"\0" * 16),
    "overlap": lambda p: write(p, {**GOOD, "b": GOOD["a"]}, b"\0" * 8),
    "duplicate names": lambda p: write(p, b'{"a":%s,"a":%s}' % ((json.dumps(GOOD["a"]).encode(),) * 2), b"\0" * 8),
    "metadata is no object": lambda p: write(p, {"__metadata__": 3, **GOOD}, b"\0" * 8),
    "metadata is no text": lambda p: write(p, {"__metadata__": {"a": 3}, **GOOD}, b"\0" * 8),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_safetensors_raise(tmp_path, name: str) -> None:
    """Each broken file raises an error that names the file, quickly and without allocating what it claims."""
    path = tmp_path / "broken.safetensors"
    BAD_FILES[name](path)
    with pytest.raises((ValueError, RuntimeError, OSError)) as caught:
        safetensors.load_file(path)
    check.check_message(caught.value, "broken.safetensors")


def test_safetensors_paths(tmp_path) -> None:
    with pytest.raises(FileNotFoundError):
        safetensors.load_file(tmp_path / "missing")
    with pytest.raises(OSError):
        safetensors.load_file(tmp_path)
    with pytest.raises(OSError):
        safetensors.save_file({"a": vesta.ones(1)}, tmp_path / "no" / "such" / "folder")
    for tensors in ({"a": 3}, {1: vesta.ones(1)}, [vesta.ones(1)]):
        with pytest.raises((TypeError, ValueError, AttributeError)):
            safetensors.save_file(tensors, tmp_path / "x")
    assert not os.listdir(tmp_path)


def test_saving_is_atomic(tmp_path) -> None:
    """A save that fails leaves the old file intact and no temporary file."""
    path = tmp_path / "a.safetensors"
    safetensors.save_file({"a": vesta.ones(3)}, path)
    before = path.read_bytes()
    with pytest.raises((TypeError, ValueError, AttributeError)):
        safetensors.save_file({"a": vesta.zeros(3), "b": object()}, path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["a.safetensors"]
    safetensors.save_file({"a": vesta.zeros(3)}, path)
    assert safetensors.load_file(path)["a"].tolist() == [0.0] * 3 and os.listdir(tmp_path) == ["a.safetensors"]


def test_a_view_saves_its_own_elements(tmp_path) -> None:
    path = tmp_path / "a.safetensors"
    safetensors.save_file({"row": vesta.ones(1000, 10)[3]}, path)
    assert path.stat().st_size < 1000
