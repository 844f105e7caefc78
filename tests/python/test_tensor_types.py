"""vesta.FloatTensor and similar classes: tensors by dtype and device, as older programs use them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import vesta
from vesta import tensor_types


@pytest.mark.parametrize("key, name", tensor_types.NAMES.items())
def test_every_dtype_has_a_class(key: str, name: str) -> None:
    kind = tensor_types.CPU[name]
    dtype = getattr(vesta, key)
    made = kind(2, 3)
    assert made.dtype == kind.dtype == dtype and made.shape == (2, 3)
    assert isinstance(made, kind) and made.type() == f"vesta.{name}" and repr(kind) == f"<class 'vesta.{name}'>"
    assert vesta.ones(2).type(kind).dtype == vesta.ones(2).type(f"torch.{name}").dtype == dtype


def test_the_base_class_stands_for_the_default_dtype() -> None:
    x = vesta.arange(3)
    assert x.type(vesta.Tensor).dtype == x.type("torch.Tensor").dtype == vesta.float32
    vesta.set_default_dtype(vesta.float64)
    try:
        assert x.type(vesta.Tensor).dtype == x.type(dtype=vesta.Tensor).dtype == vesta.float64
    finally:
        vesta.set_default_dtype(vesta.float32)
    with pytest.raises(TypeError):
        x.type(vesta.nn.Parameter)


def test_what_a_call_makes() -> None:
    assert vesta.FloatTensor().shape == (0,)
    assert vesta.LongTensor([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert vesta.FloatTensor(vesta.Size([2, 2])).shape == vesta.Tensor(vesta.Size([2, 2])).shape == (2, 2)
    assert vesta.FloatTensor((1, 2)).tolist() == vesta.Tensor((1, 2)).tolist() == [1.0, 2.0]
    assert vesta.Tensor(vesta.Size([])).shape == ()
    x = vesta.ones(2)
    vesta.FloatTensor(x)[0] = 5
    assert x.tolist() == [5.0, 1.0]
    assert not isinstance(x, vesta.LongTensor) and not isinstance(3, vesta.FloatTensor)
    assert "FloatTensor" in dir(vesta) and not vesta.FloatTensor.is_cuda


def test_bad_arguments() -> None:
    with pytest.raises(TypeError, match=r"LongTensor: expected <class 'vesta.LongTensor'>, got vesta.FloatTensor"):
        vesta.LongTensor(vesta.ones(2))
    with pytest.raises(TypeError, match="sizes, one sequence or one tensor, got 2"):
        vesta.FloatTensor([1], [2])
    with pytest.raises(RuntimeError, match="expected a device of type cpu, got cuda"):
        vesta.FloatTensor(2, device="cuda")
    with pytest.raises(ValueError, match="type: expected a dtype or a name"):
        vesta.ones(2).type("vesta.WideTensor")
    with pytest.raises(AttributeError):
        vesta.WideTensor  # noqa: B018


def test_the_default_type() -> None:
    try:
        vesta.set_default_tensor_type(vesta.DoubleTensor)
        assert vesta.ones(1).dtype == vesta.float64
        vesta.set_default_tensor_type("torch.FloatTensor")
        assert vesta.ones(1).dtype == vesta.float32
        with pytest.raises(TypeError):
            vesta.set_default_tensor_type(vesta.LongTensor)
        with pytest.raises(NotImplementedError, match="of the CPU"):
            vesta.set_default_tensor_type("torch.cuda.FloatTensor")
    finally:
        vesta.set_default_dtype(vesta.float32)


def test_backends_that_programs_ask_for() -> None:
    assert not vesta.backends.mps.is_available() and not vesta.backends.mps.is_built()
    assert vesta.backends.cudnn.is_available() == (vesta.backends.cudnn.version() is not None)
    before = vesta.backends.cudnn.enabled
    with vesta.backends.cudnn.flags(enabled=not before, allow_tf32=False):
        assert vesta.backends.cudnn.enabled is not before and not vesta.backends.cudnn.allow_tf32
    assert vesta.backends.cudnn.enabled is before and vesta.backends.cudnn.allow_tf32
    assert not vesta.backends.cudnn.is_acceptable(vesta.ones(1))


@pytest.mark.parametrize("two", [np.int64(2), np.int16(2), np.uint8(2), np.array(2)], ids=lambda n: str(n.dtype))
def test_sizes_may_be_integers_of_numpy(two: Any) -> None:
    x = vesta.ones(1)
    assert vesta.Tensor(two).shape == vesta.FloatTensor(two).shape == x.new(two).shape == (2,)
    assert (
        vesta.Tensor(two, two).shape == vesta.LongTensor(two, 3).shape[:1] + (2,) == x.new(3, two)[:2].shape == (2, 2)
    )
    assert vesta.Tensor(3, two).shape == vesta.FloatTensor(3, two).shape == (3, 2)
    assert vesta.Tensor(vesta.tensor(3), two).shape == vesta.IntTensor(vesta.tensor(3), two).shape == (3, 2)
    assert vesta.Tensor(np.array([2])).tolist() == vesta.FloatTensor(np.array([2])).tolist() == [2.0]
    with pytest.raises(TypeError, match="FloatTensor: expected sizes"):
        vesta.FloatTensor(2, np.float32(2))
    with pytest.raises(TypeError, match="expected int as a size"):
        vesta.Tensor(2, np.float32(2))
