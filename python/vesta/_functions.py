"""Functions whose form in PyTorch is not that of one op: several call forms, a choice of ops, a named result."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from . import _C
from ._C import Tensor, _ops


class _Extremum:
    """The printed form of the named results of ``max`` and ``min``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"vesta.return_types.{type(self).__name__}(\nvalues={self.values!r},\nindices={self.indices!r})"


class _Max(_Extremum, namedtuple("max", ("values", "indices"))):
    __slots__ = ()


class _Min(_Extremum, namedtuple("min", ("values", "indices"))):
    __slots__ = ()


_Max.__name__, _Min.__name__ = "max", "min"


def _expect_tensor(op: str, value: Any, position: int = 1) -> None:
    """Raises a TypeError that names the argument if an op's first argument is not a tensor."""
    if not isinstance(value, Tensor):
        name = ("input", "other")[position - 1] if op != "where" else "condition"
        raise TypeError(f"{op}(): argument '{name}' (position {position}) must be Tensor, not {type(value).__name__}")


def _expect_one_device(op: str, input: Tensor, other: Tensor) -> None:
    """Raises if two tensors lie on two devices; a number in a tensor may be on any device."""
    joins = any(t.dim() == 0 and t.device.type == "cpu" for t in (input, other))
    if input.device != other.device and not joins:
        raise _C.DeviceError(
            f"{op}: expected all tensors on one device, got {input.device} (input) and {other.device} (other). "
            "Move one with .to()."
        )


def _extremum(name: str, whole: Any, along: Any, pair: Any, result: Any) -> Any:
    def extremum(input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Any = None, **names: Any) -> Any:
        if "axis" in names:
            dim = names.pop("axis")
        other = names.pop("other", None)
        if names:
            raise TypeError(f"{name}() got an unexpected keyword argument {next(iter(names))!r}")
        if other is None and isinstance(dim, Tensor):
            other = dim
        if other is not None:
            return pair(input, other, out=out)
        _expect_tensor(name, input)
        if dim is None:
            if input.numel() == 0:
                raise RuntimeError(
                    f"{name}(): Expected reduction dim to be specified for input.numel() == 0. "
                    "Specify the reduction dim with the 'dim' argument."
                )
            return whole(input) if out is None else whole(input, out=out)
        return result(*(along(input, dim, keepdim) if out is None else along(input, dim, keepdim, out=out)))

    extremum.__name__ = extremum.__qualname__ = name
    extremum.__doc__ = (
        f"{name}(input): the {name}imum of all elements. {name}(input, dim, keepdim=False): a named tuple "
        f"(values, indices) along a dimension. {name}(input, other): elementwise, with broadcasting."
    )
    return extremum


max = _extremum("max", _ops.amax, _ops.max_dim, _ops.maximum, _Max)
min = _extremum("min", _ops.amin, _ops.min_dim, _ops.minimum, _Min)


_UNSET: Any = object()


def _moment(name: str, op: Any, what: str) -> Any:
    def moment(
        input: Tensor,
        dim: Any = None,
        unbiased: Any = None,
        keepdim: bool = False,
        *,
        correction: Any = _UNSET,
        out: Any = None,
        **names: Any,
    ) -> Tensor:
        _expect_tensor(name, input)
        if "axis" in names and dim is None:
            dim = names.pop("axis")
        if names:
            raise TypeError(f"{name}() got an unexpected keyword argument {next(iter(names))!r}")
        if isinstance(dim, bool) and unbiased is None:  # var(unbiased)
            dim, unbiased = None, dim
        if isinstance(dim, bool) or not (unbiased is None or isinstance(unbiased, bool)):
            wrong = dim if isinstance(dim, bool) else unbiased
            argument, kind = ("dim", "int or tuple of ints") if isinstance(dim, bool) else ("unbiased", "bool")
            raise TypeError(f"{name}(): argument '{argument}' must be {kind}, not {type(wrong).__name__}")
        if unbiased is not None and correction is not _UNSET:
            raise TypeError(f"{name}(): expected unbiased or correction, got both (correction). Leave one out.")
        if correction is _UNSET or correction is None:
            correction = 1 if unbiased is None else int(unbiased)
        return op(input, dim, correction, keepdim) if out is None else op(input, dim, correction, keepdim, out=out)

    moment.__name__ = moment.__qualname__ = name
    moment.__doc__ = (
        f"{name}(input, dim=None, *, correction=1, keepdim=False): the {what}, sum(|x - mean|^2) / (count - correction)"
        f", over dim, or over everything. {name}(input, dim, unbiased, keepdim=False): unbiased=True is correction=1, "
        "False is correction=0."
    )
    return moment


var = _moment("var", _ops.var, "variance")
std = _moment("std", _ops.std, "standard deviation, the root of the variance")


def norm(
    input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: Any = None, dtype: Any = None
) -> Tensor:
    """``sum(|input| ** p) ** (1 / p)`` over ``dim``, or over everything.

    Args:
        p: a number, ``inf`` and ``-inf`` (the largest and the smallest absolute value) and 0 (the number of nonzero
            elements) included; ``"fro"`` is 2. ``"nuc"`` is not available.
        dtype: the dtype of the computation.

    Example::

        >>> import vesta
        >>> vesta.norm(vesta.tensor([3.0, 4.0]))
        tensor(5.)
    """
    _expect_tensor("norm", input)
    if p == "nuc":
        raise NotImplementedError("norm: expected p='fro' or a number, got 'nuc' (p). It is not available.")
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"norm: expected p to be 'fro', 'nuc' or a number, got {p!r} (p).")
    if p == "fro" and isinstance(dim, (list, tuple)) and len(dim) > 2:
        raise RuntimeError(f"norm: expected at most two dimensions for p='fro', got {dim} (dim). Give a number for p.")
    power = 2.0 if p is None or p == "fro" else p
    if out is None:
        return _ops.norm(input, power, dim, keepdim, dtype)
    return _ops.norm(input, power, dim, keepdim, dtype, out=out)


def where(condition: Tensor, input: Any = None, other: Any = None, *, out: Tensor | None = None) -> Any:
    """Returns ``input`` where ``condition`` is true, else ``other``; both may be numbers. With one argument it returns
    the places where ``condition`` is true, as ``nonzero(condition, as_tuple=True)``.

    Example::

        >>> import vesta
        >>> vesta.where(vesta.tensor([True, False]), 1, 2)
        tensor([1, 2])
    """
    if input is None and other is None:
        _expect_tensor("where", condition)
        return nonzero(condition, as_tuple=True)
    if out is None:
        return _ops.where(condition, input, other)
    return _ops.where(condition, input, other, out=out)


def nonzero(input: Tensor, *, out: Tensor | None = None, as_tuple: bool = False) -> Any:
    """nonzero(input): the places of elements that are not zero, [count, dimensions]; with ``as_tuple`` a tuple of index
    tensors, one per dimension.
    """
    if not as_tuple:
        return _ops.nonzero(input) if out is None else _ops.nonzero(input, out=out)
    _expect_tensor("nonzero", input)
    return _ops.nonzero(input.reshape(1) if input.dim() == 0 else input).unbind(1)


def randint(low: int, high: Any = None, size: Any = None, **options: Any) -> Tensor:
    """randint(low=0, high, size): int64 numbers drawn uniformly from [low, high), of shape ``size``.

    Args:
        options: generator, dtype, device, out, requires_grad, as for the other factories.
    """
    if size is None and high is not None and not isinstance(high, int):  # randint(high, size)
        low, high, size = 0, low, high
    elif high is None:  # randint(high, size=size)
        low, high = 0, low
    return _ops.randint(low, high, size, **options)


def clamp_(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """Limits the elements to [min, max] in place; either bound may be missing, a number or a tensor."""
    if min is None and max is None:
        raise RuntimeError("clamp_: At least one of 'min' or 'max' must not be None")
    if max is None:
        return input.clamp_min_(min)
    if min is None:
        return input.clamp_max_(max)
    # The gradient needs the old values: a copy of a recorded input is saved, as in every in-place op.
    clamped = (input.clone() if input.requires_grad else input).clamp(min, max)
    if clamped.dtype != input.dtype:
        raise RuntimeError(
            f"clamp_: result type {clamped.dtype} can't be cast to the desired output type {input.dtype}."
        )
    return input.copy_(clamped)


def is_tensor(obj: object) -> bool:
    """Returns whether ``obj`` is a tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> bool:
    """Returns whether the dtype is a real floating-point one."""
    _expect_tensor("is_floating_point", input)
    return input.is_floating_point()


def is_complex(input: Tensor) -> bool:
    """Returns whether the dtype is complex."""
    _expect_tensor("is_complex", input)
    return input.is_complex()


def numel(input: Tensor) -> int:
    """Returns the number of elements."""
    _expect_tensor("numel", input)
    return input.numel()


def typename(obj: object) -> str:
    """Returns the name of an object's type, as ``vesta.FloatTensor`` for tensors."""
    if isinstance(obj, Tensor):
        return obj.type()
    module = type(obj).__module__
    return type(obj).__qualname__ if module == "builtins" else f"{module}.{type(obj).__qualname__}"


def equal(input: Tensor, other: Tensor) -> bool:
    """Returns whether both have the same size and the same elements."""
    if not isinstance(input, Tensor) or not isinstance(other, Tensor):
        wrong = other if isinstance(input, Tensor) else input
        raise TypeError(f"equal(): expected Tensors, got {type(wrong).__name__}.")
    if input.shape != other.shape:
        return False
    _expect_one_device("equal", input, other)
    return bool(_ops.all(input == other))


def isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Returns whether ``|input - other| <= atol + rtol * |other|``, elementwise; infinities are close to themselves.

    Example::

        >>> import vesta
        >>> vesta.isclose(vesta.tensor([1.0, 2.0]), vesta.tensor([1.0 + 1e-9, 3.0]))
        tensor([ True, False])
    """
    _expect_tensor("isclose", input)
    _expect_tensor("isclose", other, 2)
    if input.dtype != other.dtype:
        raise RuntimeError(f"isclose: expected one dtype, got {input.dtype} and {other.dtype}. Convert one with .to().")
    if rtol < 0 or atol < 0:
        raise RuntimeError(f"isclose: expected rtol >= 0 and atol >= 0, got {rtol} and {atol}.")
    _expect_one_device("isclose", input, other)
    close = input == other
    if equal_nan and (input.is_floating_point() or input.is_complex()):
        close = close | (_ops.isnan(input) & _ops.isnan(other))
    if input.dtype is _C.bool or (rtol == 0 and atol == 0):
        return close
    wide = input if input.is_floating_point() or input.is_complex() else input.double()
    wide_other = other.to(wide.dtype)
    allowed = wide_other.abs() * rtol + atol
    finite = (wide_other - wide_other).abs() == 0  # infinite tolerances and distances do not count
    return close | (((wide - wide_other).abs() <= allowed) & finite & ((wide - wide).abs() == 0))


def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Returns whether all elements are close (see ``isclose``), with broadcasting."""
    _expect_tensor("allclose", input)
    _expect_tensor("allclose", other, 2)
    _expect_one_device("allclose", input, other)
    return bool(_ops.all(isclose(input.detach(), other.detach(), rtol, atol, equal_nan)))


def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool = False
) -> Tensor:
    """Returns a tensor of ``obj`` that shares its memory if possible; ``copy=True`` never shares, ``copy=False``
    must."""
    if copy:
        return _C.tensor(obj, dtype=dtype, device=device, requires_grad=requires_grad)
    made = _C.as_tensor(obj, dtype=dtype, device=device)
    shares = isinstance(obj, Tensor) or hasattr(obj, "__array_interface__") or hasattr(obj, "__dlpack__")
    if copy is False and not shares:
        raise ValueError(f"asarray: expected an object that shares its memory, got {type(obj).__name__} (copy=False).")
    if isinstance(obj, Tensor) and made.requires_grad != requires_grad:
        made = made.detach()
    return made.requires_grad_() if requires_grad else made
