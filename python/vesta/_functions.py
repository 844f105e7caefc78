"""Functions that no schema of an op could say: about objects that need not be tensors, or with texts among numbers."""

from __future__ import annotations

import sys

from . import _C
from ._C import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import Buffer

    from vesta._C._types import Data, Device, DType, Ints, Number
else:  # for get_type_hints()
    Any = Buffer = Data = Device = DType = Ints = Number = object


def _expect_tensor(op: str, value: Any) -> None:
    """Raises a TypeError that names the argument, where an op's first argument is no tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{op}(): argument 'input' (position 1) must be Tensor, not {type(value).__name__}")


def norm(
    input: Tensor,
    p: Number | str | None = "fro",
    dim: Ints | None = None,
    keepdim: bool = False,
    out: Tensor | None = None,
    dtype: DType | None = None,
) -> Tensor:
    """``sum(|input| ** p) ** (1 / p)`` over ``dim``, or over everything.

    Args:
        p: a number, ``inf`` and ``-inf`` (the largest and the smallest absolute value) and 0 (the number of nonzero
            elements) included; ``"fro"`` is 2, ``"nuc"`` the sum of a matrix's singular values.
        dtype: the dtype of the computation.

    Example::

        >>> import vesta
        >>> vesta.norm(vesta.tensor([3.0, 4.0]))
        tensor(5.)
    """
    _expect_tensor("norm", input)
    if p == "nuc":  # the sum of singular values
        from ._linalg_functions import matrix_norm

        return matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim, dtype=dtype, out=out)
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"norm: expected p to be 'fro', 'nuc' or a number, got {p!r} (p).")
    if p == "fro" and isinstance(dim, (list, tuple)) and len(dim) > 2:
        raise RuntimeError(f"norm: expected at most two dimensions for p='fro', got {dim} (dim). Give a number for p.")
    power = 2.0 if p is None or p == "fro" else p
    if out is None:
        return _C._private.norm(input, power, dim, keepdim, dtype)
    return _C._private.norm(input, power, dim, keepdim, dtype, out=out)


def is_tensor(obj: object) -> bool:
    """Returns whether ``obj`` is a tensor.

    Example::

        >>> import vesta
        >>> vesta.is_tensor(vesta.tensor([1.0])), vesta.is_tensor([1.0])
        (True, False)
    """
    return isinstance(obj, Tensor)


def is_storage(obj: object) -> bool:
    """Returns whether ``obj`` is a storage: the memory under a tensor.

    Example::

        >>> import vesta
        >>> x = vesta.ones(2)
        >>> vesta.is_storage(x.untyped_storage()), vesta.is_storage(x)
        (True, False)
    """
    from vesta.storage import TypedStorage, UntypedStorage

    return isinstance(obj, (TypedStorage, UntypedStorage))


def get_device_module(device: Any = None) -> Any:
    """Returns the module of a device's kind: ``vesta.cuda`` or ``vesta.cpu``.

    Args:
        device: a device or its name; without one, ``vesta.cuda`` where it can be used, else ``vesta.cpu``.

    Example::

        >>> import vesta
        >>> vesta.get_device_module("cpu") is vesta.cpu
        True
    """
    import vesta

    if device is None:
        kind = "cuda" if vesta.cuda.is_available() else "cpu"
    else:
        kind = vesta.device(device).type
    if kind not in ("cuda", "cpu"):
        raise RuntimeError(f"get_device_module: expected cuda or cpu, got {kind!r} (device).")
    return getattr(vesta, kind)


def is_floating_point(input: Tensor) -> bool:
    """Returns whether the dtype is a real floating-point one.

    Example::

        >>> import vesta
        >>> vesta.is_floating_point(vesta.tensor([1.0]))
        True
    """
    _expect_tensor("is_floating_point", input)
    return input.is_floating_point()


def is_complex(input: Tensor) -> bool:
    """Returns whether the dtype is complex.

    Example::

        >>> import vesta
        >>> vesta.is_complex(vesta.tensor([1j]))
        True
    """
    _expect_tensor("is_complex", input)
    return input.is_complex()


def numel(input: Tensor) -> int:
    """Returns the number of elements.

    Example::

        >>> import vesta
        >>> vesta.numel(vesta.zeros(2, 3))
        6
    """
    _expect_tensor("numel", input)
    return input.numel()


def typename(obj: object) -> str:
    """Returns the name of a class, a function or a module, and of anything else that of its type.

    That of a tensor is ``vesta.FloatTensor`` and the like.

    Example::

        >>> import vesta
        >>> vesta.typename(vesta.tensor([1, 2]))
        'vesta.LongTensor'
    """
    if isinstance(obj, Tensor):
        return obj.type()
    name = getattr(obj, "__qualname__", None) or getattr(obj, "__name__", None)
    module = getattr(obj if name else type(obj), "__module__", "") or ""
    name = name or type(obj).__qualname__
    return name if module in ("", "builtins") else f"{module}.{name}"


def asarray(
    obj: Data | Buffer,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """Returns a tensor of ``obj`` that shares its memory if possible; ``copy=True`` never shares, ``copy=False``
    must. What a tensor has recorded stays, unless ``requires_grad=False``.

    Example::

        >>> import vesta
        >>> vesta.asarray([1, 2], dtype=vesta.float32)
        tensor([1., 2.])
    """
    storage = sys.modules.get(f"{__package__}.storage")  # imported where there is one
    if storage and isinstance(obj, storage.UntypedStorage):
        obj = obj._bytes
    if copy:
        if isinstance(obj, Tensor):
            made = obj.to(device=device, dtype=dtype, copy=True)
        else:
            return _C.tensor(obj, dtype=dtype, device=device, requires_grad=bool(requires_grad))
    else:
        made = _C.as_tensor(obj, dtype=dtype, device=device)
    shares = isinstance(obj, Tensor) or hasattr(obj, "__array_interface__") or hasattr(obj, "__dlpack__")
    if copy is False and not shares:
        raise ValueError(f"asarray: expected an object that shares its memory, got {type(obj).__name__} (copy=False).")
    if requires_grad is False and made.requires_grad:
        return made.detach()
    return made.requires_grad_() if requires_grad and not made.requires_grad else made
