"""Makes tensors of a row's samples in every layout, calls the op, and compares the results with NumPy."""

from __future__ import annotations

import importlib
import warnings
from typing import Any, Callable

import numpy as np
import vesta
from op_db_row import DTYPES, REAL_OF, Constant, Dtype, Fixed, Row, Sample

#: The devices of every generated test: CUDA as well if there is a GPU or the emulated device (conftest.py).
DEVICES = ["cpu", "cuda"] if vesta.cuda.is_available() else ["cpu"]


def devices_of(row: Row) -> list[str]:
    """Returns the devices on which a row's generated tests run."""
    return DEVICES if row.cuda else ["cpu"]


#: The classes that a refused call may raise: PyTorch's, which the library's own exceptions inherit.
REFUSALS = (TypeError, ValueError, RuntimeError, IndexError, NotImplementedError)


def vdtype(name: str) -> Any:
    """Returns the library's dtype object of that name."""
    return getattr(vesta, name)


def name_of(dtype: Any) -> str:
    """Returns the bare name of a dtype object ("float32")."""
    return str(dtype).rsplit(".", 1)[-1]


# ---- NumPy to tensor --------------------------------------------------------------------------------------------


def tensor_of(array: np.ndarray, dtype: str, device: str = "cpu") -> Any:
    """Makes a fresh contiguous tensor of ``array``'s values (NumPy's strides of an empty array may be 0)."""
    if array.size == 0:
        return vesta.empty(array.shape, dtype=vdtype(dtype), device=device)
    made = vesta.from_numpy(np.array(array, order="C", copy=True)).to(vdtype(dtype))
    return made if device == "cpu" else made.to(device)


def layout_contiguous(array: np.ndarray, dtype: str, device: str) -> Any:
    return tensor_of(array, dtype, device)


def layout_transposed(array: np.ndarray, dtype: str, device: str) -> Any:
    """Stores the values with reversed dimension order."""
    if array.ndim < 2:
        return None
    return tensor_of(array.transpose(), dtype, device).permute(*range(array.ndim - 1, -1, -1))


def layout_sliced(array: np.ndarray, dtype: str, device: str) -> Any:
    """Stores the values at every second position of a larger tensor, from the second position on."""
    if array.ndim == 0:
        return tensor_of(np.repeat(array, 3), dtype, device)[1]
    base = np.repeat(array, 2, axis=-1)
    base[..., ::2] = np.array(1, dtype=array.dtype)
    return tensor_of(base, dtype, device)[..., 1::2]


def layout_offset(array: np.ndarray, dtype: str, device: str) -> Any:
    """Stores the values contiguously, three elements into a storage: aligned to no more than one element."""
    flat = np.concatenate([np.ones(3, array.dtype), array.reshape(-1), np.ones(2, array.dtype)])
    return tensor_of(flat, dtype, device)[3 : 3 + array.size].view(array.shape)


def layout_expanded(array: np.ndarray, dtype: str, device: str) -> Any:
    """Stores the first slice along dimension 0 once and repeats it with stride 0."""
    if array.ndim == 0 or array.shape[0] < 2:
        return None
    return tensor_of(array[:1], dtype, device).expand(array.shape)


Layout = Callable[[np.ndarray, str, str], Any]
LAYOUTS: dict[str, Layout] = {
    "transposed": layout_transposed,
    "sliced": layout_sliced,
    "offset": layout_offset,
    "expanded": layout_expanded,
}


def repeated(array: np.ndarray) -> np.ndarray:
    """Returns the values that ``layout_expanded`` shows for ``array``."""
    return array if array.ndim == 0 or array.shape[0] < 2 else np.broadcast_to(array[:1], array.shape)


def repeated_constant(array: np.ndarray) -> Constant:
    return Constant(repeated(array))


OnArray = Callable[[np.ndarray], Any]


def map_arrays(value: Any, on_array: OnArray, on_fixed: OnArray, on_constant: OnArray) -> Any:
    """Rebuilds nested tuples, lists and dicts with every array replaced."""
    if isinstance(value, np.ndarray):
        return on_array(value)
    if isinstance(value, Fixed):
        return on_fixed(value.array)
    if isinstance(value, Constant):
        return on_constant(value.array)
    if isinstance(value, (tuple, list)):
        return type(value)(map_arrays(item, on_array, on_fixed, on_constant) for item in value)
    if isinstance(value, dict):
        return {key: map_arrays(item, on_array, on_fixed, on_constant) for key, item in value.items()}
    return value


def materialize(
    sample: Sample, dtype: str, device: str = "cpu", layout: Layout = layout_contiguous, requires_grad: bool = False
) -> Sample:
    """Replaces the sample's arrays by tensors of ``dtype`` in ``layout`` (contiguous if the layout does not apply).

    With ``requires_grad``, the tensors that may have a gradient require grad.
    """

    def on_constant(array: np.ndarray) -> Any:
        made = layout(array, dtype, device)
        return tensor_of(array, dtype, device) if made is None else made

    def on_array(array: np.ndarray) -> Any:
        made = on_constant(array)
        return made.requires_grad_() if requires_grad else made

    def on_fixed(array: np.ndarray) -> Any:
        made = None if layout is layout_expanded else layout(array, array.dtype.name, device)
        return tensor_of(array, array.dtype.name, device) if made is None else made

    return Sample(
        map_arrays(sample.args, on_array, on_fixed, on_constant),
        map_arrays(sample.kwargs, on_array, on_fixed, on_constant),
    )


def random_tensor(*shape: int, dtype: str = "float32", seed: int = 0) -> Any:
    """Returns normally distributed numbers of deviation 10, the same for the same seed."""
    values = np.random.default_rng(seed).normal(size=shape) * 10
    return tensor_of(values.astype(DTYPES[dtype].carrier), dtype)


# ---- calls ------------------------------------------------------------------------------------------------------


def function_of(row: Row) -> Callable[..., Any]:
    """Returns the function of this row: ``vesta.exp``, ``vesta.nn.functional.gelu``, a method, or ``row.fn``."""
    if row.fn is not None:
        return row.fn
    if row.where == "Tensor":
        return lambda x, *args, **kwargs: getattr(x, row.name)(*args, **kwargs)
    module = importlib.import_module(f"vesta.{row.where}") if row.where else vesta
    return getattr(module, row.name)


def expected(row: Row, sample: Sample, dtype: str) -> Any:
    """Computes NumPy's result in float64 or complex128 (integers as they are, unless the result is a float)."""
    family = DTYPES[dtype].family
    widen = {"c": np.complex128, "f": np.float64, "h": np.float64}.get(family)
    if widen is None and row.result == "float":
        widen = np.float64
    on_array = (lambda a: a.astype(widen)) if widen else (lambda a: a)
    args = map_arrays(sample.args, on_array, lambda a: a, on_array)
    kwargs = map_arrays(sample.kwargs, on_array, lambda a: a, on_array)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return row.ref(*args, **kwargs)


def results(value: Any) -> list[Any]:
    """Returns the tensors of a result: itself, or those of a (named) tuple or list."""
    return list(value) if isinstance(value, (tuple, list)) else [value]


def leaves_of(value: Any) -> list[Any]:
    """Collects the tensors of nested arguments that require grad, in order."""
    if isinstance(value, vesta.Tensor):
        return [value] if value.requires_grad else []
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [tensor for item in value for tensor in leaves_of(item)]
    return []


def replace_leaves(value: Any, replacements: list[Any]) -> Any:
    """Rebuilds nested arguments with the tensors of ``leaves_of`` replaced, in that order (empties the list)."""
    if isinstance(value, vesta.Tensor):
        return replacements.pop(0) if value.requires_grad else value
    if isinstance(value, dict):
        return {key: replace_leaves(item, replacements) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(replace_leaves(item, replacements) for item in value)
    return value


def of_leaves(row: Row, sample: Sample) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Turns a sample with tensors into a function of only its leaves, as gradcheck needs it, and the leaves."""
    function, both = function_of(row), [list(sample.args), sample.kwargs]

    def of(*leaves: Any) -> Any:
        args, kwargs = replace_leaves(both, list(leaves))
        got = results(function(*args, **kwargs))
        return tuple(tensor for tensor in got if tensor.dtype.is_floating_point or tensor.dtype.is_complex)

    return of, tuple(leaves_of(both))


# ---- comparisons ------------------------------------------------------------------------------------------------


def array_of(tensor: Any) -> np.ndarray:
    """Returns the tensor's values as a NumPy array (bfloat16 as float32, which holds them exactly)."""
    tensor = tensor.detach()
    if tensor.device.type != "cpu":
        tensor = tensor.to("cpu")
    return np.array(tensor.to(vesta.float32).numpy() if tensor.dtype == vesta.bfloat16 else tensor.numpy())


def _bits(array: np.ndarray) -> np.ndarray:
    if np.iscomplexobj(array):
        array = np.ascontiguousarray(array).view(array.real.dtype)
    if array.dtype.kind != "f":
        return array
    canonical = np.where(np.isnan(array), np.array(np.nan, array.dtype), array)
    return canonical.view(f"u{array.dtype.itemsize}")


def assert_same(got: Any, want: Any, note: str = "") -> None:
    """Raises unless the (first) results of two calls have the same bits."""
    assert_same_bits(results(got)[0], results(want)[0], note)


def assert_same_bits(got: Any, want: Any, note: str = "") -> None:
    """Asserts equal dtype, shape and bits (any NaN equals any NaN, -0.0 differs from 0.0)."""
    assert got.dtype == want.dtype, f"{note}: dtype {got.dtype} instead of {want.dtype}"
    assert tuple(got.shape) == tuple(want.shape), f"{note}: shape {got.shape} instead of {want.shape}"
    a, b = array_of(got), array_of(want)
    a, b = np.atleast_1d(a), np.atleast_1d(b)
    different = _bits(a) != _bits(b)
    if different.any():
        if np.iscomplexobj(a):
            different = different.reshape(*a.shape, 2).any(axis=-1)
        place = np.unravel_index(int(np.argmax(different)), different.shape)
        raise AssertionError(
            f"{note}: {int(different.sum())} of {different.size} elements differ, first at "
            f"{[int(i) for i in place]}: {a[place]!r} instead of {b[place]!r}"
        )


def spacing(values: np.ndarray, dtype: Dtype) -> np.ndarray:
    """Returns the distance between neighbouring numbers of ``dtype`` at each value (units in the last place)."""
    _, exponent = np.frexp(np.where(np.isfinite(values), np.abs(values), 0.0))
    return np.maximum(np.ldexp(1.0, exponent - dtype.bits), dtype.smallest)


def assert_close(got: Any, want: Any, dtype: str, row: Row, note: str = "") -> None:
    """Asserts that a tensor has this dtype, NumPy's shape, and NumPy's values within the row's tolerance."""
    assert name_of(got.dtype) == dtype, f"{note}: dtype {got.dtype} instead of {dtype}"
    want = np.asarray(want)
    assert tuple(got.shape) == want.shape, f"{note}: shape {tuple(got.shape)} instead of {want.shape}"
    spec, have, want = DTYPES[dtype], np.atleast_1d(array_of(got)), np.atleast_1d(want)
    if not spec.bits:
        np.testing.assert_array_equal(have, want.astype(spec.carrier), err_msg=note)
        return
    with np.errstate(all="ignore"):
        more_ulp = 0.0 if got.device.type == "cpu" else CUDA_ULP.get(row.name, 1.0)
        wrong, error = _misses(have, want, dtype, row, more_ulp)
    if wrong.any():
        place = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
        raise AssertionError(
            f"{note}: {int(wrong.sum())} of {wrong.size} values are off, first at {place}: "
            f"{have[place]!r} instead of {want[place]!r}, error {error[place]:.3g}"
        )


#: A CUDA device uses CUDA's functions, the emulated one those of the C library: one unit in the last place more, or
#: what CUDA promises (CUDA C++ Programming Guide, "Mathematical Functions": tanf is within 4 units).
CUDA_ULP = {"tan": 3.0}


def _misses(have: np.ndarray, want: np.ndarray, dtype: str, row: Row, more_ulp: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns which values miss the tolerance, and their errors."""
    spec = DTYPES[REAL_OF.get(dtype, dtype)]
    if dtype in REAL_OF:
        have, want = have.astype(np.complex128), want.astype(np.complex128)
        equal = (have == want) | (np.isnan(have) & np.isnan(want))
    else:
        have, want = have.astype(np.float64), want.astype(np.float64)
        equal = (have == spec.round(want).astype(np.float64)) | (np.isnan(have) & np.isnan(want))
    error = np.abs(have - want)
    if row.ulp:
        # A 16-bit result is computed in float32 and rounded once; for float64 the reference has its own error.
        ulp = {"float16": 0.51, "bfloat16": 0.501, "float64": (row.ulp64 or row.ulp + 1.5) + more_ulp}.get(
            dtype, row.ulp + more_ulp
        )
        bound = (8 * row.ulp if dtype in REAL_OF else ulp) * spacing(np.abs(want), spec)
    else:
        finite = np.abs(want[np.isfinite(want)])
        bound = row.norm * 2.0 ** (1 - spec.bits) * max(1.0, float(finite.max()) if finite.size else 1.0)
    wrong = ~equal & ~(error <= bound)
    return wrong, error


def known(name: str) -> str:
    """Returns an op's name as errors have it: that of a private op without its underscore."""
    return name if name.startswith("__") else name.removeprefix("_")


def check_message(error: BaseException, *fragments: str) -> None:
    """Asserts that an error message contains each fragment."""
    for fragment in fragments:
        assert fragment in str(error), f"{type(error).__name__} message {str(error)!r} does not name {fragment!r}"
