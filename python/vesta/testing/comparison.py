"""``assert_close``: whether two values are equal within tolerances."""

from __future__ import annotations

import cmath
import collections.abc
import numbers
from collections.abc import Callable
from typing import Any

import vesta
from vesta import _C, Tensor
from vesta._deprecated import deprecated

__all__ = ["assert_allclose", "assert_close"]

#: The tolerances (rtol, atol) of a dtype; exact for all others.
_TOLERANCES = {
    _C.float16: (1e-3, 1e-5),
    _C.bfloat16: (1.6e-2, 1e-5),
    _C.float32: (1.3e-6, 1e-5),
    _C.float64: (1e-7, 1e-7),
    _C.complex64: (1.3e-6, 1e-5),
    _C.complex128: (1e-7, 1e-7),
}
Message = Callable[[str], str]


class _Differs(Exception):
    """Two values are not close: the class of the error to raise, its text, and where they are in the containers."""

    def __init__(self, kind: type[Exception], text: str) -> None:
        super().__init__(text)
        self.kind, self.text = kind, text
        self.path: list[Any] = []


class _Rules:
    """What is compared, and how closely."""

    def __init__(
        self,
        allow_subclasses: bool,
        rtol: float | None,
        atol: float | None,
        equal_nan: bool,
        check_device: bool,
        check_dtype: bool,
        check_layout: bool,
        check_stride: bool,
    ) -> None:
        self.allow_subclasses, self.rtol, self.atol, self.equal_nan = allow_subclasses, rtol, atol, equal_nan
        self.check_device, self.check_dtype = check_device, check_dtype
        self.check_layout, self.check_stride = check_layout, check_stride

    def tolerances(self, *dtypes: Any) -> tuple[float, float]:
        """Returns (rtol, atol): those given, else the widest of the dtypes."""
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        found = [_TOLERANCES.get(dtype, (0.0, 0.0)) for dtype in dtypes]
        return max(rtol for rtol, _ in found), max(atol for _, atol in found)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Message | None = None,
) -> None:
    """Raises AssertionError unless ``|actual - expected| <= atol + rtol * |expected|`` holds for every element.

    Meta tensors have no elements' values: their shapes, dtypes and so on are compared.

    Args:
        actual, expected: tensors, numbers, arrays, or sequences and mappings of them.
        allow_subclasses: whether two inputs of related classes are compared.
        rtol, atol: the tolerances; both or none. By default they follow the dtype: 1.3e-6 and 1e-5 for float32, 1e-7
            for float64, 1e-3 and 1e-5 for float16, 1.6e-2 and 1e-5 for bfloat16, 0 for integers.
        equal_nan: whether NaN equals NaN.
        check_device, check_dtype, check_layout, check_stride: whether these must be equal.
        msg: the text of the error, or a function that makes it from the one it would have.

    Raises:
        AssertionError: they are not close.
        ValueError: one of ``rtol`` and ``atol`` is given without the other.
        TypeError: they cannot be compared.

    Example::

        >>> import vesta
        >>> vesta.testing.assert_close(vesta.tensor(1.0) / 3, vesta.tensor(0.333333333))
    """
    if (rtol is None) != (atol is None):
        missing = "rtol" if rtol is None else "atol"
        raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.")
    rules = _Rules(allow_subclasses, rtol, atol, equal_nan, check_device, check_dtype, check_layout, check_stride)
    try:
        _compare(actual, expected, rules)
    except _Differs as found:
        text = found.text
        if found.path:
            place = "".join(f"[{part!r}]" for part in reversed(found.path))
            text = f"{text}\n\nThe failure occurred for item {place}"
        if found.kind is AssertionError and msg is not None:
            text = msg(text) if callable(msg) else msg
        raise found.kind(text) from None


def _compare(actual: Any, expected: Any, rules: _Rules) -> None:
    if not _related(actual, expected, rules):
        if isinstance(actual, (Tensor, numbers.Number)) and isinstance(expected, (Tensor, numbers.Number)):
            raise _Differs(
                TypeError, f"assert_close: expected two values of one kind, got {type(actual)} and {type(expected)}."
            )
        raise _Differs(
            TypeError,
            f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.",
        )
    if actual is None:
        return
    if isinstance(actual, Tensor):
        _compare_tensors(actual, expected, rules)
    elif type(actual).__module__ == "numpy" and hasattr(actual, "dtype"):
        _compare_tensors(_of_array(actual), _of_array(expected), rules)
    elif isinstance(actual, (bool, numbers.Number)):
        _compare_numbers(actual, expected, rules)
    elif isinstance(actual, collections.abc.Mapping):
        _compare_mappings(actual, expected, rules)
    elif isinstance(actual, collections.abc.Sequence) and not isinstance(actual, (str, bytes)):
        if len(actual) != len(expected):
            raise _Differs(AssertionError, f"The length of the sequences mismatch: {len(actual)} != {len(expected)}")
        for i, (a, b) in enumerate(zip(actual, expected)):
            _inside(i, a, b, rules)
    else:
        raise _Differs(
            TypeError, f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}."
        )


def _inside(key: Any, actual: Any, expected: Any, rules: _Rules) -> None:
    try:
        _compare(actual, expected, rules)
    except _Differs as found:
        found.path.append(key)
        raise


def _related(actual: Any, expected: Any, rules: _Rules) -> bool:
    """Returns whether two values are of one kind."""
    if type(actual) is type(expected):
        return True
    for kind in (Tensor, collections.abc.Mapping):
        if isinstance(actual, kind) and isinstance(expected, kind):
            return rules.allow_subclasses
    texts = (str, bytes)
    if isinstance(actual, collections.abc.Sequence) and isinstance(expected, collections.abc.Sequence):
        return not isinstance(actual, texts) and not isinstance(expected, texts)
    plain = (bool, numbers.Number)
    return isinstance(actual, plain) and isinstance(expected, plain)


def _of_array(array: Any) -> Tensor:
    return vesta.as_tensor(array)


def _compare_mappings(actual: Any, expected: Any, rules: _Rules) -> None:
    missing, extra = set(expected) - set(actual), set(actual) - set(expected)
    if missing or extra:
        raise _Differs(
            AssertionError,
            "The keys of the mappings do not match:\n"
            f"Missing keys in the actual mapping: {sorted(missing, key=str)}\n"
            f"Additional keys in the actual mapping: {sorted(extra, key=str)}",
        )
    for key in expected:
        _inside(key, actual[key], expected[key], rules)


_DTYPES = {bool: _C.bool, int: _C.int64, float: _C.float64, complex: _C.complex128}


def _dtype_of(value: Any) -> Any:
    kinds = ((bool, bool), (numbers.Integral, int), (numbers.Real, float), (numbers.Complex, complex))
    return next(_DTYPES[kind] for known, kind in kinds if isinstance(value, known))


def _compare_numbers(actual: Any, expected: Any, rules: _Rules) -> None:
    if rules.check_dtype and type(actual) is not type(expected):
        raise _Differs(AssertionError, f"The (d)types do not match: {type(actual)} != {type(expected)}.")
    rtol, atol = rules.tolerances(_dtype_of(actual), _dtype_of(expected))
    if actual == expected or (rules.equal_nan and cmath.isnan(actual) and cmath.isnan(expected)):
        return
    difference = abs(actual - expected)
    if cmath.isfinite(actual) and cmath.isfinite(expected) and difference <= atol + rtol * abs(expected):
        return
    relative = difference / abs(expected) if expected else float("inf")
    title = "Scalars are not " + ("equal" if rtol == atol == 0 else "close") + "!"
    text = f"{title}\n\nExpected {expected} but got {actual}.\nAbsolute difference: {difference}"
    text += f"{_limit(atol, rtol)}\nRelative difference: {relative}{_limit(rtol, atol)}"
    raise _Differs(AssertionError, text)


def _limit(value: float, other: float) -> str:
    return f" (up to {value} allowed)" if value or other else ""


def _compare_tensors(actual: Tensor, expected: Tensor, rules: _Rules) -> None:
    def refuse(what: str, a: Any, b: Any) -> None:
        raise _Differs(AssertionError, f"The values for attribute '{what}' do not match: {a} != {b}.")

    if actual.shape != expected.shape:
        refuse("shape", actual.shape, expected.shape)
    if rules.check_layout and actual.layout != expected.layout:
        refuse("layout", actual.layout, expected.layout)
    if rules.check_device and actual.device != expected.device:
        refuse("device", actual.device, expected.device)
    if rules.check_dtype and actual.dtype != expected.dtype:
        refuse("dtype", actual.dtype, expected.dtype)
    if rules.check_stride and actual.stride() != expected.stride():
        refuse("stride()", actual.stride(), expected.stride())
    rtol, atol = rules.tolerances(actual.dtype, expected.dtype)
    if actual.is_meta or expected.is_meta:
        return  # it has no values, so that what was compared is all
    with vesta.no_grad():
        _compare_values(actual.detach().cpu(), expected.detach().cpu(), rtol, atol, rules.equal_nan)


def _wide(values: Tensor, other: Tensor) -> Tensor:
    """Returns the values in a dtype in which differences are exact enough."""
    if values.is_complex() or other.is_complex():
        return values.to(_C.complex128)
    if values.is_floating_point() or other.is_floating_point():
        return values.to(_C.float64)
    return values.to(_C.int64)


def _compare_values(actual: Tensor, expected: Tensor, rtol: float, atol: float, equal_nan: bool) -> None:
    a, b = _wide(actual, expected), _wide(expected, actual)
    close = vesta.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
    if bool(close.all()):
        return
    exact = rtol == atol == 0
    if a.dim() == 0:
        difference = abs(a.item() - b.item())
        relative = difference / abs(b.item()) if b.item() else float("inf")
        text = f"{'Scalars' if a.dim() == 0 else 'Tensor-likes'} are not {'equal' if exact else 'close'}!\n\n"
        text += f"Expected {b.item()} but got {a.item()}.\nAbsolute difference: {difference}{_limit(atol, rtol)}\n"
        text += f"Relative difference: {relative}{_limit(rtol, atol)}"
        raise _Differs(AssertionError, text)
    wrong = int((~close).sum())
    differences = (a - b).abs()
    absolute, where = _largest(vesta.where(close, vesta.zeros_like(differences), differences))
    quotients = differences.to(_C.float64) / b.abs().to(_C.float64)
    relative, relative_where = _largest(vesta.where(close, vesta.zeros_like(quotients), quotients))
    raise _Differs(
        AssertionError,
        f"Tensor-likes are not {'equal' if exact else 'close'}!\n\n"
        f"Mismatched elements: {wrong} / {a.numel()} ({100 * wrong / a.numel():.1f}%)\n"
        f"Greatest absolute difference: {absolute} at index {where}{_limit(atol, rtol)}\n"
        f"Greatest relative difference: {relative} at index {relative_where}{_limit(rtol, atol)}",
    )


def _largest(values: Tensor) -> tuple[Any, tuple[int, ...]]:
    """Returns the largest value (NaN counts as the largest) and where it is."""
    position = int(values.reshape(-1).argmax())
    value, index = values.reshape(-1)[position].item(), []
    for size in reversed(values.shape):
        position, rest = divmod(position, size)
        index.append(rest)
    return value, tuple(reversed(index))


@deprecated("vesta.testing.assert_allclose", "vesta.testing.assert_close")
def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """The older ``assert_close``: compares values only; ``expected`` may be a number or an array.

    Example::

        >>> import vesta, warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     vesta.testing.assert_allclose(vesta.ones(2), vesta.ones(2))
    """
    a = actual if isinstance(actual, Tensor) else vesta.tensor(actual)
    b = expected if isinstance(expected, Tensor) else vesta.tensor(expected, dtype=a.dtype)
    if rtol is None and atol is None:
        rtol, atol = _TOLERANCES.get(a.dtype, (0.0, 0.0))
    assert_close(
        a,
        b.expand(a.shape) if b.dim() == 0 else b,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=True,
        check_dtype=False,
        check_stride=False,
        msg=msg or None,
    )
