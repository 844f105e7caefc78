"""The classes of tensors by dtype and device that older programs use: ``vesta.FloatTensor``, ``vesta.cuda.LongTensor``.

A tensor of dtype float32 on the CPU is an instance of ``vesta.FloatTensor``; calling the class makes one.
"""

from __future__ import annotations

from operator import index
from typing import Any

from vesta._types import Device

from . import _C
from ._arguments import is_whole_number
from ._C import Tensor

#: What the names of types begin with; ``vesta.as_torch`` makes it ``torch``.
PACKAGE = "vesta"
#: The class names by dtype.
NAMES = {
    "float32": "FloatTensor",
    "float64": "DoubleTensor",
    "float16": "HalfTensor",
    "bfloat16": "BFloat16Tensor",
    "uint8": "ByteTensor",
    "int8": "CharTensor",
    "int16": "ShortTensor",
    "int32": "IntTensor",
    "int64": "LongTensor",
    "bool": "BoolTensor",
    "complex64": "ComplexFloatTensor",
    "complex128": "ComplexDoubleTensor",
}


class TensorType(type):
    """The metaclass of these classes: ``isinstance`` tests dtype and device, a call makes a tensor.

    ``T()`` is empty, ``T(2, 3)`` and ``T(vesta.Size([2, 3]))`` have that shape and no values yet, ``T([1, 2])`` copies
    a sequence or array, ``T(tensor)`` is an alias of a tensor of this type. TypeError: anything else.
    """

    dtype: Any
    device_type: str

    def __call__(cls, *args: Any, device: Device | None = None) -> Tensor:
        place = cls.device_type if device is None else _C.device(device)
        if device is not None and place.type != cls.device_type:
            raise RuntimeError(f"{cls.__name__}: expected a device of type {cls.device_type}, got {place} (device).")
        if len(args) != 1 or is_whole_number(args[0]):
            try:
                args = tuple(map(index, args))
            except TypeError:
                raise TypeError(
                    f"{cls.__name__}: expected sizes, one sequence or one tensor, got {len(args)} arguments."
                ) from None
            return _C._ops.empty(args or (0,), dtype=cls.dtype, device=place)
        (data,) = args
        if isinstance(data, _C.Size):
            return _C._ops.empty(data, dtype=cls.dtype, device=place)
        if isinstance(data, Tensor):
            if not isinstance(data, cls):
                raise TypeError(f"{cls.__name__}: expected {cls!r}, got {data.type()}. Use .to() to convert.")
            return data.detach()
        return _C.tensor(data, dtype=cls.dtype, device=place)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor) and instance.dtype == cls.dtype and instance.device.type == cls.device_type

    def __repr__(cls) -> str:
        return f"<class '{cls.__module__}.{cls.__name__}'>"

    @property
    def is_cuda(cls) -> bool:
        return cls.device_type == "cuda"


def _make(key: str, name: str, device_type: str) -> TensorType:
    home = "vesta" if device_type == "cpu" else f"vesta.{device_type}"
    return TensorType(
        name,
        (),
        {"dtype": getattr(_C, key), "device_type": device_type, "__module__": home, "__doc__": TensorType.__doc__},
    )


CPU = {name: _make(key, name, "cpu") for key, name in NAMES.items()}
CUDA = {name: _make(key, name, "cuda") for key, name in NAMES.items()}


def by_name(text: str) -> TensorType:
    """Finds a type by its name, ``vesta.FloatTensor`` or PyTorch's ``torch.FloatTensor``. ValueError: there is none."""
    home, _, name = text.rpartition(".")
    if name == "Tensor" and home in ("vesta", "torch"):
        return of_default_dtype()
    kinds = {"vesta": CPU, "torch": CPU, "vesta.cuda": CUDA, "torch.cuda": CUDA}.get(home, {})
    if name not in kinds:
        raise ValueError(f"type: expected a dtype or a name like vesta.FloatTensor, got {text!r} (dtype).")
    return kinds[name]


def of_default_dtype() -> TensorType:
    """Returns the CPU's type of the default dtype, which ``vesta.Tensor`` stands for."""
    return CPU[NAMES[str(_C.get_default_dtype()).rsplit(".", 1)[1]]]


def set_default_tensor_type(t: Any) -> None:
    """Makes a floating type's dtype the default one. TypeError: not a floating type; NotImplementedError: a CUDA
    type.

    Example::

        >>> import vesta
        >>> vesta.set_default_tensor_type("torch.FloatTensor")
    """
    t = by_name(t) if isinstance(t, str) else t
    if not isinstance(t, TensorType):
        raise TypeError(f"set_default_tensor_type: expected a type like vesta.FloatTensor, got {t!r}.")
    if t.is_cuda:
        raise NotImplementedError(
            "set_default_tensor_type: expected a type of the CPU. Pass device='cuda' to factories."
        )
    _C.set_default_dtype(t.dtype)
