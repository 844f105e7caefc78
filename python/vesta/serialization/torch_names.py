"""Names of PyTorch in files, and the objects of Vesta that they stand for, in both directions.

A file names what it is made of as PyTorch does: ``torch._utils _rebuild_tensor_v2``, ``torch FloatStorage``,
``torch.nn.modules.linear Linear``. PyTorch is never imported: a name is looked up here.
"""

from __future__ import annotations

import copyreg
import importlib
from typing import Any

import vesta
import vesta.nn  # whole, before parts of it: other threads may import it
from vesta import _C
from vesta._torch_homes import MOVED
from vesta.nn.parameter import Buffer, Parameter
from vesta.storage import TypedStorage, UntypedStorage

from . import rebuilding

__all__ = ["STORAGE_NAMES", "StorageType", "TorchGlobal", "find", "torch_name_of", "weights_only_globals"]

#: The class of storages that stands for a dtype in files.
STORAGE_NAMES = {
    _C.float64: "DoubleStorage",
    _C.float32: "FloatStorage",
    _C.float16: "HalfStorage",
    _C.int64: "LongStorage",
    _C.int32: "IntStorage",
    _C.int16: "ShortStorage",
    _C.int8: "CharStorage",
    _C.uint8: "ByteStorage",
    _C.bool: "BoolStorage",
    _C.bfloat16: "BFloat16Storage",
    _C.complex128: "ComplexDoubleStorage",
    _C.complex64: "ComplexFloatStorage",
}
#: Names that PyTorch allows and for which Vesta has nothing: reading one of them is an error that says so.
_MISSING_STORAGES = ("QInt8Storage", "QInt32Storage", "QUInt8Storage", "QUInt4x2Storage", "QUInt2x4Storage")
_MISSING_DTYPES = (
    "bits16 bits1x8 bits2x4 bits4x2 bits8 bcomplex32 complex32 float4_e2m1fn_x2 float8_e4m3fn float8_e4m3fnuz "
    "float8_e5m2 float8_e5m2fnuz float8_e8m0fnu qint32 qint8 quint2x4 quint4x2 quint8 uint16 uint32 uint64 "
    "int1 int2 int3 int4 int5 int6 int7 uint1 uint2 uint3 uint4 uint5 uint6 uint7"
).split()
_MISSING_FUNCTIONS = {
    "torch._utils._rebuild_qtensor": "a quantized tensor",
    "torch._utils._rebuild_nested_tensor": "a nested tensor",
    "torch._utils._rebuild_wrapper_subclass": "a tensor subclass without memory of its own",
}
_TENSOR_TYPES = "BFloat16 Bool Byte Char Double Float Half Int Long Short".split()
_MOVED_BACK = {(theirs, name): ours for (ours, name), theirs in MOVED.items()}


class TorchGlobal:
    """A name of PyTorch in a file that is being written."""

    __slots__ = ("module", "name")

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self, *args: Any) -> Any:
        raise TypeError(f"{self.module}.{self.name} is a name for files only.")


class StorageType:
    """A class of storages in a file: nothing but the dtype of their elements."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype

    def __call__(self, *args: Any) -> Any:
        raise TypeError("load: expected a storage in a record of its own, got a call of its class in the file.")

    def __repr__(self) -> str:
        return f"StorageType(dtype={self.dtype})"


class Missing:
    """A name of PyTorch for which Vesta has nothing."""

    __slots__ = ("what",)

    def __init__(self, what: str) -> None:
        self.what = what

    def refuse(self) -> Any:
        """Raises NotImplementedError that names it."""
        raise NotImplementedError(f"load: expected what Vesta has, got {self.what} in the file. It is not available.")

    def __call__(self, *args: Any) -> Any:
        return self.refuse()

    dtype = property(refuse)


def _functions() -> dict[str, Any]:
    found = {
        f"torch._utils.{name}": getattr(rebuilding, name) for name in rebuilding.__all__ if name.startswith("_rebuild_")
    }
    found["torch._tensor._rebuild_from_type_v2"] = found.pop("torch._utils._rebuild_from_type_v2")
    found.update({name: Missing(what) for name, what in _MISSING_FUNCTIONS.items()})
    return found


def _values() -> dict[str, Any]:
    """Returns dtypes and classes by their names in PyTorch."""
    found: dict[str, Any] = {str(dtype).replace("vesta.", "torch."): dtype for dtype in STORAGE_NAMES}
    found.update({f"torch.{name}": Missing(f"the dtype torch.{name}") for name in _MISSING_DTYPES})
    for home in ("torch", "torch.cuda"):
        for dtype, name in STORAGE_NAMES.items():
            found[f"{home}.{name}"] = StorageType(dtype)
        for name in _TENSOR_TYPES:
            found[f"{home}.{name}Tensor"] = rebuilding.LegacyTensorType(getattr(vesta, f"{name}Tensor").dtype)
            if name != "Bool":
                sparse = f"{home}.sparse.{name}Tensor"
                found[sparse] = Missing(f"a sparse tensor ({sparse})")
    found.update({f"torch.{name}": Missing(f"quantized values (torch.{name})") for name in _MISSING_STORAGES})
    for name in ("tensor_affine", "tensor_symmetric", "channel_affine", "channel_symmetric"):
        found[f"torch.per_{name}"] = Missing(f"a scheme of quantization (torch.per_{name})")
    found["torch.per_channel_affine_float_qparams"] = Missing("a scheme of quantization")
    return found


_table: dict[str, Any] = {}


def weights_only_globals() -> dict[str, Any]:
    """Returns the names of PyTorch that ``weights_only=True`` allows, and what they stand for."""
    if not _table:
        _table.update(_values())
        _table.update(_functions())
        _table.update(
            {
                "torch.nn.parameter.Parameter": Parameter,
                "torch.serialization._get_layout": rebuilding._get_layout,
                "torch.Size": rebuilding.size,
                "torch.Tensor": _C.Tensor,
                "torch.device": rebuilding.device,
                "torch.storage.TypedStorage": TypedStorage,
                "torch.storage.UntypedStorage": UntypedStorage,
            }
        )
        _table.pop("torch._utils._rebuild_nested_tensor")  # PyTorch does not allow it
    return _table


_plain = {
    "torch.Size": _C.Size,
    "torch.device": _C.device,
    "torch.nn.parameter.Buffer": Buffer,
    "torch.tensor.Tensor": _C.Tensor,
    "torch.UntypedStorage": UntypedStorage,
    "torch._C.TensorBase": _C.Tensor,  # methods are pickled as its attributes
    "torch._C._VariableFunctionsClass": vesta,  # and functions as attributes of this
    "torch._utils._rebuild_nested_tensor": Missing("a nested tensor"),
}


#: Where functions are that PyTorch pickles under names inside of its library: the module, and how their names begin.
_FUNCTIONS_INSIDE = {
    "torch._C._fft": ("vesta.fft", "fft_"),
    "torch._C._linalg": ("vesta.linalg", "linalg_"),
    "torch._C._nn": ("vesta.nn.functional", ""),
    "torch._C._special": ("vesta.special", "special_"),
    "torch.functional": ("vesta", ""),
}
_OTHER_FUNCTIONS = {"log_sigmoid": "logsigmoid"}


def find(module: str, name: str) -> Any:
    """Returns what a name of PyTorch stands for, for files that may name anything (``weights_only=False``).

    Raises:
        AttributeError: Vesta has nothing of the name.
    """
    full = f"{module}.{name}"
    known = _plain.get(full) or weights_only_globals().get(full)
    if isinstance(known, Missing):
        known.refuse()
    if known is not None:
        return known
    if module in _FUNCTIONS_INSIDE:
        home, prefix = _FUNCTIONS_INSIDE[module]
        name = _OTHER_FUNCTIONS.get(name, name.removeprefix(prefix))
    else:
        home = _MOVED_BACK.get((module, name), "vesta" + module[len("torch") :])
    try:
        return _found_in(home, name)
    except (ImportError, AttributeError) as error:
        try:  # what only PyTorch's programs know: a module that torch.compile has made
            return _found_in("vesta.as_torch.only" + module[len("torch") :], name)
        except (ImportError, AttributeError):
            pass
        raise AttributeError(
            f"load: expected names that Vesta has, got {full} in the file. It is not available; save the state_dict() "
            "instead of the whole object."
        ) from error


def _found_in(home: str, name: str) -> Any:
    """Returns what a module has under a name. ImportError or AttributeError: nothing."""
    found = importlib.import_module(home)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def torch_name_of(module: str, name: str) -> str:
    """Returns PyTorch's module for a class or function of a module ``vesta...``."""
    return MOVED.get((module, name), "torch" + module[len("vesta") :])


def _reduce_global(name: TorchGlobal) -> tuple[Any, ...]:
    return find, (name.module, name.name)


copyreg.pickle(TorchGlobal, _reduce_global)  # for picklers that write Vesta's names
