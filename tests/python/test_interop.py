"""Memory shared with NumPy, DLPack and the buffer protocol."""

from __future__ import annotations

import gc
import struct
import sys
from typing import Any

import numpy as np
import op_db_check as check
import pytest
import vesta
from op_db_row import DTYPES

WITH_NUMPY = [name for name in DTYPES if name != "bfloat16"]


# ---- NumPy ----


@pytest.mark.parametrize("dtype", WITH_NUMPY)
def test_numpy_shares_memory_both_ways(dtype: str) -> None:
    """from_numpy and numpy() do not copy: a write on either side is visible on the other, also with strides."""
    array = np.zeros((4, 6), DTYPES[dtype].carrier)
    tensor = vesta.from_numpy(array)
    assert check.name_of(tensor.dtype) == dtype and tensor.data_ptr() == array.ctypes.data
    tensor[1, 2] = 1
    assert array[1, 2] == 1
    array[0, 0] = 1
    assert tensor[0, 0] == 1
    look = vesta.from_numpy(array[::2, 1::3])
    assert look.stride() == (12, 3) and look.shape == (2, 2)
    back = tensor.t()[1:].numpy()
    assert back.shape == (5, 4) and back.strides == (DTYPES[dtype].carrier.itemsize, 6 * DTYPES[dtype].carrier.itemsize)
    assert np.shares_memory(back, array)
    assert np.shares_memory(np.asarray(tensor), array)


def test_numpy_lifetimes() -> None:
    """Either side keeps the memory alive after the other is gone."""
    tensor = vesta.from_numpy(np.arange(1000.0))
    gc.collect()
    assert tensor.sum().item() == 499500.0
    array = vesta.arange(1000, dtype=vesta.float64).numpy()
    gc.collect()
    assert array.sum() == 499500.0
    array = np.ones(10)
    count = sys.getrefcount(array)
    tensor = vesta.from_numpy(array)
    look = tensor[2:]
    del tensor
    assert sys.getrefcount(array) > count
    del look
    assert sys.getrefcount(array) == count


def test_numpy_refuses() -> None:
    """What cannot be shared raises: negative strides, foreign byte order, strings, objects, recording tensors."""
    for array in (np.ones(3)[::-1], np.ones(3, ">f8"), np.array(["a"]), np.array([None]), np.ones(2, "M8[s]")):
        with pytest.raises((ValueError, TypeError)):
            vesta.from_numpy(array)
    with pytest.raises(TypeError):
        vesta.from_numpy([1, 2])
    with pytest.raises(RuntimeError, match="detach"):
        vesta.ones(2, requires_grad=True).numpy()
    with pytest.raises(TypeError, match="(?i)bfloat16"):
        vesta.ones(2, dtype=vesta.bfloat16).numpy()
    assert vesta.from_numpy(np.array(2.5)).item() == 2.5 and vesta.from_numpy(np.ones((0, 3))).shape == (0, 3)


def test_array_protocol() -> None:
    x = vesta.ones(2, 3)
    assert np.asarray(x).dtype == np.float32 and np.asarray(x, dtype=np.float64).dtype == np.float64
    assert np.array(x).shape == (2, 3) and np.sum(x.numpy()) == 6
    copied = np.array(x, copy=True)
    copied[:] = 5
    assert float(x[0, 0]) == 1.0
    assert np.asarray([vesta.tensor(1.0), vesta.tensor(2.0)]).tolist() == [1.0, 2.0]


# ---- buffers ----


def test_from_buffer() -> None:
    """frombuffer shares a writable buffer and checks dtype, count and offset against its size."""
    raw = bytearray(struct.pack("<5f", 1, 2, 3, 4, 5))
    tensor = vesta.frombuffer(raw, dtype=vesta.float32)
    assert tensor.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    tensor[0] = 9
    assert struct.unpack("<f", raw[:4]) == (9.0,)
    assert vesta.frombuffer(raw, dtype=vesta.float32, count=2, offset=8).tolist() == [3.0, 4.0]
    for options in ({"offset": 20}, {"count": 6}, {"offset": -1}, {"offset": 3}, {"count": 0}, {"count": 2**61}):
        with pytest.raises(ValueError):
            vesta.frombuffer(raw, dtype=vesta.float32, **options)
    with pytest.raises(ValueError):
        vesta.frombuffer(bytearray(0), dtype=vesta.float32)
    with pytest.raises((TypeError, ValueError)):
        vesta.frombuffer(3, dtype=vesta.float32)


# ---- DLPack ----


@pytest.mark.parametrize("dtype", [name for name in WITH_NUMPY if name != "bool"])
def test_dlpack_both_ways(dtype: str) -> None:
    """A tensor is exported and an array is imported without a copy, also with strides."""
    tensor = vesta.zeros(3, 4, dtype=check.vdtype(dtype)).t()
    array = np.from_dlpack(tensor)
    assert array.ctypes.data == tensor.data_ptr() and array.shape == (4, 3)
    tensor[0, 0] = 1
    assert array[0, 0] == 1
    source = np.arange(12).reshape(3, 4).astype(DTYPES[dtype].carrier)
    back = vesta.from_dlpack(source[:, ::2])
    assert back.data_ptr() == source.ctypes.data and back.tolist() == source[:, ::2].tolist()
    again = vesta.from_dlpack(back)
    assert again.data_ptr() == back.data_ptr() and again.dtype == back.dtype


def test_dlpack_lifetimes_and_device() -> None:
    tensor = vesta.ones(1000)
    assert tensor.__dlpack_device__() == (1, 0)
    array = np.from_dlpack(tensor)
    del tensor
    gc.collect()
    assert array.sum() == 1000
    capsule = vesta.ones(5).__dlpack__()
    del capsule  # a capsule that nobody consumed frees its tensor
    other = vesta.from_dlpack(np.ones(1000))
    gc.collect()
    assert other.sum().item() == 1000


def test_dlpack_refuses() -> None:
    with pytest.raises((BufferError, RuntimeError)):
        vesta.ones(2, requires_grad=True).__dlpack__()
    with pytest.raises((TypeError, AttributeError, RuntimeError)):
        vesta.from_dlpack([1, 2])
    capsule = vesta.ones(2).__dlpack__()
    vesta.from_dlpack(capsule)
    with pytest.raises(ValueError, match="from_dlpack: expected a capsule .* taken over already"):
        vesta.from_dlpack(capsule)
    with pytest.raises(BufferError, match=r"own device \(1, 0\), got \(2, 0\)"):
        vesta.ones(2).__dlpack__(dl_device=(2, 0))
    assert vesta.from_dlpack(vesta.ones(2).__dlpack__(dl_device=(1, 0), max_version=(1, 0))).tolist() == [1.0, 1.0]


def test_sizes_that_overflow_in_bytes_are_refused() -> None:
    """Strides and lengths leave the library in bytes: those that 64 bits do not hold raise instead of wrapping."""
    longest = 2**63 - 1
    for size in ((0, longest), (0, 2**61), (2**61, 0)):
        x = vesta.empty(size)
        assert x.shape == size and x.numel() == 0 and x.nbytes == 0
        for look in (
            lambda x: x[:, :0],
            lambda x: x.unsqueeze(0),
            lambda x: x.t(),
            lambda x: x.clone(),
            lambda x: x + 1,
            lambda x: x.diagonal(1),
            lambda x: x.expand(1, *x.shape),
        ):
            assert look(x).numel() == 0
        assert x.sum().item() == 0
    for size in ((0, longest), (0, 2**61)):
        with pytest.raises((ValueError, BufferError), match="overflows"):
            memoryview(vesta.empty(size))
    wide = vesta.zeros(1).expand(2**61)
    for read in (lambda: wide.nbytes, lambda: memoryview(wide)):
        with pytest.raises((ValueError, BufferError), match="overflows"):
            read()
    with pytest.raises(RuntimeError, match="overflows"):
        vesta.empty(0).as_strided((0,), (1,), longest)


def test_numpy_without_recording_takes_tensors_that_require_grad() -> None:
    """As in PyTorch: under no_grad an array is no way around the graph."""
    x = vesta.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad"):
        x.numpy()
    with vesta.no_grad():
        assert x.numpy().tolist() == [1, 1]
        assert np.asarray(x).tolist() == [1, 1]


class PyTorchs:
    """Behaves as PyTorch's own tensors do: ``__torch_function__`` runs the function itself, which asks it again."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


PyTorchs.__torch_function__.__func__.__module__ = "torch._tensor"


@pytest.mark.parametrize(
    "call",
    [
        lambda t, other: t + other,
        lambda t, other: other * t,
        lambda t, other: t == other,
        lambda t, other: t.add(other),
        lambda t, other: vesta.matmul(t, other),
        lambda t, other: vesta.cat([t, other]),
        lambda t, other: t.copy_(other),
    ],
)
def test_tensors_of_pytorch_are_named_with_the_way_to_convert_them(call: Any) -> None:
    with pytest.raises(TypeError, match=r"torch.Tensor. Convert it with vesta.from_torch\(t\), which copies nothing."):
        call(vesta.ones(2), PyTorchs())
